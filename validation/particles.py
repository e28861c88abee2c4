"""Runs of finitely many tokens on the circle, dθ_i/dt = V[μ_N](θ_i), recorded like those of a density."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, integer_at_least, number_from_to
from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.errors import InputError, StoppedEarly
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.run_kinds import moment_now
from spectral_mf.solvers.march import March, MarchOptions, Progress, no_progress
from spectral_mf.trajectory import Row, RunInfo, Snapshot, Trajectory, nonnegative_cells
from spectral_mf.validation.fast_sums import token_moments
from spectral_mf.validation.token_march import march_layers, march_particles

FloatArray = NDArray[np.float64]

STATES_KEPT = 2**24
"""Tokens x rows up to which a trajectory keeps the tokens themselves in all rows (256 MiB)."""

CONDENSED_CELLS = 2**14
"""Cells in which tokens are joined for the rows that do not keep them."""


def simulate(
    model: Model,
    tokens: Atoms,
    times: float | ArrayLike,
    *,
    rtol: float = 1e-8,
    method: Literal["adaptive", "euler"] = "adaptive",
    layer_step: float | None = None,
    kernel_modes: int | None = None,
    n_modes: int | None = None,
    n_cells: int = 512,
    keep_states: bool | None = None,
    n_threads: int = 1,
    provenance: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Move N tokens on the circle.

    Parameters
    ----------
    model : Model
        Without diffusion.
    tokens : Atoms
        Any number, with any weights (`sample_tokens`, `Atoms(angles)`, ...).
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time.
    rtol : float
        Largest error of an angle in a step, relative to the largest |c_k|, k >= 1; 1e-13 to 1e-2.
    method : {"adaptive", "euler"}
        "euler": layers of a transformer (see `march_layers`), with `layer_step` between them.
    layer_step : float, optional
        Time between two layers.
    kernel_modes : int, optional
        Modes through which tokens interact; by default all that the kernel has. Fewer are warned of.
    n_modes : int, optional
        Modes stored in a row; by default 64, or the kernel's bandwidth if larger.
    n_cells : int
        Cells on which the density is stored.
    keep_states : bool, optional
        Whether all rows keep the tokens. If not, rows but the last hold the tokens of each of 16384 cells joined at
        their mean (`condensed`), with moments, cells and energy of the tokens themselves. By default, whether N times
        the number of rows is at most 2^24.
    n_threads : int
        Threads that finufft uses.
    provenance : mapping, optional
        Where the tokens came from, such as their seed; stored with the run as plain JSON.
    progress : callable, optional
        Called with (time, N, method) after each step.

    Returns
    -------
    Trajectory
        Of method "particles", or "layers".

    Raises
    ------
    InputError
        If something given is not allowed.
    StoppedEarly
        If the run could not reach its end; its `trajectory` holds all rows until then.
    """
    if not isinstance(tokens, Atoms):
        raise InputError(f"tokens = {tokens!r} are not tokens; give Atoms, such as sample_tokens(1000, seed).")
    grid = time_grid(times)
    check_model(model)
    rtol = number_from_to("rtol", rtol, 1e-13, 1e-2)
    n_cells, n_threads = integer_at_least("n_cells", n_cells, 4), integer_at_least("n_threads", n_threads, 1)
    n_modes = None if n_modes is None else integer_at_least("n_modes", n_modes, 1)
    march = _march(method, layer_step, model, kernel_modes, n_threads)
    keep = tokens.n_atoms * grid.size <= STATES_KEPT if keep_states is None else keep_states
    origin = dict(provenance or {"description": repr(tokens)})
    info = RunInfo(
        model=model,
        configuration={
            "method": "particles" if method == "adaptive" else "layers",
            "layer_step": layer_step,
            "kernel_modes": kernel_modes,
            "rtol": rtol,
            "symmetry": 1,
            "times": grid.tolist(),
            "initial": origin,
            "seed": origin.get("seed"),
            "started": moment_now(),
        },
        n_modes=max(64, model.bandwidth) if n_modes is None else n_modes,
        n_cells=n_cells,
    )
    start = Snapshot(float(grid[0]), tokens, info.configuration["method"], tokens.n_atoms)
    snapshots = march(model, start, grid[1:], MarchOptions(rtol=rtol, progress=progress or no_progress))
    rows = [_row(start, info, n_threads)]
    try:
        for snapshot in snapshots:
            if not keep:
                rows[-1] = _condensed_row(rows[-1])
            rows.append(_row(snapshot, info, n_threads))
    except StoppedEarly as stop:
        stop.trajectory = Trajectory(replace(info, status=f"stopped early: {stop}"), rows)
        raise
    return Trajectory(replace(info, complete=True, status="complete"), rows)


def condensed(tokens: Atoms, n_cells: int = CONDENSED_CELLS) -> Atoms:
    """Join the tokens of each of n equal cells at their mean; W1 to the tokens is at most pi / n.

    Returns
    -------
    Atoms
        At most n of them.
    """
    cell = np.minimum((tokens.angles * (n_cells / TWO_PI)).astype(np.int64), n_cells - 1)
    mass = np.bincount(cell, weights=tokens.weights, minlength=n_cells)
    total = np.bincount(cell, weights=tokens.weights * tokens.angles, minlength=n_cells)
    used = mass > 0.0
    return Atoms(total[used] / mass[used], mass[used])


def _row(snapshot: Snapshot, info: RunInfo, n_threads: int) -> Row:
    """As `Row.from_snapshot`, with faster moments."""
    tokens = snapshot.measure
    assert isinstance(tokens, Atoms)
    n_modes = max(info.n_modes, info.model.bandwidth)
    moments = token_moments(tokens.angles, tokens.weights, n_modes, n_threads=n_threads)
    return Row(
        snapshot=snapshot,
        moments=moments[: info.n_modes + 1],
        cells=nonnegative_cells(tokens.cell_means(info.n_cells)),
        energy=float(info.model.energy(moments)),
        mass=float(tokens.weights.sum()),
    )


def _condensed_row(row: Row) -> Row:
    assert isinstance(row.snapshot.measure, Atoms)
    return replace(row, snapshot=replace(row.snapshot, measure=condensed(row.snapshot.measure)))


def _march(method: str, layer_step: float | None, model: Model, kernel_modes: int | None, n_threads: int) -> March:
    if kernel_modes is not None:
        kernel_modes = integer_at_least("kernel_modes", kernel_modes, 1)
        if kernel_modes < model.bandwidth:
            warnings.warn(
                f"kernel_modes = {kernel_modes} cuts the interaction short, which needs {model.bandwidth} modes; "
                "leave kernel_modes out to have them all.",
                stacklevel=3,
            )
    if method == "adaptive":
        if layer_step is not None:
            raise InputError('layer_step belongs to method = "euler"; leave it out.')
        return partial(march_particles, kernel_modes=kernel_modes, n_threads=n_threads)
    if method != "euler":
        raise InputError(f"method = {method!r} is unknown; choose one of adaptive, euler.")
    if layer_step is None:
        raise InputError('method = "euler" needs layer_step, the time between two layers.')
    return partial(march_layers, layer_step=layer_step, kernel_modes=kernel_modes, n_threads=n_threads)
