"""Common noise: ∂ₜμ + ∂_θ(μ V[μ]) + Σ_j ∂_θ(μ σ_j) ∘ dB_j/dt = κ ∂²_θ μ, one Brownian path for all tokens.

The noise is Stratonovich's: along a path that is straight between its times the equation is an ordinary one,
with the velocity V[μ] + Σ_j σ_j dB_j/dt, and is solved as such to the tolerance, by the same methods as without noise.
What is left is how coarse the path is. μ stays random however many tokens there are: the noise does not average out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, integer_at_least, number_from_to
from spectral_mf.brownian_path import BrownianPath
from spectral_mf.errors import InputError, ResolutionExhausted, StoppedEarly
from spectral_mf.flow_map import FlowMap
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.harmonics import fourier_sum
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.run_kinds import moment_now
from spectral_mf.solvers.auto import HAND_OVER_MODES
from spectral_mf.solvers.characteristics import CharacteristicSolver, flow_of
from spectral_mf.solvers.march import MarchOptions, Progress, no_progress
from spectral_mf.solvers.positivity import check_positive, negative_by_error
from spectral_mf.solvers.recording import record
from spectral_mf.solvers.spectral import SpectralRightHandSide, SpectralSolver, kept_modes
from spectral_mf.symmetry import largest_fold
from spectral_mf.trajectory import RunInfo, Snapshot, Trajectory
from spectral_mf.vector_fields import VectorFields

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Method = Literal["auto", "spectral", "characteristics"]
Calculus = Literal["stratonovich"]

DEFAULT_MODES = 64

FREE = 0.75
"""Share of a coarser grid's modes beyond which hardly anything may be left: else it would soon be too coarse again."""

FAINT = 0.1
"""Share of the tail allowed that may be left out by going to a coarser grid."""


class DrivenRightHandSide(SpectralRightHandSide):
    """-i k F_k with the flux of V + Σ_j rates_j σ_j, of one density or of several, each with its own rates.

    Parameters
    ----------
    model : Model
    fields : VectorFields
    rates : ndarray of float64, shape (B, n_fields)
        dB/dt of each density's path.
    n_points, fold : int
        As for `SpectralRightHandSide`.
    """

    def __init__(self, model: Model, fields: VectorFields, rates: FloatArray, n_points: int, fold: int) -> None:
        super().__init__(model, n_points, fold, rates.shape[0])
        self._arguments = (model, fields, n_points, fold)
        self._on_grid = fields.at(2.0 * np.pi / (fold * n_points) * np.arange(n_points))
        self._drift = np.empty_like(self._velocity)
        self.velocity: FloatArray = np.empty_like(self._velocity)
        self.drive(rates)

    def drive(self, rates: FloatArray) -> None:
        """Take up other rates, shape (B, n_fields)."""
        self._rates = rates
        np.matmul(rates, self._on_grid, out=self._drift)

    def __call__(self, c: ComplexArray, out: ComplexArray) -> None:
        """Write the rates of the moments c into out; both of shape (B, M // 2 + 1). `velocity` is then that at c."""
        self._evaluate(c)
        np.add(self._velocity, self._drift, out=self.velocity)
        np.multiply(self.velocity, self._density, out=self._flux)
        self._forward()
        np.multiply(self._derivative, self._flux_modes, out=out)

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans and views into their arrays are made anew, not copied."""
        model, fields, n_points, fold = self._arguments
        return DrivenRightHandSide, (model, fields, self._rates, n_points, fold)


class Driven(Protocol):
    """A solver whose noise goes on at given rates until it is told others."""

    t: float

    def drive(self, rates: FloatArray) -> None:
        """Take up rates dB/dt of each density, shape (B, n_fields)."""

    def advance(self, t_end: float) -> None:
        """Go on until exactly `t_end`."""


class DrivenSpectralSolver(SpectralSolver):
    """The spectral method for densities that common noise drives, each along its own path."""

    def __init__(
        self, model: Model, fields: VectorFields, t: float, moments: ComplexArray, options: MarchOptions
    ) -> None:
        self._driven_model, self._fields = model, fields
        self._rates = np.zeros((moments.shape[0], fields.n_fields))
        super().__init__(model, t, moments, options)

    def _right_hand_side(self, n_densities: int) -> SpectralRightHandSide:
        self._driven = DrivenRightHandSide(self._driven_model, self._fields, self._rates, self.n_points, self._fold)
        return self._driven

    def _limit_step(self) -> None:
        speed = max(float(np.abs(self._driven.velocity).max()), 1e-300)
        self._largest_step = min(self._transport_limit / speed, self._damping_step)

    def drive(self, rates: FloatArray) -> None:
        """Take up rates dB/dt, shape (B, n_fields); noise also smooths densities, and a coarser grid may do then."""
        self._rates = rates
        coarser = self._coarser_grid()
        if coarser < self.n_points:
            self.n_points = coarser
            self._use_grid(self.moments.copy())
            return
        self._driven.drive(rates)
        self._driven(self.moments, self._driven.as_moments(self._stepper.slope))
        self._limit_step()

    def _coarser_grid(self) -> int:
        """Points of the coarsest grid that leaves out only what is far below the tail allowed."""
        needed = -(-self._driven_model.bandwidth // self._fold)
        allowed = FAINT * self._tail_allowed * np.array(self._sizes_now)
        for size in self._grids:
            kept = kept_modes(size)
            if size >= self.n_points:
                break
            left_out = np.abs(self.moments[:, int(FREE * kept) :]).max(axis=1)
            if kept >= needed and (left_out <= allowed).all():
                return size
        return self.n_points

    def snapshot(self) -> Snapshot:
        """The first density as it is stored."""
        moments = np.zeros((self.moments.shape[1] - 1) * self._fold + 1, dtype=np.complex128)
        moments[:: self._fold] = self.moments[0]
        measure = FourierDensity.from_vector(moments.view(np.float64))
        return Snapshot(self.t, measure, self.method, self.n_modes, step=self.step)


class DrivenCharacteristicSolver(CharacteristicSolver):
    """The flow map of a density that common noise drives; it goes through a collapse."""

    def __init__(self, model: Model, fields: VectorFields, t: float, flow: FlowMap, options: MarchOptions) -> None:
        self._fields = fields
        self._drift = np.zeros(fields.bandwidth + 1, dtype=np.complex128)
        super().__init__(model, t, flow, options)

    def _rhs(self, y: FloatArray, out: FloatArray) -> None:
        super()._rhs(y, out)
        out += fourier_sum(self._drift, self._labels + y)

    def drive(self, rates: FloatArray) -> None:
        """Take up rates dB/dt, shape (1, n_fields)."""
        self._drift = self._fields.combined(rates[0])
        self._rhs(self._stepper.y, self._stepper.slope)


def follow(solver: Driven, paths_times: FloatArray, rates: FloatArray, t_end: float) -> None:
    """Carry a solver along its paths to exactly `t_end`.

    Parameters
    ----------
    solver : Driven
    paths_times : ndarray of float64, shape (n_steps + 1,)
        Times between which the paths are straight.
    rates : ndarray of float64, shape (n_steps, B, n_fields)
        dB/dt of each density on each step.
    """
    while solver.t < t_end:
        piece = int(np.searchsorted(paths_times, solver.t, side="right")) - 1
        solver.drive(rates[piece])
        solver.advance(min(float(paths_times[piece + 1]), t_end))


def solve_common_noise(
    model: Model,
    initial: FourierDensity,
    fields: VectorFields,
    path: BrownianPath,
    times: float | ArrayLike,
    *,
    method: Method = "auto",
    calculus: Calculus = "stratonovich",
    rtol: float = 1e-10,
    max_modes: int = 4096,
    n_modes: int | None = None,
    n_cells: int = 512,
    output: str | Path | None = None,
    overwrite: bool = False,
    provenance: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Solve for the density that one Brownian path drives.

    Parameters
    ----------
    model : Model
        The interaction, also with diffusion (noise of each token's own); `PairPotential((0.0, 0.0))` is none.
    initial : FourierDensity
    fields : VectorFields
        One for each component of the path.
    path : BrownianPath
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time; all
        on the path.
    method : {"auto", "spectral", "characteristics"}
        "spectral": Fourier modes, until the density is too sharp for max_modes. "characteristics": the flow map,
        through a collapse, without diffusion. "auto": the one, then the other where there is no diffusion.
    calculus : {"stratonovich"}
        What ∘ dB means; Ito's is refused.
    rtol : float
        Error allowed a step, relative to the size of the perturbation (largest |c_k|, k >= 1); 1e-13 to 1e-2. That of
        the path, which is straight between its times, comes on top.
    max_modes : int
        Largest number of modes that the spectral method may use.
    n_modes, n_cells, output, overwrite, provenance, progress
        As for `solve`.

    Returns
    -------
    Trajectory
        Its configuration holds fields and path (`VectorFields.from_dict`, `BrownianPath.from_dict`), in files too.
        Energies are those of the interaction.

    Raises
    ------
    InputError
        If something given is not allowed. Nothing has been computed then.
    ResolutionExhausted
        If the density became too sharp before the end; its `trajectory` and the file hold all rows until then.
    StorageError
        If the file cannot be written; its `trajectory` holds what was computed.
    """
    check_model(model)
    check_calculus(calculus)
    check_fields(fields, path)
    if not isinstance(initial, FourierDensity):
        raise InputError(f"initial = {initial!r} is no smooth density; give a FourierDensity, or move tokens instead.")
    grid = path.checked(time_grid(times))
    _check_method(method, model)
    options = MarchOptions(
        rtol=number_from_to("rtol", rtol, 1e-13, 1e-2),
        max_modes=integer_at_least("max_modes", max_modes, 64),
        fold=common_fold(model, initial, fields),
        progress=progress or no_progress,
    )
    check_positive(initial, options.rtol)
    info = RunInfo(
        model=model,
        configuration={
            "method": "common noise",
            "solver": method,
            "rtol": options.rtol,
            "max_modes": options.max_modes,
            "symmetry": options.fold,
            "times": grid.tolist(),
            "fields": fields.to_dict(),
            "path": path.to_dict(),
            "initial": dict(provenance or {"description": repr(initial)}),
            "started": moment_now(),
        },
        n_modes=max(DEFAULT_MODES, model.bandwidth) if n_modes is None else integer_at_least("n_modes", n_modes, 1),
        n_cells=integer_at_least("n_cells", n_cells, 4),
    )
    snapshots = _snapshots(model, initial, fields, path, grid, options, method)
    if output is None:
        return record(info, [], snapshots, None)
    from spectral_mf.storage import RunFile

    return record(info, [], snapshots, RunFile.create(output, info, overwrite=overwrite))


def _snapshots(
    model: Model,
    initial: FourierDensity,
    fields: VectorFields,
    path: BrownianPath,
    grid: FloatArray,
    options: MarchOptions,
    method: Method,
) -> Iterator[Snapshot]:
    rates = path.rates[:, np.newaxis]
    start = float(grid[0])
    solver: DrivenSpectralSolver | DrivenCharacteristicSolver
    may_hand_over = method == "auto" and model.diffusion == 0.0
    if method == "characteristics":
        solver = DrivenCharacteristicSolver(model, fields, start, flow_of(initial, model, options), options)
    else:
        enough = max(HAND_OVER_MODES, 4 * model.bandwidth, 2 * initial.n_modes, 4 * fields.bandwidth) * options.fold
        limited = replace(options, max_modes=min(options.max_modes, enough)) if may_hand_over else options
        moments = np.ascontiguousarray(initial.moments(initial.n_modes)[np.newaxis, :: options.fold])
        solver = DrivenSpectralSolver(model, fields, start, moments, limited)
    for t in grid:
        try:
            follow(solver, path.times, rates, float(t))
        except ResolutionExhausted as stop:
            if not may_hand_over or isinstance(solver, DrivenCharacteristicSolver):
                stop.snapshot = solver.snapshot()
                raise
            solver = _handed_over(model, fields, solver.snapshot(), options)
            follow(solver, path.times, rates, float(t))
        except StoppedEarly as stop:
            stop.snapshot = solver.snapshot()
            raise
        yield solver.snapshot()


def _handed_over(
    model: Model, fields: VectorFields, state: Snapshot, options: MarchOptions
) -> DrivenCharacteristicSolver:
    """The same state as a flow map; it may be negative by what the spectral solver's error explains."""
    assert isinstance(state.measure, FourierDensity)
    try:
        flow = flow_of(state.measure, model, options, negative=negative_by_error(state.measure, options.rtol))
    except InputError as refusal:
        raise ResolutionExhausted(
            f"at t = {state.t:.6g} the density is too sharp for Fourier modes, and {refusal}", state.t, state
        ) from None
    return DrivenCharacteristicSolver(model, fields, state.t, flow, options)


def check_calculus(calculus: object) -> None:
    """Refuse all but Stratonovich's."""
    if calculus != "stratonovich":
        raise InputError(
            f'calculus = {calculus!r} is not solved, only "stratonovich" is: one path moves tokens and density alike '
            "only in that sense; write Ito noise as Stratonovich noise with the drift -(1/2) sum_j sigma_j sigma_j'."
        )


def check_fields(fields: object, path: object) -> None:
    """Refuse what are no fields, what is no path, or one with another number of components."""
    if not isinstance(fields, VectorFields):
        raise InputError(
            f"fields = {fields!r} are no vector fields; give VectorFields, such as VectorFields.planar(0.5)."
        )
    if not isinstance(path, BrownianPath):
        raise InputError(f"path = {path!r} is no path; give a BrownianPath, such as BrownianPath.draw(2, 1.0, 64, 1).")
    if path.n_fields != fields.n_fields:
        raise InputError(
            f"the path has {path.n_fields} components for {fields.n_fields} fields; give one for each field."
        )


def common_fold(model: Model, initial: FourierDensity, fields: VectorFields) -> int:
    """Largest m such that data, model and fields all have the symmetry of a turn by 2 pi / m."""
    return math.gcd(largest_fold(initial), model.turns, fields.fold)


def _check_method(method: object, model: Model) -> None:
    if method not in get_args(Method):
        raise InputError(f"method = {method!r} is unknown; choose one of {', '.join(get_args(Method))}.")
    if method == "characteristics" and model.diffusion > 0.0:
        raise InputError(
            f"diffusion = {model.diffusion:g} spreads mass across characteristics, which cannot follow it; "
            'use method = "spectral", or diffusion = 0.'
        )
