"""Closed forms for tokens with positions, straight from series: they share no code with what they are held against."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import ive

FloatArray = NDArray[np.float64]


def influence(s: FloatArray, growth: float, decay: float) -> FloatArray:
    """λ e^{λs}/(e^λ - 1) Σ_j (a t)^{j+1} Y^j/(j! (j+1)!), Y = ln((e^λ - 1)/(e^{λs} - 1)), summed term by term."""
    y = np.log(np.expm1(decay) / np.expm1(decay * s))
    term = np.full_like(s, growth)
    total = term.copy()
    for j in range(1, 400):
        term = term * (growth * y / (j * (j + 1)))
        total += term
        if (term < 1e-18 * total).all():
            break
    return np.asarray(decay * np.exp(decay * s) / np.expm1(decay) * total)


def mean_influence(
    windows: NDArray[np.float64], nodes: FloatArray, weights: FloatArray, growth: float, decay: float
) -> FloatArray:
    """∫ g(s) w(s) ds of windows given at the nodes of `fine_rule`, shape (n, windows)."""
    return np.asarray((weights * influence(nodes, growth, decay)) @ windows)


def fine_rule() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on (0, 1) that gather at 0, where the influence grows without bound."""
    x, weights = leggauss(400)
    x = 0.5 * (x + 1.0)
    return x**6, 3.0 * weights * x**5


def fall_at_the_end(decay: float) -> float:
    """A t at which the influence no longer rises towards the last position: 2 (1 - e^{-λ})."""
    return -2.0 * math.expm1(-decay)


def convexity_limit() -> float:
    """A t up to which e^{-Y} Σ_j (a t Y)^j/(j! (j+1)!) is convex in Y at Y = 0: the lesser root of 1 - x + x²/6."""
    return float(np.roots([1.0 / 6.0, -1.0, 1.0]).real.min())


def twisted_rate(normalization: str, beta: float, n_tokens: int, winding: int, turns: int, harmonic: int) -> float:
    """Rate of ripples of harmonic p on θ_i = 2π q i/N with phases 2π m s on a ring, by Bessel functions.

    Sums over N tokens of e^{β cos (q+m)x} cos jx are sums of all I_l with l (q+m) = ±j modulo N (aliases).
    """
    order = np.arange(-400, 401)
    bessel = ive(np.abs(order), beta)
    unit = math.exp(beta) if normalization == "none" else 1.0
    together = winding + turns

    def mean(j: int) -> float:
        return float(bessel[(order * together + j) % n_tokens == 0].sum()) * unit

    def slope(shift: int) -> float:
        """Mean of e^{β cos nx} (β sin qx sin nx - cos qx) cos(shift x)."""
        total = 0.0
        for sign in (1, -1):
            j = sign * shift
            near = 0.25 * (mean(winding - together + j) + mean(winding - together - j))
            far = 0.25 * (mean(winding + together + j) + mean(winding + together - j))
            total += beta * (near - far) - 0.5 * (mean(winding + j) + mean(winding - j))
        return 0.5 * total

    rate = slope(0) - slope(harmonic)
    return rate / mean(0) if normalization == "softmax" else rate
