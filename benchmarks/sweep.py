"""A sweep of 1,000 small cases: two processes against one, and four against two on two cores.

Times are of the whole sweep, the start of the workers and the writing of the file included. On a machine with fewer
free cores than workers the ratio says nothing; look at its load first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Comparison, compare
from spectral_mf.solvers import solve_sweep

PLAN = {
    "grid": {
        "model": {"beta": {"start": 1.0, "stop": 10.0, "count": 10}},
        "initial": {"seed": {"start": 0, "stop": 99, "count": 100}},
    },
    "initial": {"white_noise": 0.1},
    "time": {"t_end": 8.0, "dt": 0.1},
    "solver": {"rtol": 1e-8},
}


def swept(folder: Path, workers: int) -> Path:
    """The file of the sweep, by so many processes."""
    path = folder / f"{workers}.h5"
    solve_sweep(PLAN, path, workers=workers, overwrite=True)
    return path


def run() -> Iterator[Comparison]:
    """Yield the comparisons; the difference is the number of bytes in which the two files differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for ours, theirs, required in ((2, 1, 1.8), (4, 2, None)):
            first, second = (swept(folder, workers).read_bytes() for workers in (ours, theirs))
            unequal = sum(a != b for a, b in zip(first, second, strict=True))
            yield compare(
                f"1,000-case sweep, {ours} processes",
                (f"{ours} processes", lambda ours=ours: swept(folder, ours)),
                (f"{theirs} process{'es' if theirs > 1 else ''}", lambda theirs=theirs: swept(folder, theirs)),
                difference=float(unequal),
                required=required,
                rounds=3,
            )
