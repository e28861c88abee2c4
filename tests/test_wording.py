"""Counted things in words."""

import pytest

from spectral_mf.wording import counted


@pytest.mark.parametrize(
    ("number", "things", "words"),
    [(0, "rows", "0 rows"), (1, "rows", "1 row"), (2, "rows", "2 rows"), (1, "uniform tokens", "1 uniform token")],
)
def test_one_is_not_plural(number, things, words):
    assert counted(number, things) == words
