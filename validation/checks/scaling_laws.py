"""How times and distances scale with β and with the number of tokens: closed forms, and the fits held against them.

They share no code with the solvers. All are for the softmax (SA) unless said otherwise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.optimize import brentq

from spectral_mf.validation.checks import closed_forms

FloatArray = NDArray[np.float64]

HALVED = 2.0
"""Two clusters live until their angle is the start's divided by this."""

WINDOWS = {"density": (1e-4, 1e-7), "tokens": (1e-5, 1e-10)}
"""Sizes of 1 - |c_1| between which its rate is fitted: what bends the line is of the order of the larger one."""


def single_cluster_rate(normalization: str, beta: float, *, points: bool) -> float:
    """Rate at which 1 - |c_1| decays as all mass gathers in one cluster.

    At the angle x from a cluster of all mass V = -sin x (SA), -e^{β cos x} sin x (USA). Tokens close in on it at the
    rate 1 (SA), e^β (USA), and 1 - |c_1| is of second order in their distances. A density has mass opposite to the
    cluster, in an unstable equilibrium that it leaves at the rate 1 (SA), e^{-β} (USA): that is the last to arrive,
    and 1 - |c_1| is proportional to how much is left.

    Parameters
    ----------
    normalization : str
        "softmax" (SA) or "none" (USA).
    beta : float
    points : bool
        Whether there are finitely many tokens, or a density that is positive everywhere.
    """
    exponent = 0.0 if normalization == "softmax" else beta
    return 2.0 * math.exp(exponent) if points else math.exp(-exponent)


def pair_lifetime(beta: float, light: float, angle: float) -> float:
    """Time in which the angle w of two clusters is halved.

    w' = -sin w [1 / ((m/M) e^{β(1 - cos w)} + 1) + 1 / ((M/m) e^{β(1 - cos w)} + 1)], with masses m and M = 1 - m. For
    equal masses the time grows like e^{β(1 - cos w)} in the start's w. A token among n, m = 1/n, with β = γ ln n, lives
    for a time of order 1 if γ (1 - cos w) < 1, and n^{γ(1 - cos w) - 1} if it is larger.

    Parameters
    ----------
    beta : float
    light : float
        Mass m of the lighter cluster.
    angle : float
        w at the start, in radians, below π.
    """
    ratio = light / (1.0 - light)

    def slowness(w: float) -> float:
        weight = math.exp(beta * (1.0 - math.cos(w)))
        return 1.0 / (math.sin(w) * (1.0 / (ratio * weight + 1.0) + 1.0 / (weight / ratio + 1.0)))

    return float(quad(slowness, angle / HALVED, angle, limit=200, epsabs=0.0, epsrel=1e-11)[0])


def pair_angles(size: FloatArray, angle: float) -> FloatArray:
    """Angle of two clusters in time, from |c_1|: 1 - |c_1|^2 = 2 m M (1 - cos w); shape (n_times,).

    Parameters
    ----------
    size : ndarray of float64, shape (n_times,)
        |c_1|.
    angle : float
        w in the first row.
    """
    lost = 1.0 - size**2
    return np.asarray(np.arccos(np.clip(1.0 - (1.0 - math.cos(angle)) * lost / lost[0], -1.0, 1.0)))


def aligned_moment(large: float, small: float, t: float, n_nodes: int = 192) -> float:
    """c_2 at time t of the uniform density under V = I, B = diag(a, b), a > b > 0, in the limit β -> ∞.

    There every token sees one direction, V = ⟨e_θ, B x / |B x|⟩ = -(a - b) sin θ cos θ / q with q = |B x|, so
    (a artanh(q/a) - b artanh(b/q)) / (a - b) = t + constant, and cos 2θ = (2 q^2 - a^2 - b^2) / (a^2 - b^2).
    """

    def clock(q: float) -> float:
        return (large * math.atanh(q / large) - small * math.atanh(small / q)) / (large - small)

    def later(q: float) -> float:
        aim = clock(q) + t
        return float(brentq(lambda x: clock(x) - aim, q, math.nextafter(large, 0.0), xtol=1e-15, rtol=1e-14))

    theta = (np.arange(n_nodes) + 0.5) * (0.5 * np.pi / n_nodes)
    final = np.array([later(q) for q in np.hypot(large * np.cos(theta), small * np.sin(theta)).tolist()])
    return float(np.mean((2.0 * final**2 - large**2 - small**2) / (large**2 - small**2)))


def alignment_time(large: float, small: float, level: float) -> float:
    """Time at which `aligned_moment` reaches a level, from 0 to 0.99."""
    return float(brentq(lambda t: aligned_moment(large, small, t) - level, 0.0, 8.0, xtol=1e-12))


def frozen_angle(beta: float, large: float, small: float, angle: float, variance: float) -> float:
    """Where a narrow cluster near θ = 0 stops under V = I, B = diag(a, b), a > b > 0.

    A normal density, with mean angle m and variance s², stays one: with u = βas²,

        m' = -(1 - b/a) m u/(1 + u),    s' = -s (1 + (1 - b/a) u)/(1 + u).

    Attention pulls the cluster to the eigendirection θ = 0 only while it is wider than (βa)^(-1/2): it stops at
    m / √(1 + β (a - b) s²) of the start's m and s. What is neglected is of the relative order m², s².

    Parameters
    ----------
    beta, large, small : float
        β, a, b.
    angle, variance : float
        m and s² at the start.
    """
    return angle / math.sqrt(1.0 + beta * (large - small) * variance)


def freezing_time(beta: float, large: float, small: float, variance: float) -> float:
    """Time at which the cluster of `frozen_angle` is as narrow as (βa)^(-1/2); about ln β / (2 (1 - b/a))."""
    u, ratio = beta * large * variance, small / large
    tail = (1.0 + (1.0 - ratio) * u) / (2.0 - ratio)
    return 0.5 * (math.log(u) + ratio / (1.0 - ratio) * math.log(tail))


def linear_exit(beta: float, sizes: ArrayLike, level: float) -> float:
    """First time at which e^{λ_k t} |c_k(0)| of any mode k = 1, 2, ... reaches a level."""
    start = np.asarray(sizes, dtype=np.float64)
    rates = closed_forms.growth_rate("softmax", beta, np.arange(1, start.size + 1))
    here = start > 0.0
    return float(np.min(np.log(level / start[here]) / rates[here]))


def exponents(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Exponents of y as a power of x, from each value to the next; shape (n - 1,)."""
    return np.asarray(np.diff(np.log(np.asarray(y))) / np.diff(np.log(np.asarray(x))))


def limit_exponent(x: ArrayLike, y: ArrayLike) -> float:
    """Exponent for x -> ∞ of a power with a correction of relative order 1/x, from the last three, in equal ratios."""
    before, last = exponents(x, y)[-2:]
    ratio = float(np.asarray(x)[-1] / np.asarray(x)[-2])
    return float((ratio * last - before) / (ratio - 1.0))


def decay_rate(t: FloatArray, size: FloatArray, high: float, low: float) -> float:
    """Rate of exponential decay while a size falls from `high` to `low`, by least squares."""
    rows = np.flatnonzero((size < high) & (size > low))
    return float(-np.polyfit(t[rows], np.log(size[rows]), 1)[0])
