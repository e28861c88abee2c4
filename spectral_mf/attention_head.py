"""One attention head: weights e^{β⟨x, B y⟩} and values V y, B = QᵀK.

Seen from an angle θ, β Bᵀx = r (cos ψ, sin ψ), and the weights are e^{r cos(φ - ψ)} = Σ_k I_k(r) e^{ik(φ-ψ)}: a
convolution of its own at each angle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf import bessel
from spectral_mf.arguments import number_at_least, real_array
from spectral_mf.errors import InputError
from spectral_mf.planar_forms import Matrix, PlanarForm

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

MAX_SCORE = 1e4
"""Largest beta times norm of B: kernels are dense matrices, here of 900 modes."""

_PROPORTIONAL = 1e-14
"""Relative difference of V from a multiple of B that is rounding."""


@dataclass(frozen=True)
class AttentionHead:
    """One head: weights e^{beta <x, B y>} and values V y.

    Parameters
    ----------
    query_key : 2x2 array_like of float
        B = Q^T K.
    value : 2x2 array_like of float
        V.
    beta : float
        Inverse temperature, >= 0, by default 1 (run files have to give it); beta times the largest singular value of
        B is at most 1e4.

    Raises
    ------
    InputError
        If a matrix is not 2x2 or not finite, or beta is out of range.
    """

    query_key: Matrix
    value: Matrix
    beta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "query_key", as_matrix("query_key", self.query_key))
        object.__setattr__(self, "value", as_matrix("value", self.value))
        object.__setattr__(self, "beta", number_at_least("beta", self.beta, 0.0))
        if not self.score.norm <= MAX_SCORE:
            raise InputError(
                f"beta = {self.beta:g} with a query_key of norm {PlanarForm.of(self.query_key).norm:g} is too large; "
                f"their product may be at most {MAX_SCORE:g}."
            )

    @cached_property
    def score(self) -> PlanarForm:
        """The exponent beta <x, B y>."""
        (b11, b12), (b21, b22) = self.query_key
        return PlanarForm.of(((self.beta * b11, self.beta * b12), (self.beta * b21, self.beta * b22)))

    @cached_property
    def output(self) -> PlanarForm:
        """The form <x, V y>, whose slope is the value's part along the circle."""
        return PlanarForm.of(self.value)

    @cached_property
    def potential(self) -> float | None:
        """The g with V = g beta B, B symmetric: (g/2) e^{beta <x, B y>} is then a pair energy. None if there is none.

        Without a score (beta = 0 or B = 0) the pair energy of a symmetric V is <x, V y> / 2, and g is 1.
        """
        score, output = self.score, self.output
        if not (score.is_symmetric and output.is_symmetric):
            return None
        if score.norm == 0.0:
            return 1.0
        s = np.array([score.a, score.p, score.q])
        v = np.array([output.a, output.p, output.q])
        i = int(np.abs(s).argmax())
        g = float(v[i] / s[i])
        return g if np.abs(v - g * s).max() <= _PROPORTIONAL * np.abs(v).max() else None

    def kernels(self, theta: FloatArray, k: NDArray[np.int64]) -> tuple[ComplexArray, ComplexArray, FloatArray]:
        """What c_k contributes at theta to the head's numerator and denominator.

        Parameters
        ----------
        theta : ndarray of float64, shape (M,)
        k : ndarray of int64, shape (n,)

        Returns
        -------
        tuple
            Multipliers of the moments in the numerator and in the denominator, in units of I_0(r(theta)), both of
            shape (M, n): sums over k of both signs give the two; and r(theta), shape (M,).
        """
        x, y = self.score.row(theta)
        r = np.hypot(x, y)
        safe = np.where(r > 0.0, r, 1.0)
        x, y = np.where(r > 0.0, x / safe, 1.0), y / safe
        v_x, v_y = self.output.tangent_row(theta)
        along, across = (x * v_x + y * v_y)[:, None], (v_x * y - v_y * x)[:, None]
        phase = np.exp(1j * k * np.arctan2(y, x)[:, None])
        width = r[:, None]
        slope = 0.5 * (bessel.ratio(k - 1, width) + bessel.ratio(k + 1, width))
        drift = along * slope - 1j * (across * bessel.derivative_ratio(k, width))
        return phase * drift, phase * bessel.ratio(k, width), r

    def sums(self, moments: ComplexArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Numerator and denominator at the angles theta, in units of I_0(r(theta)).

        Horner's rule in k, with the ratios I_k/I_{k-1} = r/(2 k + r I_{k+1}/I_k) on the way down: O(M K), and no digit
        is lost at angles that see the tokens much less than others do.

        Parameters
        ----------
        moments : ndarray of complex128, shape (K + 2,)
            c_0 .. c_{K+1}, K the order from which on I_k(r) is below rounding.
        theta : ndarray of float64, shape (M,)

        Returns
        -------
        tuple
            Numerator, denominator and r(theta), all of shape (M,).
        """
        x, y = self.score.row(theta)
        r = np.hypot(x, y)
        turn = np.where(r > 0.0, (x + 1j * y) / np.where(r > 0.0, r, 1.0), 1.0)
        ratio = np.zeros_like(r)
        before, at, after = (np.zeros(r.shape, dtype=np.complex128) for _ in range(3))
        for k in range(len(moments) - 2, 0, -1):
            ratio = r / (2.0 * k + r * ratio)
            factor = ratio * turn
            before = factor * (moments[k - 1] + before)
            at = factor * (moments[k] + at)
            after = factor * (moments[k + 1] + after)
        shifted = moments[1] + after + np.conj(before)  # int e^{-i phi} e^{r cos(phi - psi)} dmu
        v_x, v_y = self.output.tangent_row(theta)
        return v_x * shifted.real - v_y * shifted.imag, moments[0].real + 2.0 * at.real, r

    def attention(self, d: FloatArray, s: FloatArray, weights: FloatArray, unit: float | None) -> FloatArray:
        """Attention of each angle on each point mass: w e^{beta <x, B y>}, shape (M, N).

        Parameters
        ----------
        d, s : ndarray of float64, shape (M, N)
            Differences and sums of the angles.
        weights : ndarray of float64, shape (N,)
        unit : float or None
            Logarithm of the unit, or None for the softmax: each row is divided by its sum.
        """
        exponent = self.score.value(d, s)
        if unit is not None:
            return np.asarray(weights * np.exp(exponent - unit))
        exponent = np.where(weights > 0.0, exponent, -np.inf)  # a massless atom near by must not set the scale
        exponent -= exponent.max(axis=1, keepdims=True)
        attention = weights * np.exp(exponent)
        return np.asarray(attention / attention.sum(axis=1, keepdims=True))

    def pair_jacobian(self, d: FloatArray, s: FloatArray, weights: FloatArray, unit: float | None) -> FloatArray:
        """Derivative of each atom's velocity by each atom's angle; shape (N, N)."""
        attention = self.attention(d, s, weights, unit)
        values = self.output.slope(d, s)
        relative = values
        if unit is None:
            relative = values - np.einsum("ij,ij->i", attention, values)[:, None]
        jacobian = attention * (self.score.source_slope(d, s) * relative + self.output.mixed_slope(d, s))
        by_own_angle = attention * (self.score.slope(d, s) * relative - self.output.value(d, s))
        jacobian[np.diag_indices_from(jacobian)] += by_own_angle.sum(axis=1)
        return np.asarray(jacobian)

    def to_dict(self) -> dict[str, Any]:
        """Parameters, as they are stored in files."""
        return {
            "query_key": [list(row) for row in self.query_key],
            "value": [list(row) for row in self.value],
            "beta": self.beta,
        }


def as_head(head: object) -> AttentionHead:
    """A head, also from a mapping of all its parameters, as files and run files have it."""
    if isinstance(head, Mapping):
        unknown = sorted(set(map(str, head)) - {"query_key", "value", "beta"})
        missing = [key for key in ("query_key", "value", "beta") if key not in head]
        if unknown or missing:
            what = f"a head has no {unknown[0]}" if unknown else f"a head lacks its {missing[0]}"
            raise InputError(f"{what}; give query_key and value as 2x2 matrices, and beta.")
        return AttentionHead(**head)
    if not isinstance(head, AttentionHead):
        raise InputError(f"head = {head!r} is no head; give an AttentionHead(query_key, value, beta).")
    return head


def as_matrix(name: str, values: Any) -> Matrix:
    """A 2x2 matrix as rows of floats.

    Raises
    ------
    InputError
        If it is none, or not finite.
    """
    given = values.tolist() if isinstance(values, np.ndarray) else values
    message = f"{name} = {given!r} is not a 2x2 matrix of finite numbers; give two rows of two, as in [[1, 0], [0, 1]]."
    matrix = real_array(values, message)
    if matrix.shape != (2, 2) or not np.isfinite(matrix).all():
        raise InputError(message)
    (m11, m12), (m21, m22) = matrix.tolist()
    return (m11, m12), (m21, m22)
