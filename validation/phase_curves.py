"""What the phases of a run are read from: sizes and distances at each output time.

ρ_t = μ_t - 1/(2π), ‖·‖ the H^{-1} norm over the stored modes (see `spectral_mf.validation.fluctuations`), m the
dominant mode, c_k^lin(t) = e^{λ_k t} c_k(0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.unstable_manifold import unstable_manifold
from spectral_mf.validation.fluctuations import h_minus_one

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

ORDER = 64
"""Order of the unstable manifold's series."""

_LARGEST_EXPONENT = 300.0
"""Linear solutions beyond e^300 are as wrong as they can be; their squares must not overflow."""


@dataclass(frozen=True)
class Curves:
    """What the phases are read from, at each output time; all of shape (n_times,).

    Attributes
    ----------
    size : ndarray of float64
        ‖ρ_t‖.
    amplitude : ndarray of float64
        |c_m|.
    linear_error : ndarray of float64
        ‖μ_t - μ_t^lin‖ / ‖ρ_t‖.
    harmonics : ndarray of float64
        Share of ‖ρ_t‖² in the multiples of m.
    manifold_distance : ndarray of float64
        Distance to the unstable manifold over ‖ρ_t‖; infinite where the series of |c_m| does not reach.
    periodicity_defect : ndarray of float64
        ‖·‖ of the modes that are no multiples of m: the distance to the nearest 2π/m-periodic measure.
    """

    size: FloatArray
    amplitude: FloatArray
    linear_error: FloatArray
    harmonics: FloatArray
    manifold_distance: FloatArray
    periodicity_defect: FloatArray


def phase_curves(model: Model, t: FloatArray, c: ComplexArray, m: int) -> Curves:
    """Curves of a run with moments c, shape (n_times, K + 1), for the dominant mode m <= K."""
    size = h_minus_one(c)
    rates = np.append(0.0, model.growth_rate(np.arange(1, c.shape[1])))
    exponent = np.minimum(rates * (t - t[0])[:, None], _LARGEST_EXPONENT)
    defect = periodicity_defect(c, m)
    safe = np.where(size > 0.0, size, 1.0)
    return Curves(
        size=size,
        amplitude=np.abs(c[:, m]),
        linear_error=h_minus_one(c - c[0] * np.exp(exponent)) / safe,
        harmonics=1.0 - (defect / safe) ** 2,
        manifold_distance=manifold_distance(model, c, m) / safe,
        periodicity_defect=defect,
    )


def periodicity_defect(moments: ArrayLike, mode: int) -> FloatArray:
    """H^{-1} distance to the nearest 2π/m-periodic measure: the norm of the modes that are no multiples of m.

    Parameters
    ----------
    moments : array_like of complex, shape (..., K + 1)
    mode : int
        m >= 1.
    """
    c = np.array(moments, dtype=np.complex128)
    c[..., ::mode] = 0.0
    return h_minus_one(c)


def manifold_distance(model: Model, moments: ComplexArray, mode: int) -> FloatArray:
    """H^{-1} distance to the point of the mode's unstable manifold that has the same c_m; shape (n,).

    Infinite where the series of |c_m| does not reach so far.

    Parameters
    ----------
    moments : ndarray of complex128, shape (n, K + 1)
        K >= m.
    """
    series = unstable_manifold(model, mode, ORDER)
    distance = np.full(moments.shape[0], np.inf)
    for row, c in enumerate(moments):
        try:
            z = series.z_of_level(float(abs(c[mode])))
        except InputError:  # |c_m| beyond the series
            continue
        nearest = series(z * np.exp(1j * np.angle(c[mode])))
        n = min(nearest.size, c.size)
        difference = c.copy()
        difference[:n] -= nearest[:n]
        distance[row] = h_minus_one(difference)
    return distance
