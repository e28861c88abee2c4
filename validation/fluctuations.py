"""How far a measure is from uniform: its H^{-1} norm, and how large that is for random tokens."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import integer_at_least

FloatArray = NDArray[np.float64]


def h_minus_one(moments: ArrayLike) -> FloatArray:
    """H^{-1} norm of ρ = μ - 1/(2π): ‖ρ‖² = Σ_{k≠0} |c_k|² / (1 + k²) over the modes that are given.

    Parameters
    ----------
    moments : array_like of complex, shape (..., K + 1)
        c_0 .. c_K; c_0 is not used.

    Returns
    -------
    ndarray of float64, shape (...)
    """
    c = np.asarray(moments, dtype=np.complex128)[..., 1:]
    k = np.arange(1, c.shape[-1] + 1)
    return np.asarray(np.sqrt(2.0 * ((c.real**2 + c.imag**2) / (1.0 + k**2)).sum(axis=-1)))


def expected_h_minus_one(n_tokens: int, n_modes: int | None = None) -> float:
    """Root mean square of `h_minus_one` for N independent uniform tokens: √((π coth π - 1) / N) with all modes.

    Parameters
    ----------
    n_tokens : int
        N >= 1.
    n_modes : int, optional
        Modes that enter the norm; all of them if left out.

    Raises
    ------
    InputError
        If there are no tokens.
    """
    check_tokens(n_tokens)
    if n_modes is None:
        return math.sqrt((math.pi / math.tanh(math.pi) - 1.0) / n_tokens)
    k = np.arange(1, integer_at_least("n_modes", n_modes, 1) + 1)
    return math.sqrt(2.0 * float((1.0 / (1.0 + k**2)).sum()) / n_tokens)


def check_tokens(n_tokens: int) -> None:
    """Refuse a number of tokens that is not an integer of at least 1."""
    integer_at_least("n_tokens", n_tokens, 1)
