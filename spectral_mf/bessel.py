"""Ratios of modified Bessel functions, the only special functions that attention on the circle needs.

e^{beta cos x} = sum_k I_k(beta) e^{i k x}. Everything is expressed by R_k = I_k(beta) / I_0(beta), computed from the
exponentially scaled functions, which neither overflow nor lose digits for any beta.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

FloatArray = NDArray[np.float64]

_SMALL_BETA = 1e-3
"""Below this, k R_k / beta is taken from the recurrence, which has a limit at beta = 0 and does not cancel there."""


def ratio(k: ArrayLike, beta: float | FloatArray) -> FloatArray:
    """R_k = I_k(beta) / I_0(beta), the Fourier coefficients of the kernel relative to its mean.

    Parameters
    ----------
    k : array_like
        Orders; real orders are allowed. Shape (...).
    beta : float or ndarray of float64
        Inverse temperature, >= 0; of a shape that goes with that of k.

    Returns
    -------
    ndarray of float64, shape (...)
        Values in [0, 1] for k >= 0; R_0 = 1.
    """
    order = np.abs(np.asarray(k, dtype=np.float64))
    return np.asarray(ive(order, beta) / ive(0, beta), dtype=np.float64)


def derivative_ratio(k: ArrayLike, beta: float | FloatArray) -> FloatArray:
    """q_k = k I_k(beta) / (beta I_0(beta)), the coefficients of the drift kernel, with their limit at beta = 0.

    -sin(x) e^{beta cos x} / I_0 = sum_k i q_k e^{i k x}. At beta = 0, q_1 = 1/2 and all others vanish: the flow of
    the Kuramoto order parameter.

    Parameters
    ----------
    k : array_like of int
        Orders, shape (...); q is odd in k.
    beta : float or ndarray of float64
        Inverse temperature, >= 0; of a shape that goes with that of k.
    """
    order = np.asarray(k, dtype=np.float64)
    small = np.asarray(beta) < _SMALL_BETA
    if not small.any():
        return np.asarray(order * ratio(order, beta) / beta, dtype=np.float64)
    # I_{k-1} - I_{k+1} = (2 k / beta) I_k (DLMF 10.29.1)
    magnitude = np.abs(order)
    difference = ratio(magnitude - 1, beta) - ratio(magnitude + 1, beta)
    limit = np.sign(order) * 0.5 * difference
    return np.where(small, limit, order * ratio(order, beta) / np.where(small, 1.0, beta))


def bandwidth(beta: float, tolerance: float = 1e-17) -> int:
    """Largest order whose ratio R_k exceeds `tolerance`: the number of modes that the kernel can see.

    26 at beta = 5, about 280 at beta = 1000; it grows like sqrt(2 beta ln(1 / tolerance)).
    """
    n = 32
    while True:
        values: NDArray[Any] = ratio(np.arange(n + 1), beta)
        seen = np.flatnonzero(values > tolerance)
        if seen[-1] < n:
            return max(1, int(seen[-1]))
        n *= 2
