"""Distances and means of angles, which wrap at 2 pi."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import angle_array, real_array
from spectral_mf.errors import InputError

FloatArray = NDArray[np.float64]

TWO_PI = 2.0 * np.pi


def circular_distance(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Length of the shorter arc between angles in radians; in [0, pi], of the broadcast shape."""
    difference = np.abs(angle_array(a) - angle_array(b)) % TWO_PI
    return np.asarray(np.minimum(difference, TWO_PI - difference))


def circular_mean(angles: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Direction of the mean of the vectors (cos theta, sin theta), in [0, 2 pi).

    Parameters
    ----------
    angles : array_like of float, shape (N,)
        In radians.
    weights : array_like of float, shape (N,), optional
        Non-negative; equal if left out.

    Returns
    -------
    float
        NaN if the resultant is zero to rounding: then there is no mean direction.
    """
    z = _resultant(angles, weights)
    mean = float(np.angle(z)) % TWO_PI
    return (0.0 if mean >= TWO_PI else mean) if abs(z) > 1e-15 else float("nan")


def resultant_length(angles: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Length |c_1| of the mean vector: 1 if all angles are equal, never above; 0 if they balance."""
    return min(1.0, float(abs(_resultant(angles, weights))))


def circular_deviation(angles: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Circular standard deviation sqrt(-2 ln |c_1|) in radians; 0 if all angles are equal, infinite if they balance.

    Fisher, "Statistical Analysis of Circular Data" (1993), section 2.3.1.
    """
    length = resultant_length(angles, weights)
    return float(np.sqrt(max(0.0, -2.0 * np.log(length)))) if length > 0.0 else float("inf")


def _resultant(angles: ArrayLike, weights: ArrayLike | None) -> complex:
    z = np.exp(1j * angle_array(angles))
    if z.size == 0:
        raise InputError("there are no angles; give at least one.")
    if weights is None:
        return complex(z.mean())
    w = real_array(weights, "weights are not real numbers; give one number >= 0 for each angle.")
    if w.shape != z.shape or not (w.min() >= 0.0 and 0.0 < w.sum() < np.inf):
        raise InputError(f"weights have to be {z.size} finite numbers >= 0 that are not all zero, one for each angle.")
    return complex(np.average(z, weights=w))
