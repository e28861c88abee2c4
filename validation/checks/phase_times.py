"""When the phases end: T_1 and T_2 of the paper beside the times that `find_phases` measures."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from spectral_mf import FourierDensity, SelfAttention, solve
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, colours, legend, panel
from spectral_mf.validation.findings import Comparison, Finding, Picture, at_most, within
from spectral_mf.validation.phases import Phases, find_phases

FloatArray = NDArray[np.float64]


_ROWS = 30
"""Between rows 2% to 6% of the run apart the logarithm of a size is nearly a line: only near the exit does it bend."""


def phase_times(p: Parameters) -> Finding:
    """T_1 of linear theory, T_1 + T_2 of the paper, and by how much T_1 as printed is too early."""
    m = closed_forms.dominant_mode(p.beta)
    modes = np.arange(1, 5 * m + 1)
    rates = closed_forms.growth_rate("softmax", p.beta, modes)
    rate = float(rates[m - 1])
    saturation = math.log(closed_forms.manifold_coordinate("softmax", p.beta, p.delta) / p.delta)
    comparisons: list[Comparison] = []
    ratios = []
    with panel() as (figure, ax):
        for n, colour in zip(p.sizes, colours(len(p.sizes)), strict=True):
            alone = _phases(p, {m: complex(1.0 / math.sqrt(n))}, rate, n)
            # one mode: its norm grows at the rate itself, and T_1 + T_2 neglects saturation alone
            comparisons += [
                within(
                    f"λ T_1, mode {m} alone, N = {n:.0e}",
                    *_pair(rate, alone.measured_t1, alone.predicted_t1),
                    absolute=p.tolerance,
                ),
                within(
                    f"λ (T_1 + T_2), mode {m} alone, N = {n:.0e}",
                    *_pair(rate, alone.measured_exit, alone.predicted_exit, saturation),
                    absolute=p.tolerance,
                ),
            ]
            shares = []
            for number, seed in enumerate(np.random.SeedSequence(p.seed).spawn(p.replicates), 1):
                normal = np.random.default_rng(seed).standard_normal((modes.size, 2)) / math.sqrt(2.0 * n)
                start = {int(k): complex(*normal[k - 1]) for k in modes}
                found = _phases(p, start, rate, n)
                linear = _linear_time(np.abs([start[int(k)] for k in modes]), modes, rates, n)
                exit_limit = p.tolerance + p.exit_share * n ** (0.5 * (closed_forms.runner_up(p.beta) - 1.0))
                comparisons += [
                    within(
                        f"λ × time to the size N^(-1/4), sample {number}, N = {n:.0e}",
                        *_pair(rate, found.measured_t1, linear),
                        absolute=p.tolerance + n**-0.25,  # what is of second order then
                    ),
                    within(
                        f"λ (T_1 + T_2), sample {number}, N = {n:.0e}",
                        *_pair(rate, found.measured_exit, found.predicted_exit, saturation),
                        absolute=exit_limit,
                    ),
                ]
                assert found.predicted_t1 is not None
                shares.append(found.predicted_t1 / linear)
                ax.plot(rate * linear, rate * found.predicted_t1, "o", color=colour, markersize=4.5)
            ratios.append(float(np.median(shares)))
            ax.plot([], [], "o", color=colour, label=f"N = {n:.0e}")
            comparisons.append(at_most(f"T_1 / measured, median, N = {n:.0e}", ratios[-1], 1.0))
        ends = np.array(ax.get_xlim())
        ax.plot(ends, ends, **THEORY)
        ax.set_xlabel("λ × measured time to the size $N^{-1/4}$")
        ax.set_ylabel("λ $T_1$ as printed")
        ax.set_title(f"End of the linear phase, SA, β = {p.beta:g}")
        legend(ax)
    comparisons.append(
        at_most("(1 - T_1 / measured) at the largest N / at the smallest", (1 - ratios[-1]) / (1 - ratios[0]), 1.0)
    )
    return Finding(
        f"T_1 as printed is {ratios[0]:.0%} of the measured time at N = {p.sizes[0]:.0e} and {ratios[-1]:.0%} at "
        f"{p.sizes[-1]:.0e}: what it neglects, that modes besides k_max share the norm at the start, does not grow.",
        comparisons,
        [
            Picture(
                "t1",
                figure,
                "Printed T_1 against the measured end of the linear phase, below the diagonal by a constant.",
                "The density's equation from sampled modes; the same directions at every N.",
            )
        ],
    )


def _phases(p: Parameters, start: dict[int, complex], rate: float, n: float) -> Phases:
    m = closed_forms.dominant_mode(p.beta)
    end = (math.log(p.delta / abs(start[m])) + 0.3) / rate
    run = solve(SelfAttention(p.beta), FourierDensity.from_modes(start), np.linspace(0.0, end, _ROWS), rtol=1e-9)
    return find_phases(run, n_tokens=round(n), delta=p.delta)


def _linear_time(sizes: FloatArray, modes: NDArray[np.int64], rates: FloatArray, n: float) -> float:
    """Time at which the norm of H^-1 of the linear solution is N^(-1/4)."""

    def excess(t: float) -> float:
        power = float((2.0 * (sizes * np.exp(rates * t)) ** 2 / (1.0 + modes**2)).sum())
        return 0.5 * math.log(power) + 0.25 * math.log(n)

    return float(brentq(excess, 0.0, 0.5 * math.log(n) / rates.max() + 20.0 / rates.max()))


def _pair(rate: float, measured: float | None, predicted: float | None, more: float = 0.0) -> tuple[float, float]:
    """Both in units of 1 / rate; nan for what there is not."""
    return (
        math.nan if measured is None else rate * measured,
        math.nan if predicted is None else rate * predicted + more,
    )
