"""Exit times from the quasi-linear regime, from finitely many tokens, by two statistics.

- **moment**: the first time at which |c_m| of the dominant mode m reaches a level. N |c_m(0)|^2 is exponentially
  distributed, so theory knows its mean and its spread (`spectral_mf.theory.exit_time`).
- **histogram**, as published: the first time at which the total variation distance between a histogram of the tokens
  and the uniform one, (1/2) sum_i |n_i/N - 1/bins|, exceeds a threshold. It is biased: N tokens that are uniform have
  a total variation of sqrt((bins - 1) / (2 pi N)) already (3.97 / sqrt(N) for 100 bins), and every mode that grows
  adds to it. What is missing to the threshold is therefore smaller for small N, the crossing earlier, and the slope in
  ln N larger than 1 / (2 lambda), the slope of the dominant mode. `histogram_exit_time` predicts by how much.

Two kinds of runs are counted apart. In an **overtaken** run another mode was the first to reach the level: that mode
has won, and delays |c_m| even if |c_m| follows. A run is **lost** if |c_m| does not follow before another mode, no
multiple of m, has reached `LOST`: it has no exit time. (Tokens gather in one point in the end, so that |c_m| reaches
any level some day.) Overtaken runs are those with a small |c_m(0)|, the late ones: to leave them out of plain means and
deviations would bias those, so plain statistics leave out the lost runs only.

The start of a run is known exactly, and so is its mean: in t = r - ln|c_m(0)| / lambda the second term carries most of
the spread. Means and slopes of r over the runs that the dominant mode has won, with E ln|c_m(0)| = -(ln N + gamma) / 2
of all runs added, are the *controlled* ones (a control variate), with a fourth to a tenth of the error. In the theory r
is the same for all runs, so that the choice of runs does not matter to it; what it neglects, the pull of other modes,
is largest in the overtaken ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from spectral_mf import theory
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Snapshot
from spectral_mf.unstable_manifold import unstable_manifold
from spectral_mf.validation.crossings import smooth_rise
from spectral_mf.validation.exit_times import Estimate, ExitTimeSample, ExitTimeVerdict, judge
from spectral_mf.validation.fast_sums import token_moments
from spectral_mf.validation.histogram_exit import BINS, THRESHOLD, check_histogram, histogram_exit_time, total_variation
from spectral_mf.validation.replicates import replicate, sample_tokens
from spectral_mf.validation.token_march import march_particles

FloatArray = NDArray[np.float64]

LOST = 0.6
"""|c_j| of a mode j, no multiple of the dominant one, at which that mode has won."""

LARGEST_LEVEL = 0.5
"""Levels of |c_m| have to lie well below `LOST`."""

_SPACING = 0.5
"""Between rows near the exit, in units of 1 / lambda; a spline's error is about 2e-4 of that unit."""

_LEAD, _PATIENCE = 1.5, 40.0
"""Rows begin this many 1 / lambda before the exit predicted from c_m(0); a run ends at mean + this many deviations."""


@dataclass(frozen=True)
class TokenExit:
    """One run.

    Attributes
    ----------
    start : float
        |c_m(0)|.
    moment_time : float or None
        None if the run is lost.
    histogram_time : float or None
    first_mode : int or None
        Mode that is the first to reach the level.
    """

    start: float
    moment_time: float | None
    histogram_time: float | None
    first_mode: int | None


@dataclass(frozen=True)
class TokenExitTimes:
    """Exit times of replicates at several numbers of tokens.

    Attributes
    ----------
    model : Model
    level, threshold : float
        Of |c_m|, and of the histogram's total variation.
    bins : int
    n_tokens : ndarray of int64, shape (n,)
    runs : tuple of n tuples of TokenExit
    entropies : tuple of n ints
        Seeds of the replicates.
    failures : int
        Runs that broke off with an error; they are in none of the counts.
    """

    model: Model
    level: float
    threshold: float
    bins: int
    n_tokens: NDArray[np.int64]
    runs: tuple[tuple[TokenExit, ...], ...]
    entropies: tuple[int, ...]
    failures: int = 0

    @property
    def lost(self) -> NDArray[np.int64]:
        """Runs without an exit by the dominant mode; shape (n,)."""
        return np.array([sum(run.moment_time is None for run in runs) for runs in self.runs], dtype=np.int64)

    @property
    def overtaken(self) -> NDArray[np.int64]:
        """Runs in which another mode was the first to reach the level; shape (n,)."""
        mode = theory.dominant_mode(self.model).mode
        return np.array([sum(run.first_mode != mode for run in runs) for runs in self.runs], dtype=np.int64)

    def moment_sample(self) -> ExitTimeSample:
        """Crossings of |c_m|, for `spectral_mf.validation.exit_times.judge`."""
        times = [np.array([r.moment_time for r in runs if r.moment_time is not None]) for runs in self.runs]
        return ExitTimeSample(self.model, self.level, self.n_tokens, tuple(times), self.lost, "tokens")

    def histogram_times(self) -> tuple[FloatArray, ...]:
        """Crossings of the total variation, whichever mode wins."""
        return tuple(
            np.array([r.histogram_time for r in runs if r.histogram_time is not None], dtype=np.float64)
            for runs in self.runs
        )

    def residuals(self) -> tuple[FloatArray, ...]:
        """Residuals r = t + ln|c_m(0)| / lambda of the runs that the dominant mode won; theory has ln(z) / lambda."""
        dominant = theory.dominant_mode(self.model)
        won = (
            [run for run in runs if run.moment_time is not None and run.first_mode == dominant.mode]
            for runs in self.runs
        )
        return tuple(
            np.array(
                [run.moment_time + math.log(run.start) / dominant.rate for run in runs if run.moment_time is not None]
            )
            for runs in won
        )


@dataclass(frozen=True)
class TokenExitVerdict:
    """Exit times of tokens against theory.

    Attributes
    ----------
    plain : ExitTimeVerdict
        Of the moment's crossings as they are: slope, means, standard deviations.
    slope : Estimate
        Controlled slope of the moment's crossings in ln N; theory 1 / (2 lambda).
    means : tuple of Estimate
        Controlled means; theory (ln z + (ln N + gamma) / 2) / lambda.
    histogram_slope : Estimate
        Of the histogram's crossings, beside 1 / (2 lambda), which it is not.
    expected_histogram_slope : float
        With the sampling floor and the other modes (`histogram_exit_time`).
    lost_share, overtaken_share : ndarray of float64, shape (n,)
    """

    plain: ExitTimeVerdict
    slope: Estimate
    means: tuple[Estimate, ...]
    histogram_slope: Estimate
    expected_histogram_slope: float
    lost_share: FloatArray
    overtaken_share: FloatArray

    @property
    def agrees(self) -> bool:
        """Whether the controlled slope and means and the plain standard deviations agree with theory."""
        return self.slope.agrees and all(e.agrees for e in (*self.means, *self.plain.deviations))


def token_exit_times(
    model: Model,
    token_counts: Sequence[int],
    *,
    replicates: int | Sequence[int],
    level: float = 0.3,
    threshold: float = THRESHOLD,
    bins: int = BINS,
    seed: int = 0,
    n_jobs: int = 1,
    rtol: float = 1e-5,
) -> TokenExitTimes:
    """Run random tokens until they have left the quasi-linear regime.

    Parameters
    ----------
    model : Model
        Unstable, without diffusion.
    token_counts : sequence of int
        Numbers N >= 2 of tokens.
    replicates : int or sequence of int
        At each N, >= 1; the large ones need fewer.
    level : float
        Of |c_m|, at most 0.5 and within reach of the unstable manifold's series.
    threshold : float
        Of the total variation.
    bins : int
        Of the histogram, >= 2.
    seed, n_jobs
        As for `replicate`; every N has its own streams.
    rtol : float
        As for `simulate`; 1e-5 makes an error of 1e-7 in |c_m|.

    Raises
    ------
    InputError
        If there are no tokens or replicates, or a level is not allowed.
    """
    counts = [replicates] * len(token_counts) if isinstance(replicates, int) else list(replicates)
    if not counts or len(counts) != len(token_counts):
        raise InputError(f"{len(counts)} numbers of replicates for {len(token_counts)} of tokens; give one for each.")
    if not level <= LARGEST_LEVEL:
        raise InputError(f"level = {level!r} is not allowed; give a value of |c_m| from 0 to {LARGEST_LEVEL:g}.")
    check_histogram(threshold, bins)
    predicted = [theory.exit_time(model, n, level) for n in token_counts]
    seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(len(token_counts), np.uint64)]
    series = unstable_manifold(model, predicted[0].mode, 64)
    work = partial(
        _exit, model=model, mode=predicted[0].mode, level=level, threshold=threshold, bins=bins, rtol=rtol,
        z=series.z_of_level(level),
    )  # fmt: skip
    done = [
        replicate(partial(work, n_tokens=n, t_end=p.mean + _PATIENCE * p.standard_deviation), r, seed=s, n_jobs=n_jobs)
        for n, p, r, s in zip(token_counts, predicted, counts, seeds, strict=True)
    ]
    return TokenExitTimes(
        model=model,
        level=level,
        threshold=threshold,
        bins=bins,
        n_tokens=np.array(token_counts, dtype=np.int64),
        runs=tuple(tuple(each.results) for each in done),
        entropies=tuple(seeds),
        failures=sum(len(each.failures) for each in done),
    )


def judge_tokens(
    times: TokenExitTimes, *, confidence: float = 0.99, mean_confidence: float = 0.9973
) -> TokenExitVerdict:
    """Compare exit times of tokens with theory.

    Parameters
    ----------
    times : TokenExitTimes
    confidence : float
        Of the intervals of slopes and standard deviations.
    mean_confidence : float
        Of the interval of each mean; 0.9973 is three standard errors.

    Raises
    ------
    InputError
        If a number of tokens has fewer than 3 runs that the dominant mode won, or there are fewer than 2 numbers.
    """
    residuals = times.residuals()
    if min(r.size for r in residuals) < 3:
        raise InputError("a verdict needs 3 runs that the dominant mode won at each N; run more replicates.")
    plain = judge(times.moment_sample(), confidence=confidence, mean_confidence=mean_confidence)
    predicted = [theory.exit_time(times.model, int(n), times.level) for n in times.n_tokens]
    rate = predicted[0].growth_rate
    z = float(stats.norm.ppf(0.5 + 0.5 * confidence))
    z_mean = float(stats.norm.ppf(0.5 + 0.5 * mean_confidence))
    means = tuple(
        _estimate(
            float(r.mean()) + 0.5 * (math.log(n) + float(np.euler_gamma)) / rate,
            z_mean * float(r.std(ddof=1)) / math.sqrt(r.size),
            p.mean,
        )
        for n, r, p in zip(times.n_tokens, residuals, predicted, strict=True)
    )
    histogram = times.histogram_times()
    excess, error = _slope(times.n_tokens, residuals)
    biased, biased_error = _slope(times.n_tokens, histogram)
    expected = [histogram_exit_time(times.model, int(n), times.threshold, times.bins) for n in times.n_tokens]
    total = np.array([len(runs) for runs in times.runs])
    return TokenExitVerdict(
        plain=plain,
        slope=_estimate(0.5 / rate + excess, z * error, 0.5 / rate),
        means=means,
        histogram_slope=_estimate(biased, z * biased_error, 0.5 / rate),
        expected_histogram_slope=_weighted_slope(times.n_tokens, expected, [h.size for h in histogram]),
        lost_share=times.lost / total,
        overtaken_share=times.overtaken / total,
    )


def _exit(
    seed: np.random.SeedSequence,
    *,
    model: Model,
    mode: int,
    n_tokens: int,
    level: float,
    z: float,
    threshold: float,
    bins: int,
    rtol: float,
    t_end: float,
) -> TokenExit:
    """Follow one sample of tokens until both statistics have crossed, or another mode has won."""
    tokens = sample_tokens(n_tokens, seed)
    rate = float(model.growth_rate(mode))
    n_modes = max(model.bandwidth, mode)
    others = np.array([k for k in range(1, n_modes + 1) if k % mode])
    t = [0.0]
    sizes = [np.abs(token_moments(tokens.angles, tokens.weights, n_modes))]
    variations = [total_variation(tokens, bins)]
    guess = math.log(z / sizes[0][mode]) / rate
    first = max(guess - _LEAD / rate, _SPACING / rate)
    times = np.arange(first, max(t_end, first) + _SPACING / rate, _SPACING / rate)
    start = Snapshot(0.0, tokens, "particles", n_tokens)
    for snapshot in march_particles(model, start, times, MarchOptions(rtol=rtol)):
        reached = max(size[mode] for size in sizes) >= level
        lost = not reached and max(size[others].max() for size in sizes) >= LOST
        if (reached or lost) and max(variations) >= threshold:
            break
        t.append(snapshot.t)
        sizes.append(np.abs(token_moments(snapshot.measure.angles, snapshot.measure.weights, n_modes)))  # type: ignore[attr-defined]
        variations.append(total_variation(snapshot.measure, bins))
    curves, axis = np.array(sizes), np.array(t)
    moment_time, first_mode = moment_exit(axis, curves, mode, level)
    return TokenExit(
        start=float(curves[0, mode]),
        moment_time=moment_time,
        histogram_time=smooth_rise(axis, np.array(variations), threshold),
        first_mode=first_mode,
    )


def moment_exit(t: FloatArray, sizes: FloatArray, mode: int, level: float) -> tuple[float | None, int | None]:
    """Exit time of a mode, None if another has reached `LOST` before; and the mode that first reached the level.

    Parameters
    ----------
    t : ndarray of float64, shape (n_times,)
    sizes : ndarray of float64, shape (n_times, K + 1)
        |c_0| .. |c_K|, K >= mode.
    mode : int
    level : float
    """
    modes = range(1, sizes.shape[1])
    crossings = {k: time for k in modes if (time := smooth_rise(t, sizes[:, k], level)) is not None}
    first = min(crossings, key=lambda k: crossings[k], default=None)
    lost = [smooth_rise(t, sizes[:, k], LOST) for k in modes if k % mode]
    mine = crossings.get(mode)
    if mine is not None and any(time is not None and time < mine for time in lost):
        mine = None
    return mine, first


def _slope(n_tokens: NDArray[np.int64], values: Sequence[FloatArray]) -> tuple[float, float]:
    """Least-squares slope in ln N over all replicates, and its standard error from the scatter at each N."""
    x = np.log(n_tokens)
    sizes = np.array([v.size for v in values], dtype=np.float64)
    lever = sizes * (x - np.average(x, weights=sizes))
    lever = lever / (lever @ x)
    means = np.array([v.mean() for v in values])
    variances = np.array([v.var(ddof=1) for v in values])
    return float(lever @ means), math.sqrt(float((lever**2 * variances / sizes).sum()))


def _weighted_slope(n_tokens: NDArray[np.int64], means: Sequence[float], sizes: Sequence[int]) -> float:
    return float(np.polyfit(np.log(n_tokens), means, 1, w=np.sqrt(sizes))[0])


def _estimate(value: float, half_width: float, expected: float) -> Estimate:
    return Estimate(value, value - half_width, value + half_width, expected)
