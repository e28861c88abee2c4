"""Self-attention with matrices and several heads on the circle: ∂ₜμ + ∂_θ(μ V[μ]) = κ ∂²_θ μ.

V[μ](θ) = Σ_h ⟨e_θ, ∫ e^{β_h ⟨x, B_h y⟩} V_h y dμ(y)⟩, each head divided by its ∫ e^{β_h ⟨x, B_h y⟩} dμ for the softmax;
x = (cos θ, sin θ), e_θ = (-sin θ, cos θ), B = QᵀK.

No convolution: with β Bᵀx = r (cos ψ, sin ψ), the kernel e^{r cos(φ - ψ)} = Σ_k I_k(r) e^{ik(φ-ψ)} has another width
r(θ) and centre ψ(θ) at each angle. The uniform density is stationary for special matrices only. With V_h = B_h
symmetric the tokens climb an energy: they gather at the direction of a dominant positive eigenvalue, or at both ends of
the direction of the most negative one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

from spectral_mf import bessel
from spectral_mf.arguments import number_at_least
from spectral_mf.attention_head import AttentionHead, as_head
from spectral_mf.convolution_fields import MASS_FLOOR
from spectral_mf.errors import InputError
from spectral_mf.head_fields import HeadFields, paired
from spectral_mf.self_attention import LARGEST_EXPONENT, Normalization

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True)
class MultiHeadAttention:
    """Self-attention with query, key and value matrices, and one or several heads.

    Parameters
    ----------
    heads : iterable of AttentionHead
        At least one. A mapping of a head's parameters is as good.
    normalization : {"softmax", "none", "peak"}
        "softmax" (SA): each head is divided by its own attention's sum. "none" (USA): none is. "peak": USA with all
        kernels in units of the largest value that one of them can have, e^S with S the largest beta |B|.
    diffusion : float
        Coefficient kappa >= 0 of the second derivative: tokens get noise sqrt(2 kappa) dB.

    Raises
    ------
    InputError
        If there is no head, a parameter is out of range, or "none" is asked where e^S overflows.

    References
    ----------
    arXiv:2509.25040 (alignment and heat phases with matrices), arXiv:2604.26085 (V = B symmetric: which eigenvalue
    wins), arXiv:2605.04279 (several heads as gradient flow).
    """

    heads: tuple[AttentionHead, ...]
    normalization: Normalization = "softmax"
    diffusion: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", _heads(self.heads))
        object.__setattr__(self, "diffusion", number_at_least("diffusion", self.diffusion, 0.0))
        if self.normalization not in get_args(Normalization):
            allowed = ", ".join(get_args(Normalization))
            raise InputError(f"normalization = {self.normalization!r} is unknown; choose one of {allowed}.")
        if self.normalization == "none" and self._largest_score > LARGEST_EXPONENT:
            raise InputError(
                f"normalization = 'none' with beta times query_key of norm {self._largest_score:g} has speeds that "
                "overflow; use normalization = 'peak', the same flow in a longer unit of time."
            )

    @cached_property
    def _largest_score(self) -> float:
        return max(head.score.norm for head in self.heads)

    @cached_property
    def bandwidth(self) -> int:
        """Number of modes that the heads see, to round-off; the value's matrix adds one."""
        return bessel.bandwidth(self._largest_score) + 1

    @cached_property
    def energy_log_unit(self) -> float:
        """Energies are in units of exp(energy_log_unit): 0, or the largest beta |B| where that would overflow."""
        large = self.normalization == "peak" or self._largest_score > LARGEST_EXPONENT
        return self._largest_score if large else 0.0

    @cached_property
    def turns(self) -> int:
        """0 if all matrices commute with turns; else 2: x -> -x changes nothing."""
        forms = [form for head in self.heads for form in (head.score, head.output)]
        return 0 if all(form.commutes_with_turns for form in forms) else 2

    @cached_property
    def has_growth_rates(self) -> bool:
        """Whether all matrices are multiples of the identity."""
        return self.turns == 0 and all(head.score.b == 0.0 and head.output.b == 0.0 for head in self.heads)

    @cached_property
    def has_energy(self) -> bool:
        """Whether the flow climbs an energy: V_h a multiple of B_h, B_h symmetric; with softmax, one head only."""
        one = len(self.heads) == 1 or self.normalization != "softmax"
        return one and all(head.potential is not None for head in self.heads)

    def growth_rate(self, k: ArrayLike) -> FloatArray:
        """Growth rate k^2 sum_h v_h I_k(beta_h b_h)/(beta_h b_h) - kappa k^2 for B_h = b_h I, V_h = v_h I (USA).

        For the softmax each head is divided by its I_0.

        Parameters
        ----------
        k : array_like of int
            Modes, shape (...).

        Raises
        ------
        InputError
            If a matrix is no multiple of the identity.
        """
        if not self.has_growth_rates:
            raise InputError(
                "modes of a perturbed uniform density do not grow each by itself where a matrix is no multiple of the "
                "identity; use theory.spectrum(model, density) for rates about a density, and solve it nonlinearly."
            )
        order = np.asarray(k)
        drift = self.terms(np.zeros(1), order.ravel().astype(np.int64))[:, 0, 0].sum(axis=0).imag
        rate = order * drift.reshape(order.shape) - self.diffusion * order.astype(np.float64) ** 2
        return np.asarray(rate, dtype=np.float64)

    def grid_fields(self, n_points: int, fold: int = 1, n_densities: int = 1) -> HeadFields:
        """Make an evaluator of velocities and densities on `n_points` points of one period 2 pi / fold."""
        return HeadFields(self, n_points, fold, n_densities)

    def terms(self, theta: FloatArray, k: NDArray[np.int64]) -> ComplexArray:
        """Multipliers of the moments c_k in the velocity's terms at theta; shape (n_terms, 1 or 2, M, n).

        For the softmax a term is a head's numerator and denominator, both in units of I_0(r(theta)). Else there is one
        term, the velocity.
        """
        parts = [head.kernels(theta, k) for head in self.heads]
        if self.normalization == "softmax":
            return np.stack([np.stack([drift, mass]) for drift, mass, _ in parts])
        unit = self._largest_score if self.normalization == "peak" else 0.0
        total = sum((ive(0, r) * np.exp(r - unit))[:, None] * drift for drift, _, r in parts)
        return np.asarray(total)[np.newaxis, np.newaxis]

    def mean_kernel(self, theta: FloatArray) -> FloatArray:
        """I_0(r(theta)) of the first head in units of exp(energy_log_unit); shape (M,)."""
        r = np.hypot(*self.heads[0].score.row(theta))
        return np.asarray(ive(0, r) * np.exp(r - self.energy_log_unit))

    def velocity(self, moments: ComplexArray, theta: ArrayLike) -> FloatArray:
        """Velocity at the angles theta (radians), from moments c_0 .. c_K.

        Where a softmax sees less than 1e-13 of the mean mass, moments cannot tell the velocity: use `pair_velocity`.
        """
        return self.velocity_and_mass(moments, theta)[0]

    def velocity_and_mass(self, moments: ComplexArray, theta: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Velocity at the angles theta, and the smallest of the heads' denominators there (1 without softmax).

        Denominators are relative to what the uniform density has at the same angle.
        """
        angles = np.asarray(theta, dtype=np.float64)
        c = np.zeros(self.bandwidth + 2, dtype=np.complex128)
        seen = min(c.size, len(moments))
        c[:seen] = moments[:seen]
        velocity, least = np.zeros(angles.size), np.full(angles.size, np.inf)
        for head in self.heads:
            drift, mass, r = head.sums(c, angles.ravel())
            if self._kernel_log_unit is None:
                velocity += np.clip(drift / np.maximum(mass, MASS_FLOOR), -head.output.norm, head.output.norm)
                np.minimum(least, mass, out=least)
            else:
                velocity += ive(0, r) * np.exp(r - self._kernel_log_unit) * drift
        if self._kernel_log_unit is not None:
            least[:] = 1.0
        return velocity.reshape(angles.shape), least.reshape(angles.shape)

    def velocity_series(self, moments: ComplexArray) -> ComplexArray:
        """Fourier coefficients of numerators and denominators (see `spectral_mf.model.Model`).

        Both are in units of the largest I_0(r), which alone makes short series: where r(theta) is much smaller,
        `velocity_and_mass` keeps more digits.

        Returns
        -------
        ndarray of complex128, shape (n_heads, 2, K + 1), or (1, 1, K + 1) without softmax
        """
        n = min(len(moments), self.bandwidth + 1)
        given = np.ascontiguousarray(moments[:n], dtype=np.complex128).view(np.float64)
        return np.asarray(self._series[..., : 2 * n] @ given)

    @cached_property
    def _series(self) -> ComplexArray:
        """Coefficients over theta by real and imaginary parts of c_0 .. c_K; (n_terms, 1 or 2, K + 1, 2 K + 2)."""
        theta, k = self._angles_and_modes()
        rows = paired(self.terms(theta, k), k)
        if self.normalization == "softmax":  # to one unit at all angles, which alone keeps the series short
            for row, head in zip(rows, self.heads, strict=True):
                r = np.hypot(*head.score.row(theta))
                largest = head.score.norm
                row *= (ive(0, r) / ive(0, largest) * np.exp(r - largest))[:, None]
        return np.asarray(np.fft.rfft(rows, axis=-2)[..., : k.size, :] / theta.size)

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
        out = np.zeros(points.shape, dtype=np.float64)
        chunk = max(1, 2**20 // max(1, sources.size))
        for start in range(0, points.size, chunk):
            part = slice(start, start + chunk)
            d, s = points[part, None] - sources, points[part, None] + sources
            for head in self.heads:
                attention = head.attention(d, s, w, self._kernel_log_unit)
                out[part] += np.einsum("ij,ij->i", attention, head.output.slope(d, s))
        return out

    def pair_jacobian(self, angles: ArrayLike, weights: ArrayLike) -> FloatArray:
        """Derivative of each atom's velocity by each atom's angle; shape (N, N)."""
        theta = np.asarray(angles, dtype=np.float64)
        w = np.asarray(weights, dtype=np.float64)
        d, s = theta[:, None] - theta, theta[:, None] + theta
        return np.asarray(sum(head.pair_jacobian(d, s, w, self._kernel_log_unit) for head in self.heads))

    @property
    def _kernel_log_unit(self) -> float | None:
        """Logarithm of the unit of all kernels; None for the softmax, which needs none."""
        if self.normalization == "softmax":
            return None
        return self._largest_score if self.normalization == "peak" else 0.0

    def energy(self, moments: ComplexArray) -> FloatArray:
        """Energy sum_h (v_h/(2 beta_h)) double-int e^{beta_h <x, B_h y>} dmu dmu for V_h = v_h B_h, B_h symmetric.

        In units of exp(energy_log_unit). For a head with beta = 0 or B = 0, <m, V m>/2 with the mean m of the tokens.
        nan if a matrix is not symmetric, V_h is no multiple of B_h, or there are several heads with softmax: their
        flow is no gradient flow of this.

        Parameters
        ----------
        moments : ndarray of complex, shape (..., K + 1)
        """
        x = self._seen(np.asarray(moments))
        if not self.has_energy:
            return np.full(x.shape[:-1], np.nan)
        form = self._energy_form[: x.shape[-1], : x.shape[-1]]
        return np.asarray(((x @ form) * x).sum(axis=-1))

    def energy_rate(self, moments: ComplexArray, rates: ComplexArray) -> float:
        """Rate of change of the energy when the moments c_0 .. c_K change at the given rates; nan without one."""
        if not self.has_energy:
            return math.nan
        x, change = self._seen(np.asarray(moments)), self._seen(np.asarray(rates))
        return float(2.0 * (x @ self._energy_form[: x.size, : x.size]) @ change)

    def _seen(self, moments: ComplexArray) -> FloatArray:
        """Real and imaginary parts of the moments that the heads see; shape (..., 2 n)."""
        seen = np.ascontiguousarray(moments[..., : self.bandwidth + 1], dtype=np.complex128)
        return seen.view(np.float64)

    @cached_property
    def _energy_form(self) -> FloatArray:
        """The symmetric Q of E = x^T Q x, x the real and imaginary parts of c_0 .. c_K; shape (2 K + 2, 2 K + 2)."""
        theta, k = self._angles_and_modes()
        form = np.zeros((2 * k.size, 2 * k.size))
        for head in self.heads:
            assert head.potential is not None
            if head.score.norm == 0.0:
                a, p, q = head.output.a, head.output.p, head.output.q
                form[2:4, 2:4] += 0.5 * np.array([[a + p, -q], [-q, a - p]])  # the mean is (Re c_1, -Im c_1)
                continue
            _, mass, r = head.kernels(theta, k)
            scale = 0.5 * head.potential * ive(0, r) * np.exp(r - self.energy_log_unit)
            series = np.fft.rfft(paired(scale[:, None] * mass, k), axis=0)[: k.size] / theta.size
            series[1:] *= 2.0  # int Z dmu = z_0 + 2 Re sum z_m conj(c_m)
            form[0::2] += series.real
            form[1::2] += series.imag
        return np.asarray(0.5 * (form + form.T))

    def _angles_and_modes(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """A grid that resolves all kernels, and the modes that they have."""
        n_points = 4 * (self.bandwidth + 1)
        return 2.0 * np.pi * np.arange(n_points) / n_points, np.arange(self.bandwidth + 1)

    def to_dict(self) -> dict[str, Any]:
        """Parameters, as they are stored in files."""
        return {
            "type": "MultiHeadAttention",
            "heads": [head.to_dict() for head in self.heads],
            "normalization": self.normalization,
            "diffusion": self.diffusion,
        }


def _heads(given: Any) -> tuple[AttentionHead, ...]:
    if isinstance(given, (AttentionHead, Mapping)):
        given = (given,)
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InputError(f"heads = {given!r} are no heads; give a list of AttentionHead(query_key, value, beta).")
    heads = tuple(as_head(head) for head in given)
    if not heads:
        raise InputError("heads are missing; give at least one AttentionHead(query_key, value, beta).")
    return heads
