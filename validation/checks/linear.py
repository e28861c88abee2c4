"""Linear phase: growth rates, the dominant mode, and what noise makes of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf import FourierDensity, SelfAttention, solve
from spectral_mf.data import reference
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, accent, colours, legend, panel
from spectral_mf.validation.findings import Finding, Picture, equal, within

FloatArray = NDArray[np.float64]

_SEED_SIZE = 1e-9
"""Size of the perturbation: the nonlinear terms are then as small, relative to it."""

_NAMES = {"softmax": "SA", "none": "USA"}


def measured_rates(model: SelfAttention, modes: ArrayLike) -> FloatArray:
    """Growth rates of modes of the uniform density, from a solution of the nonlinear equation that starts in all."""
    k = np.asarray(modes)
    duration = 1.0 / float(np.abs(model.growth_rate(k)).max())
    start = FourierDensity.from_modes(dict.fromkeys(k.tolist(), _SEED_SIZE))
    run = solve(model, start, [0.0, duration], method="spectral", rtol=1e-12, n_modes=int(k.max()))
    growth = np.abs(run.moments[-1, k]) / np.abs(run.moments[0, k])
    return np.asarray(np.log(growth) / duration)


def growth_rates(p: Parameters) -> Finding:
    """Every mode grows at its rate, in SA and USA."""
    table = {(row["beta"], row["normalization"], row["d"]): row["rates"] for row in reference("linear_theory")["rows"]}
    k = np.arange(1, p.largest_mode + 1)
    comparisons = []
    with panel() as (figure, ax):
        for beta, colour in zip(p.betas, colours(len(p.betas)), strict=True):
            for normalization, marker in (("softmax", "o"), ("none", "x")):
                rates = measured_rates(SelfAttention(beta, normalization), k)
                expected = np.array([float(table[f"{beta:g}", normalization, 2][str(mode)]) for mode in k])
                comparisons += [
                    within(
                        f"λ_{mode}, {_NAMES[normalization]}, β = {beta:g}",
                        rate,
                        value,
                        absolute=p.tolerance * float(expected.max()),
                    )
                    for mode, rate, value in zip(k, rates, expected, strict=True)
                ]
                name = f"{_NAMES[normalization]}, β = {beta:g}"
                ax.plot(k, rates / expected.max(), marker, color=colour, markersize=5.0, label=name)
            ax.plot(k, expected / expected.max(), color=colour, linewidth=0.8)
        ax.set_xlabel("mode k")
        ax.set_ylabel("$\\lambda_k / \\lambda_{max}$")
        ax.set_title("Growth rates: measured (marks), closed form (lines)")
        legend(ax)
    error = p.tolerance * max(comparison.strain for comparison in comparisons)
    return Finding(
        f"{len(comparisons)} rates were measured; the largest error is {error:.1g} of the largest rate.",
        comparisons,
        [
            Picture(
                "rates",
                figure,
                "Growth rate against mode number: measured marks and lines of the closed form.",
                "Growth rates relative to the largest. SA and USA have the same shape: their ratio is I_0(β).",
            )
        ],
    )


def plotted_spectrum(p: Parameters) -> Finding:
    """The coefficients gamma_k that were plotted are the growth rates divided by pi."""
    comparisons = []
    with panel() as (figure, ax):
        for beta, peak, plotted, colour in zip(p.betas, p.peaks, p.plotted_peaks, colours(3), strict=False):
            k = np.arange(1, p.largest_mode + 1)
            rates = measured_rates(SelfAttention(beta, "none"), k)
            comparisons += [
                equal(f"mode at the peak, β = {beta:g}", int(k[rates.argmax()]), peak),
                within(f"λ_{peak} / γ_{peak}, β = {beta:g}", rates.max() / plotted, math.pi, relative=p.tolerance),
            ]
            gamma = closed_forms.growth_rate("none", beta, k) / math.pi
            ax.plot(k, rates, "o", color=colour, markersize=5.0, label=f"rate, β = {beta:g}")
            ax.plot(k, math.pi * gamma, color=colour, linewidth=0.8)
            ax.plot(k, gamma, "x", color=colour, markersize=4.5, label=f"as plotted, β = {beta:g}")
        ax.set_yscale("log")
        ax.set_xlabel("mode k")
        ax.set_ylabel("rate (1 / time)")
        ax.set_title("Growth rates (dots) and γ as plotted (crosses)")
        legend(ax)
    return Finding(
        "Measured growth rates are π times the coefficients k² I_k/(πβ) of the published plot.",
        comparisons,
        [
            Picture(
                "spectrum",
                figure,
                "Growth rates at beta 5 and 7 against mode number, a factor pi above the plotted coefficients.",
                "Both peak at 3 (β = 5) and 4 (β = 7). Lines: closed form, and closed form divided by π.",
            )
        ],
    )


def dominant_modes(p: Parameters) -> Finding:
    """The mode that grows fastest is near sqrt(2 beta), and jumps where two rates are equal."""
    comparisons = []
    fastest = []
    for beta, expected in zip(p.betas, p.dominant_modes, strict=True):
        k = np.arange(1, expected + 6)
        fastest.append(int(k[measured_rates(SelfAttention(beta), k).argmax()]))
        comparisons.append(equal(f"k_max at β = {beta:g}", fastest[-1], expected))
    thresholds = [float(value) for value in reference("linear_theory")["thresholds_d2"].values()]
    for mode, beta in enumerate(thresholds[: p.thresholds], start=1):
        below, above = measured_rates(SelfAttention(beta), [mode, mode + 1])
        comparisons.append(within(f"λ_{mode + 1}/λ_{mode} at β = {beta:.6g}", above / below, 1.0, absolute=p.tolerance))
    largest = max(p.betas)
    share = fastest[int(np.argmax(p.betas))] / math.sqrt(2.0 * largest)
    comparisons.append(within(f"k_max/√(2β) at β = {largest:g}", share, 1.0, absolute=0.5 / math.sqrt(2.0 * largest)))
    with panel() as (figure, ax):
        beta = np.geomspace(1.0, largest, 400)
        ax.plot(p.betas, fastest, "o", color=accent(), markersize=4.5, label="fastest mode")
        ax.plot(beta, np.sqrt(2.0 * beta), **THEORY, label="√(2β)")
        ax.plot(beta, np.sqrt(beta), color="0.6", linewidth=0.9, linestyle=":", label="√β, as in print")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("inverse temperature β")
        ax.set_ylabel("dominant mode")
        ax.set_title("Dominant mode")
        legend(ax)
    return Finding(
        f"At β = {largest:g} the fastest mode is {share:.4f} times √(2β).",
        comparisons,
        [
            Picture(
                "modes",
                figure,
                "Fastest mode against beta on logarithmic axes, along the square root of 2 beta.",
                "The mode that grows fastest in a solution that starts in all of them.",
            )
        ],
    )


def diffusion_thresholds(p: Parameters) -> Finding:
    """Noise stabilises the uniform density beyond D_c = I_1 / beta (USA), I_1 / (beta I_0) (SA)."""
    comparisons = []
    for normalization, name in _NAMES.items():
        critical = float(closed_forms.growth_rate(normalization, p.beta, 1))
        for share in p.shares:
            model = SelfAttention(p.beta, normalization, diffusion=share * critical)
            rate = float(measured_rates(model, [1])[0])
            comparisons.append(
                within(f"λ_1/D_c at D = {share:g} D_c, {name}", rate / critical, 1.0 - share, absolute=p.tolerance)
            )
        k = np.arange(1, 7)
        lost = [
            (
                k[i] ** 2 * _bessel(p.beta, normalization, k[i])
                - k[i - 1] ** 2 * _bessel(p.beta, normalization, k[i - 1])
            )
            / (2 * k[i] - 1)
            for i in (1, 2)
        ]
        for i, diffusion in zip((1, 2), lost, strict=True):
            below, above = measured_rates(SelfAttention(p.beta, normalization, diffusion=diffusion), [k[i - 1], k[i]])
            comparisons.append(
                within(
                    f"(λ_{k[i]} - λ_{k[i - 1]})/D_c at D = {diffusion:.6g}, {name}",
                    (above - below) / critical,
                    0.0,
                    absolute=p.tolerance,
                )
            )
    return Finding(
        f"At β = {p.beta:g}, the rates cross zero and each other where theory has it.",
        comparisons,
    )


def _bessel(beta: float, normalization: str, k: int) -> float:
    """I_k / beta (USA), I_k / (beta I_0) (SA)."""
    return float(closed_forms.growth_rate(normalization, beta, k)) / k**2
