"""What all tests share: one thread a library, no display, and the same random examples in every run."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # before numpy is imported: two cores are soon oversubscribed
os.environ.setdefault("MPLBACKEND", "Agg")

if find_spec("spectral_mf") is None or find_spec("spectral_mf.solvers") is None:
    pytest.exit("the package is not installed for use in its clone; run: pip install -e '.[test]'", returncode=4)

settings.register_profile("reproducible", derandomize=True, deadline=None, database=None)
settings.load_profile("reproducible")


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Root of the source tree that the tests lie in."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def empty_folder(tmp_path, monkeypatch) -> Path:
    """The folder that the test is in: its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(empty_folder, capfd):
    """Run a command in this process, in a folder of its own; its code, stdout and stderr."""
    from spectral_mf.cli.app import run

    def call(*arguments):
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return call
