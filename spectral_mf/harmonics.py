"""Fourier sums at arbitrary points, and moments of points: the two directions of a non-uniform transform.

Both by the recurrence e^{i k theta} = e^{i (k-1) theta} e^{i theta}, in blocks that stay in the cache; never an
array of (points x modes).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_BLOCK = 2048


def fourier_sum(coefficients: ArrayLike, theta: ArrayLike) -> FloatArray:
    """Evaluate sum_{|k| <= K} a_k exp(i k theta) with a_{-k} = conj(a_k): a real function.

    Parameters
    ----------
    coefficients : array_like of complex, shape (..., K + 1)
        a_0 .. a_K; leading axes are functions, all evaluated at the same points.
    theta : array_like of float
        Angles in radians, any shape S.

    Returns
    -------
    ndarray of float64, shape (...) + S
    """
    a = np.asarray(coefficients, dtype=np.complex128)
    angles = np.asarray(theta, dtype=np.float64)
    lead = a.shape[:-1]
    rows = a.reshape(-1, a.shape[-1])
    points = angles.reshape(-1)
    values = np.empty((rows.shape[0], points.size), dtype=np.float64)
    for start in range(0, points.size, _BLOCK):
        z = np.exp(1j * points[start : start + _BLOCK])
        total = np.zeros((rows.shape[0], z.size), dtype=np.complex128)
        for k in range(rows.shape[1] - 1, 0, -1):  # Horner's rule
            total += rows[:, k, None]
            total *= z
        values[:, start : start + _BLOCK] = rows[:, :1].real + 2.0 * total.real
    return values.reshape(lead + angles.shape)


def point_moments(angles: ArrayLike, weights: ArrayLike, n_modes: int) -> ComplexArray:
    """Moments c_k = sum_j w_j exp(-i k theta_j), k = 0 .. n_modes.

    Parameters
    ----------
    angles : array_like of float, shape (N,)
    weights : array_like of float, shape (N,)
    n_modes : int
        Largest k.

    Returns
    -------
    ndarray of complex128, shape (n_modes + 1,)
    """
    theta = np.asarray(angles, dtype=np.float64)
    w = np.asarray(weights, dtype=np.float64)
    moments = np.zeros(n_modes + 1, dtype=np.complex128)
    for start in range(0, theta.size, _BLOCK):
        step = np.exp(-1j * theta[start : start + _BLOCK])
        power = w[start : start + _BLOCK].astype(np.complex128)
        moments[0] += power.real.sum()
        for k in range(1, n_modes + 1):
            power *= step
            moments[k] += power.sum()
    return moments
