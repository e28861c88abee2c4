"""The equation and its linearisation on densities that are even about the angle 0, of period 2π/m.

Their moments c_{mj} are real, which pins the rotation that the equation leaves free. A perturbation of such a density
is the sum of an even one (δc real) and an odd one (δc imaginary), and the linearisation keeps the two apart. The odd
part holds the rotation itself, whose eigenvalue is 0.

Matrices are dense: the flux p V is linearised on a grid, exactly, as δp V + p δV, with δV of the velocity's quotients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.convolution_fields import MASS_FLOOR
from spectral_mf.errors import InputError
from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

DIFFERENCE = 1e-3
"""Relative step of the central differences in a parameter; their error is about its fourth power."""

EVEN_TOLERANCE = 1e-10
"""A velocity at the axis of an even density of more than this share of the largest says that the model turns it."""


class EvenEquation:
    """dc_k/dt of real moments c_{mj}, j = 1 .. n, and its derivative.

    Parameters
    ----------
    model : Model
    n : int
        Number of moments.
    fold : int
        m.
    """

    def __init__(self, model: Model, n: int, fold: int = 1) -> None:
        self.model, self.n, self.fold = model, n, fold
        self.n_points = 4 * max(n, -(-model.bandwidth // fold), 32)
        self.k = fold * np.arange(1, n + 1, dtype=np.float64)
        x = 2.0 * np.pi / self.n_points * np.outer(np.arange(self.n_points), np.arange(1, n + 1))
        self._cos, self._sin = np.cos(x), np.sin(x)
        self._fields = model.grid_fields(self.n_points, fold)

    def evaluate(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Velocity and 2π p on the grid; views that the next call overwrites."""
        moments = np.zeros((1, self.n_points // 2 + 1), dtype=np.complex128)
        moments[0, 0] = 1.0
        moments[0, 1 : self.n + 1] = c
        self._fields.evaluate(moments)
        return self._fields.velocity[0], self._fields.density[0]

    def require_even(self, c: FloatArray) -> None:
        """Refuse a model that moves the axis of an even density."""
        velocity, _ = self.evaluate(c)
        if abs(float(velocity[0])) > EVEN_TOLERANCE * max(float(np.abs(velocity).max()), EVEN_TOLERANCE):
            raise InputError(
                f"{type(self.model).__name__} does not keep densities that are even about 0, as this solver needs; "
                "follow it in time with solve instead."
            )

    def rates(self, c: FloatArray) -> FloatArray:
        """dc_k/dt; shape (n,)."""
        velocity, p = self.evaluate(c)
        transport = -(self.k / self.n_points) * ((velocity * p) @ self._sin)
        return np.asarray(transport - self.model.diffusion * self.k**2 * c)

    def gibbs(self, c: FloatArray) -> FloatArray:
        """Moments of the density ∝ exp(Φ/κ) that the velocity V = ∂_θ Φ of c would hold still; shape (n,)."""
        velocity, _ = self.evaluate(c)
        series = np.fft.rfft(velocity, norm="forward")
        series[0] = 0.0  # V is odd
        series[1:] /= 1j * self.fold * np.arange(1, series.size)
        potential = np.fft.irfft(series, n=self.n_points, norm="forward")
        p = np.exp((potential - potential.max()) / self.model.diffusion)
        return np.asarray(np.fft.rfft(p / p.mean(), norm="forward").real[1 : self.n + 1])

    def even_jacobian(self, c: FloatArray) -> FloatArray:
        """Derivative of the rates of real parts by the real parts of the moments; shape (n, n)."""
        velocity, p = (field.copy() for field in self.evaluate(c))
        flux = 2.0 * self._cos * velocity[:, None] + p[:, None] * self._velocity_derivatives(c, 1.0)
        jacobian = (self._sin.T @ flux) * (-self.k / self.n_points)[:, None]
        return np.asarray(jacobian - np.diag(self.model.diffusion * self.k**2))

    def odd_jacobian(self, c: FloatArray) -> FloatArray:
        """Derivative of the rates of imaginary parts by the imaginary parts of the moments; shape (n, n)."""
        velocity, p = (field.copy() for field in self.evaluate(c))
        flux = -2.0 * self._sin * velocity[:, None] + p[:, None] * self._velocity_derivatives(c, 1j)
        jacobian = (self._cos.T @ flux) * (-self.k / self.n_points)[:, None]
        return np.asarray(jacobian - np.diag(self.model.diffusion * self.k**2))

    def _velocity_derivatives(self, c: FloatArray, unit: complex) -> FloatArray:
        """Change of the velocity on the grid with each moment, real (unit = 1) or imaginary (1j); shape (M, n)."""
        modes = self.fold * np.arange(self.n + 1)
        state = np.zeros(modes[-1] + 1, dtype=np.complex128)
        state[modes] = np.append(1.0, c)
        base = self._terms(state)
        change = np.zeros((self.n_points, self.n))
        for j, mode in enumerate(modes[1:]):
            if mode > self.model.bandwidth:
                break
            unit_moment = np.zeros_like(state)
            unit_moment[mode] = unit
            for terms, changed in zip(base, self._terms(unit_moment), strict=True):
                if len(terms) == 1:
                    change[:, j] += changed[0]
                else:  # where the softmax sees no mass its denominator stands still, as in the velocity itself
                    mass = np.maximum(terms[1], MASS_FLOOR)
                    change[:, j] += (changed[0] - terms[0] / mass * changed[1] * (terms[1] > MASS_FLOOR)) / mass
        return change

    def _terms(self, moments: ComplexArray) -> FloatArray:
        """Numerators and denominators of the velocity on the grid; shape (n_terms, 1 or 2, M)."""
        series = self.model.velocity_series(moments)
        series = series.reshape(-1, *series.shape[-2:])[..., :: self.fold]
        return np.asarray(np.fft.irfft(series, n=self.n_points, axis=-1, norm="forward"))


def parameter_derivative(make: Callable[[float], Model], value: float, equation: EvenEquation, c: FloatArray) -> Any:
    """Derivative of the rates by a parameter of the model, by central differences of fourth order; shape (n,)."""
    step = DIFFERENCE * max(abs(value), DIFFERENCE)

    def rates(shift: int) -> FloatArray:
        return EvenEquation(make(value + shift * step), equation.n, equation.fold).rates(c)

    return (8.0 * (rates(1) - rates(-1)) - (rates(2) - rates(-2))) / (12.0 * step)
