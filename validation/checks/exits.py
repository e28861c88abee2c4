"""Exit times from the linear phase: a mean that is linear in ln N, and what a histogram makes of it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from spectral_mf import SelfAttention
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, colours, legend, panel
from spectral_mf.validation.exit_times import EXCESS_KURTOSIS, density_exit_times
from spectral_mf.validation.findings import Finding, Picture, at_least, at_most, deviate, standard_errors, within
from spectral_mf.validation.histogram_exit import total_variation
from spectral_mf.validation.replicates import sample_tokens
from spectral_mf.validation.token_exit_times import token_exit_times

FloatArray = NDArray[np.float64]

_SD = math.pi / (2.0 * math.sqrt(6.0))
"""Standard deviation of ln |c_m(0)|: N |c_m(0)|^2 has the law Exp(1)."""


def density_exits(p: Parameters) -> Finding:
    """Mean, slope and scatter of exit times of the density's equation from sampled modes."""
    rate = float(closed_forms.growth_rate(p.normalization, p.beta, closed_forms.dominant_mode(p.beta)))
    start = math.log(closed_forms.manifold_coordinate(p.normalization, p.beta, p.level)) + 0.5 * np.euler_gamma
    sample = density_exit_times(
        SelfAttention(p.beta, p.normalization), p.sizes, replicates=p.replicates, level=p.level, seed=p.seed
    )
    comparisons = []
    number = deviate(p.false_alarm, 1)
    for n, t, lost in zip(p.sizes, sample.times, sample.lost, strict=True):
        spread = float(t.std(ddof=1))
        comparisons += [
            standard_errors(
                f"λ × mean exit time, N = {n:,}",
                rate * t.mean(),
                start + 0.5 * math.log(n),
                rate * spread / math.sqrt(t.size),
                3.0,
            ),
            standard_errors(
                f"λ × standard deviation, N = {n:,}",
                rate * spread,
                _SD,
                _SD * math.sqrt((2.0 + EXCESS_KURTOSIS) / (4.0 * t.size)),
                number,
            ),
            at_most(f"share of runs lost to another mode, N = {n:,}", lost / p.replicates, p.lost, predicted=0.0),
        ]
    x = np.concatenate([np.full(t.size, math.log(n)) for n, t in zip(p.sizes, sample.times, strict=True)])
    fit = stats.linregress(x, rate * np.concatenate(sample.times))
    comparisons += [
        standard_errors("λ × slope in ln N", fit.slope, 0.5, fit.stderr, number),
        at_most(
            "half-width of the slope's interval, relative",
            number * fit.stderr / 0.5,
            p.precision,
            predicted=0.0,
        ),
    ]
    with panel() as (figure, ax):
        means = [rate * t.mean() for t in sample.times]
        ax.errorbar(p.sizes, means, [rate * t.std() for t in sample.times], fmt="o", capsize=3.0, color=colours(2)[0])
        ax.plot(p.sizes, start + 0.5 * np.log(p.sizes), **THEORY)
        ax.set_xscale("log")
        ax.set_xlabel("number of tokens N")
        ax.set_ylabel("λ × exit time")
        ax.set_title(f"Mean (dots, ± deviation) and theory, β = {p.beta:g}")
    return Finding(
        f"λ times the slope is {fit.slope:.4f} ± {fit.stderr:.4f}; {int(sample.lost.sum())} of "
        f"{p.replicates * len(p.sizes)} runs were lost to another mode and are counted apart.",
        comparisons,
        [
            Picture(
                "times",
                figure,
                "Exit time against N, on a logarithmic axis, with error bars: a straight line.",
                f"Crossing of |c_m| = {p.level:g}, m = k_max; {p.replicates} replicates at each N.",
            )
        ],
    )


def token_exits(p: Parameters) -> Finding:
    """Exit times of tokens are linear in ln N; a histogram's distance to uniform makes the slope too large."""
    m = closed_forms.dominant_mode(p.beta)
    rate = float(closed_forms.growth_rate("none", p.beta, m))
    z = closed_forms.manifold_coordinate("none", p.beta, p.level)
    times = token_exit_times(
        SelfAttention(p.beta, "none"),
        p.sizes,
        replicates=p.replicates,
        level=p.level,
        threshold=p.threshold,
        seed=p.seed,
    )
    crossed, residuals, binned, lost = [], [], [], 0
    for runs in times.runs:
        won = [run for run in runs if run.moment_time is not None and run.first_mode == m and run.histogram_time]
        lost += len(runs) - len(won)
        crossed.append(rate * np.array([run.moment_time for run in won]))
        # Without the part that the size of the start explains, what is left has a scatter ten times smaller.
        residuals.append(crossed[-1] + np.log([run.start for run in won]) - math.log(z))
        binned.append(rate * np.array([run.histogram_time for run in won]))
    x = np.concatenate([np.full(t.size, math.log(n)) for n, t in zip(p.sizes, crossed, strict=True)])
    plain = stats.linregress(x, np.concatenate(crossed))
    controlled = stats.linregress(x, np.concatenate(residuals))
    excess = stats.linregress(x, np.concatenate(binned) - np.concatenate(crossed))
    number = deviate(p.false_alarm)
    comparisons = [
        standard_errors(f"λ × slope of the crossing of |c_{m}|", plain.slope, 0.5, plain.stderr, number),
        standard_errors("the same, given |c_m(0)| of each run", 0.5 + controlled.slope, 0.5, controlled.stderr, number),
        at_most("share of runs lost to another mode", lost / (len(p.sizes) * p.replicates), p.lost, predicted=0.0),
        at_least(
            "λ × excess of the histogram's slope, in standard errors", excess.slope / excess.stderr, p.least_excess
        ),
    ]
    for n, stream in zip(p.sizes, np.random.SeedSequence(p.seed).spawn(len(p.sizes)), strict=True):
        floor = float(np.mean([total_variation(sample_tokens(n, seed)) for seed in stream.spawn(p.floor_samples)]))
        expected = 50.0 * math.sqrt(2.0 / math.pi * 0.01 * 0.99 / n)
        comparisons.append(
            within(f"distance of the histogram at t = 0, N = {n:,}", floor, expected, relative=p.floor_tolerance)
        )
    with panel() as (figure, ax):
        for values, name, colour in zip((crossed, binned), (f"$|c_{m}|$", "histogram"), colours(2), strict=True):
            means = [t.mean() for t in values]
            errors = [t.std(ddof=1) / math.sqrt(t.size) for t in values]
            ax.errorbar(p.sizes, means, errors, fmt="o", capsize=3.0, color=colour, label=name)
        ax.plot(p.sizes, math.log(z) + 0.5 * np.euler_gamma + 0.5 * np.log(p.sizes), **THEORY, label="theory")
        ax.set_xscale("log")
        ax.set_xlabel("number of tokens N")
        ax.set_ylabel("λ × mean exit time")
        ax.set_title(f"Exit times of tokens, USA, β = {p.beta:g}")
        legend(ax)
    return Finding(
        f"λ times the slope is {0.5 + controlled.slope:.4f} by |c_{m}| and {plain.slope + excess.slope:.3f} by the "
        f"histogram, whose floor of sampling noise is not small against its threshold; {lost} of "
        f"{len(p.sizes) * p.replicates} runs were lost to another mode.",
        comparisons,
        [
            Picture(
                "times",
                figure,
                "Mean exit times of tokens against N for two statistics, with theory's line.",
                f"Crossing of {p.level:g}, and total variation of a histogram of 100 bins beyond {p.threshold:g}.",
            )
        ],
    )
