"""Quasi-linear phase: the unstable manifold, time shifts, and which modes take part."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf import Atoms, FourierDensity, SelfAttention, solve
from spectral_mf.trajectory import Trajectory
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.crossings import smooth_rise
from spectral_mf.validation.drawing import THEORY, colours, legend, panel
from spectral_mf.validation.findings import Comparison, Finding, Picture, at_least, at_most, within

FloatArray = NDArray[np.float64]

MODELS = (("softmax", "SA"), ("none", "USA"))


def single_mode(alpha: float, mode: int) -> FourierDensity:
    """f^alpha at time 0: the density 1 / (2 pi) + alpha cos(mode theta)."""
    return FourierDensity.from_modes({mode: math.pi * alpha})


def crossing_times(t: FloatArray, sizes: FloatArray, levels: ArrayLike) -> FloatArray:
    """Times at which a growing size reaches levels, by a spline through its logarithm; nan where it does not."""
    found = [smooth_rise(t, sizes, float(level)) for level in np.atleast_1d(levels)]
    return np.array([math.nan if time is None else time for time in found])


def amplitude_equation(p: Parameters) -> Finding:
    """On the unstable manifold c_2m = B c_m^2 and d ln|c_m| / dt = lambda_m (1 - a |c_m|^2)."""
    comparisons = []
    with panel() as (figure, ax):
        for beta, colour in zip(p.betas, colours(len(p.betas)), strict=True):
            for normalization, name in MODELS:
                m = closed_forms.dominant_mode(beta)
                rate = float(closed_forms.growth_rate(normalization, beta, m))
                b = closed_forms.second_harmonic(normalization, beta)
                a = closed_forms.cubic_coefficient(normalization, beta)
                # From a tiny c_m, so that what c_2m started with has died out when c_m is seen.
                times = np.array([0.0, *np.log(np.array(p.levels) / p.start)]) / rate
                model, start = SelfAttention(beta, normalization), FourierDensity.from_modes({m: p.start})
                run = solve(model, start, times, method="spectral", rtol=1e-12)
                c, harmonic = np.abs(run.moments[1:, m]), np.abs(run.moments[1:, 2 * m])
                decay = np.exp(-2.0 * rate * np.diff(run.t[1:]))  # d(1/c^2)/dt = -2 lambda (1/c^2 - a)
                cubic = (c[1:] ** -2 - c[:-1] ** -2 * decay) / (1.0 - decay)
                comparisons += [
                    within(f"c_{2 * m}/c_{m}², {name}, β = {beta:g}", harmonic[0] / c[0] ** 2, b, relative=p.tolerance),
                    within(f"cubic coefficient, {name}, β = {beta:g}", cubic[0], a, relative=p.tolerance),
                ]
                if normalization == "softmax":
                    ax.plot(c[1:], cubic, "o-", color=colour, markersize=3.5, label=f"β = {beta:g}")
                    ax.axhline(a, **{**THEORY, "color": colour})
        ax.set_xscale("log")
        ax.set_xlabel("$|c_m|$")
        ax.set_ylabel("cubic coefficient")
        ax.set_title("SA: measured between rows (dots), theory (dashed)")
        legend(ax, ncols=2)
    return Finding(
        "The second harmonic and the cubic coefficient were read off runs that start from a single tiny mode.",
        comparisons,
        [
            Picture(
                "cubic",
                figure,
                "Measured cubic coefficient against the size of the dominant moment, level at small sizes.",
                "For small |c_m| the measured coefficient tends to theory's; beyond, terms of fifth order show.",
            )
        ],
    )


def time_shift(p: Parameters) -> Finding:
    """Runs from f^alpha with different alpha are one curve, shifted in time by ln(ratio) / lambda."""
    comparisons, pictures = [], []
    for beta, mode, t_end in zip(p.betas, p.modes, p.t_ends, strict=True):
        model = SelfAttention(beta, "none")
        rate = float(closed_forms.growth_rate("none", beta, mode))
        passed, runs = [], []
        for alpha in p.alphas:
            times = np.linspace(0.0, t_end + math.log(p.alphas[0] / alpha) / rate, p.rows)
            runs.append(solve(model, single_mode(alpha, mode), times, rtol=p.rtol))
            size = np.abs(runs[-1].moments[:, mode])
            end = int(np.argmax(size > 0.999)) or size.size
            passed.append(crossing_times(runs[-1].t[:end], size[:end], p.levels))
        for level, measured, expected in zip(p.levels, passed[0], p.passages[f"{beta:g}"], strict=True):
            comparisons.append(
                within(
                    f"t at |c_{mode}| = {level:g}, α = {p.alphas[0]:g}, β = {beta:g}",
                    measured,
                    expected,
                    relative=p.passage_tolerance,
                )
            )
        for i in range(1, len(p.alphas)):
            expected = math.log(p.alphas[i - 1] / p.alphas[i]) / rate
            for level, shift in zip(p.levels, passed[i] - passed[i - 1], strict=True):
                tolerance = p.tolerance * p.alphas[i - 1] / p.alphas[0]
                comparisons.append(
                    within(
                        f"shift at |c_{mode}| = {level:g}, α = {p.alphas[i - 1]:g} to {p.alphas[i]:g}, β = {beta:g}",
                        shift,
                        expected,
                        relative=tolerance,
                    )
                )
        pictures.append(_shifted_distances(runs, p.alphas, mode, rate))
    return Finding(
        "The shift between neighbouring α was measured at each level; its excess over ln(ratio)/λ falls with α.",
        comparisons,
        pictures,
    )


def _shifted_distances(runs: list[Trajectory], alphas: list[float], mode: int, rate: float) -> Picture:
    """W1 to the uniform density and to the clusters, against time shifted by ln(alpha) / lambda."""
    clusters, uniform = Atoms(2.0 * np.pi * np.arange(mode) / mode), FourierDensity.uniform()
    with panel() as (figure, ax):
        for run, alpha, colour in zip(runs, alphas, colours(len(alphas)), strict=True):
            rows = range(0, len(run), max(1, len(run) // 20))
            t = rate * run.t[list(rows)] + math.log(alpha / alphas[0])
            ax.plot(t, [run.measure(i).w1(uniform) for i in rows], color=colour, label=f"α = {alpha:g}")
            ax.plot(t, [run.measure(i).w1(clusters) for i in rows], color=colour, linestyle="--")
        ax.axhline(np.pi / (2 * mode), color="0.6", linewidth=0.8, linestyle=":")
        ax.set_xlim(left=-1.0)
        ax.set_xlabel(f"$\\lambda t + \\ln(\\alpha/{alphas[0]:g})$")
        ax.set_ylabel("$W_1$ (rad)")
        ax.set_title(f"To uniform (solid), to {mode} clusters (dashed)")
        legend(ax)
    return Picture(
        f"shift-{mode}",
        figure,
        f"W1 to the uniform density rises and W1 to {mode} clusters falls; the curves of all alpha coincide.",
        f"All α on one time axis, shifted by ln(α)/λ. The dotted line is π/{2 * mode}.",
    )


def periodicity(p: Parameters) -> Finding:
    """The period 2 pi / k_max persists for a time proportional to ln N, with the slope of linear theory."""
    comparisons = []
    m = closed_forms.dominant_mode(p.beta)
    others = np.array([k for k in range(1, 3 * m) if k % m])
    with panel() as (figure, ax):
        for (normalization, name), shades in zip(MODELS[: p.models], (colours(4)[:2], colours(4)[2:]), strict=False):
            rate = float(closed_forms.growth_rate(normalization, p.beta, m))
            merging = closed_forms.merging_rate(normalization, p.beta, m)
            for other, colour in zip(p.other_modes, shades, strict=True):
                gap = 1.0 - float(closed_forms.growth_rate(normalization, p.beta, other)) / rate
                log_n, defects, lifetimes = [], [], []
                for size in p.sizes:
                    exit_time = math.log(0.5 / size) / rate
                    # The other mode starts the slow growth at size^gap and ends at the level, below 1: it has to be
                    # seen for at most gap ln(1/size) / merging, however large its coefficient is.
                    seen = -gap * math.log(size) + p.margin
                    late = exit_time + np.linspace(0.0, seen / merging, p.rows)
                    start = FourierDensity.from_modes({m: size, other: size * (0.6 + 0.8j)})
                    run = solve(SelfAttention(p.beta, normalization), start, [0.0, *late], rtol=p.rtol)
                    defect = np.linalg.norm(run.moments[:, others], axis=1)
                    log_n.append(-2.0 * math.log(size))
                    defects.append(math.log(defect[1]))
                    lifetimes.append(float(crossing_times(run.t, defect, p.level)[0]) - exit_time)
                slope = np.polyfit(log_n, defects, 1)[0]
                life = np.polyfit(log_n, lifetimes, 1)[0]
                label = f"mode {other}, {name}"
                comparisons += [
                    within(f"d ln(defect at exit)/d ln N, {label}", slope, -0.5 * gap, relative=p.tolerance),
                    within(
                        f"λ d(lifetime)/d ln N, {label}", rate * life, 0.5 * gap * rate / merging, relative=p.tolerance
                    ),
                ]
                ax.plot(log_n, merging * np.array(lifetimes), "o-", color=colour, markersize=4.0, label=label)
        ax.set_xlabel("ln N, with moments of size $N^{-1/2}$")
        ax.set_ylabel("lifetime × merging rate")
        ax.set_title(f"How long {m} clusters stay periodic, β = {p.beta:g}")
        legend(ax)
    return Finding(
        f"Slopes are fitted to {len(p.sizes)} sizes of the perturbation, from {p.sizes[0]:g} to {p.sizes[-1]:g}.",
        comparisons,
        [
            Picture(
                "lifetime",
                figure,
                "Lifetime of the periodic state against ln N: straight lines.",
                "Another mode of the same size starts with the dominant one. When k_max wins, the other is smaller by "
                "N^(-(1-λ/λ_max)/2); it then grows at the merging rate.",
            )
        ],
    )


def gcd_rule(p: Parameters) -> Finding:
    """Modes with the greatest common divisor g keep the period 2 pi / g, and bring forth g's multiples."""
    comparisons: list[Comparison] = []
    for modes in p.excited:
        g = math.gcd(*modes)
        start = FourierDensity.from_modes({k: p.size * (1.0 + 0.3j * i) for i, k in enumerate(modes)})
        run = solve(SelfAttention(p.beta), start, [0.0, 0.5 * p.t_end, p.t_end], rtol=p.rtol, symmetry="none")
        sizes = np.abs(run.moments[-1, 1:])
        k = np.arange(1, sizes.size + 1)
        name = " and ".join(str(mode) for mode in modes)
        if g > 1:
            comparisons.append(
                at_most(
                    f"largest |c_k|, k no multiple of {g}, from modes {name}",
                    sizes[k % g > 0].max(),
                    p.tolerance,
                    predicted=0.0,
                )
            )
        comparisons.append(
            at_least(
                f"smallest |c_k|, k = {g}, {2 * g}, {3 * g}, from modes {name}",
                sizes[[g - 1, 2 * g - 1, 3 * g - 1]].min(),
                p.excited_size,
            )
        )
    for modes, made, order in p.orders:
        found = []
        for size in p.order_sizes:
            start = FourierDensity.from_modes({k: size * (1.0 + 0.3j * i) for i, k in enumerate(modes)})
            run = solve(SelfAttention(p.beta), start, [0.0, p.order_time], method="spectral", rtol=1e-13)
            found.append(abs(run.moments[1, made]))
        measured = math.log(found[0] / found[1]) / math.log(p.order_sizes[0] / p.order_sizes[1])
        name = " and ".join(str(mode) for mode in modes)
        comparisons.append(
            within(f"d ln|c_{made}| / d ln(size), from modes {name}", measured, order, absolute=p.order_tolerance)
        )
    return Finding(
        f"Runs without any symmetry imposed, to t = {p.t_end:g}, when the density has collapsed.", comparisons
    )
