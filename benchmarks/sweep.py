"""A sweep of 1,000 small cases: two processes against one, and four against two on two cores.

Times are of the whole sweep, the start of the workers and the writing of the file included. On a machine with fewer
free cores than workers the ratio says nothing; look at its load first. What the machine itself allows is measured
beside it: the same cases in processes that have started already and keep nothing. Two cores that share a clock, a cache
or a host with others are not twice as fast as one.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Comparison, compare
from spectral_mf.solvers import solve_sweep
from spectral_mf.solvers.sweep import solve_case
from spectral_mf.sweep import SweepPlan

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


def solved(numbers: Sequence[int]) -> None:
    """Solve these cases, and keep nothing."""
    plan = SweepPlan.from_sections(PLAN)
    for number in numbers:
        solve_case(number, plan.case(number))


def bare(workers: int) -> Comparison:
    """All cases in so many processes at work already, against one."""
    everything = range(SweepPlan.from_sections(PLAN).n_cases)
    parts = [everything[start::workers] for start in range(workers)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers) as several, context.Pool(1) as one:
        several.map(solved, [part[:10] for part in parts], chunksize=1)  # started, and all that is imported late
        one.map(solved, [everything[:10]])
        return compare(
            f"1,000 bare cases, {workers} processes",
            (f"{workers} processes", lambda: several.map(solved, parts, chunksize=1)),
            ("1 process", lambda: one.map(solved, [everything])),
            rounds=3,
        ).noted("what the machine allows", met=True)


def run() -> Iterator[Comparison]:
    """Yield the comparisons; the difference is the number of bytes in which the two files differ."""
    yield bare(2)
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
