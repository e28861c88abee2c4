"""Exit times: how long random tokens take to leave the linear regime, against theory.

For N independent uniform tokens N |c_m(0)|^2 is exponentially distributed, so the time at which |c_m| of the dominant
mode m reaches a level has mean (ln z + (ln N + gamma) / 2) / lambda and standard deviation pi / (2 sqrt(6) lambda),
where z is the level's coordinate on the unstable manifold (see `spectral_mf.theory.exit_time`). Its slope in ln N is
1 / (2 lambda).

Runs in which another mode has clustered the density before the level is reached are counted apart: they have no exit
time by the dominant mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from spectral_mf import theory
from spectral_mf.arguments import integer_at_least
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.solvers.ensemble import first_passage_times

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

EXCESS_KURTOSIS = 2.4
"""Of the exit time: ln of an exponential variable is (minus) a Gumbel variable, whose excess kurtosis is 12/5."""


@dataclass(frozen=True)
class ExitTimeSample:
    """Exit times of replicates at several numbers of tokens.

    Attributes
    ----------
    model : Model
    level : float
        Level of |c_m|.
    n_tokens : ndarray of int64, shape (n,)
    times : tuple of n ndarrays of float64
        Exit times of the replicates in which the level was reached.
    lost : ndarray of int64, shape (n,)
        Replicates in which it was not, because another mode won.
    source : str
        "density" (the mean-field equation from sampled modes) or "tokens".
    """

    model: Model
    level: float
    n_tokens: NDArray[np.int64]
    times: tuple[FloatArray, ...]
    lost: NDArray[np.int64]
    source: str


@dataclass(frozen=True)
class Estimate:
    """A measured value beside theory's.

    Attributes
    ----------
    value, low, high : float
        Measured value and its confidence interval.
    theory : float
    """

    value: float
    low: float
    high: float
    theory: float

    @property
    def agrees(self) -> bool:
        """Whether the interval holds theory's value."""
        return self.low <= self.theory <= self.high

    @property
    def relative_half_width(self) -> float:
        """Half the interval, relative to theory."""
        return 0.5 * (self.high - self.low) / abs(self.theory)


@dataclass(frozen=True)
class ExitTimeVerdict:
    """Exit times against theory.

    Attributes
    ----------
    slope : Estimate
        Of the mean in ln N; theory 1 / (2 lambda).
    means : tuple of Estimate
        At each number of tokens.
    deviations : tuple of Estimate
        Standard deviations at each number of tokens.
    lost_share : ndarray of float64, shape (n,)
        Share of the replicates that another mode won.
    """

    slope: Estimate
    means: tuple[Estimate, ...]
    deviations: tuple[Estimate, ...]
    lost_share: FloatArray

    @property
    def agrees(self) -> bool:
        """Whether every interval holds theory's value."""
        return self.slope.agrees and all(estimate.agrees for estimate in (*self.means, *self.deviations))


def sampled_modes(n_tokens: int, n_modes: int, replicates: int, seed: np.random.SeedSequence) -> ComplexArray:
    """Moments of N independent uniform tokens in the Gaussian limit, whose error is O(1/N).

    Returns
    -------
    ndarray of complex128, shape (replicates, n_modes + 1)
        c_0 = 1; the others are independent complex normals with E|c_k|^2 = 1/N.
    """
    normal = np.random.default_rng(seed).standard_normal((replicates, n_modes, 2))
    moments = np.ones((replicates, n_modes + 1), dtype=np.complex128)
    moments[:, 1:] = (normal[..., 0] + 1j * normal[..., 1]) / math.sqrt(2.0 * n_tokens)
    return moments


def density_exit_times(
    model: Model,
    token_counts: Sequence[int],
    *,
    replicates: int,
    level: float = 0.3,
    n_modes: int | None = None,
    seed: int = 0,
    rtol: float = 1e-8,
) -> ExitTimeSample:
    """Exit times of the mean-field equation started from the sampled modes of N tokens.

    Parameters
    ----------
    model : Model
    token_counts : sequence of int
        Numbers N of tokens, each >= 2.
    replicates : int
        Replicates at each N.
    level : float
        Level of |c_m|, within reach of the unstable manifold's series.
    n_modes : int, optional
        Modes sampled; by default all that grow noticeably before the exit.
    seed : int
        Seed; every N has its own stream.
    rtol : float
        As for `solve`.

    Raises
    ------
    InputError
        If there are no replicates, fewer than 2 tokens, or the level is out of reach.
    """
    replicates = integer_at_least("replicates", replicates, 1)
    mode = theory.dominant_mode(model).mode
    kept = 2 * mode + 12 if n_modes is None else n_modes
    times, lost = [], []
    for n, stream in zip(token_counts, np.random.SeedSequence(seed).spawn(len(token_counts)), strict=True):
        predicted = theory.exit_time(model, n, level)
        t_end = predicted.mean + 40.0 * predicted.standard_deviation
        moments = sampled_modes(n, kept, replicates, stream)
        passed = first_passage_times(model, moments, mode, level, t_end=t_end, rtol=rtol)
        times.append(passed[np.isfinite(passed)])
        lost.append(int(np.isinf(passed).sum()))
    return ExitTimeSample(
        model, level, np.array(token_counts, dtype=np.int64), tuple(times), np.array(lost, dtype=np.int64), "density"
    )


def judge(sample: ExitTimeSample, *, confidence: float = 0.99, mean_confidence: float = 0.9973) -> ExitTimeVerdict:
    """Compare exit times with theory.

    Parameters
    ----------
    sample : ExitTimeSample
    confidence : float
        Of the intervals of the slope and of each standard deviation.
    mean_confidence : float
        Of the interval of each mean; 0.9973 is three standard errors.

    Raises
    ------
    InputError
        If a number of tokens has fewer than 3 exit times, or there are fewer than 2 numbers of tokens.
    """
    counts = np.array([t.size for t in sample.times])
    if counts.min() < 3 or counts.size < 2:
        raise InputError("a verdict needs at least 2 numbers of tokens with 3 exit times each; run more replicates.")
    expected = [theory.exit_time(sample.model, int(n), sample.level) for n in sample.n_tokens]
    z = float(stats.norm.ppf(0.5 + 0.5 * confidence))
    z_mean = float(stats.norm.ppf(0.5 + 0.5 * mean_confidence))
    means, deviations = [], []
    for t, prediction in zip(sample.times, expected, strict=True):
        error = float(t.std(ddof=1)) / math.sqrt(t.size)
        means.append(_estimate(float(t.mean()), z_mean * error, prediction.mean))
        spread = float(t.std(ddof=1))
        deviations.append(
            _estimate(
                spread,
                z * prediction.standard_deviation * math.sqrt((2.0 + EXCESS_KURTOSIS) / (4.0 * t.size)),
                prediction.standard_deviation,
            )
        )
    slope, error = _slope(sample)
    return ExitTimeVerdict(
        slope=_estimate(slope, z * error, 0.5 / expected[0].growth_rate),
        means=tuple(means),
        deviations=tuple(deviations),
        lost_share=sample.lost / (sample.lost + counts),
    )


def _slope(sample: ExitTimeSample) -> tuple[float, float]:
    """Least-squares slope of exit time in ln N over all replicates, and its standard error."""
    x = np.concatenate([np.full(t.size, math.log(n)) for n, t in zip(sample.n_tokens, sample.times, strict=True)])
    fit = stats.linregress(x, np.concatenate(sample.times))
    return float(fit.slope), float(fit.stderr)


def _estimate(value: float, half_width: float, expected: float) -> Estimate:
    return Estimate(value, value - half_width, value + half_width, expected)
