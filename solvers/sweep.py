"""Sweeps of solutions: one run for each point of a grid, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.cluster_history import ClusterHistory, clusters
from spectral_mf.config import RunConfig
from spectral_mf.errors import InputError, StoppedEarly
from spectral_mf.growth_rates import dominant_mode
from spectral_mf.model import Model
from spectral_mf.solvers.run import solve
from spectral_mf.sweep import CaseResult, SweepPlan, SweepSummary, carry_out
from spectral_mf.sweep.carry_out import Report
from spectral_mf.sweep.plan import DEFAULT_MODES
from spectral_mf.sweep.results import VARIABLES
from spectral_mf.trajectory import Trajectory

FloatArray = NDArray[np.float64]

EXIT_LEVEL = 0.1
"""Size of the largest moment at which a solution has left the linear regime."""

_FEWEST_CELLS = 4
"""Nothing of the density on cells is kept."""


def solve_sweep(
    plan: SweepPlan | str | Path | Mapping[str, Any],
    output: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Report | None = None,
) -> SweepSummary:
    """Solve all cases of a plan, and write moments, energies and clusters of all to one file (see `docs/sweeps.md`).

    A script that calls this does so below `if __name__ == "__main__":`, as workers are processes that import it.

    Parameters
    ----------
    plan : SweepPlan, path or mapping
        What to solve, a sweep file, or its sections.
    output : path
        HDF5 file. Until all cases are finished, the finished ones are in `NAME.cases` beside it.
    workers : int, optional
        Number of processes, or of workers of a local cluster; by default the cores.
    scheduler : str, optional
        Address of Dask's scheduler, "tcp://HOST:PORT", or "local" for a cluster on this machine; by default processes.
    resume : bool
        Whether the cases that an earlier, interrupted call has finished are taken over. The file is then byte for byte
        that of one uninterrupted call.
    overwrite : bool
        Whether an existing file, or the finished cases of an earlier sweep, may be replaced.
    report : callable, optional
        Called with a `spectral_mf.sweep.SweepProgress` after each bundle of cases.

    Returns
    -------
    SweepSummary

    Raises
    ------
    InputError
        If the plan or an argument is not allowed, or the scheduler cannot be reached.
    StorageError
        If the file exists, another sweep is writing it, or it cannot be written.
    """
    if isinstance(plan, (str, Path)):
        plan = SweepPlan.from_toml(plan)
    elif isinstance(plan, Mapping):
        plan = SweepPlan.from_sections(plan)
    return carry_out(
        plan,
        output,
        solve_case,
        workers=workers,
        scheduler=scheduler,
        resume=resume,
        overwrite=overwrite,
        report=report,
    )


def solve_case(number: int, sections: Mapping[str, Any]) -> CaseResult:
    """Solve one case of a sweep.

    Parameters
    ----------
    number : int
        Its number in the plan.
    sections : mapping
        Its run file.

    Raises
    ------
    InputError
        If a value is not allowed.
    """
    config = RunConfig.from_sections(sections)
    model, times = config.model(), config.times()
    options = config.solve_options()
    stored = options.pop("n_modes", DEFAULT_MODES)
    outcome, message = "complete", ""
    try:
        run = solve(
            model, config.initial_measure().measure, times, **{**options, "n_modes": stored, "n_cells": _FEWEST_CELLS}
        )
    except StoppedEarly as stop:
        if stop.trajectory is None:
            raise
        run, outcome, message = stop.trajectory, "stopped", str(stop)
    history = clusters(run)
    values = {
        "moment_real": run.moments.real,
        "moment_imag": run.moments.imag,
        "energy": run.energy,
        "n_clusters": history.counts.astype(np.int32),
        "energy_log_unit": np.float64(model.energy_log_unit),
        "k_max": np.int32(_fastest_mode(model)),
        "exit_time": np.float64(_exit_time(run)),
        "formation_time": np.float64(_formation_time(history)),
        "last_time": run.t[-1],
    }
    return CaseResult(number, outcome, message, {name: np.asarray(value) for name, value in values.items()})


def first_reached(t: FloatArray, size: ArrayLike, level: float) -> float:
    """Time at which a size that grows exponentially between rows first reaches a level; NaN if it does not.

    Parameters
    ----------
    t : ndarray of float64, shape (n_times,)
    size : array_like of float, shape (n_times,)
        Not negative.
    level : float
        Positive.
    """
    sizes = np.asarray(size, dtype=np.float64)
    above = sizes >= level
    if not above.any():
        return float("nan")
    row = int(above.argmax())
    if row == 0 or sizes[row - 1] <= 0.0:
        return float(t[row])
    share = np.log(level / sizes[row - 1]) / np.log(sizes[row] / sizes[row - 1])
    return float(t[row - 1] + share * (t[row] - t[row - 1]))


def _fastest_mode(model: Model) -> int:
    """Mode that grows fastest about the uniform density; the fill value where modes do not grow each by itself."""
    return dominant_mode(model).modes[0] if model.has_growth_rates else int(VARIABLES["k_max"].fill)


def _exit_time(run: Trajectory) -> float:
    return first_reached(run.t, np.abs(run.moments[:, 1:]).max(axis=1), EXIT_LEVEL)


def _formation_time(history: ClusterHistory) -> float:
    try:
        return history.lifetime().formed
    except InputError:  # no clusters, or wider than the resolution to the end
        return float("nan")
