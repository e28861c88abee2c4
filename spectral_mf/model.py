"""What the solvers ask of a model: a map from moments to a velocity.

Every representation of a measure meets every model through the measure's moments c_k = int exp(-i k theta) dmu. A new
model is a new class behind these protocols; no solver needs to know which one it has.

What not every model has is said by the model itself: `turns` (its symmetry, which a solver may keep exactly),
`has_growth_rates` (whether modes of a perturbed uniform density grow each by itself), and an energy that is nan where
the flow is no gradient flow.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


class GridFields(Protocol):
    """Velocities and densities on a grid, recomputed in place from moments.

    Attributes
    ----------
    velocity : ndarray of float64, shape (n_densities, M)
        V[mu](theta_j) at theta_j = 2 pi j / (fold M); overwritten by the next `evaluate`.
    density : ndarray of float64, shape (n_densities, M)
        2 pi p(theta_j), so that the uniform density is 1.
    """

    velocity: FloatArray
    density: FloatArray

    def evaluate(self, moments: ComplexArray) -> None:
        """Fill `velocity` and `density` from moments c_{fold j}, shape (n_densities, M // 2 + 1)."""

    def dissipation(self) -> FloatArray:
        """Rates at which energies grow by the flow of the last `evaluate`, nan without one; shape (n_densities,)."""


@runtime_checkable
class Model(Protocol):
    """An interaction that moves a measure on the circle with a velocity that depends on its moments."""

    @property
    def diffusion(self) -> float:
        """Coefficient kappa of d_theta^2 in the equation."""

    @property
    def bandwidth(self) -> int:
        """Number of modes beyond which the velocity does not depend on the measure, to round-off."""

    @property
    def energy_log_unit(self) -> float:
        """Energies are reported in units of exp(energy_log_unit); 0 unless they would overflow."""

    @property
    def turns(self) -> int:
        """Largest m such that a turn by 2 pi / m maps solutions onto solutions; 0 if every turn does."""

    @property
    def has_growth_rates(self) -> bool:
        """Whether the uniform density is stationary and each mode of a small perturbation grows by itself."""

    def growth_rate(self, k: ArrayLike) -> FloatArray:
        """Rate lambda_k at which a small perturbation of the uniform density in mode k grows.

        Raises
        ------
        InputError
            If the model has none (see `has_growth_rates`).
        """

    def grid_fields(self, n_points: int, fold: int = 1, n_densities: int = 1) -> GridFields:
        """Make an evaluator of velocities and densities on `n_points` points of one period 2 pi / fold."""

    def velocity(self, moments: ComplexArray, theta: ArrayLike) -> FloatArray:
        """Velocity at the angles theta, from moments c_0 .. c_K."""

    def velocity_and_mass(self, moments: ComplexArray, theta: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Velocity at the angles theta, and what it is divided by there, relative to its mean (1 if by nothing)."""

    def velocity_series(self, moments: ComplexArray) -> ComplexArray:
        """Fourier coefficients of what the velocity is made of, for those who have faster sums than `velocity`.

        The velocity is a sum over terms: a numerator, or a numerator divided by a denominator. All are linear in the
        moments.

        Parameters
        ----------
        moments : ndarray of complex, shape (K + 1,)

        Returns
        -------
        ndarray of complex128, shape (n_terms, 1 or 2, L + 1)
            Coefficients a_0 .. a_L of each numerator and, if there are any, of the denominators relative to the mean;
            L is at most the bandwidth. Where a denominator is small, sums of the series have lost digits that
            `velocity_and_mass` may still have.
        """

    def pair_velocity(self, theta: ArrayLike, angles: ArrayLike, weights: ArrayLike) -> FloatArray:
        """Velocity at the angles theta made by point masses, as direct sums that neither overflow nor cancel."""

    def pair_jacobian(self, angles: ArrayLike, weights: ArrayLike) -> FloatArray:
        """Derivative of each atom's velocity by each atom's angle; shape (N, N)."""

    def energy(self, moments: ComplexArray) -> FloatArray:
        """Interaction energy of measures with moments (..., K + 1), in units of exp(energy_log_unit).

        It grows with time without diffusion. nan if the flow is the gradient flow of no energy.
        """

    def energy_rate(self, moments: ComplexArray, rates: ComplexArray) -> float:
        """Rate of change of the energy when the moments c_0 .. c_K change at the given rates; nan without one."""

    def to_dict(self) -> dict[str, Any]:
        """Parameters, as they are stored in files; `type` names the class."""
