"""Many densities solved together: ensembles over initial data, and over parameters of a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, finite_number, integer_at_least, number_between, number_from_to
from spectral_mf.errors import InputError, ResolutionExhausted
from spectral_mf.model import Model
from spectral_mf.model_family import ModelFamily
from spectral_mf.output_times import time_grid
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.spectral import SpectralSolver

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

BLOCK = 16
"""Densities carried together: at the usual resolutions their stages fit the cache."""


def solve_ensemble(
    model: Model | list[Model] | tuple[Model, ...],
    moments: ArrayLike,
    times: ArrayLike,
    *,
    rtol: float = 1e-8,
    max_modes: int = 4096,
) -> ComplexArray:
    """Solve the nonlinear equation from many initial densities.

    Sixteen at a time share their steps and their grid, so it pays to have alike ones side by side.

    Parameters
    ----------
    model : Model, or list of Model
        One for all, or one for each density: `SelfAttention` or `PairPotential` with parameters that vary (see
        `spectral_mf.model_family.ModelFamily`).
    moments : array_like of complex, shape (B, K + 1)
        c_0 .. c_K of each initial density.
    times : array_like of float, shape (n_times,)
        Increasing output times; the first is the initial time. Or an end time, as for `solve`.
    rtol : float
        Error allowed a step, relative to each density's perturbation.
    max_modes : int
        Largest number of modes.

    Returns
    -------
    ndarray of complex128, shape (B, n_times, K + 1)

    Raises
    ------
    InputError
        If an array has the wrong shape, c_0 is not 1, or the models cannot be solved together.
    ResolutionExhausted
        If a density becomes too sharp before the last time.
    """
    start = _initial_moments(moments)
    grid = time_grid(times)
    result = np.empty((start.shape[0], grid.size, start.shape[1]), dtype=np.complex128)
    options = _checked_options(rtol, max_modes)
    if not isinstance(model, (list, tuple)):
        check_model(model)
    elif len(model) != start.shape[0]:
        raise InputError(f"{len(model)} models for {start.shape[0]} densities; give one for each, or one for all.")
    else:
        ModelFamily(model)  # refused before anything is solved
    for first in range(0, start.shape[0], BLOCK):
        block = slice(first, first + BLOCK)
        together = ModelFamily(model[block]) if isinstance(model, (list, tuple)) else model
        solver = SpectralSolver(together, float(grid[0]), start[block], options)
        for i, t in enumerate(grid):
            solver.advance(float(t))
            result[block, i] = _padded(solver.moments, start.shape[1])
    return result


def first_passage_times(
    model: Model,
    moments: ArrayLike,
    mode: int,
    level: float,
    *,
    t_end: float,
    rtol: float = 1e-8,
    max_modes: int = 512,
) -> FloatArray:
    """Times at which |c_mode| first reaches a level, for many initial densities.

    A density that becomes too sharp for `max_modes` before has clustered by another mode; it is given up.

    Parameters
    ----------
    model : Model
    moments : array_like of complex, shape (B, K + 1)
        c_0 .. c_K of each initial density at time 0.
    mode : int
        Mode that is watched, 1 <= mode <= K.
    level : float
        Level of |c_mode|, between 0 and 1.
    t_end : float
        Time at which watching ends.
    rtol, max_modes
        As for `solve_ensemble`.

    Returns
    -------
    ndarray of float64, shape (B,)
        inf where the level was not reached.
    """
    start = _initial_moments(moments)
    if integer_at_least("mode", mode, 1) >= start.shape[1]:
        raise InputError(f"mode = {mode} is not among the modes 1 .. {start.shape[1] - 1} given; choose one of them.")
    level, t_end = number_between("level", level, 0.0, 1.0), finite_number("t_end", t_end)
    check_model(model)
    options = _checked_options(rtol, max_modes)
    passed = np.full(start.shape[0], np.inf)
    for first in range(0, start.shape[0], BLOCK):
        block = start[first : first + BLOCK]
        passed[first : first + BLOCK] = _watch(SpectralSolver(model, 0.0, block, options), mode, level, t_end)
    return passed


def _watch(solver: SpectralSolver, mode: int, level: float, t_end: float) -> FloatArray:
    """First passage times of one block; densities that have passed, or are past resolving, are dropped."""
    target = np.log(level)
    passed = np.full(solver.moments.shape[0], np.inf)
    alive = np.arange(passed.size)
    size, rate = _log_size(solver, mode)
    passed[size >= target] = solver.t
    going = size < target
    while going.any() and solver.t < t_end:
        if not going.all():
            solver.keep(going)
            alive, size, rate = alive[going], size[going], rate[going]
        t, before, slope = solver.t, size, rate
        try:
            solver.one_step(t_end)
        except ResolutionExhausted:
            going = ~solver.unresolved
            continue
        size, rate = _log_size(solver, mode)
        going = size < target
        for i in np.flatnonzero(~going):
            passed[alive[i]] = _crossing(t, solver.t, target, before[i], size[i], slope[i], rate[i])
    return passed


def _log_size(solver: SpectralSolver, mode: int) -> tuple[FloatArray, FloatArray]:
    """Logarithm of |c_mode| and its rate of change; shape (B,)."""
    c = solver.moments[:, mode]
    rate = solver.rates[:, mode] - solver.model.diffusion * mode**2 * c
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(np.abs(c)), (rate / c).real


def _crossing(t0: float, t1: float, level: float, y0: float, y1: float, s0: float, s1: float) -> float:
    """Where the cubic through both ends of a step, with their slopes, crosses the level; by bisection."""
    h = t1 - t0
    low, high = 0.0, 1.0
    for _ in range(50):
        x = 0.5 * (low + high)
        bump = x * (1.0 - x)
        value = y0 + x * (y1 - y0) + bump * ((1.0 - x) * (h * s0 - (y1 - y0)) - x * (h * s1 - (y1 - y0)))
        low, high = (x, high) if value < level else (low, x)
    return t0 + h * 0.5 * (low + high)


def _checked_options(rtol: float, max_modes: int) -> MarchOptions:
    return MarchOptions(
        rtol=number_from_to("rtol", rtol, 1e-13, 1e-2), max_modes=integer_at_least("max_modes", max_modes, 64)
    )


def _initial_moments(moments: ArrayLike) -> ComplexArray:
    try:
        c = np.array(moments, dtype=np.complex128)
    except (TypeError, ValueError):
        raise InputError("moments are not numbers; give rows of complex numbers c_0 .. c_K of one length.") from None
    if c.ndim != 2 or c.shape[0] == 0 or c.shape[1] < 2:
        raise InputError(f"moments have shape {c.shape}; give one row c_0 .. c_K for each density, shape (B, K + 1).")
    if not np.isfinite(c).all() or np.abs(c[:, 0] - 1.0).max() > 1e-12 or np.abs(c).max() > 1.0 + 1e-12:
        raise InputError("moments of a measure are finite, at most 1 in size, and c_0 = 1; a row is not like that.")
    c[:, 0] = 1.0
    return c


def _padded(c: ComplexArray, n: int) -> ComplexArray:
    out = np.zeros((c.shape[0], n), dtype=np.complex128)
    out[:, : min(n, c.shape[1])] = c[:, :n]
    return out
