"""The method of characteristics: labels move with the velocity, dX/dt = V[μ](X), and carry their mass.

Exact through the collapse: what becomes singular is the density, not the map. A panel of labels whose displacement is
no longer resolved is halved; what a panel's mass makes invisible is not. When all mass sits in points, these go on as
atoms, to any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spectral_mf import panels
from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.clusters import group_points
from spectral_mf.errors import InputError, ResolutionExhausted, StoppedEarly
from spectral_mf.flow_map import PHASE_PER_PANEL, FlowMap
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.harmonics import point_moments
from spectral_mf.model import Model
from spectral_mf.solvers.adaptive import AdaptiveSolver
from spectral_mf.solvers.atom_dynamics import MODES_SEEN, AtomSolver, point_size, point_velocity
from spectral_mf.solvers.dop853 import Dop853, error_norm
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Snapshot, StepState

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

TAIL_SHARE = 0.02
"""The tail of a panel's displacement, times its mass, may reach this share of the error allowed a step."""

TAIL_FLOOR = 1e-14
"""Smallest such tail that is told from rounding."""

STRAGGLERS = 0.1
"""Mass outside the points, as a share of the error allowed, that may be given to the nearest point."""

MOST_NODES = 400_000

ROUNDING = 2e-17
"""Errors (radians, weighted by mass) below this are those of the quadrature."""

LEAST_PERTURBATION = 1e-10
"""A quadrature knows moments to 1e-16, and so perturbations of this size to a millionth."""


class CharacteristicSolver(AdaptiveSolver):
    """A flow map and its step size.

    Parameters
    ----------
    model : Model
    t : float
        Initial time.
    flow : FlowMap
    options : MarchOptions
        Errors are measured against the largest |c_k|, k >= 1, and weighted by mass.
    step : StepState, optional
    """

    method: ClassVar[str] = "characteristics"

    def __init__(
        self, model: Model, t: float, flow: FlowMap, options: MarchOptions, step: StepState | None = None
    ) -> None:
        super().__init__(t, options)
        self.model = model
        self._n_modes = -(-model.bandwidth // flow.fold)
        self._use(flow)
        self._start_control(step, self._perturbation(), float(np.abs(self._stepper.slope).max()))

    def _use(self, flow: FlowMap) -> None:
        """Continue with a flow map."""
        self._flow = flow
        self._labels = flow.labels.ravel()
        self._masses = flow.fold * flow.masses.ravel()
        self._visible = self._masses > 1e-18
        self._turns = np.arange(flow.fold) * (TWO_PI / flow.fold)
        self._stepper = Dop853(self._rhs, flow.displacement.ravel())

    def _rhs(self, y: FloatArray, out: FloatArray) -> None:
        x = self._labels + y
        fold = self._flow.fold
        self._moments = np.zeros(self._n_modes * fold + 1, dtype=np.complex128)
        self._moments[::fold] = point_moments(fold * x, self._masses, self._n_modes)
        sources = (x[self._visible] + self._turns[:, None]).ravel()
        out[:] = point_velocity(
            self.model, x, sources, np.tile(self._masses[self._visible], fold) / fold, self._moments
        )

    def _perturbation(self) -> float:
        """Largest |c_k|, k >= 1, at the state that the right-hand side saw last."""
        return float(np.abs(self._moments[1:]).max())

    @property
    def n_modes(self) -> int:
        """Nodes in use on one period."""
        return self._labels.size

    @property
    def flow(self) -> FlowMap:
        """The flow map at the time reached."""
        flow = self._flow
        return FlowMap(flow.edges, flow.initial, self._stepper.y.reshape(flow.initial.shape).copy(), flow.fold)

    def _error(self, errors: FloatArray) -> float:
        self._size = self._perturbation()
        weighted = np.sqrt((errors**2 * self._masses).sum(axis=1, keepdims=True))
        return error_norm(weighted, max(self._options.rtol * self._size, ROUNDING))

    def _is_resolved(self) -> bool:
        displacement = self._stepper.trial.reshape(self._flow.initial.shape)
        allowed = max(TAIL_SHARE * self._options.rtol, TAIL_FLOOR) * self._size
        mass = self._masses.reshape(displacement.shape).sum(axis=1)
        ends = displacement @ panels.TO_ENDS.T
        length = np.diff(self._flow.edges) + ends[:, 1] - ends[:, 0]
        rough = panels.tails(displacement) * mass > allowed
        long = (self._n_modes * self._flow.fold * length > 1.5 * PHASE_PER_PANEL) & (mass > allowed)
        self._rough = rough | long
        return not self._rough.any()

    def _refine(self) -> None:
        flow = self.flow.split(self._rough)
        if flow.n_modes > MOST_NODES:
            raise ResolutionExhausted(
                f"at t = {self.t:.6g} the flow map needs more than {MOST_NODES} nodes; raise rtol.", self.t
            )
        self._use(flow)

    def _accepted(self) -> None:
        """Nothing to look at."""

    def points(self) -> tuple[FloatArray, FloatArray] | None:
        """Angles and masses (on one period) of the points that all mass sits in; None if it does not yet."""
        rtol, period = self._options.rtol, TWO_PI / self._flow.fold
        size = point_size(rtol)
        found = group_points(self._labels + self._stepper.y, self._masses, gap=size, period=period)
        points = found.masses > rtol
        if not points.any() or points.sum() * panels.ORDER > self._labels.size:  # nodes that are still on their own
            return None
        if found.masses[~points].sum() > STRAGGLERS * rtol or found.widths[points].max() > size:
            return None
        positions, masses = found.positions[points], found.masses[points].copy()
        for angle, mass in zip(found.positions[~points], found.masses[~points], strict=True):
            distance = np.abs((positions - angle + 0.5 * period) % period - 0.5 * period)
            masses[distance.argmin()] += mass
        return positions, masses / (self._flow.fold * masses.sum())

    def snapshot(self) -> Snapshot:
        """The state as it is stored."""
        return Snapshot(self.t, self.flow, self.method, self.n_modes * self._flow.fold, step=self.step)


def march_characteristics(
    model: Model, start: Snapshot, times: FloatArray, options: MarchOptions
) -> Iterator[Snapshot]:
    """Follow the characteristics to any time (see `spectral_mf.solvers.march.March`).

    Parameters
    ----------
    start : Snapshot
        A `FourierDensity` that is nowhere negative, a `FlowMap`, or `Atoms`.

    Raises
    ------
    InputError
        At once, if the model has diffusion (labels would not keep their mass), the density is negative somewhere, or
        its perturbation is too small for a quadrature (the uniform density itself is allowed; where it is stationary,
        it stays).
    """
    if model.diffusion > 0.0:
        raise InputError(
            f"diffusion = {model.diffusion:g} spreads mass across characteristics, which cannot follow it; "
            'use method = "spectral", or diffusion = 0.'
        )
    measure = start.measure
    if isinstance(measure, FourierDensity):
        measure = flow_of(measure, model, options)
        start = replace(start, measure=measure, step=StepState())
    if model.has_growth_rates and isinstance(measure, FlowMap) and _is_uniform(measure):
        return (Snapshot(float(t), measure, "characteristics", measure.n_modes * measure.fold) for t in times)
    return _snapshots(_solver(model, start, options), times)


def flow_of(density: FourierDensity, model: Model, options: MarchOptions, *, negative: float = 0.0) -> FlowMap:
    """The map that has moved nothing yet, to the tolerance; the density may be negative by `negative` of uniform."""
    n_modes = max(MODES_SEEN, model.bandwidth)
    size = float(np.abs(density.moments(max(n_modes, density.n_modes))[1:]).max())
    if 0.0 < size < LEAST_PERTURBATION:
        raise InputError(
            f"the largest |c_k| of the perturbation is {size:.3g}, and characteristics know moments only to 1e-16; "
            f'use method = "auto", which begins in Fourier space, or start from at least {LEAST_PERTURBATION:g}.'
        )
    return FlowMap.identity(
        density,
        fold=options.fold,
        n_modes=n_modes,
        tolerance=max(TAIL_SHARE * options.rtol * size, 1e-15),
        negative=negative,
    )


def _is_uniform(flow: FlowMap) -> bool:
    """Whether nothing has moved yet and the initial density is the same everywhere but for rounding."""
    return not flow.displacement.any() and float(np.ptp(flow.initial)) < 1e-14


def _solver(model: Model, start: Snapshot, options: MarchOptions) -> CharacteristicSolver | AtomSolver:
    measure = start.measure
    if isinstance(measure, FlowMap):
        return CharacteristicSolver(model, start.t, measure, options, start.step)
    if isinstance(measure, Atoms):
        order = np.arange(measure.n_atoms)
        if options.fold > 1:
            order = np.argsort(measure.angles, kind="stable")[: measure.n_atoms // options.fold]
        step = start.step if start.method == "atoms" else None
        return AtomSolver(model, start.t, measure.angles[order].copy(), measure.weights[order].copy(), options, step)
    raise InputError(f"characteristics start from a FourierDensity, a FlowMap or Atoms, not from {measure!r}.")


def _snapshots(solver: CharacteristicSolver | AtomSolver, times: FloatArray) -> Iterator[Snapshot]:
    try:
        for t in times:
            while solver.t < t:
                solver.one_step(float(t))
                if isinstance(solver, CharacteristicSolver) and (points := solver.points()) is not None:
                    solver = AtomSolver(solver.model, solver.t, *points, solver._options)
            snapshot = solver.snapshot()
            yield snapshot
            if isinstance(solver, AtomSolver):  # as a resumed run does, which knows the stored angles only
                solver = _solver(solver.model, snapshot, solver._options)
    except StoppedEarly as stop:
        stop.snapshot = solver.snapshot()
        raise
