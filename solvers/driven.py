"""What moves densities that common noise drives: the spectral method and the flow map, with noise at given rates.

Along a straight piece of its path the noise goes on at a rate dB/dt, so the velocity is V + Σ_j σ_j dB_j/dt.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectral_mf.flow_map import FlowMap
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.harmonics import fourier_sum
from spectral_mf.model import Model
from spectral_mf.solvers.characteristics import CharacteristicSolver
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.spectral import SpectralRightHandSide, SpectralSolver, kept_modes
from spectral_mf.trajectory import Snapshot, StepState
from spectral_mf.vector_fields import VectorFields

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

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
        self,
        model: Model,
        fields: VectorFields,
        t: float,
        moments: ComplexArray,
        options: MarchOptions,
        step: StepState | None = None,
    ) -> None:
        self._driven_model, self._fields = model, fields
        self._rates = np.zeros((moments.shape[0], fields.n_fields))
        super().__init__(model, t, moments, options, step)

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

    def __init__(
        self,
        model: Model,
        fields: VectorFields,
        t: float,
        flow: FlowMap,
        options: MarchOptions,
        step: StepState | None = None,
    ) -> None:
        self._fields = fields
        self._drift = np.zeros(fields.bandwidth + 1, dtype=np.complex128)
        super().__init__(model, t, flow, options, step)

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
