"""How times and distances scale as β grows, alone or with the number of tokens, and how fast one cluster forms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectral_mf import Atoms, AttentionHead, FourierDensity, MultiHeadAttention, SelfAttention, solve
from spectral_mf.initial_state import smooth
from spectral_mf.validation.checks import scaling_laws as laws
from spectral_mf.validation.checks.quasilinear import MODELS
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.crossings import first_fall, first_rise, smooth_rise
from spectral_mf.validation.drawing import THEORY, accent, colours, legend, panel
from spectral_mf.validation.findings import Comparison, Finding, Picture, within

FloatArray = NDArray[np.float64]


def single_cluster_rates(p: Parameters) -> Finding:
    """1 - |c_1| decays exponentially, at one rate for tokens and at another for a density."""
    comparisons = []
    starts = {
        "density": FourierDensity.from_modes({1: 0.3, 2: 0.1j}),
        "tokens": Atoms.sample_uniform(p.n_tokens, p.seed),
    }
    times = np.linspace(0.0, p.t_end, p.rows)
    with panel() as (figure, ax):
        for beta in p.betas:
            for normalization, name in MODELS:
                for start, measure in starts.items():
                    method = "auto" if start == "density" else "characteristics"
                    run = solve(SelfAttention(beta, normalization), measure, times, method=method, n_modes=2)
                    lost = 1.0 - np.abs(run.moments[:, 1])
                    high, low = laws.WINDOWS[start]
                    bend = high * (math.exp(2.0 * beta) if start == "density" else p.n_tokens)
                    expected = laws.single_cluster_rate(normalization, beta, points=start == "tokens")
                    measured = laws.decay_rate(run.t, lost, high, low)
                    comparisons.append(within(f"{name}, {start}, β = {beta:g}", measured, expected, relative=bend))
                    if beta == p.betas[-1]:
                        ax.semilogy(run.t, np.maximum(lost, 1e-16), label=f"{name}, {start}")
        ax.set_ylim(1e-13, 1e6)
        ax.set_xlabel("time t")
        ax.set_ylabel("1 - |$c_1$|")
        ax.set_title(f"To one cluster, β = {p.betas[-1]:g}")
        legend(ax, ncols=2)
    return Finding(
        "Tokens gather at the rate of the attraction to the cluster; a density at the rate of leaving its opposite.",
        comparisons,
        [
            Picture(
                "decay",
                figure,
                "Four straight lines of 1 - |c_1| against time on a logarithmic scale, tokens steeper than densities.",
                f"From a perturbed uniform density, and from {p.n_tokens} tokens.",
            )
        ],
    )


def three_phases(p: Parameters) -> Finding:
    """Times of order 1, β and e^{cβ}; what finite β adds to the first two falls like 1/β."""
    identity, betas = np.eye(2), np.array(p.betas)
    limit = laws.aligned_moment(p.large, p.small, p.fast_time)
    fast, heat = [], []
    start = FourierDensity.from_modes({1: 0.3, 2: 0.1 + 0.1j, 3: 0.02})
    for beta in p.betas:
        align = MultiHeadAttention([AttentionHead(np.diag([p.large, p.small]), identity, beta)])
        run = solve(align, FourierDensity.uniform(), [0.0, p.fast_time], rtol=1e-9, n_modes=2)
        fast.append(float(run.moments[1, 2].real) - limit)
        diffuse = MultiHeadAttention([AttentionHead(identity, -identity, beta)])
        run = solve(diffuse, start, [0.0, p.heat_time * beta], method="spectral", rtol=1e-9, n_modes=2)
        heat.append(complex(run.moments[1, 2]) - (0.1 + 0.1j) * math.exp(-4.0 * p.heat_time))
    curvature = (p.curvature / betas[-3]) ** 2
    comparisons = [
        within(f"exponent of β in |c_2 - limit|, {name}", laws.limit_exponent(betas, np.abs(sizes)), -1.0,
               absolute=curvature)
        for name, sizes in (("fast, t = O(1)", fast), ("intermediate, t = O(β)", heat))
    ]  # fmt: skip
    lifetimes = [_lifetime(beta, 0.5, p.angle) for beta in p.slow_betas]
    expected = [laws.pair_lifetime(beta, 0.5, p.angle) for beta in p.slow_betas]
    for beta, measured, predicted in zip(p.slow_betas, lifetimes, expected, strict=True):
        comparisons.append(
            within(f"ln of the lifetime of two clusters, slow, β = {beta:g}",
                   math.log(measured), math.log(predicted), absolute=p.slow_tolerance)
        )  # fmt: skip
    with panel(rows=2) as (figure, (upper, lower)):
        upper.loglog(betas, np.abs(fast), "o-", color=accent(), label="fast: transport")
        upper.loglog(betas, np.abs(heat), "s-", color=accent(), label="intermediate: heat equation")
        upper.loglog(betas, abs(fast[-1]) * betas[-1] / betas, **THEORY, label="1/β")
        upper.set_xlabel("β")
        upper.set_ylabel("|$c_2$ - limit|")
        upper.set_title("What finite β adds")
        legend(upper)
        lower.semilogy(p.slow_betas, lifetimes, "o", color=accent(), label="measured")
        lower.semilogy(p.slow_betas, expected, **THEORY, label="theory")
        lower.set_xlabel("β")
        lower.set_ylabel("lifetime")
        lower.set_title(f"Slow: two clusters {p.angle:.3g} rad apart")
        legend(lower)
    slope = math.log(lifetimes[-1] / lifetimes[-2]) / (p.slow_betas[-1] - p.slow_betas[-2])
    return Finding(
        f"Last slope of ln lifetime {slope:.4f} per unit of β; it tends to 1 - cos w = {1.0 - math.cos(p.angle):.4g} "
        "from below.",
        comparisons,
        [
            Picture(
                "phases",
                figure,
                "Above, distances from two limits falling like 1/β; below, lifetimes growing exponentially.",
                "V = I with a preferred direction (fast), V = -I (intermediate), two equal clusters (slow); SA.",
            )
        ],
    )


def critical_scaling(p: Parameters) -> Finding:
    """One token among n, β = γ ln n: its lifetime has the exponent max(0, γ (1 - cos w) - 1) in n."""
    sizes, comparisons = np.array(p.sizes), []
    with panel() as (figure, ax):
        for gamma, colour in zip(p.gammas, colours(len(p.gammas)), strict=True):
            measured = np.array([_lifetime(gamma * math.log(n), 1.0 / n, p.angle) for n in p.sizes])
            expected = [laws.pair_lifetime(gamma * math.log(n), 1.0 / n, p.angle) for n in p.sizes]
            for n, one, other in zip(p.sizes, measured, expected, strict=True):
                comparisons.append(within(f"lifetime, γ = {gamma:g}, n = {n:.0e}", one, other, relative=p.tolerance))
            limit = max(0.0, gamma * (1.0 - math.cos(p.angle)) - 1.0)
            power, name = (1.0, "lifetime × ln n") if limit > 0.0 else (0.0, "lifetime")
            exponent = laws.exponents(sizes, measured * np.log(sizes) ** power)[-1]
            comparisons.append(
                within(f"last exponent of n in {name}, γ = {gamma:g}", exponent, limit, absolute=p.exponent_tolerance)
            )
            ax.loglog(sizes, measured, "o", color=colour, label=f"γ = {gamma:g}")
            ax.loglog(sizes, expected, **THEORY)
        ax.set_xlabel("n")
        ax.set_ylabel("lifetime")
        ax.set_title("β = γ ln n: one token and n - 1 others")
        legend(ax)
    return Finding(
        f"The critical γ is 1/(1 - cos w) = {1.0 / (1.0 - math.cos(p.angle)):.4g}.",
        comparisons,
        [
            Picture(
                "lifetimes",
                figure,
                "Lifetime against n: level below the critical γ and at it, rising above it.",
                f"Until the token, {p.angle:.3g} rad from the others, is half as far; SA.",
            )
        ],
    )


def low_temperature(p: Parameters) -> Finding:
    """A cluster stops short of its limit, at a distance that falls like β^(-1/2), after a time that grows like ln β."""
    steps = np.arange(-p.half_width, p.half_width + 0.5 * p.spacing, p.spacing)
    tokens = Atoms(p.angle + steps, np.exp(-0.5 * steps**2 / p.variance))
    times = np.linspace(0.0, p.t_end, p.rows)
    neglected = 0.5 * (p.angle**2 + p.variance)
    comparisons: list[Comparison] = []
    stops, expected = [], []
    for beta in p.betas:
        model = MultiHeadAttention([AttentionHead(np.diag([p.large, p.small]), np.eye(2), beta)])
        run = solve(model, tokens, times, method="characteristics", rtol=1e-7, n_modes=2)
        c = run.moments[:, 1]
        width = -2.0 * np.log(np.abs(c)) * beta * p.large
        frozen = first_fall(run.t, width, 1.0)
        stops.append(abs(float(np.angle(c[-1]))))
        expected.append(laws.frozen_angle(beta, p.large, p.small, p.angle, p.variance))
        comparisons += [
            within(f"distance at which it stops, β = {beta:g}", stops[-1], expected[-1], relative=neglected),
            within(f"time at which it stops, β = {beta:g}", math.nan if frozen is None else frozen,
                   laws.freezing_time(beta, p.large, p.small, p.variance), absolute=2.0 * neglected),
        ]  # fmt: skip
    with panel() as (figure, ax):
        ax.loglog(p.betas, stops, "o", color=accent(), label="measured")
        ax.loglog(p.betas, expected, **THEORY, label="theory")
        ax.set_xlabel("β")
        ax.set_ylabel("distance from the limit")
        ax.set_title("V = I: where the cluster stops")
        legend(ax)
    return Finding(
        f"Last exponent of β in the distance {laws.exponents(p.betas, stops)[-1]:.4f}, tending to -1/2.",
        comparisons,
        [
            Picture(
                "distance",
                figure,
                "Distance from the limit against β, falling like the square root on logarithmic scales.",
                f"From a normal density with mean {p.angle:g} and variance {p.variance:g}.",
            )
        ],
    )


def growing_exits(p: Parameters) -> Finding:
    """β = ln N: random tokens leave the uniform density when the first of several modes reaches the level."""
    comparisons, rows = [], []
    for n in p.sizes:
        model = SelfAttention(math.log(n))
        for number, seed in enumerate(np.random.SeedSequence(p.seed).generate_state(p.replicates).tolist(), 1):
            start = smooth(Atoms.sample_uniform(n, seed), model)
            expected = laws.linear_exit(model.beta, np.abs(start.moments(model.bandwidth)[1:]), p.level)
            run = solve(model, start, np.linspace(0.0, expected + 1.0, p.rows), rtol=1e-7, n_modes=model.bandwidth)
            measured = first_rise(run.t, np.abs(run.moments[:, 1:]).max(axis=1), p.level)
            measured = math.nan if measured is None else measured
            rows.append((math.log(n), measured, expected))
            comparisons.append(
                within(f"exit time, sample {number}, N = {n}", measured, expected, absolute=p.level / p.least_rate)
            )
    log_n, measured_times, expected_times = np.array(rows).T
    slope, linear = (float(np.polyfit(log_n, x, 1)[0]) for x in (measured_times, expected_times))
    with panel() as (figure, ax):
        ax.plot(log_n, measured_times, "o", color=accent(), label="measured")
        ax.plot(log_n, np.polyval(np.polyfit(log_n, expected_times, 1), log_n), **THEORY, label="linear theory")
        ax.set_xlabel("ln N = β")
        ax.set_ylabel(f"time until a mode reaches {p.level:g}")
        ax.set_title("Exit of random tokens, SA, β = ln N")
        legend(ax)
    return Finding(
        f"The slope in ln N is {slope:.3f} (linear theory on the same samples {linear:.3f}); e/4 = {math.e / 4.0:.3f}.",
        comparisons,
        [Picture("exits", figure, "Exit times against ln N, scattered about a line.", "Each point is a sample.")],
    )


def _lifetime(beta: float, light: float, angle: float) -> float:
    """Time in which the angle of two clusters of SA is halved, as the solver has it; NaN if it is far from theory's."""
    expected = laws.pair_lifetime(beta, light, angle)
    rows = np.linspace(max(0.0, expected - 2.0), expected + 0.2, 89)
    tokens = Atoms([0.0, angle], [1.0 - light, light])
    times = rows if rows[0] == 0.0 else np.append(0.0, rows)
    run = solve(SelfAttention(beta), tokens, times, method="characteristics", n_modes=1)
    pairs = [run.measure(i) for i in range(len(run) - rows.size, len(run))]
    angles = [float(np.ptp(pair.angles)) for pair in pairs if isinstance(pair, Atoms)]
    found = smooth_rise(rows, 1.0 / np.maximum(angles, 1e-9), laws.HALVED / angle)
    return math.nan if found is None else found
