"""What theory says of tokens with positions: influence on the last position, and twisted states on a ring.

References
----------
Influence: arXiv:2605.09213 (its rates are k^2 I_k, beta times those here, with time in units of 1/beta; the product
rate x time is the same). Twisted states: arXiv:2607.24502.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import hyp0f1

from spectral_mf.arguments import integer_at_least, number_at_least, number_from_to
from spectral_mf.errors import InputError
from spectral_mf.position_grid import checked_positions
from spectral_mf.positions import MAX_DECAY, PositionalAttention

FloatArray = NDArray[np.float64]


def influence(positions: ArrayLike, growth: ArrayLike, decay: float) -> FloatArray:
    """Influence of each position on the last one in a causal system, for small perturbations of the uniform density.

    With perturbations c_k(0, s), the last position has c_k(t, 1) = c_k(0, 1) + int_0^1 g(s) c_k(0, s) ds,
    g = k(1, s) sum_j (a t)^{j+1} Y^j / (j! (j+1)!), Y = ln((e^decay - 1) / (e^{decay s} - 1)), where
    k(1, s) = decay e^{decay s} / (e^decay - 1), a the growth rate of mode k without positions.

    Parameters
    ----------
    positions : array_like of float, shape (n,)
        s, above 0 (where g is infinite) and at most 1.
    growth : array_like of float, shape (...)
        a t, >= 0.
    decay : float
        lambda >= 0.

    Returns
    -------
    ndarray of float64, shape (...) + (n,)
    """
    s = checked_positions(positions)
    if (s == 0.0).any():
        raise InputError("position 0 has infinite influence; give positions above 0.")
    at = np.asarray(growth, dtype=np.float64)[..., None]
    rate = number_from_to("decay", decay, 0.0, MAX_DECAY)
    if rate == 0.0:
        kernel, depth = np.ones_like(s), -np.log(s)
    else:
        kernel = rate * np.exp(rate * (s - 1.0)) / -np.expm1(-rate)
        depth = rate * (1.0 - s) + np.log(np.expm1(-rate) / np.expm1(-rate * s))
    return np.asarray(kernel * at * hyp0f1(2.0, at * np.maximum(depth, 0.0)))


def u_shape_limit(decay: float) -> float:
    """Largest a t up to which the influence is U-shaped in the position: min(3 - sqrt 3, 2 (1 - e^{-decay}))."""
    return min(3.0 - math.sqrt(3.0), -2.0 * math.expm1(-number_from_to("decay", decay, 0.0, MAX_DECAY)))


def twisted_state(n_tokens: int, winding: int) -> tuple[FloatArray, FloatArray]:
    """Positions i / N and angles 2 pi winding i / N of N tokens on a ring of positions."""
    s = np.arange(integer_at_least("n_tokens", n_tokens, 1)) / n_tokens
    return s, np.asarray(2.0 * np.pi * winding * s)


def twisted_rates(model: PositionalAttention, n_tokens: int, winding: int, harmonics: ArrayLike) -> FloatArray:
    """Rates at which ripples cos(2 pi p i / N) of a twisted state grow.

    Parameters
    ----------
    model : PositionalAttention
        Of full order, without decay or query_key, and with rotary phases that fit the ring: a multiple of 2 pi.
    n_tokens, winding : int
        See `twisted_state`.
    harmonics : array_like of int, shape (...)
        p; the rate at p = 0 is zero, a rotation of all tokens.

    Returns
    -------
    ndarray of float64, shape (...)

    Raises
    ------
    InputError
        If the model does not live on a ring.
    """
    turns = model.rotary / (2.0 * np.pi)
    fits = abs(turns - round(turns)) <= 1e-12 * max(1.0, abs(turns))
    if model.causal or model.decay > 0.0 or model.has_matrix or not fits:
        raise InputError(
            f"{model!r} has no ring of positions; give order = 'full', no decay, no query_key and rotary = 2 pi times "
            "an integer."
        )
    u, x = twisted_state(n_tokens, winding)
    turned = x + model.rotary * u
    attention = np.exp(number_at_least("beta", model.beta, 0.0) * (np.cos(turned) - 1.0))
    if model.normalization == "softmax":
        attention /= attention.mean()
    elif model.normalization == "none":
        attention *= math.exp(model.beta)
    slope = attention * (model.beta * np.sin(x) * np.sin(turned) - np.cos(x))  # of each pull, by the angle between
    p = np.asarray(harmonics, dtype=np.float64)
    return np.asarray((slope * (1.0 - np.cos(2.0 * np.pi * p[..., None] * u))).mean(axis=-1))
