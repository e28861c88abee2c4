"""Python on the pages of the documentation runs as printed, page by page, in an empty folder."""

import re

import pytest

from spectral_mf import PositionalTrajectory
from spectral_mf.cli.app import run as spectral_mf_command

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def variables(checkout, page):
    """What is left after all blocks of a page have run one after the other."""
    left = {}
    for code in BLOCK.findall((checkout / "docs" / page).read_text(encoding="utf-8")):
        exec(compile(code, page, "exec"), left)
    return left


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_clusters(checkout):
    lifetime = variables(checkout, "clusters.md")["history"].lifetime(3)
    assert lifetime.formed == pytest.approx(8.87, abs=0.005)
    assert not lifetime.complete


@pytest.mark.slow
def test_common_noise(checkout):
    left = variables(checkout, "common-noise.md")
    assert (left["again"].moments == left["run"].moments).all()
    assert left["path"].origin == "seed 1"


def test_positions(checkout):
    left = variables(checkout, "positions.md")
    assert (left["again"].moments == left["run"].moments).all()
    file = checkout / "examples" / "positions.toml"
    assert spectral_mf_command(["solve", str(file), "--quiet", "--output", "shell.h5"]) == 0
    assert (PositionalTrajectory.load("shell.h5").moments == left["waves"].moments).all()
