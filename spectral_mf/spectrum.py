"""The equation linearised about any density p: how small perturbations δp grow, as an eigenvalue problem.

∂ₜ δp = -∂_θ(V[p] δp + p δV) + κ ∂²_θ δp, with δV = Σ_h (δN_h - V_h δZ_h)/Z_h for velocities Σ_h N_h/Z_h. The uniform
density has one eigenvalue a mode, its growth rate; other densities mix the modes, and c_k with its conjugate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_mf.arguments import check_model, integer_at_least
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

MOST_MODES = 1024
"""Matrices are dense, of twice that size."""

LEAST_MASS = 1e-8
"""Smallest denominator, relative to its mean, that leaves eight digits of a velocity."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of the linearised equation, the fastest growing first.

    Attributes
    ----------
    eigenvalues : ndarray of complex128, shape (2 n,)
        By decreasing real part.
    modes : ndarray of complex128, shape (2 n, n + 1)
        Moments of the eigenvectors: for a real eigenvalue a perturbation c_0 = 0, c_1 .. c_n of the moments (up to a
        real factor), of largest |c_k| 1. For a complex pair, that of its real part.
    residual : float
        Largest |dc_k/dt| of the density itself: 0 for a stationary one.
    """

    eigenvalues: ComplexArray
    modes: ComplexArray
    residual: float

    @property
    def rate(self) -> float:
        """Largest real part of an eigenvalue."""
        return float(self.eigenvalues[0].real)

    @property
    def unstable(self) -> bool:
        """Whether some perturbation grows, but for rounding."""
        return self.rate > 1e-10 * float(np.abs(self.eigenvalues).max())


def spectrum(model: Model, density: FourierDensity, *, n_modes: int | None = None) -> Spectrum:
    """Linearise the equation about a density, which should be stationary.

    Parameters
    ----------
    model : Model
    density : FourierDensity
    n_modes : int, optional
        Modes n of the perturbations; by default twice the larger of the density's and the kernel's, at least 32. The
        eigenvalues of smooth eigenvectors converge quickly in n. Where V does not vanish and there is no diffusion,
        perturbations are carried into ever higher modes: part of the spectrum is then continuous and converges to
        nothing.

    Returns
    -------
    Spectrum

    Raises
    ------
    InputError
        If model or density are none, n_modes is not from 1 to 1024, or the softmax sees too little mass somewhere.
    """
    check_model(model)
    if not isinstance(density, FourierDensity):
        raise InputError(f"density = {density!r} has no linearisation here; give a FourierDensity.")
    wanted = max(32, 2 * density.n_modes, 2 * model.bandwidth)
    n = min(wanted, MOST_MODES) if n_modes is None else integer_at_least("n_modes", n_modes, 1)
    if n > MOST_MODES:
        raise InputError(f"n_modes = {n} is not allowed; give at most {MOST_MODES}.")
    matrix, residual = _linearisation(model, density, n)
    values, vectors = np.linalg.eig(matrix)
    order = np.lexsort((-values.imag, -values.real))
    return Spectrum(values[order].astype(np.complex128), _as_moments(vectors[:, order]), residual)


def _linearisation(model: Model, density: FourierDensity, n: int) -> tuple[FloatArray, float]:
    """Matrix of d/dt on (Re c_1 .. Re c_n, Im c_1 .. Im c_n), and the largest |dc_k/dt| of the density."""
    c = density.moments(max(density.n_modes, 1))
    size = max(n, c.size, model.bandwidth)
    n_points = 4 * (size + 1)
    p = _values(c, n_points)
    terms = _values(model.velocity_series(c).reshape(-1, *model.velocity_series(c).shape[-2:]), n_points)
    if terms.shape[1] == 2 and terms[:, 1].min() < LEAST_MASS:
        raise InputError(
            f"the softmax's sum falls to {float(terms[:, 1].min()):.2g} of its mean, where moments do not tell the "
            f"velocity; the spectrum needs at least {LEAST_MASS:g}: more noise, or a smaller beta."
        )
    quotients = [_quotient(term) for term in terms]
    velocity = sum(quotients)
    k = np.arange(1, n + 1)
    columns = []
    for unit in (1.0, 1j):
        for mode in k:
            unit_moments = np.zeros(size + 1, dtype=np.complex128)
            unit_moments[mode] = unit
            change = np.zeros(n_points)
            if mode <= model.bandwidth:
                for term, quotient, changed in zip(
                    terms, quotients, _values(model.velocity_series(unit_moments), n_points), strict=True
                ):
                    change += changed[0] if len(term) == 1 else (changed[0] - quotient * changed[1]) / term[1]
            flux = velocity * _values(unit_moments, n_points) + p * change
            rate = -1j * k * np.fft.rfft(flux)[1 : n + 1] / n_points
            rate[mode - 1] -= model.diffusion * mode**2 * unit
            columns.append(np.concatenate([rate.real, rate.imag]))
    own = -1j * np.arange(n_points // 2 + 1) * np.fft.rfft(velocity * p) / n_points
    own[: c.size] -= model.diffusion * np.arange(c.size) ** 2 * c
    return np.array(columns).T, float(np.abs(own).max())


def _values(coefficients: ComplexArray, n_points: int) -> FloatArray:
    """Real functions on a grid, from their Fourier coefficients along the last axis."""
    return np.asarray(np.fft.irfft(coefficients, n=n_points, axis=-1, norm="forward"))


def _quotient(term: FloatArray) -> FloatArray:
    return np.asarray(term[0] if len(term) == 1 else term[0] / term[1])


def _as_moments(vectors: ComplexArray) -> ComplexArray:
    """Real and imaginary parts of c_1 .. c_n in the columns of `vectors`, as moments in rows."""
    n = vectors.shape[0] // 2
    real = vectors.real
    moments = np.zeros((2 * n, n + 1), dtype=np.complex128)
    moments[:, 1:] = (real[:n] + 1j * real[n:]).T
    largest = np.abs(moments).max(axis=1, keepdims=True)
    return np.asarray(moments / np.where(largest > 0.0, largest, 1.0))
