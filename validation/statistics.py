"""Statistics of tokens on the circle: uniformity, pairs, clusters, and intervals for what replicates measure."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import integrate, optimize, special, stats

from spectral_mf.arguments import (
    angle_array,
    integer_at_least,
    number_between,
    number_from_to,
    positive_number,
    real_array,
)
from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.circular import resultant_length
from spectral_mf.clusters import Clusters, group_points
from spectral_mf.errors import InputError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes
    ----------
    value, low, high : float
    confidence : float
    """

    value: float
    low: float
    high: float
    confidence: float

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high


def mean_interval(values: ArrayLike, confidence: float = 0.99) -> Interval:
    """Mean of independent values, with Student's interval.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        At least 2, finite.
    confidence : float
        Between 0 and 1.

    Raises
    ------
    InputError
        If there are fewer than 2 values, one is not finite, or the confidence is out of range.
    """
    x = real_array(values, "values are not real numbers; give one for each replicate.")
    confidence = number_between("confidence", confidence, 0.0, 1.0)
    if x.ndim != 1 or x.size < 2:
        raise InputError(f"values have shape {x.shape}; an interval needs at least 2 values, shape (n,).")
    if not np.isfinite(x).all():
        raise InputError("a value is not finite; keep failed replicates apart and count them.")
    half = float(stats.t.ppf(0.5 + 0.5 * confidence, x.size - 1)) * float(x.std(ddof=1)) / math.sqrt(x.size)
    mean = float(x.mean())
    return Interval(mean, mean - half, mean + half, confidence)


def proportion_interval(successes: int, trials: int, confidence: float = 0.99) -> Interval:
    """Share of successes, with the exact (Clopper-Pearson) interval: at least as safe as its confidence says.

    Raises
    ------
    InputError
        If there are no trials, or more successes than trials.
    """
    confidence = number_between("confidence", confidence, 0.0, 1.0)
    successes, trials = integer_at_least("successes", successes, 0), integer_at_least("trials", trials, 0)
    if not 0 <= successes <= trials or trials < 1:
        raise InputError(f"{successes} successes in {trials} trials are not possible; give 0 <= successes <= trials.")
    tail = 0.5 * (1.0 - confidence)
    low = float(special.betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(special.betaincinv(successes + 1, trials - successes, 1.0 - tail)) if successes < trials else 1.0
    return Interval(successes / trials, low, high, confidence)


def close_pair_share(angles: ArrayLike, cosine: float = 0.999) -> float:
    """Share of the pairs of different tokens with cos(theta_i - theta_j) > cosine.

    By sorting, in O(N log N): there is no N x N array. A token is no pair with itself.

    Parameters
    ----------
    angles : array_like of float, shape (N,)
        At least 2.
    cosine : float
        From -1 to 1.

    Raises
    ------
    InputError
        If there are fewer than 2 tokens, or the cosine is out of range.
    """
    theta = np.sort(angle_array(angles) % TWO_PI)
    reach = _reach(cosine)
    if theta.size < 2:
        raise InputError(f"{theta.size} tokens make no pair; give at least 2.")
    # Tokens within reach that come after each one, anticlockwise: each pair is counted from one side.
    after = np.searchsorted(np.concatenate([theta, theta + TWO_PI]), theta + reach, side="left")
    pairs = int((after - np.arange(theta.size) - 1).sum())
    return pairs / (0.5 * theta.size * (theta.size - 1))


def uniform_close_pair_share(cosine: float = 0.999) -> float:
    """Expected `close_pair_share` of independent uniform tokens: arccos(cosine) / pi, for any number of them."""
    return _reach(cosine) / math.pi


def token_clusters(tokens: Atoms, *, gap: float = 0.05, least_mass: float = 0.0) -> Clusters:
    """Clusters of tokens by single linkage: neighbours on the circle closer than `gap` belong together.

    A chain of tokens with every step shorter than `gap` is one cluster, however long. Use it once the tokens have
    gathered; before, count the peaks of their density by `spectral_mf.diagnostics.find_clusters`.

    Parameters
    ----------
    tokens : Atoms
    gap : float
        In radians.
    least_mass : float
        Clusters of less mass are left out.

    Raises
    ------
    InputError
        If the gap is not positive, or the mass not in [0, 1].
    """
    gap, least_mass = positive_number("gap", gap), number_from_to("least_mass", least_mass, 0.0, 1.0)
    found = group_points(tokens.angles, tokens.weights, gap=gap)
    kept = found.masses >= least_mass
    return Clusters(found.positions[kept], found.masses[kept], found.widths[kept])


@dataclass(frozen=True)
class RayleighTest:
    """Whether tokens may be uniform on the circle.

    Attributes
    ----------
    resultant : float
        Mean resultant length |c_1|.
    p_value : float
        Probability of a resultant as large under uniformity.
    """

    resultant: float
    p_value: float


def rayleigh_test(angles: ArrayLike) -> RayleighTest:
    """Test independent tokens of equal weight for uniformity, against one preferred direction, exactly."""
    theta = angle_array(angles)
    if theta.ndim != 1 or theta.size < 1:
        raise InputError(f"angles have shape {theta.shape}; give at least one token, shape (N,).")
    resultant = resultant_length(theta)
    return RayleighTest(resultant, rayleigh_tail(theta.size, resultant))


def rayleigh_tail(n_tokens: int, resultant: float) -> float:
    """Probability that N uniform tokens have a mean resultant length |c_1| of at least `resultant`.

    Kluyver's integral 1 - R int_0^inf J_0(t)^N J_1(R t) dt, R = N |c_1|, summed as a Fourier-Bessel series (|c_1| <= 1
    bounds the support, so this is exact), with closed forms for N <= 3. Absolute error 1e-12, 1e-8 for N = 4; tails
    below 1e-9 (1e-7 for N <= 4) by the saddle-point method, which makes them larger, by a share of 1.5 / N at most.

    Parameters
    ----------
    n_tokens : int
        N >= 1.
    resultant : float
        From 0 to 1.

    Returns
    -------
    float
        From 0 to 1. The usual exp(-N |c_1|^2) is its limit for large N and moderate N |c_1|^2.

    References
    ----------
    Kluyver (1905); Mardia, Jupp, "Directional Statistics" (2000), section 4.4; Lugannani, Rice (1980).
    """
    n = integer_at_least("n_tokens", n_tokens, 1)
    resultant = number_from_to("resultant", resultant, 0.0, 1.0)
    if resultant == 0.0 or n == 1:
        return 1.0
    if resultant == 1.0:
        return 0.0
    if n == 2:
        return 2.0 / math.pi * math.acos(resultant)
    tail = _three_steps(3.0 * resultant) if n == 3 else _kluyver_tail(n, resultant)
    if tail < (1e-7 if n <= 4 else 1e-9):
        tail = _saddle_point_tail(n, resultant)
    return min(1.0, max(0.0, tail))


def _three_steps(r: float) -> float:
    """P(R >= r) for three steps: two of them reach 2 cos u with u uniform, the third turns by an angle phi."""

    def share(u: float) -> float:
        s = 2.0 * math.cos(u)
        return (
            math.acos(max(-1.0, min(1.0, (r * r - s * s - 1.0) / (2.0 * s)))) / math.pi if s > 0.0 else float(r <= 1.0)
        )

    kinks = [math.acos(0.5 * s) for s in (abs(r - 1.0), r + 1.0) if s < 2.0]
    ends = [0.0, *sorted(kinks), 0.5 * math.pi]
    parts = (integrate.quad(share, a, b, epsabs=1e-13, limit=200)[0] for a, b in itertools.pairwise(ends))
    return 2.0 / math.pi * float(sum(parts))


_MOST_TERMS = 500_000

_MANY = 45
"""Steps from which the integral is over before the first zero of J_0."""


def _kluyver_tail(n: int, resultant: float) -> float:
    t, weights = _kluyver_series(n)
    terms = weights * special.j1(n * resultant * t)
    return 1.0 - 2.0 * n * resultant * float(terms[::-1].sum())


@lru_cache(maxsize=4)
def _kluyver_series(n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes t and weights J_0(t)^N / (radius j J_1(j)^2) of the series of Fourier and Bessel, j the zeros of J_0."""
    radius = 1.05 * n
    # |J_0(t)| <= exp(-t^2 / 4) up to its first zero and <= sqrt(2 / (pi t)): beyond `last` J_0^n is below 1e-17
    last = math.sqrt(160.0 / n) if n >= _MANY else 2.0 / math.pi * 10.0 ** (34.0 / n)
    zeros = _zeros_of_j0(int(min(_MOST_TERMS, radius * last / math.pi + 2.0)))
    t = zeros / radius
    # The power multiplies relative errors by N: near t = 0 the logarithm needs J_0 - 1 with all its digits.
    power = np.exp(n * np.log1p(_j0_minus_1(t))) if n >= _MANY else special.j0(t) ** n
    return t, power / (radius * zeros * special.j1(zeros) ** 2)


def _j0_minus_1(t: FloatArray) -> FloatArray:
    """J_0(t) - 1 for 0 <= t <= 2, to a relative error of rounding, by its power series."""
    x = -0.25 * t * t
    term, total = x.copy(), x.copy()
    for m in range(2, 16):
        term *= x / (m * m)
        total += term
    return total


def _zeros_of_j0(count: int) -> FloatArray:
    """First zeros of the Bessel function J_0, by McMahon's expansion and Newton's method."""
    b = (np.arange(1, count + 1) - 0.25) * math.pi
    zeros = b + 1.0 / (8.0 * b)
    for _ in range(3):
        zeros += special.j0(zeros) / special.j1(zeros)
    return np.asarray(zeros)


_FAR = 45.0
"""exp(-45) is below rounding."""


def _saddle_point_tail(n: int, resultant: float) -> float:
    """Integral of n sqrt(A kappa A') exp(-n (kappa A - ln I_0)) from the kappa at which A = I_1/I_0 is the resultant.

    With kappa = e^x; the exponent grows without end, like ln(kappa) / 2.
    """
    start = float(optimize.brentq(lambda x: _bessel_mean(math.exp(x)) - resultant, -40.0, 40.0, xtol=1e-14))
    first = _large_deviation_rate(math.exp(start))
    end = float(
        optimize.brentq(
            lambda u: n * (_large_deviation_rate(math.exp(start + u)) - first) - _FAR, 0.0, 10.0 + 4.0 * _FAR / n + 40.0
        )
    )

    def integrand(u: float) -> float:
        kappa = math.exp(start + u)
        a = _bessel_mean(kappa)
        slope = 1.0 - a / kappa - a * a if kappa < 300.0 else (0.5 + 0.25 / kappa + 0.375 / kappa**2) / kappa**2
        return n * kappa * math.sqrt(a * kappa * slope) * math.exp(-n * (_large_deviation_rate(kappa) - first))

    value, _ = integrate.quad(integrand, 0.0, end, limit=200, epsabs=0.0, epsrel=1e-8)
    return math.exp(-n * first) * float(value)


def _bessel_mean(kappa: float) -> float:
    """I_1 / I_0."""
    if kappa > 1e6:
        return 1.0 - 0.5 / kappa - 0.125 / kappa**2
    return float(special.ive(1, kappa) / special.ive(0, kappa))


def _large_deviation_rate(kappa: float) -> float:
    """Rate kappa A(kappa) - ln I_0(kappa): the probability of a resultant A falls like exp(-N times this)."""
    if kappa > 1e6:
        return 0.5 * math.log(2.0 * math.pi * kappa) - 0.5 - 0.25 / kappa
    return kappa * (_bessel_mean(kappa) - 1.0) - math.log(float(special.ive(0, kappa)))


def _reach(cosine: float) -> float:
    return math.acos(number_from_to("cosine", cosine, -1.0, 1.0))
