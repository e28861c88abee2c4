"""Output times lie on the decimal grid that the user means, and end where they should."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_mf import InputError
from spectral_mf.output_times import interval_of, output_times


@pytest.mark.parametrize(
    ("t_end", "interval", "rows"),
    [
        (1.0, 0.1, 11),
        (0.3, 0.1, 4),
        (1.0, 0.3, 5),
        (30.0, 30 / 199, 200),
        (7.0, 7.0, 2),
        (1.0, 2.0, 2),
        (1e-6, 1e-7, 11),
    ],
)
def test_number_of_rows_and_last_time(t_end, interval, rows):
    times = output_times(t_end, interval)
    assert len(times) == rows
    assert times[0] == 0.0
    assert times[-1] == t_end
    assert (np.diff(times) > 0).all()


def test_times_are_the_decimal_numbers_that_are_meant():
    assert output_times(1.0, 0.1).tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert output_times(1.0, 0.3).tolist() == [0.0, 0.3, 0.6, 0.9, 1.0]
    assert output_times(5.3, 0.1, start=5.0).tolist() == [5.0, 5.1, 5.2, 5.3]


@pytest.mark.parametrize("t_end", [7.0, 0.25, 1e-6, 3.7, 1e6])
def test_a_hundredth_of_the_span_is_the_default(t_end):
    times = output_times(t_end)
    assert len(times) == 101
    expected = [float(Decimal(repr(t_end)) * i / 100) for i in range(101)]
    assert times.tolist() == expected


@given(
    hundredths=st.integers(1, 500),
    first=st.integers(1, 300),
    more=st.integers(1, 300),
    start=st.sampled_from([0.0, 0.25, 5.0]),
)
def test_a_run_that_goes_further_has_the_same_times_bit_for_bit(hundredths, first, more, start):
    interval = hundredths / 100
    grid = Fraction(hundredths, 100)
    short = output_times(float(Fraction(start) + grid * first), interval, start=start)
    long = output_times(float(Fraction(start) + grid * (first + more)), interval, start=start)
    assert len(short) == first + 1
    assert len(long) == first + more + 1
    assert np.array_equal(long[: first + 1], short)


@given(t_end=st.floats(1e-9, 1e9), ratio=st.floats(1e-3, 3.0))
def test_any_interval_gives_increasing_times_that_end_exactly(t_end, ratio):
    times = output_times(t_end, ratio * t_end)
    assert times[0] == 0.0
    assert times[-1] == t_end
    assert (np.diff(times) > 0).all()
    assert (np.diff(times) <= ratio * t_end * (1 + 1e-9)).all()


def test_no_span_is_one_row():
    assert output_times(5.0, 0.1, start=5.0).tolist() == [5.0]


@pytest.mark.parametrize(
    ("t_end", "interval", "words"),
    [
        (-1.0, 0.1, "before the initial time"),
        (float("nan"), 0.1, "not finite"),
        (1.0, float("inf"), "not finite"),
        (1.0, 0.0, "not positive"),
        (1.0, -0.1, "not positive"),
        (1.0, 1e-9, "give a larger one"),
    ],
)
def test_bad_times_are_refused(t_end, interval, words):
    with pytest.raises(InputError, match=words):
        output_times(t_end, interval)


@pytest.mark.parametrize(("t_end", "interval"), [(1.0, 0.1), (0.3, 0.1), (1.0, 0.3), (7.0, 7.0), (30.0, 30 / 199)])
def test_interval_of_times_makes_them_again(t_end, interval):
    times = output_times(t_end, interval)
    found = interval_of(times)
    np.testing.assert_array_equal(output_times(t_end, found), times)
    further = output_times(2.0 * t_end, found)
    np.testing.assert_allclose(further[: len(times) - 1], times[:-1], atol=0)


@pytest.mark.parametrize("times", [[0.0], [0.0, 0.04, 0.4, 1e6], [0.0, 1.0, 3.0], [0.0, 1e-12, 1.0]])
def test_times_of_no_interval(times):
    assert interval_of(np.array(times)) is None
