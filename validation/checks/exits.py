"""Exit times from the linear phase: a mean that is linear in ln N, and what a histogram makes of it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from spectral_mf import SelfAttention
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.checks.quasilinear import crossing_times
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, colours, legend, panel
from spectral_mf.validation.exit_times import EXCESS_KURTOSIS, density_exit_times
from spectral_mf.validation.findings import Finding, Picture, at_least, at_most, deviate, standard_errors, within
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import sample_tokens

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
    model = SelfAttention(p.beta, "none")
    times = np.linspace(0.0, p.t_end, p.rows)
    crossed, binned, floors, lost = [], [], [], 0
    comparisons = []
    for n, stream in zip(p.sizes, np.random.SeedSequence(p.seed).spawn(len(p.sizes)), strict=True):
        by_mode, by_histogram, floor = [], [], []
        for seed in stream.spawn(p.replicates):
            run = simulate(
                model, sample_tokens(n, seed), times, rtol=1e-6, n_modes=2 * m, n_cells=100, keep_states=False
            )
            variation = 0.5 * np.abs(run.cells * (2.0 * np.pi) - 1.0).mean(axis=1)
            floor.append(float(variation[0]))
            size = np.abs(run.moments[:, m])
            end = 1 + int(np.argmax(size >= p.level))
            first = int(np.argmax(variation >= p.threshold))
            if end == 1 or first == 0:
                lost += 1
                continue
            by_mode.append(float(crossing_times(run.t[: end + 1], size[: end + 1], p.level)[0]))
            by_histogram.append(
                float(np.interp(p.threshold, variation[first - 1 : first + 1], times[first - 1 : first + 1]))
            )
        crossed.append(np.array(by_mode))
        binned.append(np.array(by_histogram))
        floors.append(float(np.mean(floor)))
        expected = 50.0 * math.sqrt(2.0 / math.pi * 0.01 * 0.99 / n)
        comparisons.append(
            within(f"distance of the histogram at t = 0, N = {n:,}", floors[-1], expected, relative=p.floor_tolerance)
        )
    x = np.concatenate([np.full(t.size, math.log(n)) for n, t in zip(p.sizes, crossed, strict=True)])
    by_mode_fit = stats.linregress(x, rate * np.concatenate(crossed))
    excess = stats.linregress(x, rate * (np.concatenate(binned) - np.concatenate(crossed)))
    number = deviate(p.false_alarm)
    comparisons += [
        standard_errors(f"λ × slope of the crossing of |c_{m}|", by_mode_fit.slope, 0.5, by_mode_fit.stderr, number),
        at_least(
            "λ × excess of the histogram's slope, in standard errors", excess.slope / excess.stderr, p.least_excess
        ),
    ]
    with panel() as (figure, ax):
        for values, name, colour in zip((crossed, binned), (f"|c_{m}|", "histogram"), colours(2), strict=True):
            means = [rate * t.mean() for t in values]
            errors = [rate * t.std(ddof=1) / math.sqrt(t.size) for t in values]
            ax.errorbar(p.sizes, means, errors, fmt="o", capsize=3.0, color=colour, label=name)
        start = math.log(closed_forms.manifold_coordinate("none", p.beta, p.level)) + 0.5 * np.euler_gamma
        ax.plot(p.sizes, start + 0.5 * np.log(p.sizes), **THEORY, label="theory")
        ax.set_xscale("log")
        ax.set_xlabel("number of tokens N")
        ax.set_ylabel("λ × mean exit time")
        ax.set_title(f"Exit times of tokens, USA, β = {p.beta:g}")
        legend(ax)
    return Finding(
        f"λ times the slope is {by_mode_fit.slope:.3f} by |c_{m}| and {by_mode_fit.slope + excess.slope:.3f} by the "
        f"histogram, whose floor of sampling noise is not small against its threshold; {lost} runs were lost to "
        "another mode.",
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
