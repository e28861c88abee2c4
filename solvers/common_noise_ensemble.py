"""One density along many Brownian paths: the law of a solution with common noise, which is random itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, integer_at_least, number_from_to
from spectral_mf.brownian_path import BrownianPath, checked_paths
from spectral_mf.errors import InputError, ResolutionExhausted, StoppedEarly
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.solvers.common_noise import DEFAULT_MODES, Calculus, check_calculus, check_fields, common_fold
from spectral_mf.solvers.driven import DrivenSpectralSolver, follow
from spectral_mf.solvers.ensemble import BLOCK
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.positivity import check_positive
from spectral_mf.vector_fields import VectorFields

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True)
class CommonNoiseEnsemble:
    """Densities along several paths.

    Attributes
    ----------
    model : Model
    fields : VectorFields
    t : ndarray of float64, shape (n_times,)
    moments : ndarray of complex128, shape (n_paths, n_times, K + 1)
    energy : ndarray of float64, shape (n_paths, n_times)
        In units of exp(model.energy_log_unit).
    """

    model: Model
    fields: VectorFields
    t: FloatArray
    moments: ComplexArray
    energy: FloatArray

    @property
    def n_paths(self) -> int:
        """Number of paths."""
        return int(self.moments.shape[0])

    @property
    def mean_energy(self) -> FloatArray:
        """Mean over the paths; shape (n_times,)."""
        return np.asarray(self.energy.mean(axis=0))

    @property
    def energy_error(self) -> FloatArray:
        """Standard error of `mean_energy`; nan for a single path; shape (n_times,)."""
        if self.n_paths == 1:
            return np.full(self.t.size, np.nan)
        return np.asarray(self.energy.std(axis=0, ddof=1) / np.sqrt(self.n_paths))


class StoppedEnsemble(StoppedEarly):
    """An ensemble that could not reach its last output time.

    Attributes
    ----------
    rows : CommonNoiseEnsemble
        All times that every path has reached.
    """

    def __init__(self, message: str, time: float, rows: CommonNoiseEnsemble) -> None:
        super().__init__(message, time)
        self.rows = rows


def solve_common_noise_ensemble(
    model: Model,
    initial: FourierDensity,
    fields: VectorFields,
    paths: Sequence[BrownianPath],
    times: float | ArrayLike,
    *,
    calculus: Calculus = "stratonovich",
    rtol: float = 1e-8,
    max_modes: int = 4096,
    n_modes: int | None = None,
) -> CommonNoiseEnsemble:
    """Solve for the densities that start alike and are driven by different paths, in Fourier space, many at once.

    Parameters
    ----------
    model, initial, fields, calculus, rtol, max_modes
        As for `solve_common_noise`.
    paths : sequence of BrownianPath
        With the same times (`BrownianPath.draw_many`).
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time.
    n_modes : int, optional
        Modes kept; by default 64, or the kernel's bandwidth if larger.

    Raises
    ------
    InputError
        If something given is not allowed. Nothing has been computed then.
    StoppedEnsemble
        If a density became too sharp before the end; its `rows` holds what all paths have reached.
    """
    check_model(model)
    check_calculus(calculus)
    together = checked_paths(paths)
    check_fields(fields, together[0])
    if not isinstance(initial, FourierDensity):
        raise InputError(f"initial = {initial!r} is no smooth density; give a FourierDensity.")
    grid = together[0].checked(time_grid(times))
    fold = common_fold(model, initial, fields)
    options = MarchOptions(
        rtol=number_from_to("rtol", rtol, 1e-13, 1e-2),
        max_modes=integer_at_least("max_modes", max_modes, 64),
        fold=fold,
    )
    check_positive(initial, options.rtol)
    kept = max(DEFAULT_MODES, model.bandwidth) if n_modes is None else integer_at_least("n_modes", n_modes, 1)
    start = initial.moments(initial.n_modes)[::fold]
    rates = np.stack([path.rates for path in together], axis=1)
    blocks = [slice(first, first + BLOCK) for first in range(0, len(together), BLOCK)]
    solvers = [
        DrivenSpectralSolver(model, fields, float(grid[0]), np.tile(start, (rates[:, block].shape[1], 1)), options)
        for block in blocks
    ]
    moments = np.zeros((len(together), grid.size, kept + 1), dtype=np.complex128)
    energy = np.empty((len(together), grid.size))
    for i, t in enumerate(grid):
        for block, solver in zip(blocks, solvers, strict=True):
            try:
                follow(solver, together[0].times, rates[:, block], float(t))
            except ResolutionExhausted as stop:
                number = block.start + int(np.flatnonzero(solver.unresolved)[0])
                message = (
                    f"at t = {stop.time:.6g} the density on path number {number} has become too sharp for max_modes = "
                    f"{max_modes}; raise max_modes, end earlier, or take solve_common_noise, which follows a collapse."
                )
                rows = CommonNoiseEnsemble(model, fields, grid[:i], moments[:, :i], energy[:, :i])
                raise StoppedEnsemble(message, stop.time, rows) from stop
            full = _unfolded(solver.moments, fold, max(kept, model.bandwidth))
            moments[block, i] = full[:, : kept + 1]
            energy[block, i] = model.energy(full)
    return CommonNoiseEnsemble(model, fields, grid, moments, energy)


def _unfolded(c: ComplexArray, fold: int, n_modes: int) -> ComplexArray:
    """Moments c_0 .. c_n of each density from every fold-th; shape (B, n_modes + 1)."""
    full = np.zeros((c.shape[0], n_modes + 1), dtype=np.complex128)
    target = full[:, ::fold]
    n = min(target.shape[1], c.shape[1])
    target[:, :n] = c[:, :n]
    return full
