"""The published exit statistic: total variation of a histogram of tokens; its sampling floor, and the bias it causes.

A histogram of N independent uniform tokens in b bins has a total variation distance (1/2) sum_i |n_i/N - 1/b| to the
uniform one of sqrt((b - 1) / (2 pi N)) in the mean: 3.97 / sqrt(N) for b = 100. That is no growth, but counts towards
the threshold, the more so the fewer tokens there are; an exit time by this statistic is too early by an amount that
falls with N, and its slope in ln N too large.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erf

from spectral_mf import theory
from spectral_mf.arguments import integer_at_least, number_between
from spectral_mf.atoms import TWO_PI
from spectral_mf.errors import InputError
from spectral_mf.harmonics import fourier_sum
from spectral_mf.measure import Measure
from spectral_mf.model import Model
from spectral_mf.unstable_manifold import unstable_manifold
from spectral_mf.validation.fluctuations import check_tokens

FloatArray = NDArray[np.float64]

BINS = 100
"""As published."""

THRESHOLD = 0.3
"""The published value is not stated."""

_ORDER = 64
_POINTS = 256


def total_variation(measure: Measure, bins: int = BINS) -> float:
    """Total variation distance between a histogram and the uniform one, from 0 to 1 - 1/bins."""
    return 0.5 * float(np.abs(measure.cell_means(bins) * (TWO_PI / bins) - 1.0 / bins).sum())


def sampling_floor(n_tokens: int, bins: int = BINS) -> float:
    """Mean total variation of uniform tokens, sqrt((bins - 1) / (2 pi N)), in the Gaussian limit N >> bins."""
    check_tokens(n_tokens)
    return math.sqrt((bins - 1) / (TWO_PI * n_tokens))


def histogram_exit_time(model: Model, n_tokens: int, threshold: float = THRESHOLD, bins: int = BINS) -> float:
    """Expected time at which the histogram's total variation passes a threshold: an estimate, to some 0.05 / lambda.

    The density follows the unstable manifold at z = |c_m(0)| e^{lambda t}, with ln|c_m(0)| at its mean. Around it, bins
    scatter with the variance (2/N) sum e^{2 lambda_k t} over the other modes k <= bins / 2: the sample's own modes,
    grown by linear theory. The total variation is the mean of a folded normal variable over the bins.

    Parameters
    ----------
    model : Model
    n_tokens : int
        N >= 2.
    threshold : float
        Between 0 and 1, within reach of the manifold's series.
    bins : int

    Raises
    ------
    InputError
        If the threshold is out of reach, or something else is not allowed.
    """
    check_histogram(threshold, bins)
    check_tokens(n_tokens)
    dominant = theory.dominant_mode(model)
    m, rate = dominant.mode, dominant.rate
    series = unstable_manifold(model, m, _ORDER)
    theta = TWO_PI / m * np.arange(_POINTS) / _POINTS
    others = np.array([k for k in range(1, bins // 2 + 1) if k != m])
    rates = model.growth_rate(others)
    start = 0.5 * (math.log(n_tokens) + float(np.euler_gamma))

    def excess(z: float) -> float:
        t = (math.log(z) + start) / rate
        scatter = math.sqrt(2.0 / n_tokens * float(np.exp(2.0 * rates * max(t, 0.0)).sum()))
        return expected_variation(fourier_sum(series(z), theta) - 1.0, scatter) - threshold

    low, high = math.exp(-start), 0.999 * series.radius
    if not low < high or excess(high) <= 0.0:
        raise InputError(
            f"threshold = {threshold:g} lies beyond the reach of the unstable manifold's series; give a smaller one."
        )
    if excess(low) >= 0.0:
        return 0.0
    return (math.log(float(brentq(excess, low, high))) + start) / rate


def expected_variation(relative: FloatArray, scatter: float) -> float:
    """Mean of |x + s g| / 2 over the relative deviations x of a density, with g a standard normal variable."""
    u = relative / (scatter * math.sqrt(2.0))
    folded = scatter * math.sqrt(2.0 / math.pi) * np.exp(-(u**2)) + relative * erf(u)
    return 0.5 * float(folded.mean())


def check_histogram(threshold: float, bins: int) -> None:
    """Refuse thresholds that are not between 0 and 1, and fewer than 2 bins."""
    number_between("threshold", threshold, 0.0, 1.0)
    integer_at_least("bins", bins, 2)
