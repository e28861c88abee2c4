"""The nonlinear pseudo-spectral method: dc_k/dt = -i k F_k - κ k² c_k, F the Fourier coefficients of 2π p V[p].

The product p V and the softmax's quotient are formed on a grid, everything else in Fourier space. The grid grows with
the solution: a step that would let the tail of the spectrum exceed the tolerance is taken on a finer grid. The
solution collapses onto points exponentially fast, so every grid is exhausted in the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from spectral_mf.errors import InputError, ResolutionExhausted, StoppedEarly
from spectral_mf.fft import RealTransform
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.measure import Measure
from spectral_mf.model import GridFields, Model
from spectral_mf.solvers.adaptive import AdaptiveSolver
from spectral_mf.solvers.dop853 import Dop853, combined_error, worst
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Snapshot, StepState

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

SMALLEST_GRID = 128
"""Grids of fewer points save nothing and would let errors in before the first look at the tail."""

KEPT = 0.95
"""Share of the grid's modes that is carried; the rest takes the aliases of the product."""

TAIL_SHARE = 0.025
"""The tail of the spectrum may reach this share of the error allowed a step."""

NEAR = 1e-4
"""Share of the tail allowed from which its growth is forecast before a step."""

TAIL_FLOOR = 1e-12
"""Smallest tail, relative to the perturbation, that is told from rounding."""

STABILITY_LIMIT = 5.8
"""The 8(5,3) method is stable for pure transport up to h k_max max|V| of this size."""

DAMPING_LIMIT = 40.0
"""Largest h kappa k^2: beyond, the integrating factor amplifies rounding."""


def grid_sizes(largest: int) -> list[int]:
    """Grid sizes 2^a and 3 2^a from the smallest up to `largest` points."""
    sizes = []
    size = SMALLEST_GRID
    while size <= largest:
        sizes += [size, size // 2 * 3]
        size *= 2
    return [size for size in sizes if size <= largest]


def kept_modes(n_points: int) -> int:
    """Largest mode carried on a grid."""
    return int(KEPT * (n_points // 2))


def grids_allowed(options: MarchOptions) -> list[int]:
    """Sizes of the grids on one period; InputError if `max_modes` allows none."""
    sizes = grid_sizes(2 * options.max_modes // options.fold)
    if not sizes:
        raise InputError(
            f"max_modes = {options.max_modes} is too small; allow at least {SMALLEST_GRID // 2 * options.fold}."
        )
    return sizes


def first_grid(model: GridModel, c: ComplexArray, options: MarchOptions) -> int:
    """Size of the grid that a stored state came from, or the smallest that holds the data and the kernel."""
    sizes = grids_allowed(options)
    stored = 2 * (int(c.shape[-1]) - 1)
    if stored in sizes and not c[:, kept_modes(stored) + 1 :].any():
        return stored
    needed = max(int(np.flatnonzero(c.any(axis=0))[-1]), -(-model.bandwidth // options.fold))
    for size in sizes:
        if kept_modes(size) >= needed:
            return size
    raise InputError(
        f"the initial density or the kernel has {needed * options.fold} modes, more than "
        f"max_modes = {options.max_modes} can carry; raise max_modes to {2 * needed * options.fold}."
    )


def padded(c: ComplexArray, n_points: int) -> ComplexArray:
    """Moments c_{fold j} as a grid of `n_points` points carries them; shape (B, n_points // 2 + 1)."""
    kept = kept_modes(n_points)
    state = np.zeros((c.shape[0], n_points // 2 + 1), dtype=np.complex128)
    state[:, : min(kept + 1, c.shape[1])] = c[:, : kept + 1]
    return state


class GridModel(Protocol):
    """What this method asks of a model; densities that are carried together may move each other."""

    @property
    def diffusion(self) -> float:
        """Coefficient kappa of d_theta^2 in the equation."""

    @property
    def bandwidth(self) -> int:
        """Number of modes beyond which the velocity does not depend on the densities, to round-off."""

    def grid_fields(self, n_points: int, fold: int = 1, n_densities: int = 1) -> GridFields:
        """Make an evaluator of velocities and densities on `n_points` points of one period 2 pi / fold."""


class SpectralRightHandSide:
    """-i k F_k on one grid, of one density or of several at once.

    Parameters
    ----------
    model : GridModel
    n_points : int
        Number M of grid points on one period 2 pi / fold.
    fold : int
        Entry j of an array belongs to mode fold j.
    n_densities : int
        Number B of densities.
    """

    def __init__(self, model: GridModel, n_points: int, fold: int = 1, n_densities: int = 1) -> None:
        self._made_from = (model, n_points, fold, n_densities)
        self.fields = model.grid_fields(n_points, fold, n_densities)
        self._velocity = self.fields.velocity
        self._density = self.fields.density
        self._evaluate = self.fields.evaluate
        transform = RealTransform(n_points, n_densities)
        self._flux = transform.grid
        self._flux_modes = transform.spectrum
        self._forward = transform.forward
        self._derivative = np.zeros_like(self._flux_modes)  # of one shape with it: faster than broadcasting
        kept = kept_modes(n_points)
        self._derivative[:, : kept + 1] = -1j * fold * np.arange(kept + 1) / n_points

    def __call__(self, c: ComplexArray, out: ComplexArray) -> None:
        """Write -i k F_k for the moments c into out; both of shape (B, M // 2 + 1)."""
        self._evaluate(c)
        np.multiply(self._velocity, self._density, self._flux)  # `out=` by name would take a fifth longer
        self._forward()
        np.multiply(self._derivative, self._flux_modes, out)

    def as_moments(self, y: FloatArray) -> ComplexArray:
        """Rows of real and imaginary parts as moments; shape (..., B, M // 2 + 1)."""
        return y.view(np.complex128).reshape(*y.shape[:-1], *self._flux_modes.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans and views into their arrays are made anew, not copied."""
        return SpectralRightHandSide, self._made_from


class SpectralSolver(AdaptiveSolver):
    """Densities that are carried together: their moments, grid and step size.

    The step and the grid are shared; the error of each density is measured against its own perturbation.

    Parameters
    ----------
    model : GridModel
    t : float
        Initial time.
    moments : ndarray of complex128, shape (B, K + 1)
        c_{fold j} of each density.
    options : MarchOptions
    step : StepState
        Where a step-size controller left off, if the run is continued.

    Attributes
    ----------
    n_points : int
        Points of the current grid on one period.
    unresolved : ndarray of bool, shape (B,)
        Which densities were too sharp for the grid at the last attempt.
    """

    method: ClassVar[str] = "spectral"

    def __init__(
        self, model: GridModel, t: float, moments: ComplexArray, options: MarchOptions, step: StepState | None = None
    ) -> None:
        super().__init__(t, options)
        self.model = model
        self.unresolved: NDArray[np.bool_] = np.zeros(moments.shape[0], dtype=np.bool_)
        self._fold = options.fold
        self._tail_allowed = max(TAIL_SHARE * options.rtol, TAIL_FLOOR)
        self._grids = grids_allowed(options)
        self.n_points = first_grid(model, moments, options)
        self._use_grid(moments)
        sizes, rates = self._sizes_now, self._sizes_of(self._stepper.slope)
        fastest = max(range(len(sizes)), key=lambda i: rates[i] / sizes[i] if sizes[i] > 0.0 else 0.0)
        self._start_control(step, sizes[fastest], rates[fastest])

    def _use_grid(self, c: ComplexArray) -> None:
        """Continue from moments c on a grid of `n_points` points."""
        n = self.n_points // 2 + 1
        kept = kept_modes(self.n_points)
        self._shape = (c.shape[0], n)
        state = padded(c, self.n_points)
        self._rhs = self._right_hand_side(c.shape[0])
        damping = None
        if self.model.diffusion > 0.0:
            k = self._fold * np.minimum(np.arange(n), kept).astype(np.float64)
            damping = np.tile(np.repeat(self.model.diffusion * k**2, 2), c.shape[0])
        self._stepper = Dop853(self._rhs, state.view(np.float64).ravel(), damping, self._rhs.as_moments)
        self._transport_limit = STABILITY_LIMIT / (self._fold * kept)
        self._damping_step = np.inf if damping is None else DAMPING_LIMIT / float(damping.max())
        self._look_at_grid()
        self._sizes_now = self._sizes_of(self._stepper.y)
        self._tails_now = np.maximum.reduce(np.abs(self._rows(self._stepper.y)[:, self._tail]), axis=1).tolist()
        self._limit_step()

    def _look_at_grid(self) -> None:
        """Make what every step looks at: views of arrays that the stepper writes to, and room for absolute values."""
        kept = kept_modes(self.n_points)
        self._tail = slice(2 * int(0.92 * kept), 2 * (kept + 1))
        states, slopes = (self._rows(y)[:, self._tail] for y in (self._stepper.y, self._stepper.slope))
        self._tail_states = list(zip(states, slopes, strict=True))
        self._magnitudes = np.empty_like(self._stepper.ends)
        rows = self._magnitudes.reshape(3, self._shape[0], -1)
        self._perturbed, self._tail_magnitudes = rows[:, :, 2:], rows[0, :, self._tail]
        self._speeds = np.empty_like(self._rhs.fields.velocity)

    def _right_hand_side(self, n_densities: int) -> SpectralRightHandSide:
        """What moves the densities on the current grid."""
        return SpectralRightHandSide(self.model, self.n_points, self._fold, n_densities)

    def _rows(self, y: FloatArray) -> FloatArray:
        """A state as one row a density, real and imaginary parts alternating; shape (B, 2 n)."""
        return y.reshape(self._shape[0], -1)

    def _sizes_of(self, y: FloatArray) -> list[float]:
        """Size of each density's perturbation: largest component of its c_k, k >= 1."""
        return self._measured_by(np.maximum.reduce(np.abs(self._rows(y)[:, 2:]), axis=1).tolist())

    def _measured_by(self, sizes: list[float]) -> list[float]:
        """Sizes that each density's errors are measured by, from the sizes of the perturbations."""
        return sizes

    def _limit_step(self) -> None:
        """Find the largest stable step at the state whose velocity is on the grid."""
        np.abs(self._rhs.fields.velocity, out=self._speeds)
        speed = max(float(np.maximum.reduce(self._speeds, axis=None)), 1e-300)
        self._largest_step = min(self._transport_limit / speed, self._damping_step)

    @property
    def moments(self) -> ComplexArray:
        """Moments c_{fold j} on the current grid; shape (B, n_points // 2 + 1)."""
        return self._rhs.as_moments(self._stepper.y)

    @property
    def rates(self) -> ComplexArray:
        """Rates of change of `moments` by transport alone, without diffusion; same shape."""
        return self._rhs.as_moments(self._stepper.slope)

    @property
    def n_modes(self) -> int:
        """Modes in use: half the points, times the fold."""
        return self._fold * self.n_points // 2

    def dissipation(self) -> FloatArray:
        """Rates at which the energies grow, as integrals over the grid; shape (B,)."""
        return self._rhs.fields.dissipation()

    def energy_rate_residual(self, model: Model) -> float:
        """The residual of `Snapshot` of the first density."""
        return _residual(model, self._rhs, self.moments[0], self.rates[0], self._fold)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up a copied or pickled state; what lies on the grid is computed again."""
        self.__dict__.update(state)
        self._look_at_grid()
        self._rhs.fields.evaluate(self.moments)

    def keep(self, wanted: NDArray[np.bool_]) -> None:
        """Go on with the densities that are wanted only."""
        self._use_grid(self.moments[wanted])

    def _error(self, errors: FloatArray) -> float:
        np.abs(self._stepper.ends, out=self._magnitudes)
        sizes, fifths, thirds = np.maximum.reduce(self._perturbed, axis=-1).tolist()
        self._sizes_next = self._measured_by(sizes)
        self._perturbations = list(map(max, self._sizes_now, self._sizes_next))
        allowed = [self._options.rtol * size for size in self._perturbations]
        return worst(map(combined_error, fifths, thirds, allowed))

    def _will_blur(self, h: float) -> bool:
        if self.n_points == self._grids[-1]:
            return False
        for (state, slope), tail, size in zip(self._tail_states, self._tails_now, self._sizes_now, strict=True):
            allowed = self._tail_allowed * size
            if tail <= NEAR * allowed:
                continue
            square = float(np.dot(state, state))
            growth = float(np.dot(state, slope)) / square if square > 0.0 else 0.0
            if tail * math.exp(min(h * growth, 100.0)) > allowed:
                return True
        return False

    def _is_resolved(self) -> bool:
        self._tails_next = np.maximum.reduce(self._tail_magnitudes, axis=-1).tolist()
        allowed = self._tail_allowed
        unresolved = [t > allowed * size for t, size in zip(self._tails_next, self._perturbations, strict=True)]
        self.unresolved = np.array(unresolved)
        return not any(unresolved)

    def _accepted(self) -> None:
        self._sizes_now = self._sizes_next
        self._tails_now = self._tails_next
        self._limit_step()

    def _refine(self) -> None:
        """Continue from the last accepted state on the next finer grid."""
        finer = [size for size in self._grids if size > self.n_points]
        if not finer:
            raise ResolutionExhausted(
                f"at t = {self.t:.6g} the density has become too sharp for max_modes = {self._options.max_modes}; "
                'raise max_modes, end the run earlier, or use method = "auto", which follows the collapse.',
                self.t,
            )
        self.n_points = finer[0]
        self._use_grid(self.moments.copy())


def march_spectral(model: Model, start: Snapshot, times: FloatArray, options: MarchOptions) -> Iterator[Snapshot]:
    """Solve the nonlinear equation in Fourier space (see `spectral_mf.solvers.march.March`).

    Raises
    ------
    InputError
        At once, if the start is not a density with at most `options.max_modes` modes.
    ResolutionExhausted
        When the density is too sharp for `options.max_modes`.
    Diverged
        When the solution is no longer finite.
    """
    solver = SpectralSolver(model, start.t, folded_moments(start.measure, options.fold), options, start.step)
    return _snapshots(solver, model, times, options.fold)


def _snapshots(solver: SpectralSolver, model: Model, times: FloatArray, fold: int) -> Iterator[Snapshot]:
    try:
        for t in times:
            solver.advance(float(t))
            yield _snapshot(solver, model, fold)
    except StoppedEarly as stop:
        stop.snapshot = _snapshot(solver, model, fold)
        raise


def energy_rate_residual(model: Model, start: Snapshot, options: MarchOptions) -> float:
    """The residual of `Snapshot` for a state that no solver has touched yet."""
    given = folded_moments(start.measure, options.fold)
    n_points = first_grid(model, given, options)
    moments = padded(given, n_points)
    rhs = SpectralRightHandSide(model, n_points, options.fold)
    rates = np.empty_like(moments)
    rhs(moments, rates)
    return _residual(model, rhs, moments[0], rates[0], options.fold)


def _residual(model: Model, rhs: SpectralRightHandSide, moments: ComplexArray, rates: ComplexArray, fold: int) -> float:
    growth = model.energy_rate(_unfold(moments, fold), _unfold(rates, fold))
    return growth - float(rhs.fields.dissipation()[0])


def _snapshot(solver: SpectralSolver, model: Model, fold: int) -> Snapshot:
    return Snapshot(
        t=solver.t,
        measure=FourierDensity.from_vector(_unfold(solver.moments[0], fold).view(np.float64)),
        method=solver.method,
        n_modes=solver.n_modes,
        energy_rate_residual=solver.energy_rate_residual(model),
        step=solver.step,
    )


def folded_moments(measure: Measure, fold: int) -> ComplexArray:
    """Moments c_{fold j} of a density with finitely many modes; shape (1, K // fold + 1)."""
    if not isinstance(measure, FourierDensity):
        raise InputError(
            f"the spectral method needs a density with finitely many modes, not {measure!r}; "
            'use .smoothed(n_modes), or method = "characteristics".'
        )
    return np.ascontiguousarray(measure.moments(measure.n_modes)[None, ::fold])


def _unfold(c: ComplexArray, fold: int) -> ComplexArray:
    full = np.zeros((c.size - 1) * fold + 1, dtype=np.complex128)
    full[::fold] = c
    return full
