"""Tokens that attract each other by an even pair potential W: ∂ₜμ + ∂_θ(μ V[μ]) = κ ∂²_θ μ, V[μ] = ∂_θ (W * μ).

W(θ) = Σ_k W_k e^{ikθ}, W_{-k} = W_k real. Tokens climb W: where it has its maximum at 0 they attract. The uniform
density is stationary; mode k of a perturbation grows at rate k² W_k - κ k². Attention without softmax has I_k(β)/β.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import spherical_jn

from spectral_mf.arguments import (
    finite_number,
    integer_at_least,
    number_at_least,
    number_from_to,
    real_array,
    values_at,
)
from spectral_mf.convolution_fields import ConvolutionFields
from spectral_mf.errors import InputError
from spectral_mf.harmonics import fourier_sum, point_moments
from spectral_mf.wording import counted

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

MOST_MODES = 8192

_RESOLVED = 1e-12
"""Share of the largest coefficient below which those beyond the last mode have to be."""

_ROUNDING = float(np.finfo(np.float64).eps)
"""Share of the largest value of a function that its computed coefficients are wrong by, at most."""


@dataclass(frozen=True)
class PairPotential:
    """Gradient flow of the interaction energy E = (1/2) double-int W(theta - phi) dmu dmu, which grows.

    Parameters
    ----------
    coefficients : sequence of float
        W_0, W_1, ..., W_K: Fourier coefficients of W (half the cosine coefficients for k >= 1).
    diffusion : float
        Coefficient kappa >= 0 of the second derivative: tokens get noise sqrt(2 kappa) dB.
    label : str
        What the potential is, in words; shown and stored, and of no effect.

    Raises
    ------
    InputError
        If there are fewer than two coefficients or more than 8193, one is not finite, or the label is no text.
    """

    coefficients: tuple[float, ...]
    diffusion: float = 0.0
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        message = "coefficients are not a row of finite numbers W_0, W_1, ...; give at least two."
        values = real_array(self.coefficients, message)
        if values.ndim != 1 or values.size < 2 or not np.isfinite(values).all():
            raise InputError(message)
        if values.size > MOST_MODES + 1:
            raise InputError(f"coefficients have {values.size - 1} modes; give at most {MOST_MODES}.")
        object.__setattr__(self, "coefficients", tuple(values.tolist()))
        object.__setattr__(self, "diffusion", number_at_least("diffusion", self.diffusion, 0.0))
        if not isinstance(self.label, str):
            raise InputError(f"label = {self.label!r} is no text; give a name in words, or leave it out.")

    @classmethod
    def from_function(
        cls,
        potential: Callable[[FloatArray], ArrayLike],
        *,
        n_modes: int = 256,
        diffusion: float = 0.0,
        label: str = "",
    ) -> PairPotential:
        """The potential given as an even function of the angle between two tokens.

        Coefficients below the rounding of its values are dropped: times k^2 they would be growth rates.

        Parameters
        ----------
        potential : callable
            W at an array of angles in [0, 2 pi).
        n_modes : int
            Largest mode looked for; W has to be resolved by it.
        diffusion : float
        label : str

        Raises
        ------
        InputError
            If `potential` takes no arrays, a value is not finite, W is not even, or `n_modes` do not resolve it.
        """
        if not callable(potential):
            raise InputError(f"potential = {potential!r} is not a function; give one of the angle.")
        n_modes = integer_at_least("n_modes", n_modes, 1)
        theta = 2.0 * np.pi * np.arange(4 * n_modes) / (4 * n_modes)
        message = "the potential's values are not finite real numbers, one for each angle; give such a function."
        given = values_at("the potential", potential, theta)
        values = real_array(given, message)
        if values.shape != theta.shape or not np.isfinite(values).all():
            raise InputError(message)
        spectrum = np.fft.rfft(values) / values.size
        largest = float(np.abs(spectrum).max())
        if np.abs(spectrum.imag).max() > _RESOLVED * largest:
            raise InputError("the potential is not even; give a function with W(-theta) = W(theta).")
        beyond = float(np.abs(spectrum.real[n_modes + 1 :]).max())
        if beyond > _RESOLVED * largest:
            raise InputError(
                f"{n_modes} modes do not resolve the potential (|W_k| = {beyond:.2g} beyond them); raise n_modes, or "
                "give the coefficients that are to be kept."
            )
        coefficients = spectrum.real[: n_modes + 1]
        coefficients[np.abs(coefficients) <= _ROUNDING * np.abs(values).max()] = 0.0
        last = int(np.flatnonzero(coefficients).max(initial=1))
        return cls(tuple(coefficients[: max(1, last) + 1].tolist()), diffusion, label)

    @classmethod
    def kuramoto(cls, strength: float = 1.0, diffusion: float = 0.0) -> PairPotential:
        """Identical Kuramoto oscillators: W = strength cos(theta). Strength 1 is self-attention at beta = 0."""
        strength = finite_number("strength", strength)
        return cls((0.0, 0.5 * strength), diffusion, f"Kuramoto, strength {strength:.15g}")

    @classmethod
    def hegselmann_krause(
        cls, radius: float, strength: float = 1.0, diffusion: float = 0.0, kept_modes: int = 256
    ) -> PairPotential:
        """Bounded confidence: tokens closer than `radius` attract like strength times distance, others not at all.

        W = (strength/2) (radius^2 - theta^2) for |theta| < radius, else 0. The drift of a pair jumps from
        strength * radius to 0 at the radius. The modes of its Fourier series that are kept go through the jump over
        an angle of about pi / kept_modes, and overshoot beside it by 9% of the jump (Gibbs) whatever their number.

        Rates k^2 W_k = (strength/pi) (sin(k radius)/k - radius cos(k radius)) do not fall with k: without noise the
        finest scales that are kept grow too, and what comes of them depends on kept_modes. Noise damps them.

        Parameters
        ----------
        radius : float
            0.05 to pi, in radians.
        strength : float
        diffusion : float
        kept_modes : int
            1 to 8192; the coefficients fall like k^-2.

        References
        ----------
        arXiv:2510.17629 (noisy Hegselmann-Krause): its W is minus ours, its gamma / l our strength.
        """
        reach = number_from_to("radius", radius, 0.05, np.pi)
        if integer_at_least("kept_modes", kept_modes, 1) > MOST_MODES:
            raise InputError(f"kept_modes = {kept_modes} is not allowed; give at most {MOST_MODES}.")
        k = np.arange(1, kept_modes + 1)
        # (1/pi) int_0^radius (strength/2) (radius^2 - x^2) cos(k x) dx
        tail = reach**2 * spherical_jn(1, k * reach) / (np.pi * k)
        strength = finite_number("strength", strength)
        values = strength * np.append(reach**3 / (3.0 * np.pi), tail)
        label = f"Hegselmann-Krause, radius {reach:.15g}, strength {strength:.15g}, {counted(kept_modes, 'modes')} kept"
        return cls(tuple(values.tolist()), diffusion, label)

    @cached_property
    def bandwidth(self) -> int:
        """Largest mode whose coefficient is not zero; at least 1."""
        return max(1, int(np.flatnonzero(self.coefficients)[-1]) if any(self.coefficients) else 1)

    energy_log_unit: ClassVar[float] = 0.0
    """Energies are as they are."""

    turns: ClassVar[int] = 0
    """Every turn maps solutions onto solutions."""

    has_growth_rates: ClassVar[bool] = True
    """The uniform density is stationary."""

    mean_kernel: ClassVar[float] = 1.0
    """There is no softmax."""

    @cached_property
    def _w(self) -> FloatArray:
        """W_0 .. W_K, K the bandwidth."""
        return np.array(self.coefficients)[: self.bandwidth + 1]

    @cached_property
    def kernels(self) -> ComplexArray:
        """Multipliers i k W_k of the moments in the velocity; shape (1, bandwidth + 1)."""
        return np.asarray(1j * np.arange(self.bandwidth + 1) * self._w)[np.newaxis]

    def growth_rate(self, k: ArrayLike) -> FloatArray:
        """Growth rate lambda_k = k^2 W_k - kappa k^2.

        Parameters
        ----------
        k : array_like of int
            Modes, shape (...).
        """
        order = np.abs(np.asarray(k, dtype=np.int64))
        w = np.where(order <= self.bandwidth, self._w[np.minimum(order, self.bandwidth)], 0.0)
        return np.asarray((w - self.diffusion) * order.astype(np.float64) ** 2)

    def grid_fields(self, n_points: int, fold: int = 1, n_densities: int = 1) -> ConvolutionFields:
        """Make an evaluator of velocities and densities on `n_points` points of one period 2 pi / fold."""
        return ConvolutionFields((self,) * n_densities, n_points, fold)

    def velocity(self, moments: ComplexArray, theta: ArrayLike) -> FloatArray:
        """Velocity at the angles theta (radians), from moments c_0 .. c_K."""
        return fourier_sum(self.velocity_series(moments)[0, 0], theta)

    def velocity_and_mass(self, moments: ComplexArray, theta: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Velocity at the angles theta, and 1: it is divided by nothing."""
        velocity = self.velocity(moments, theta)
        return velocity, np.ones_like(velocity)

    def velocity_series(self, moments: ComplexArray) -> ComplexArray:
        """Fourier coefficients of the velocity; shape (1, 1, K + 1)."""
        seen = np.asarray(moments)[: self.bandwidth + 1]
        return np.asarray(self.kernels[np.newaxis, :, : seen.size] * seen, dtype=np.complex128)

    def pair_velocity(self, theta: ArrayLike, angles: ArrayLike, weights: ArrayLike) -> FloatArray:
        """Velocity at the angles theta made by point masses: a polynomial in e^{i theta}, so by their moments.

        Parameters
        ----------
        theta : array_like of float, shape (M,)
        angles, weights : array_like of float, shape (N,)
            The point masses.
        """
        return self.velocity(point_moments(angles, weights, self.bandwidth), theta)

    def pair_jacobian(self, angles: ArrayLike, weights: ArrayLike) -> FloatArray:
        """Derivative of each atom's velocity by each atom's angle; shape (N, N), rows sum to zero."""
        theta = np.asarray(angles, dtype=np.float64)
        curvature = -(np.arange(self.bandwidth + 1) ** 2) * self._w
        jacobian = -fourier_sum(curvature, theta[:, None] - theta) * np.asarray(weights, dtype=np.float64)
        np.fill_diagonal(jacobian, 0.0)
        np.fill_diagonal(jacobian, -jacobian.sum(axis=1))
        return np.asarray(jacobian)

    def energy(self, moments: ComplexArray) -> FloatArray:
        """Energy (1/2) double-int W(theta - phi) dmu dmu = (1/2) sum_k W_k |c_k|^2.

        Parameters
        ----------
        moments : ndarray of complex, shape (..., K + 1)
        """
        c = np.asarray(moments, dtype=np.complex128)[..., : self.bandwidth + 1]
        power = self._w[: c.shape[-1]] * (c.real**2 + c.imag**2)
        return np.asarray(0.5 * power[..., 0] + power[..., 1:].sum(axis=-1))

    def energy_rate(self, moments: ComplexArray, rates: ComplexArray) -> float:
        """Rate of change of the energy when the moments c_0 .. c_K change at the given rates."""
        n = min(len(moments), self.bandwidth + 1)
        product = self._w[:n] * (np.conj(moments[:n]) * rates[:n]).real
        return float(product[0] + 2.0 * product[1:].sum())

    def to_dict(self) -> dict[str, Any]:
        """Parameters, as they are stored in files."""
        known = {"type": "PairPotential", "coefficients": list(self.coefficients), "diffusion": self.diffusion}
        return {**known, "label": self.label} if self.label else known

    def __repr__(self) -> str:
        if self.label:
            return f"PairPotential({self.label}, diffusion={self.diffusion:g})"
        shown = ", ".join(f"{value:g}" for value in self.coefficients[:4])
        more = f", ... {len(self.coefficients)} in all" if len(self.coefficients) > 4 else ""
        return f"PairPotential(({shown}{more}), diffusion={self.diffusion:g})"
