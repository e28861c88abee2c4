"""Point masses: dθ_i/dt = V[μ](θ_i), exact for tokens and for clusters that have become points.

Atoms that come so close that their distance no longer matters are joined, with their masses. What is left is never
stiff for long: the fast contraction of a pair ends when the pair is one.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.clusters import group_points
from spectral_mf.harmonics import point_moments
from spectral_mf.model import Model
from spectral_mf.solvers.adaptive import AdaptiveSolver
from spectral_mf.solvers.dop853 import Dop853, error_norm
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Snapshot, StepState

FloatArray = NDArray[np.float64]

MODES_SEEN = 64
"""Moments up to this mode are kept to the tolerance when a cluster is replaced by a point."""

FEW = 300
"""Up to this many atoms interact in pairs, more through their moments."""

ROUNDING = 1e-15
"""Errors of angles below this (radians) are rounding; atoms in equilibrium move by nothing else."""

LEAST_MASS_SEEN = 1e-10
"""Where the softmax's denominator is less than this share of its mean, moments do not tell the velocity."""


def point_size(rtol: float) -> float:
    """Diameter (radians) below which a cluster is a point: its moments change by less than `rtol`."""
    return math.sqrt(2.0 * rtol) / MODES_SEEN


def point_velocity(
    model: Model, theta: FloatArray, angles: FloatArray, masses: FloatArray, moments: NDArray[np.complex128]
) -> FloatArray:
    """Velocity at theta made by point masses: from their moments, and by direct sums where those cannot tell.

    Parameters
    ----------
    theta : ndarray of float64, shape (M,)
    angles, masses : ndarray of float64, shape (N,)
    moments : ndarray of complex128, shape (K + 1,)
        Of the point masses, up to the model's bandwidth.
    """
    velocity, seen = model.velocity_and_mass(moments, theta)
    unseen = seen < LEAST_MASS_SEEN
    if unseen.any():
        velocity[unseen] = model.pair_velocity(theta[unseen], angles, masses)
    return velocity


class AtomSolver(AdaptiveSolver):
    """Atoms on one period 2 pi / fold; the others are their images.

    Parameters
    ----------
    model : Model
    t : float
        Initial time.
    angles, masses : ndarray of float64, shape (N,)
        Atoms of one period; the masses add up to 1 / fold.
    options : MarchOptions
        The error of a step is measured against the distance moved so far.
    step : StepState, optional
    """

    method: ClassVar[str] = "atoms"

    def __init__(
        self,
        model: Model,
        t: float,
        angles: FloatArray,
        masses: FloatArray,
        options: MarchOptions,
        step: StepState | None = None,
    ) -> None:
        super().__init__(t, options)
        self.model = model
        self._period = TWO_PI / options.fold
        self._turns = self._period * np.arange(options.fold)
        self._use(angles, masses)
        speed = float(np.abs(self._stepper.slope).max())
        self._start_control(step, 1.0, speed)
        self._merge()

    def _use(self, angles: FloatArray, masses: FloatArray) -> None:
        self._masses = masses
        self._start = angles
        self._all_masses = np.tile(masses, self._turns.size)
        self._stepper = Dop853(self._rhs, np.zeros_like(angles))

    def _rhs(self, y: FloatArray, out: FloatArray) -> None:
        theta = self._start + y
        everywhere = (theta + self._turns[:, None]).ravel()
        if everywhere.size <= FEW:
            out[:] = self.model.pair_velocity(theta, everywhere, self._all_masses)
            return
        moments = point_moments(everywhere, self._all_masses, self.model.bandwidth)
        out[:] = point_velocity(self.model, theta, everywhere, self._all_masses, moments)

    @property
    def n_modes(self) -> int:
        """Number of atoms."""
        return self._all_masses.size

    @property
    def angles(self) -> FloatArray:
        """Angles of the atoms of one period, not reduced; shape (N,)."""
        return np.asarray(self._start + self._stepper.y)

    def _error(self, errors: FloatArray) -> float:
        moved = float(np.abs(self._stepper.trial).max())
        return error_norm(errors, max(self._options.rtol * min(moved, 1.0), ROUNDING))

    def _is_resolved(self) -> bool:
        return True

    def _refine(self) -> None:
        """Points need no resolution."""

    def _accepted(self) -> None:
        self._merge()

    def _merge(self) -> None:
        """Join atoms that are one point to the tolerance."""
        angles = self.angles
        if angles.size == 1:
            return
        gap = point_size(self._options.rtol)
        x = np.sort(angles % self._period)
        if np.append(np.diff(x), x[0] + self._period - x[-1]).min() >= gap:
            return
        joined = group_points(angles, self._masses, gap=gap, period=self._period)
        self._use(joined.positions, joined.masses)

    def snapshot(self) -> Snapshot:
        """The state as it is stored."""
        return Snapshot(self.t, self._atoms(), self.method, self.n_modes, step=self.step)

    def _atoms(self) -> Atoms:
        return Atoms((self.angles + self._turns[:, None]).ravel(), self._all_masses)
