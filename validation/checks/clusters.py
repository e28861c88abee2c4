"""Clusters: how many there are, how they form, contract and merge, and what is left in the end."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from spectral_mf import Atoms, FourierDensity, SelfAttention, solve
from spectral_mf.diagnostics import find_clusters
from spectral_mf.trajectory import Trajectory
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.checks.quasilinear import MODELS, crossing_times
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, accent, legend, panel
from spectral_mf.validation.findings import Comparison, Finding, Picture, at_least, at_most, equal, within
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import sample_tokens

FloatArray = NDArray[np.float64]

_SPREAD = 1e-4
"""Displacement of clusters from equilibrium: what is neglected is its square."""


def cluster_rates(p: Parameters) -> Finding:
    """K equal clusters form, contract and merge at three separate rates."""
    comparisons = []
    for beta, k, q in p.cases:
        for normalization, name in MODELS:
            model = SelfAttention(beta, normalization)
            base = 0.5 + 2.0 * np.pi * np.arange(k) / k
            label = f"β = {beta:g}, {k} clusters, {name}"
            expected = closed_forms.contraction_rate(normalization, beta, k)
            split = np.concatenate([base - _SPREAD, base + _SPREAD])
            run = simulate(model, Atoms(split), [0.0, 1.0 / expected], rtol=1e-13)
            widths = [np.diff(np.sort(_angles(run, row)))[0] for row in (0, 1)]
            comparisons.append(
                within(
                    f"contraction, {label}", math.log(widths[0] / widths[1]) * expected, expected, relative=p.tolerance
                )
            )
            expected = closed_forms.merging_rate(normalization, beta, k, q)
            shape = np.cos(q * (base - base[0]))
            run = simulate(model, Atoms(base + _SPREAD * shape), [0.0, 2.0 / expected], rtol=1e-13)
            moved = [((_angles(run, row) - base + np.pi) % (2.0 * np.pi) - np.pi) for row in (0, 1)]
            size = [float(shape @ (x - x.mean())) for x in moved]
            comparisons.append(
                within(
                    f"merging, mode {q}, {label}",
                    math.log(size[1] / size[0]) * expected / 2.0,
                    expected,
                    relative=p.tolerance,
                )
            )
    b, k, _ = p.cases[0]
    formation = float(closed_forms.growth_rate("softmax", b, k))
    slow = formation / closed_forms.merging_rate("softmax", b, k)
    return Finding(f"At β = {b:g} merging is {slow:.3g} times slower than the formation of the clusters.", comparisons)


def _angles(run: Trajectory, row: int) -> FloatArray:
    measure = run.measure(row)
    assert isinstance(measure, Atoms)
    return np.asarray(measure.angles)


def phase_diagram(p: Parameters) -> Finding:
    """Clusters against (t, beta): columns end where two rates are equal, and begin when the dominant mode saturates."""
    comparisons: list[Comparison] = []
    unclear: list[str] = []
    betas = np.linspace(p.lowest, p.highest, p.columns)
    horizon = 1.15 * math.log(1.0 / p.size) / 0.44
    times = np.linspace(0.0, horizon, p.rows)
    picture = np.zeros((p.rows, p.columns))
    for column, beta in enumerate(betas):
        m = closed_forms.dominant_mode(beta)
        rate = float(closed_forms.growth_rate("softmax", beta, m))
        start = FourierDensity.from_modes({k: p.size * np.exp(1j * k * k) for k in range(1, m + 4)})
        run = solve(SelfAttention(beta), start, times, rtol=1e-8, n_modes=80)
        largest = np.abs(run.moments[:, 1 : m + 4])
        strongest = 1 + largest.argmax(axis=1)
        picture[:, column] = np.where(largest.max(axis=1) < p.level, 0, strongest)
        exit_time = math.log(closed_forms.manifold_coordinate("softmax", beta, p.level) / p.size) / rate
        after = min(p.rows - 1, int(np.searchsorted(times, exit_time + 3.0 / rate)))
        clusters = find_clusters(run.measure(after)).positions.size
        if (1.0 - closed_forms.runner_up(beta)) * math.log(1.0 / p.size) < p.clear:  # two modes saturate together
            low, high = np.sort(np.argsort(closed_forms.growth_rate("softmax", beta, np.arange(1, m + 4)))[-2:] + 1)
            name = f"number of clusters, β = {beta:.3g}, where modes {low} and {high} nearly tie"
            comparisons.append(Comparison(name, clusters, m, low, high, f"{low} or {high}"))
            unclear.append(f"{beta:.3g}")
            continue
        end = int(np.argmax(largest[:, m - 1] > 0.7)) or p.rows
        measured = float(crossing_times(run.t[: end + 1], largest[: end + 1, m - 1], p.level)[0])
        comparisons += [
            equal(f"number of clusters, β = {beta:.3g}", clusters, m),
            within(f"time at which they form, β = {beta:.3g}", measured, exit_time, relative=p.tolerance),
        ]
    with panel(height=3.4) as (figure, ax):
        shown = np.where(picture > 0, picture, np.nan)
        mesh = ax.pcolormesh(times, betas, shown.T, cmap="viridis", shading="nearest", rasterized=True)
        grid = np.linspace(p.lowest, p.highest, 400)
        modes = [closed_forms.dominant_mode(b) for b in grid]
        rates = [float(closed_forms.growth_rate("softmax", b, m)) for b, m in zip(grid, modes, strict=True)]
        ax.plot(np.log(p.level / p.size) / np.array(rates), grid, color="#c8371d", linewidth=1.2)
        for i in np.flatnonzero(np.diff(modes)):
            ax.axhline(grid[i], color="#c8371d", linewidth=0.8, linestyle="--")
        ax.set_xlim(0.0, horizon)
        ax.set_xlabel("time t")
        ax.set_ylabel("inverse temperature β")
        ax.set_title("Strongest mode; red: predicted boundaries")
        figure.colorbar(mesh, ax=ax, label="clusters", ticks=range(1, int(picture.max()) + 1))
    return Finding(
        f"{p.columns - len(unclear)} of {p.columns} columns are far enough from a tie for a clear winner. The others, "
        f"β = {', '.join(unclear)}, lie near the jumps: modes closer than {p.clear:g} in logarithm at the exit from a "
        f"start of {p.size:g} saturate together.",
        comparisons,
        [
            Picture(
                "diagram",
                figure,
                "Strongest mode by colour over time and beta, with red lines where theory has its boundaries.",
                f"All modes start with the size {p.size:g}. White: linear phase. Next to a jump the sum of the two "
                "tied modes can be the strongest for a while; the clusters are as many as one of the two.",
            )
        ],
    )


def metastability(p: Parameters) -> Finding:
    """Two clusters live for a time whose logarithm is a line in beta."""
    gap, end = p.angle, p.merged
    logs, lines = [], []
    comparisons = []
    for beta in p.betas:
        expected = _lifetime(beta, gap, end)
        times = np.concatenate([[0.0], expected * np.linspace(0.5, 1.05, 60)])
        inside = p.spread * np.array([-1.0, 0.0, 1.0])
        run = solve(SelfAttention(beta), Atoms(np.concatenate([1.0 + inside, 1.0 + gap + inside])), times, rtol=1e-10)
        # |c_1| = cos(angle / 2) grows as the clusters approach
        lifetime = float(crossing_times(run.t[1:], np.abs(run.moments[1:, 1]), math.cos(0.5 * end))[0])
        logs.append(math.log(lifetime))
        lines.append(math.log(expected))
        comparisons.append(within(f"ln of the lifetime, β = {beta:g}", logs[-1], lines[-1], absolute=p.tolerance))
    measured, intercept = np.polyfit(p.betas, logs, 1)
    predicted = np.polyfit(p.betas, lines, 1)[0]
    bend = np.abs(np.array(logs) - (measured * np.array(p.betas) + intercept)).max()
    asymptotic = 1.0 - math.cos(gap)
    comparisons += [
        within("slope of ln lifetime in β", measured, predicted, relative=p.slope_tolerance),
        within(
            f"slope + mean of 1/β, against 1 - cos {gap:g}",
            measured + np.mean(1.0 / np.array(p.betas)),
            asymptotic,
            relative=0.05,
        ),
        at_most("largest distance from the line", bend, 0.1, predicted=0.0),
    ]
    with panel() as (figure, ax):
        ax.plot(p.betas, logs, "o", color=accent(), label="measured")
        ax.plot(p.betas, lines, **THEORY, label="theory")
        ax.set_xlabel("inverse temperature β")
        ax.set_ylabel("ln of the lifetime")
        ax.set_title(f"Two clusters {gap:g} rad apart, SA")
        legend(ax)
    return Finding(
        f"The slope is {measured:.4f}; it tends to 1 - cos {gap:g} = {asymptotic:.4f} from below by 1/β.",
        comparisons,
        [
            Picture(
                "lifetime",
                figure,
                "Logarithm of the lifetime against beta: points on a line.",
                "Six tokens in two groups, until the groups are closer than the final angle.",
            )
        ],
    )


def _lifetime(beta: float, start: float, end: float) -> float:
    """Time in which two equal clusters approach: w' = -2 sin w / (e^{beta (1 - cos w)} + 1) in SA."""
    value, _ = quad(lambda w: (math.exp(beta * (1.0 - math.cos(w))) + 1.0) / (2.0 * math.sin(w)), end, start, limit=200)
    return float(value)


def staircase(p: Parameters) -> Finding:
    """The energy rises in steps: one for each merging of the two nearest clusters."""
    angles = np.cumsum([0.0, *p.gaps])
    levels = _levels(angles, p.beta)
    times = np.concatenate([[0.0], np.geomspace(p.first, p.last, p.rows)])
    run = solve(SelfAttention(p.beta, "peak"), Atoms(angles), times, rtol=1e-9)
    share = run.energy / run.model.energy(np.ones(run.model.bandwidth + 1, dtype=np.complex128))
    borders = [-math.inf, *(0.5 * (np.array(levels[1:]) + levels[:-1])), math.inf]
    comparisons = []
    for i, level in enumerate(levels):
        on = share[(share > borders[i]) & (share <= borders[i + 1])]
        name = f"energy of plateau {i + 1}"
        comparisons.append(within(name, float(np.median(on)) if on.size else math.nan, level, absolute=p.tolerance))
    between = np.min(np.abs(share[:, None] - np.array(levels)), axis=1) > p.tolerance
    comparisons += [
        at_most("share of rows in logarithmic time that are on no plateau", between.mean(), 0.25, predicted=0.0),
        at_least("smallest change of the energy between rows", np.diff(share).min(), -1e-9, predicted=0.0),
    ]
    with panel() as (figure, ax):
        for level in levels:
            ax.axhline(level, color="0.7", linewidth=0.8)
        ax.plot(times[1:], share[1:], color=accent())
        ax.set_xscale("log")
        ax.set_xlabel("time, in units of $e^{-\\beta}$")
        ax.set_ylabel("energy / that of one point")
        ax.set_title(f"Energy staircase, USA, β = {p.beta:g}")
    return Finding(
        f"{len(levels)} plateaus, with energies Σ m² of the masses of the clusters.",
        comparisons,
        [
            Picture(
                "energy",
                figure,
                "Energy against logarithmic time: flat steps at predicted levels.",
                "Grey lines: the sums of squared masses when the nearest two clusters merge, one pair after the other.",
            )
        ],
    )


def _levels(angles: FloatArray, beta: float) -> list[float]:
    """Energies of the clusters as the nearest two merge, one pair after the other, each at its centre of mass."""
    x, w = list(angles), [1.0 / angles.size] * angles.size
    levels = [closed_forms.cluster_energy(beta, w, x)]
    while len(x) > 1:
        i = int(np.argmin(np.diff(x)))
        mass = w[i] + w[i + 1]
        x[i : i + 2] = [(w[i] * x[i] + w[i + 1] * x[i + 1]) / mass]
        w[i : i + 2] = [mass]
        levels.append(closed_forms.cluster_energy(beta, w, x))
    return levels


def single_cluster(p: Parameters) -> Finding:
    """In the end there is one cluster."""
    comparisons = []
    for beta in p.betas:
        for name, start in (
            ("a density", FourierDensity.from_modes({1: 0.01, 2: 0.02 - 0.01j, 3: 0.02j, 4: 0.01})),
            (f"{p.n_tokens} tokens", sample_tokens(p.n_tokens, p.seed)),
        ):
            run = solve(SelfAttention(beta), start, [0.0, p.t_end], rtol=1e-8)
            comparisons.append(
                at_most(
                    f"1 - |c_1| at t = {p.t_end:g}, from {name}, β = {beta:g}",
                    1.0 - abs(run.moments[-1, 1]),
                    p.tolerance,
                    predicted=0.0,
                )
            )
    return Finding(f"All {len(comparisons)} runs were followed to t = {p.t_end:g}.", comparisons)
