"""Closed forms that claims are held against, straight from Bessel functions: they share no code with the solvers.

Rates are in the units of `SelfAttention(normalization="softmax")` (SA) and "none" (USA).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

FloatArray = NDArray[np.float64]


def growth_rate(normalization: str, beta: float, k: ArrayLike) -> FloatArray:
    """k^2 I_k / (beta I_0) (SA), k^2 I_k / beta (USA)."""
    order = np.asarray(k, dtype=np.float64)
    unit = ive(0, beta) if normalization == "softmax" else math.exp(-beta)
    return np.asarray(order**2 * ive(order, beta) / (beta * unit))


def dominant_mode(beta: float) -> int:
    """The mode with the largest growth rate."""
    k = np.arange(1, 8 + int(3.0 * math.sqrt(beta)))
    return int(k[np.argmax(growth_rate("softmax", beta, k))])


def runner_up(beta: float) -> float:
    """The second largest growth rate as a share of the largest."""
    k = np.arange(1, 8 + int(3.0 * math.sqrt(beta)))
    rates = np.sort(growth_rate("softmax", beta, k))
    return float(rates[-2] / rates[-1])


def second_harmonic(normalization: str, beta: float) -> float:
    """Limit of c_{2m} / c_m^2 on the unstable manifold of the dominant mode m."""
    m = dominant_mode(beta)
    one, two = ive(m, beta) / ive(0, beta), ive(2 * m, beta) / ive(0, beta)
    if normalization == "softmax":
        return float(one * (1.0 - one) / (one - 2.0 * two))
    return float(one / (one - 2.0 * two))


def cubic_coefficient(normalization: str, beta: float) -> float:
    """Coefficient a in d ln|c_m| / dt = lambda_m (1 - a |c_m|^2) on the unstable manifold."""
    if normalization != "softmax":
        return 1.0
    m = dominant_mode(beta)
    one, two = ive(m, beta) / ive(0, beta), ive(2 * m, beta) / ive(0, beta)
    return float(1.0 - one**2 + one * two * (1.0 - one) / (one - 2.0 * two))


def contraction_rate(normalization: str, beta: float, k: int) -> float:
    """Rate at which tokens close in on one of k equal, equally spaced clusters."""
    x = 2.0 * np.pi * np.arange(k) / k
    return float(-_curvature(x, beta).mean() * _unit(normalization, beta, k))


def merging_rate(normalization: str, beta: float, k: int, q: int = 1) -> float:
    """Rate at which k equal clusters leave equal spacing, by the displacement cos(2 pi q j / k)."""
    x = 2.0 * np.pi * np.arange(k) / k
    return float((_curvature(x, beta) * (1.0 - np.cos(q * x))).mean() * _unit(normalization, beta, k))


def mass_exchange_rate(beta: float, kappa: float, depletion: float) -> float:
    """Rate at which two antipodal clusters of USA part in mass, by Kramers' formula in the potential cosh(β cos θ)/β.

    Tokens leave a cluster by either side at rate r = (1/π) √(β sinh β) p_min/p_max; an imbalance δ of the masses
    deepens one well by (2/β) sinh β δ, so dδ/dt = r (2 sinh β/(β κ) - 2) δ.

    Parameters
    ----------
    beta, kappa : float
    depletion : float
        p_min/p_max, least over greatest density.
    """
    leaving = math.sqrt(beta * math.sinh(beta)) / math.pi * depletion
    return leaving * (2.0 * math.sinh(beta) / (beta * kappa) - 2.0)


def cluster_energy(beta: float, masses: ArrayLike, angles: ArrayLike) -> float:
    """Energy of point masses, in units of that of a single one, e^beta / (2 beta)."""
    w, theta = np.asarray(masses, dtype=np.float64), np.asarray(angles, dtype=np.float64)
    return float(w @ np.exp(beta * (np.cos(theta[:, None] - theta) - 1.0)) @ w)


def _curvature(x: FloatArray, beta: float) -> FloatArray:
    """W'' of W = e^{beta (cos - 1)} / beta."""
    return np.asarray(np.exp(beta * (np.cos(x) - 1.0)) * (beta * np.sin(x) ** 2 - np.cos(x)))


def _unit(normalization: str, beta: float, k: int) -> float:
    """What turns rates of the kernel e^{beta (cos - 1)} into those of the model, at one of k equal clusters."""
    if normalization != "softmax":
        return math.exp(beta)
    x = 2.0 * np.pi * np.arange(k) / k
    return float(1.0 / np.exp(beta * (np.cos(x) - 1.0)).mean())


def selection_probabilities(beta: float, n_tokens: int, level: float, largest_mode: int) -> FloatArray:
    """Probability that mode 1, 2, ... is the first to reach a level, for N uniform tokens whose modes grow linearly.

    N |c_k(0)|^2 has the law Exp(1), so mode k is below the level at time t with probability
    1 - exp(-N level^2 e^{-2 lambda_k t}), independently of the others.
    """
    rates = growth_rate("softmax", beta, np.arange(1, largest_mode + 1))
    t = np.linspace(-4.0, 4.0 + math.log(n_tokens), 40_001) / (2.0 * rates.max())
    middle = 0.5 * (t[1:] + t[:-1])

    def below(times: FloatArray) -> FloatArray:
        return np.asarray(-np.expm1(-n_tokens * level**2 * np.exp(-2.0 * rates[:, None] * times)))

    reached = -np.diff(below(t), axis=1)
    others = np.array([np.delete(below(middle), k, axis=0).prod(axis=0) for k in range(rates.size)])
    return np.asarray((reached * others).sum(axis=1))


def manifold_coordinate(normalization: str, beta: float, level: float) -> float:
    """Coordinate z of |c_m| = level on the unstable manifold, by the cubic amplitude equation."""
    return level / math.sqrt(1.0 - cubic_coefficient(normalization, beta) * level**2)


def von_mises_moment(kappa: float, n: ArrayLike) -> FloatArray:
    """I_n / I_0, the moments of the density exp(kappa cos) / (2 pi I_0)."""
    order = np.asarray(n, dtype=np.float64)
    return np.asarray(ive(order, kappa) / ive(0.0, kappa))


def w1_uniform_von_mises(kappa: float) -> float:
    """W1 between the uniform density and a von Mises density: (4 / pi) sum over odd n of I_n / (n^2 I_0)."""
    n = np.arange(1, 2001, 2)
    return float(4.0 / math.pi * (von_mises_moment(kappa, n) / n**2).sum())


def w1_rotated_von_mises(kappa: float, angle: float) -> float:
    """W1 between a von Mises density and itself rotated by a.

    (8 / pi) times the sum over odd n of (-1)^((n - 1)/2) I_n sin(n a / 2) / (n^2 I_0).
    """
    n = np.arange(1, 2001, 2)
    sign = np.where(n % 4 == 1, 1.0, -1.0)
    return float(8.0 / math.pi * (sign * von_mises_moment(kappa, n) * np.sin(0.5 * n * angle) / n**2).sum())


def split_limit(ratio: float, beta: float, eigenvalue: float) -> float:
    """Second eigenvalue up to which masses r : 1 at both ends of an eigendirection of V = B are stable (SA).

    x (c - r) (c r - 1) / (r (c^2 - 1)), c = e^{2 beta x}, x the eigenvalue of that direction (arXiv:2604.26085).
    """
    c = math.exp(2.0 * beta * eigenvalue)
    return eigenvalue * (c - ratio) * (c * ratio - 1.0) / (ratio * (c**2 - 1.0))


def heat_flow(moments: ArrayLike, time: float) -> NDArray[np.complex128]:
    """Moments c_0 .. c_K after the heat equation's flow: e^{-k^2 t} c_k."""
    c = np.asarray(moments, dtype=np.complex128)
    return np.asarray(np.exp(-time * np.arange(c.size) ** 2) * c)


def poisson_order(strength: float, start: float, time: ArrayLike) -> FloatArray:
    """|c_1| of identical Kuramoto oscillators whose density is a Poisson kernel.

    dr/dt = K r (1 - r^2) / 2, so that r^2/(1 - r^2) grows like e^{K t} (Ott, Antonsen).
    """
    grown = np.exp(strength * np.asarray(time, dtype=np.float64)) * start**2 / (1.0 - start**2)
    return np.asarray(np.sqrt(grown / (1.0 + grown)))


def oscillator_order(strength: float, kappa: float) -> float:
    """|c_1| > 0 of the stationary density of Kuramoto oscillators with noise: r = I_1/I_0(K r / kappa)."""
    low, high = 0.0, 1.0
    while high - low > 1e-16 * high:  # I_1/I_0(a r) - r is positive below its root
        middle = 0.5 * (low + high)
        above = float(von_mises_moment(strength * middle / kappa, 1)) < middle
        if middle in (low, high):
            break
        low, high = (low, middle) if above else (middle, high)
    return 0.5 * (low + high)


def bounded_confidence_coefficient(radius: float, k: ArrayLike) -> FloatArray:
    """Fourier coefficients W_k, k >= 1, of (radius^2 - x^2)/2 for |x| < radius."""
    order = np.asarray(k, dtype=np.float64)
    x = order * radius
    return np.asarray((np.sin(x) - x * np.cos(x)) / (np.pi * order**3))
