"""Vector fields on the circle, along which common noise moves all tokens: σ_j(θ) = Σ_k a_jk e^{ikθ}.

Fields are real: a_{j,-k} = conj(a_jk). A constant field turns the circle; noise in the plane, seen on the circle, is
the pair -σ sin θ, σ cos θ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import finite_number, integer_at_least, real_array, values_at
from spectral_mf.errors import InputError
from spectral_mf.harmonics import fourier_sum

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Field = Callable[[FloatArray], ArrayLike]

MOST_MODES = 8192

_RESOLVED = 1e-12
"""Share of the largest coefficient below which those beyond the last mode have to be."""

_ROUND_OFF = 1e-15
"""Share of the largest coefficient below which those of a function are rounding."""


@dataclass(frozen=True, eq=False)
class VectorFields:
    """One or several vector fields by their Fourier coefficients.

    Parameters
    ----------
    coefficients : array_like of complex, shape (n_fields, K + 1)
        a_0 .. a_K of each; a_0 is real.

    Raises
    ------
    InputError
        If there is no field, a coefficient is not finite, a field is not real, or K is above 8192.
    """

    coefficients: ComplexArray

    def __post_init__(self) -> None:
        try:
            a = np.array(self.coefficients, dtype=np.complex128)
        except (TypeError, ValueError):
            raise InputError(
                "fields are not rows of Fourier coefficients of one length; give complex numbers a_0 .. a_K for each."
            ) from None
        if a.ndim != 2 or a.size == 0:
            raise InputError(
                f"fields of shape {a.shape} hold no field; give one row a_0 .. a_K for each, shape (n_fields, K + 1)."
            )
        if not np.isfinite(a).all():
            j = int(np.flatnonzero(~np.isfinite(a).all(axis=1))[0])
            raise InputError(f"field number {j} has coefficients that are not finite; give finite numbers.")
        if a[:, 0].imag.any():
            j = int(np.flatnonzero(a[:, 0].imag)[0])
            raise InputError(f"field number {j} is not real: its mean is a_0 = {a[j, 0]:.6g}; give a real a_0.")
        if a.shape[1] > MOST_MODES + 1:
            raise InputError(f"fields have {a.shape[1] - 1} modes; give at most {MOST_MODES}.")
        a.flags.writeable = False
        object.__setattr__(self, "coefficients", a)

    @classmethod
    def from_functions(cls, functions: Sequence[Field], *, n_modes: int = 256) -> VectorFields:
        """Fields given as functions of the angle.

        Parameters
        ----------
        functions : sequence of callable
            Each gives its values at an array of angles in [0, 2 pi), or one value for all.
        n_modes : int
            Largest mode looked for; the fields have to be resolved by it.

        Raises
        ------
        InputError
            If there is no field, one is no function, its values are not finite real numbers, or `n_modes` do not
            resolve it.
        """
        n_modes = integer_at_least("n_modes", n_modes, 1)
        given = [functions] if callable(functions) else list(functions)
        if not given:
            raise InputError("no field is given; give at least one function of the angle.")
        rows = np.stack([_coefficients(j, function, n_modes) for j, function in enumerate(given)])
        used = np.flatnonzero(rows.any(axis=0))
        return cls(rows[:, : 1 + (int(used[-1]) if used.size else 0)])

    @classmethod
    def rotation(cls, strength: float = 1.0) -> VectorFields:
        """The constant field: noise that turns the circle."""
        return cls(np.array([[finite_number("strength", strength)]], dtype=np.complex128))

    @classmethod
    def planar(cls, strength: float = 1.0) -> VectorFields:
        """Noise of the plane seen on the circle: -strength sin(theta) and strength cos(theta).

        A token alone diffuses with kappa = strength^2 / 2, and two tokens come closer at the Lyapunov exponent
        -strength^2 / 2.
        """
        half = 0.5 * finite_number("strength", strength)
        return cls(np.array([[0.0, 1j * half], [0.0, half]]))

    @classmethod
    def together(cls, parts: Sequence[VectorFields]) -> VectorFields:
        """The fields of all parts, in their order.

        Raises
        ------
        InputError
            If there is none.
        """
        rows = [row for part in parts for row in part.coefficients]
        longest = max((row.size for row in rows), default=0)
        return cls(np.array([np.pad(row, (0, longest - row.size)) for row in rows]))

    @property
    def n_fields(self) -> int:
        """Number of fields, and of Brownian motions that they need."""
        return int(self.coefficients.shape[0])

    @property
    def bandwidth(self) -> int:
        """Largest mode K."""
        return int(self.coefficients.shape[1]) - 1

    @cached_property
    def fold(self) -> int:
        """Largest m such that all fields have the period 2 pi / m; 0 for rotations, which have every one."""
        return math.gcd(*(int(k) for k in np.flatnonzero(self.coefficients.any(axis=0))))

    def at(self, theta: ArrayLike) -> FloatArray:
        """Values at angles in radians, any shape S; shape (n_fields,) + S."""
        return fourier_sum(self.coefficients, theta)

    def combined(self, weights: FloatArray) -> ComplexArray:
        """Coefficients of the sum of weights_j sigma_j, shape (K + 1,)."""
        return np.asarray(weights @ self.coefficients, dtype=np.complex128)

    def to_dict(self) -> dict[str, Any]:
        """As plain values: real and imaginary parts of the coefficients."""
        return {"real": self.coefficients.real.tolist(), "imag": self.coefficients.imag.tolist()}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> VectorFields:
        """Make them again from `to_dict`."""
        return cls(np.array(stored["real"]) + 1j * np.array(stored["imag"]))

    def __repr__(self) -> str:
        return f"VectorFields({self.n_fields} fields, {self.bandwidth} modes)"


def _coefficients(number: int, function: object, n_modes: int) -> ComplexArray:
    """a_0 .. a_n of a function of the angle."""
    if not callable(function):
        raise InputError(f"field number {number} = {function!r} is not a function; give one of the angle.")
    theta = 2.0 * np.pi * np.arange(4 * n_modes) / (4 * n_modes)
    message = (
        f"field number {number} is not real: its values are not real numbers, one for each angle; give such a one."
    )
    values = real_array(values_at(f"field number {number}", function, theta), message)
    if values.shape not in ((), theta.shape):
        raise InputError(message)
    if not np.isfinite(values).all():
        raise InputError(f"field number {number} is not finite everywhere; give a function with finite values.")
    a = np.fft.rfft(np.broadcast_to(values, theta.shape)) / theta.size
    largest = float(np.abs(a).max())
    beyond = float(np.abs(a[n_modes + 1 :]).max())
    if beyond > _RESOLVED * largest:
        raise InputError(
            f"{n_modes} modes do not resolve field number {number} (|a_k| = {beyond:.2g} beyond them); raise n_modes, "
            "or give a smoother function."
        )
    a[np.abs(a) < _ROUND_OFF * largest] = 0.0
    a[0] = a[0].real
    return np.asarray(a[: n_modes + 1])
