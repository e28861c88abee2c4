"""Self-attention on the circle: ∂ₜμ + ∂_θ(μ V[μ]) = κ ∂²_θ μ.

V[μ](θ) = ∫ e^{β cos(θ-φ)} (-sin(θ-φ)) dμ(φ), divided by ∫ e^{β cos(θ-φ)} dμ(φ) for the softmax (SA).

The uniform density is stationary and unstable: mode k grows at rate k² I_k(β)/(β I_0(β)), fastest near k = √(2β). The
density gathers in k_max points, which merge over times exponential in β.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

from spectral_mf import bessel
from spectral_mf.arguments import number_at_least, number_from_to
from spectral_mf.convolution_fields import MASS_FLOOR, ConvolutionFields
from spectral_mf.errors import InputError
from spectral_mf.harmonics import fourier_sum

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Normalization = Literal["softmax", "none", "peak"]

MAX_BETA = 1e6
LARGEST_EXPONENT = 600.0
"""Beyond this, e^beta is not formed: energies get a unit, and USA without one is refused."""


@dataclass(frozen=True)
class SelfAttention:
    """Self-attention with identity query, key and value, at inverse temperature beta.

    Parameters
    ----------
    beta : float
        Inverse temperature, 0 <= beta <= 1e6. At beta = 0 the flow is that of the Kuramoto order parameter.
    normalization : {"softmax", "none", "peak"}
        "softmax" (SA): the velocity is divided by the attention's sum. "none" (USA): it is not, and speeds grow like
        e^beta. "peak": USA with the kernel e^{beta (cos - 1)}, whose peak is 1, that is, with time in units of
        e^{-beta}; use it for large beta.
    diffusion : float
        Coefficient kappa >= 0 of the second derivative: tokens get noise sqrt(2 kappa) dB. With noise sigma dB,
        kappa = sigma^2 / 2.

    Raises
    ------
    InputError
        If a parameter is out of range, or "none" is asked at a beta where e^beta overflows.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2312.10794, section 3 (SA and USA).
    """

    beta: float
    normalization: Normalization = "softmax"
    diffusion: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", number_from_to("beta", self.beta, 0.0, MAX_BETA))
        object.__setattr__(self, "diffusion", number_at_least("diffusion", self.diffusion, 0.0))
        if self.normalization not in get_args(Normalization):
            allowed = ", ".join(get_args(Normalization))
            raise InputError(f"normalization = {self.normalization!r} is unknown; choose one of {allowed}.")
        if self.normalization == "none" and self.beta > LARGEST_EXPONENT:
            raise InputError(
                f"normalization = 'none' at beta = {self.beta:g} has speeds of order e^beta, which overflow; "
                "use normalization = 'peak', the same flow with time in units of e^-beta."
            )

    @cached_property
    def bandwidth(self) -> int:
        """Number of modes that the kernel sees, to round-off."""
        return bessel.bandwidth(self.beta)

    @cached_property
    def speed(self) -> float:
        """Factor between the velocity and (1/beta) d_theta of the kernel-averaged density relative to I_0."""
        if self.normalization == "softmax":
            return 1.0
        peak = float(ive(0, self.beta))
        return peak if self.normalization == "peak" else peak * math.exp(self.beta)

    @cached_property
    def energy_log_unit(self) -> float:
        """Energies are in units of exp(energy_log_unit): 0, or beta where e^beta would overflow or for "peak"."""
        return self.beta if self.normalization == "peak" or self.beta > LARGEST_EXPONENT else 0.0

    @cached_property
    def mean_kernel(self) -> float:
        """I_0(beta) in units of exp(energy_log_unit)."""
        return float(ive(0, self.beta)) * math.exp(self.beta - self.energy_log_unit)

    turns: ClassVar[int] = 0
    """Every turn maps solutions onto solutions."""

    has_growth_rates: ClassVar[bool] = True
    """The uniform density is stationary."""

    def growth_rate(self, k: ArrayLike) -> FloatArray:
        """Growth rate lambda_k = k^2 I_k / (beta I_0) (SA), k^2 I_k / beta (USA), minus kappa k^2.

        Parameters
        ----------
        k : array_like of int
            Modes, shape (...).
        """
        order = np.asarray(k, dtype=np.float64)
        rate = order * bessel.derivative_ratio(order, self.beta) * self.speed - self.diffusion * order**2
        return np.asarray(rate, dtype=np.float64)

    def grid_fields(self, n_points: int, fold: int = 1, n_densities: int = 1) -> ConvolutionFields:
        """Make an evaluator of velocities and densities on `n_points` points of one period 2 pi / fold."""
        return ConvolutionFields((self,) * n_densities, n_points, fold)

    def velocity(self, moments: ComplexArray, theta: ArrayLike) -> FloatArray:
        """Velocity at the angles theta (radians), from moments c_0 .. c_K.

        Where the softmax sees less than 1e-13 of the mean mass, moments cannot tell the velocity, except that it is
        at most 1: use `pair_velocity` there.
        """
        return self.velocity_and_mass(moments, theta)[0]

    def velocity_and_mass(self, moments: ComplexArray, theta: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Velocity at the angles theta, and the softmax's denominator there relative to its mean (1 for USA)."""
        sums = fourier_sum(self.velocity_series(moments)[0], theta)
        if self.normalization != "softmax":
            return sums[0], np.ones_like(sums[0])
        return np.clip(sums[0] / np.maximum(sums[1], MASS_FLOOR), -1.0, 1.0), sums[1]

    def velocity_series(self, moments: ComplexArray) -> ComplexArray:
        """Fourier coefficients of what the velocity is made of, for those who have faster sums than `velocity`.

        Parameters
        ----------
        moments : ndarray of complex, shape (n + 1,)

        Returns
        -------
        ndarray of complex128, shape (1, 1 or 2, K + 1)
            The velocity itself (USA), or its numerator and its denominator relative to the mean of that (SA), up to
            the bandwidth or as many modes as are given.
        """
        seen = np.asarray(moments)[: self.bandwidth + 1]
        return np.asarray(self.kernels[np.newaxis, :, : seen.size] * seen, dtype=np.complex128)

    @cached_property
    def kernels(self) -> ComplexArray:
        """Coefficients of the drift kernel and of the softmax's, by mode; shape (1 or 2, bandwidth + 1)."""
        k = np.arange(self.bandwidth + 1)
        drift = np.asarray(1j * self.speed * bessel.derivative_ratio(k, self.beta), dtype=np.complex128)
        if self.normalization != "softmax":
            return drift[np.newaxis]
        return np.stack([drift, bessel.ratio(k, self.beta).astype(np.complex128)])

    def pair_velocity(self, theta: ArrayLike, angles: ArrayLike, weights: ArrayLike) -> FloatArray:
        """Velocity at the angles theta made by point masses, as direct sums in log-sum-exp form.

        Parameters
        ----------
        theta : array_like of float, shape (M,)
        angles, weights : array_like of float, shape (N,)
            The point masses.
        """
        points = np.asarray(theta, dtype=np.float64)
        sources = np.asarray(angles, dtype=np.float64)
        w = np.asarray(weights, dtype=np.float64)
        out = np.empty(points.shape, dtype=np.float64)
        chunk = max(1, 2**20 // max(1, sources.size))
        for start in range(0, points.size, chunk):
            difference = points[start : start + chunk, None] - sources
            attention = self._attention(difference, w)
            out[start : start + chunk] = -np.einsum("ij,ij->i", attention, np.sin(difference))
        return out

    def pair_jacobian(self, angles: ArrayLike, weights: ArrayLike) -> FloatArray:
        """Derivative of each atom's velocity by each atom's angle; shape (N, N), rows sum to zero."""
        theta = np.asarray(angles, dtype=np.float64)
        difference = theta[:, None] - theta
        attention = self._attention(difference, np.asarray(weights, dtype=np.float64))
        slope = attention * (self.beta * np.sin(difference) ** 2 - np.cos(difference))
        if self.normalization == "softmax":
            velocity = -np.einsum("ij,ij->i", attention, np.sin(difference))
            slope += self.beta * velocity[:, None] * attention * np.sin(difference)
        jacobian = -slope
        np.fill_diagonal(jacobian, 0.0)
        np.fill_diagonal(jacobian, -jacobian.sum(axis=1))
        return np.asarray(jacobian)

    def _attention(self, difference: FloatArray, weights: FloatArray) -> FloatArray:
        """Attention of each row on each point mass: w e^{beta cos}, normalised as the model says."""
        exponent = -2.0 * self.beta * np.sin(0.5 * difference) ** 2  # beta (cos - 1)
        if self.normalization == "softmax":
            exponent = np.where(weights > 0.0, exponent, -np.inf)  # a massless atom near by must not set the scale
            exponent -= exponent.max(axis=1, keepdims=True)
            attention = weights * np.exp(exponent)
            return np.asarray(attention / attention.sum(axis=1, keepdims=True))
        shift = self.beta if self.normalization == "none" else 0.0
        return np.asarray(weights * np.exp(exponent + shift))

    def energy(self, moments: ComplexArray) -> FloatArray:
        """Energy (1/(2 beta)) double-int e^{beta cos(theta - phi)} dmu dmu = (1/(2 beta)) sum_k I_k |c_k|^2.

        In units of exp(energy_log_unit). At beta = 0, where it is infinite, the limit of its excess over the uniform
        density is given: |c_1|^2 / 2.

        Parameters
        ----------
        moments : ndarray of complex, shape (..., K + 1)
        """
        c = np.asarray(moments, dtype=np.complex128)[..., : self.bandwidth + 1]
        power = c.real**2 + c.imag**2
        if self.beta == 0.0:
            return np.asarray(0.5 * power[..., 1:2].sum(axis=-1), dtype=np.float64)
        share = bessel.ratio(np.arange(c.shape[-1]), self.beta)
        total = power[..., 0] + 2.0 * (share[1:] * power[..., 1:]).sum(axis=-1)
        return np.asarray(total * (self.mean_kernel / (2.0 * self.beta)), dtype=np.float64)

    def energy_rate(self, moments: ComplexArray, rates: ComplexArray) -> float:
        """Rate of change of the energy when the moments c_0 .. c_K change at the given rates."""
        k = np.arange(min(len(moments) - 1, self.bandwidth) + 1)
        product = (np.conj(moments[: k.size]) * rates[: k.size]).real
        if self.beta == 0.0:
            return float(product[1])
        return float((bessel.ratio(k, self.beta)[1:] / self.beta) @ product[1:] * (2.0 * self.mean_kernel))

    def to_dict(self) -> dict[str, Any]:
        """Parameters, as they are stored in files."""
        return {
            "type": "SelfAttention",
            "beta": self.beta,
            "normalization": self.normalization,
            "diffusion": self.diffusion,
        }
