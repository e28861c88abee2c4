"""Solve: from a model, an initial measure and output times to a trajectory, in memory and in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_measure, check_model, finite_number, integer_at_least, number_from_to
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.measure import Measure
from spectral_mf.model import Model
from spectral_mf.output_times import interval_of, output_times, time_grid
from spectral_mf.run_kinds import moment_now, why_not_resumed
from spectral_mf.solvers.auto import march_auto
from spectral_mf.solvers.characteristics import march_characteristics
from spectral_mf.solvers.common_noise import stored_march
from spectral_mf.solvers.linear import march_linear
from spectral_mf.solvers.march import March, MarchOptions, Progress, no_progress
from spectral_mf.solvers.positivity import check_positive
from spectral_mf.solvers.quasilinear import march_quasilinear
from spectral_mf.solvers.recording import record
from spectral_mf.solvers.spectral import energy_rate_residual, march_spectral
from spectral_mf.symmetry import Symmetry, fold_of
from spectral_mf.trajectory import RunInfo, Snapshot, Trajectory

FloatArray = NDArray[np.float64]
Method = Literal["auto", "characteristics", "linear", "quasilinear", "spectral"]

_MARCHES: dict[str, March] = {
    "auto": march_auto,
    "characteristics": march_characteristics,
    "linear": march_linear,
    "quasilinear": march_quasilinear,
    "spectral": march_spectral,
}

DEFAULT_MODES = 64
"""Fewest modes stored unless asked otherwise; the kernel's bandwidth if that is larger."""


def solve(
    model: Model,
    initial: Measure,
    times: float | ArrayLike,
    *,
    method: Method = "auto",
    order: int | None = None,
    rtol: float = 1e-10,
    max_modes: int = 16384,
    symmetry: Symmetry = "auto",
    n_modes: int | None = None,
    n_cells: int = 512,
    output: str | Path | None = None,
    overwrite: bool = False,
    provenance: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Solve the continuity equation d_t mu + d_theta(mu V[mu]) = kappa d_theta^2 mu on the circle.

    Parameters
    ----------
    model : Model
        What gives the velocity, such as `SelfAttention(beta=5.0)`.
    initial : Measure
        `FourierDensity` (or `Atoms` for methods that move points).
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time.
    method : {"auto", "characteristics", "linear", "quasilinear", "spectral"}
        "spectral": the nonlinear equation in Fourier space, until the density is too sharp for max_modes.
        "characteristics": the flow map, through the collapse to any time; also what moves `Atoms`. "auto": the one,
        then the other. "linear": the linearisation about the uniform density, exactly. "quasilinear": the unstable
        manifold's series, or the expansion in the size of the perturbation.
    order : int, optional
        Highest order of "quasilinear"; by default 64 for the series and 8 for the expansion.
    rtol : float
        Error allowed a step, relative to the size of the perturbation (largest |c_k|, k >= 1); 1e-13 to 1e-2.
    max_modes : int
        Largest number of modes that the spectral method may use.
    symmetry : "auto", "none" or int
        Rotational symmetry that is kept exactly; "auto" finds what the data and the model have.
    n_modes : int, optional
        Modes stored in a row; by default 64, or the kernel's bandwidth if larger. The solver's own state is kept
        beside them at its own resolution.
    n_cells : int
        Cells on which the density is stored.
    output : path, optional
        HDF5 file that rows go to as they are computed; readable at any moment, also after the process is killed.
    overwrite : bool
        Whether `output` may replace an existing file.
    provenance : mapping, optional
        Where the initial state came from; stored with the run as plain JSON.
    progress : callable, optional
        Called with (time, modes or nodes or atoms in use, method) after each step.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        If something given is not allowed, such as a density that is negative somewhere (methods "linear" and
        "quasilinear" take it). Nothing has been computed then.
    StoppedEarly
        If the run could not reach its end; its `trajectory` holds all rows until then, and so does the file.
    StorageError
        If the file cannot be written; its `trajectory` holds what was computed.
    """
    check_model(model)
    check_measure("initial", initial)
    grid = time_grid(times)
    march = _march(method, order)
    fold = fold_of(initial, symmetry, model.turns)
    options = MarchOptions(
        rtol=number_from_to("rtol", rtol, 1e-13, 1e-2),
        max_modes=integer_at_least("max_modes", max_modes, 64),
        fold=fold,
        progress=progress or no_progress,
    )
    if method not in ("linear", "quasilinear"):  # these expand in the perturbation, of whatever size
        check_positive(initial, options.rtol)
    stored = max(DEFAULT_MODES, model.bandwidth) if n_modes is None else integer_at_least("n_modes", n_modes, 1)
    origin = dict(provenance or {"description": repr(initial)})
    info = RunInfo(
        model=model,
        configuration={
            "method": method,
            "order": order,
            "rtol": options.rtol,
            "max_modes": options.max_modes,
            "symmetry": fold,
            "times": grid.tolist(),
            "output_interval": interval_of(grid),
            "initial": origin,
            "seed": origin.get("seed"),
            "started": moment_now(),
        },
        n_modes=stored,
        n_cells=integer_at_least("n_cells", n_cells, 4),
    )
    start = Snapshot(float(grid[0]), initial, _first_method(method, initial), _size_of(initial))
    if method in ("auto", "spectral") and isinstance(initial, FourierDensity):
        start = replace(start, energy_rate_residual=energy_rate_residual(model, start, options))
    snapshots = chain([start], march(model, start, grid[1:], options))
    if output is None:
        return record(info, [], snapshots, None)
    from spectral_mf.storage import RunFile

    file = RunFile.create(output, info, overwrite=overwrite)
    return record(info, [], snapshots, file)


def resume(
    path: str | Path,
    times: float | ArrayLike | None = None,
    *,
    max_modes: int | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Go on with a stored run: to its planned end, or to later times; the file grows in place.

    Parameters
    ----------
    path : path
        File of a run that was stopped, killed, or is to be continued.
    times : float or array_like of float, optional
        A later end time (rows go on at the spacing of the last two planned ones), or the new output times. Left out:
        the run's planned times that it has not reached.
    max_modes : int, optional
        Largest number of modes that the spectral method may use from now on; by default as before. With more, a run
        that has exhausted its resolution goes on.
    progress : callable, optional
        Called with (time, modes or nodes or atoms in use, method) after each step.

    Returns
    -------
    Trajectory
        All rows, old and new; bit for bit those of one run over the same output times. The file's attribute `history`
        tells of each resumption.

    Raises
    ------
    InputError
        If the run is of a kind that cannot be resumed (tokens), there is nothing left to compute, times are not after
        the last row or, with common noise, not on the path, or max_modes is not allowed.
    StorageError
        If the file cannot be read or written.
    StoppedEarly
        As for `solve`.
    """
    from spectral_mf.storage import RunFile, load_run

    old = load_run(path)
    configuration = dict(old.configuration)
    refusal = why_not_resumed(configuration, complete=old.complete)
    if refusal is not None:
        raise InputError(refusal)
    planned = np.asarray(configuration["times"], dtype=np.float64)
    reached = float(old.t[-1])
    new = _times_to_come(planned, reached, times)
    configuration["times"] = [*planned[planned <= reached].tolist(), *new.tolist()]
    resumption: dict[str, Any] = {"at": moment_now(), "t": reached}
    if max_modes is not None:
        allowed = integer_at_least("max_modes", max_modes, 64)
        resumption["max_modes"] = {"from": configuration["max_modes"], "to": allowed}
        configuration["max_modes"] = allowed
    configuration["resumed"] = [*configuration.get("resumed", []), resumption]
    info = RunInfo(old.model, configuration, old.info.n_modes, old.info.n_cells)
    options = MarchOptions(
        rtol=float(configuration["rtol"]),
        max_modes=int(configuration["max_modes"]),
        fold=int(configuration["symmetry"]),
        progress=progress or no_progress,
    )
    march = _march_again(configuration, old.rows[0].snapshot.measure)
    if configuration["method"] == "quasilinear":  # its orders are not stored, and cost little to compute again
        again = march(old.model, old.rows[0].snapshot, np.concatenate([old.t[1:], new]), options)
        snapshots: Iterator[Snapshot] = islice(again, len(old) - 1, None)
    else:
        snapshots = march(old.model, old.rows[-1].snapshot, new, options)
    return record(info, list(old.rows), snapshots, RunFile.extend(path, info))


def _times_to_come(planned: FloatArray, reached: float, times: float | ArrayLike | None) -> FloatArray:
    """Output times after `reached` that a resumed run has to compute."""
    if times is None:
        new = planned[planned > reached]
        if new.size == 0:
            raise InputError(f"the run is complete at t = {reached:g}; give a later end time to go on.")
        return new
    if np.ndim(times) != 0:
        new = time_grid(times)
    else:
        end = finite_number("times", times)
        if planned[-1] >= end > reached:
            return np.append(planned[(planned > reached) & (planned < end)], end)
        interval = interval_of(planned)
        if interval is None:
            interval = float(planned[-1] - planned[-2])
        grid = output_times(end, interval, start=float(planned[0])) if end > reached else planned[:0]
        new = np.unique(np.concatenate([planned[planned > reached], grid[grid > reached]]))
    if new.size == 0 or new[0] <= reached:
        raise InputError(f"the run has reached t = {reached:g} already; give output times after that.")
    return new


def _march(method: str, order: int | None) -> March:
    if method not in _MARCHES:
        raise InputError(f"method = {method!r} is unknown; choose one of {', '.join(_MARCHES)}.")
    if order is None:
        return _MARCHES[method]
    if method != "quasilinear":
        raise InputError(f'order = {order!r} belongs to method = "quasilinear", not to {method!r}; leave it out.')
    return partial(march_quasilinear, order=order)


def _march_again(configuration: Mapping[str, Any], initial: Measure) -> March:
    """The method of a stored run, whose first row is `initial`."""
    if configuration["method"] == "common noise":
        return stored_march(configuration, initial)
    return _march(configuration["method"], configuration.get("order"))


def _first_method(method: str, initial: Measure) -> str:
    """The method that an initial state belongs to."""
    if method != "auto":
        return method
    return "spectral" if isinstance(initial, FourierDensity) else "characteristics"


def _size_of(measure: Measure) -> int:
    """Modes or points that an initial measure has."""
    return int(getattr(measure, "n_modes", getattr(measure, "n_atoms", 0)))
