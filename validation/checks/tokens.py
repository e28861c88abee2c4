"""Finitely many tokens: how they start, how their modes grow, and how far they follow the density's equation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from spectral_mf import Atoms, FourierDensity, SelfAttention
from spectral_mf.data import reference
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.compare import paired_run
from spectral_mf.validation.drawing import THEORY, accent, colours, legend, panel
from spectral_mf.validation.findings import Comparison, Finding, Picture, at_most, deviate, standard_errors, within
from spectral_mf.validation.fluctuations import h_minus_one
from spectral_mf.validation.growth import measure_growth
from spectral_mf.validation.replicates import sample_tokens
from spectral_mf.validation.sphere_particles import planted_growth_rate

FloatArray = NDArray[np.float64]


def growth_rates(p: Parameters) -> Finding:
    """Each mode of random tokens grows at its rate, but for noise."""
    modes = np.arange(1, p.largest_mode + 1)
    measured = measure_growth(
        SelfAttention(p.beta),
        n_tokens=p.n_tokens,
        replicates=p.replicates,
        modes=modes.tolist(),
        seed=p.seed,
    )
    expected = closed_forms.growth_rate("softmax", p.beta, modes)
    comparisons = []
    for k, rate, error, prediction in zip(modes, measured.rates, measured.standard_errors, expected, strict=True):
        comparisons += [
            standard_errors(f"λ_{k}", rate, prediction, error, p.standard_errors),
            at_most(f"standard error of λ_{k} / λ_{k}", error / prediction, p.precision, predicted=0.0),
        ]
    # As normal deviates: the errors are estimated from few replicates, so that ratios to them have Student's law.
    ratios = np.abs((measured.rates - expected) / measured.standard_errors)
    deviates = stats.norm.isf(stats.t.sf(ratios, p.replicates - 1))
    limit = float(stats.chi2.isf(p.false_alarm, modes.size))
    comparisons.append(at_most("χ² of all rates together", (deviates**2).sum(), limit, predicted=0.0))
    with panel() as (figure, ax):
        ax.axhline(0.0, **THEORY)
        bars = 3.0 * 100.0 * measured.standard_errors / expected
        ax.errorbar(modes, 100.0 * (measured.rates / expected - 1.0), bars, fmt="o", color=accent(), capsize=3.0)
        ax.set_xlabel("mode k")
        ax.set_ylabel("measured / theory - 1 (%)")
        ax.set_title("Growth rates from tokens, 3 standard errors")
    return Finding(
        f"{p.replicates} replicates of {p.n_tokens:,} tokens; the largest deviation is "
        f"{ratios.max():.2g} standard errors.",
        comparisons,
        [
            Picture(
                "rates",
                figure,
                "Relative deviation of measured growth rates with error bars, about zero.",
                f"SA, β = {p.beta:g}, {p.replicates} replicates of {p.n_tokens:,} tokens.",
            )
        ],
    )


def initial_fluctuations(p: Parameters) -> Finding:
    """W1 to the uniform density and the H^-1 norm of N random tokens scale as N^(-1/2)."""
    k = np.arange(1, p.n_modes + 1)
    uniform = FourierDensity.uniform()
    distance, power = np.empty((len(p.sizes), p.replicates)), np.empty((len(p.sizes), p.replicates))
    streams = np.random.SeedSequence(p.seed).spawn(len(p.sizes))
    for i, (n, stream) in enumerate(zip(p.sizes, streams, strict=True)):
        for r, seed in enumerate(stream.spawn(p.replicates)):
            tokens = sample_tokens(n, seed)
            distance[i, r] = tokens.w1(uniform)
            power[i, r] = h_minus_one(tokens.moments(p.n_modes)) ** 2
    expected = float(2.0 * (1.0 / (1.0 + k**2)).sum())
    number = deviate(p.false_alarm, 2 + len(p.sizes))
    comparisons = [
        _slope(f"d ln W_1 / d ln N, N = {p.sizes[0]:,} to {p.sizes[-1]:,}", p.sizes, np.log(distance), -0.5, number),
        _slope("d ln ‖ρ‖ / d ln N", p.sizes, 0.5 * np.log(power), -0.5, number),
    ]
    for n, values in zip(p.sizes, power, strict=True):
        error = n * float(values.std(ddof=1)) / math.sqrt(values.size)
        comparisons.append(standard_errors(f"N E‖ρ‖², N = {n:,}", n * values.mean(), expected, error, number))
    with panel() as (figure, ax):
        for values, name, colour in zip((distance, np.sqrt(power)), ("W_1", "H^{-1}"), colours(2), strict=True):
            ax.plot(p.sizes, values.mean(axis=1), "o", color=colour, markersize=4.5, label=f"${name}$, mean")
            ax.plot(p.sizes, values[0].mean() * (np.array(p.sizes) / p.sizes[0]) ** -0.5, **THEORY)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("number of tokens N")
        ax.set_ylabel("distance to uniform")
        ax.set_title("Random tokens (dots), slope -1/2 (dashed)")
        legend(ax)
    return Finding(
        f"{p.replicates} replicates at each N; modes up to {p.n_modes} enter the norm, and the prediction.",
        comparisons,
        [
            Picture(
                "scaling",
                figure,
                "W1 and the H^-1 norm against N on logarithmic axes, both falling with slope -1/2.",
                "Means over replicates. With all modes N E‖ρ‖² is π coth π - 1 = 2.153.",
            )
        ],
    )


def _slope(name: str, sizes: list[int], logs: FloatArray, expected: float, number: float) -> Comparison:
    """Slope of the mean of logarithms in ln N, with its standard error from the scatter of replicates."""
    x = np.log(sizes)
    lever = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    error = math.sqrt(float((lever**2 * logs.var(axis=1, ddof=1) / logs.shape[1]).sum()))
    return standard_errors(name, float(lever @ logs.mean(axis=1)), expected, error, number)


def w1_closed_forms(p: Parameters) -> Finding:
    """W1 on the circle agrees with what can be computed by hand."""
    uniform = FourierDensity.uniform()
    comparisons = []
    for kappa in p.kappas:
        density = FourierDensity.von_mises(kappa)
        expected = closed_forms.w1_uniform_von_mises(kappa)
        comparisons.append(
            within(f"uniform, von Mises κ = {kappa:g}", density.w1(uniform), expected, absolute=p.tolerance)
        )
        for angle in p.angles:
            expected = closed_forms.w1_rotated_von_mises(kappa, angle)
            measured = density.w1(FourierDensity.von_mises(kappa, angle))
            name = f"von Mises κ = {kappa:g}, the same rotated by {angle:.4g}"
            comparisons.append(within(name, measured, expected, absolute=p.tolerance))
    for k in p.clusters:
        clusters = Atoms(0.3 + 2.0 * np.pi * np.arange(k) / k)
        name = f"uniform, {k} equal point mass{'es' if k > 1 else ''}"
        comparisons.append(within(name, clusters.w1(uniform), math.pi / (2 * k), absolute=p.tolerance))
    for turn in (0.0, 0.05, 0.3, 0.77):
        one, other = (Atoms(2.0 * np.pi * (np.array(x) + turn)) for x in (p.one, p.other))
        name = f"two samples of four, rotated by {turn:g} turns"
        comparisons.append(within(name, one.w1(other), 2.0 * np.pi * 0.12, absolute=p.tolerance))
    error = max(abs(entry.measured - entry.predicted) for entry in comparisons)
    return Finding(f"{len(comparisons)} distances; the largest error is {error:.1g}.", comparisons)


def paired_runs(p: Parameters) -> Finding:
    """Tokens and the density's equation, started from the same first modes, stay together; the closer, the larger N."""
    model = SelfAttention(p.beta)
    times = np.linspace(0.0, p.t_end, p.rows)
    comparisons, largest = [], []
    streams = np.random.SeedSequence(p.seed).spawn(len(p.sizes))
    with panel() as (figure, ax):
        for n, stream, colour in zip(p.sizes, streams, colours(len(p.sizes)), strict=True):
            gaps = []
            for seed in stream.spawn(p.replicates):
                run = paired_run(model, sample_tokens(n, seed), times, stored_modes=p.largest_mode, keep_states=False)
                gaps.append(run.moment_differences(p.largest_mode).max(axis=1))
            largest.append(float(np.median(np.max(gaps, axis=1))))
            ax.plot(times, np.median(gaps, axis=0), color=colour, label=f"N = {n:,}")
            if n == p.judged_size:
                name = f"largest |c_k(PDE) - c_k(tokens)|, k ≤ {p.largest_mode}, t ≤ {p.t_end:g}, N = {n:,}"
                comparisons.append(at_most(name, np.max(gaps), p.tolerance, predicted=0.0))
        ax.set_yscale("log")
        ax.set_ylim(bottom=1e-8)
        ax.set_xlabel("time t")
        ax.set_ylabel("largest difference of a moment")
        ax.set_title("PDE against tokens from the same modes")
        legend(ax)
    for i in range(1, len(p.sizes)):
        name = f"difference at N = {p.sizes[i]:,} / at N = {p.sizes[i - 1]:,}"
        comparisons.append(at_most(name, largest[i] / largest[i - 1], 1.0, rule="< 1"))
    slope = float(np.polyfit(np.log(p.sizes), np.log(largest), 1)[0])
    return Finding(
        f"Medians of {p.replicates} replicates; the difference falls like N^({slope:.2f}).",
        comparisons,
        [
            Picture(
                "difference",
                figure,
                "Largest difference of the first moments between density and tokens against time, for several N.",
                f"SA, β = {p.beta:g}; the modes that the kernel sees, of each sample, start the density.",
            )
        ],
    )


def sphere_growth_rates(p: Parameters) -> Finding:
    """On S^(d-1) harmonics of degree l grow at l (l + d - 2) times the kernel's Gegenbauer eigenvalue."""
    table = {(row["beta"], row["normalization"], row["d"]): row["rates"] for row in reference("linear_theory")["rows"]}
    comparisons = []
    with panel() as (figure, ax):
        for dimension, colour in zip(p.dimensions, colours(len(p.dimensions)), strict=True):
            for normalization, name in (("softmax", "SA"), ("none", "USA")):
                expected = {
                    degree: float(table[f"{p.beta:g}", normalization, dimension][str(degree)]) for degree in p.degrees
                }
                model = SelfAttention(p.beta, normalization)
                rates = [planted_growth_rate(model, degree, dimension) for degree in p.degrees]
                comparisons += [
                    within(
                        f"degree {degree}, d = {dimension}, {name}",
                        rate,
                        expected[degree],
                        absolute=p.tolerance * max(expected.values()),
                    )
                    for degree, rate in zip(p.degrees, rates, strict=True)
                ]
                if name == "SA":
                    ax.plot(p.degrees, rates, "o", color=colour, markersize=5.0, label=f"d = {dimension}")
                    ax.plot(p.degrees, list(expected.values()), color=colour, linewidth=0.8)
        ax.set_xlabel("degree l")
        ax.set_ylabel("growth rate")
        ax.set_title(f"Spheres, SA, β = {p.beta:g}: tokens (dots), theory (lines)")
        legend(ax)
    return Finding(
        "Rates were measured by pairwise sums over tokens that carry a small harmonic of one degree.",
        comparisons,
        [
            Picture(
                "degrees",
                figure,
                "Growth rate against degree for d = 3 and 8, dots on lines.",
                "Tokens at the nodes of a quadrature on the sphere, weighted by 1 + εP_l.",
            )
        ],
    )
