"""Free energy κ ∫ p log p dθ - E(p), and the rate at which it falls.

Where the velocity is the gradient of what E grows by, V = ∂_θ δE/δμ, the equation is the gradient flow of the free
energy, and

    dF/dt = -∫ p (V - κ ∂_θ log p)² dθ.

So it is for USA ("none", and "peak" in its unit of energy), and at β = 0. For SA the velocity is divided by Z, which
with noise is no gradient flow of F: κ ∫ p log p - E may rise. `free_energy_rate` holds for every model.

Integrals are trapezoid sums of an analytic periodic function, on grids that are doubled until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from spectral_mf.arguments import check_model
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

TOLERANCE = 1e-13
"""A sum is done when doubling the grid changes it by no more than this, relative to the terms it is made of."""

LARGEST_GRID = 2**17

_NEGATIVE_ALLOWED = 1e-9
"""A solver's density may be negative by this share of its maximum."""

_EMPTY = 1e-14
"""Where the density is below this share of its maximum it is rounding, and has no logarithm."""


def entropy(density: FourierDensity) -> float:
    """∫ p log p dθ, natural logarithm; -log(2π) for the uniform density, its least value.

    Raises
    ------
    InputError
        If the density is negative somewhere.
    """
    moments = _moments_of(density)

    def sums(n_points: int) -> tuple[float, float]:
        p = _positive(_values(moments, n_points))
        terms = xlogy(p, p)
        return float(terms.mean()), float(np.abs(terms).mean())

    return _converged(sums, moments.size) - float(np.log(2.0 * np.pi))


def free_energy(model: Model, density: FourierDensity) -> float:
    """F = κ ∫ p log p dθ - E(p), in units of exp(model.energy_log_unit).

    Parameters
    ----------
    model : Model
        κ is its diffusion.
    density : FourierDensity

    Raises
    ------
    InputError
        If the model or the density is none, or the density is negative somewhere.
    """
    check_model(model)
    return model.diffusion * entropy(density) - density.energy(model)


def free_energy_rate(model: Model, density: FourierDensity) -> float:
    """dF/dt along the equation, for any model: κ ∫ J ∂_θ log p dθ - dE/dt with the flux J = p V - κ ∂_θ p.

    Raises
    ------
    InputError
        As for `free_energy`.
    """
    check_model(model)
    moments = _moments_of(density)

    def sums(n_points: int) -> tuple[float, float]:
        p, slope, flux = _flux(model, moments, n_points)
        spectrum = np.fft.rfft(flux) / n_points
        rates = -1j * np.arange(spectrum.size) * spectrum
        padded = _padded(moments, n_points)
        growth = model.energy_rate(padded, rates)
        gain = float((flux * np.divide(slope, p, out=np.zeros_like(p), where=p > _EMPTY * p.max())).mean())
        return model.diffusion * gain - growth, model.diffusion * abs(gain) + abs(growth)

    return _converged(sums, max(moments.size, model.bandwidth + 1))


def dissipation(model: Model, density: FourierDensity) -> float:
    """∫ p (V - κ ∂_θ log p)² dθ >= 0: the rate at which the free energy of a gradient flow falls.

    Zero exactly where the density is stationary without a current.

    Raises
    ------
    InputError
        As for `free_energy`.
    """
    check_model(model)
    moments = _moments_of(density)

    def sums(n_points: int) -> tuple[float, float]:
        p, _, flux = _flux(model, moments, n_points)
        value = float(np.divide(flux**2, p, out=np.zeros_like(p), where=p > _EMPTY * p.max()).mean())
        return value, value

    return _converged(sums, max(moments.size, model.bandwidth + 1))


def _moments_of(density: FourierDensity) -> ComplexArray:
    if not isinstance(density, FourierDensity):
        raise InputError(
            f"density = {density!r} has no entropy; give a FourierDensity (for Atoms, .smoothed(n_modes))."
        )
    return density.moments(max(density.n_modes, 1))


def _padded(moments: ComplexArray, n_points: int) -> ComplexArray:
    full = np.zeros(n_points // 2 + 1, dtype=np.complex128)
    full[: moments.size] = moments
    return full


def _values(moments: ComplexArray, n_points: int) -> FloatArray:
    """2π p on a grid."""
    return np.asarray(np.fft.irfft(_padded(moments, n_points), n=n_points, norm="forward"))


def _positive(values: FloatArray) -> FloatArray:
    """Values with rounding below zero cut off."""
    lowest = float(values.min())
    if lowest < -_NEGATIVE_ALLOWED * float(values.max()):
        where = 2.0 * np.pi * float(values.argmin()) / values.size
        raise InputError(
            f"the density is negative at theta = {where:.4g} ({lowest / (2.0 * np.pi):.3g}) and has no entropy; "
            "make the perturbation smaller or keep more modes."
        )
    return np.maximum(values, 0.0)


def _flux(model: Model, moments: ComplexArray, n_points: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """2π p, its derivative and the flux 2π (p V - κ ∂_θ p) on a grid."""
    fields = model.grid_fields(n_points)
    padded = _padded(moments, n_points)
    fields.evaluate(padded[None])
    p = _positive(fields.density[0])
    slope = np.asarray(np.fft.irfft(1j * np.arange(padded.size) * padded, n=n_points, norm="forward"))
    return p, slope, fields.velocity[0] * p - model.diffusion * slope


def _converged(sums: Callable[[int], tuple[float, float]], n_modes: int) -> float:
    """A trapezoid sum, and the size of its terms, on grids that are doubled until the sum stays."""
    n_points = 256
    while n_points < 4 * n_modes:
        n_points *= 2
    value, _ = sums(n_points)
    while n_points < LARGEST_GRID:
        n_points *= 2
        finer, size = sums(n_points)
        if abs(finer - value) <= TOLERANCE * size:
            return finer
        value = finer
    return value
