"""Noise: how the uniform density gives way, the free energy, tokens against the density, and coarsening."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import iv

from spectral_mf import FourierDensity, SelfAttention, solve
from spectral_mf.free_energy import dissipation, free_energy, free_energy_rate
from spectral_mf.solvers.continuation import Branch, continue_branch
from spectral_mf.solvers.stationary import StationaryState, stationary_state
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, accent, colours, legend, panel
from spectral_mf.validation.findings import Finding, Picture, at_most, deviate, equal, standard_errors, within
from spectral_mf.validation.noisy_particles import simulate_noisy

FloatArray = NDArray[np.float64]


def _branches(beta: float, share: float, step: float = 0.02) -> tuple[Branch, Branch]:
    """The uniform density and the branch that leaves it at mode 1, USA, down to a share of the critical noise."""
    critical = float(iv(1, beta)) / beta
    start = stationary_state(SelfAttention(beta, "none", 1.1 * critical), FourierDensity.uniform())
    uniform = continue_branch(start, "diffusion", (0.9 * critical, 1.2 * critical), increasing=False)
    limits = (share * critical, 1.5 * critical)
    return uniform, continue_branch(uniform.of_kind("branch")[0], "diffusion", limits, step=step)


def initial_bend(branch: Branch) -> float:
    """dκ/d(c_1²) where the branch begins, extrapolated from its first two points."""
    one, two = (branch.order_parameter[1:3] ** 2).tolist()
    bends = (branch.values[1:3] - branch.values[0]) / np.array([one, two])
    return float((bends[0] * two - bends[1] * one) / (two - one))


def transition(p: Parameters) -> Finding:
    """Branches begin at I_1/beta, bend as the cubic coefficient says, and fold above beta* only."""
    comparisons = []
    with panel() as (figure, ax):
        for beta, colour in zip(p.betas, colours(len(p.betas)), strict=True):
            first, second = float(iv(1, beta)) / beta, float(iv(2, beta)) / beta
            uniform, clusters = _branches(beta, p.lowest_share)
            bend = first * (2.0 * second - first) / (2.0 * (first - second))
            comparisons += [
                within(f"κ β/I_1 where the uniform density loses stability, β = {beta:g}",
                       uniform.of_kind("branch")[0].value / first, 1.0, absolute=p.tolerance),
                within(f"dκ/d(c_1²) × β/I_1 where the branch begins, β = {beta:g}",
                       initial_bend(clusters) / first, bend / first, absolute=p.bend_tolerance),
                equal(f"folds, β = {beta:g}", len(clusters.of_kind("fold")), int(beta > p.tricritical_beta)),
            ]  # fmt: skip
            ax.plot(clusters.values / first, clusters.order_parameter, color=colour, label=f"β = {beta:g}")
        near = [p.tricritical_beta - p.distance, p.tricritical_beta + p.distance]
        below, above = (initial_bend(_branches(beta, 0.99, step=0.005)[1]) for beta in near)
        turning = near[0] + 2.0 * p.distance * below / (below - above)
        comparisons.append(
            within("β where the branch bends neither way", turning, p.tricritical_beta, absolute=p.distance**2)
        )
        ax.axvline(1.0, **THEORY)
        ax.set_xlabel("κ β / $I_1$")
        ax.set_ylabel("$c_1$")
        ax.set_title("One cluster, USA, by continuation")
        legend(ax)
    return Finding(
        f"The transition turns from continuous to discontinuous at β = {turning:.6f}.",
        comparisons,
        [
            Picture(
                "branches",
                figure,
                "Branches of one cluster against noise: below β* they go to less noise only, above they overhang.",
                "To the right of the dashed line the uniform density is stable.",
            )
        ],
    )


def free_energy_and_tokens(p: Parameters) -> Finding:
    """USA's free energy falls at the rate of its dissipation; tokens with noise have the density's moments."""
    model = SelfAttention(p.beta, "none", p.kappa)
    start = FourierDensity.from_modes({1: 0.2, 2: 0.1j, 3: 0.05})
    run = solve(model, start, np.linspace(0.0, p.t_end, p.rows), method="spectral")
    states = [run.measure(i) for i in range(p.rows)]
    densities = [state for state in states if isinstance(state, FourierDensity)]
    values = np.array([free_energy(model, state) for state in densities])
    gaps = [free_energy_rate(model, state) + dissipation(model, state) for state in densities[:: p.rows // 10]]
    scale = max(dissipation(model, state) for state in densities[:: p.rows // 10])
    comparisons = [
        at_most("largest rise of F between rows / |F|", float(np.diff(values).max() / abs(values[-1])), p.tolerance),
        at_most("|dF/dt + dissipation| / largest dissipation", float(np.abs(gaps).max()) / scale, p.balance_tolerance),
    ]
    seeds = np.random.SeedSequence(p.seed).generate_state(2 * p.replicates).tolist()
    pairs = zip(seeds[::2], seeds[1::2], strict=True)
    moments = np.array(
        [
            simulate_noisy(model, start.sample(p.n_tokens, a), [0.0, p.t_end], step=p.step, seed=b).moments[-1, 1:4]
            for a, b in pairs
        ]
    )
    limit = deviate(p.false_alarm, 6)
    for k in (1, 2, 3):
        exact = complex(run.moments[-1, k])
        for part, sample, value in (
            ("Re", moments[:, k - 1].real, exact.real),
            ("Im", moments[:, k - 1].imag, exact.imag),
        ):
            error = float(sample.std(ddof=1)) / math.sqrt(p.replicates)
            comparisons.append(standard_errors(f"{part} c_{k} of tokens", float(sample.mean()), value, error, limit))
    with panel() as (figure, ax):
        ax.plot(run.t, values, color=accent())
        ax.set_xlabel("time t")
        ax.set_ylabel("κ ∫ p log p - E")
        ax.set_title(f"Free energy, USA, β = {p.beta:g}, κ = {p.kappa:g}")
    return Finding(
        f"The free energy falls from {values[0]:.4g} to {values[-1]:.4g}; "
        f"{p.replicates} runs of {p.n_tokens} tokens were compared.",
        comparisons,
        [
            Picture(
                "free-energy", figure, "The free energy falls with time to a plateau.", "Along the density's equation."
            )
        ],
    )


def _two_clusters(beta: float, kappa: float) -> StationaryState:
    guess = FourierDensity.from_function(
        lambda theta: np.exp((np.cosh(beta * np.cos(theta)) - np.cosh(beta)) / (beta * kappa))
    )
    return stationary_state(SelfAttention(beta, "none", kappa), guess, fold=2)


def coarsening(p: Parameters) -> Finding:
    """Two equal clusters exchange mass at a rate exponentially small in 1/kappa, and one is left."""
    comparisons, rates, predicted = [], [], []
    for kappa in p.kappas:
        state = _two_clusters(p.beta, kappa)
        even, _ = state.eigenvalues()
        low, high = state.density.density([0.5 * np.pi, 0.0])
        rates.append(float(even[0]))
        predicted.append(closed_forms.mass_exchange_rate(p.beta, kappa, float(low / high)))
        comparisons.append(
            within(f"rate of the exchange, κ = {kappa:g}", rates[-1], predicted[-1], relative=p.tolerance)
        )
    state = _two_clusters(p.beta, p.shown_kappa)
    rate = float(state.eigenvalues()[0][0])
    start = state.density.moments(64)
    start[1] = p.imbalance
    times = np.append(np.linspace(0.0, 3.0 / rate, 31), np.linspace(4.0 / rate, p.span / rate, 30))
    run = solve(state.model, FourierDensity(start), times, method="spectral")
    imbalance = run.moments[:, 1].real
    growth = math.log(imbalance[30] / imbalance[10]) / (run.t[30] - run.t[10])
    alone = stationary_state(state.model, FourierDensity.von_mises(10.0))
    comparisons += [
        within("growth rate of the imbalance / its eigenvalue", growth / rate, 1.0, absolute=p.growth_tolerance),
        within("c_1 in the end", float(imbalance[-1]), alone.order_parameter, absolute=1e-3),
    ]
    with panel(rows=2) as (figure, (upper, lower)):
        upper.semilogy(1.0 / np.array(p.kappas), rates, "o", color=accent(), label="eigenvalue")
        upper.semilogy(1.0 / np.array(p.kappas), predicted, **THEORY, label="Kramers")
        upper.set_xlabel("1/κ")
        upper.set_ylabel("rate")
        upper.set_title("Exchange of mass between two clusters")
        legend(upper)
        peaks = np.array([run.measure(i).density(np.array([0.0, np.pi])) for i in range(len(run))])
        for column, name, colour in zip(peaks.T, ("θ = 0", "θ = π"), colours(2), strict=True):
            lower.plot(run.t, column, color=colour, label=name)
        lower.set_xlabel("time t")
        lower.set_ylabel("density")
        lower.set_title(f"One grows at the cost of the other, κ = {p.shown_kappa:g}")
        legend(lower)
    return Finding(
        f"The rate falls from {rates[0]:.2g} at κ = {p.kappas[0]:g} to {rates[-1]:.2g} at κ = {p.kappas[-1]:g}.",
        comparisons,
        [
            Picture(
                "coarsening",
                figure,
                "Above, the rate of the exchange falls by orders of magnitude along a line in 1/κ; below, the density "
                "at one cluster grows while that at the other vanishes.",
                "Small eigenvalue of two equal clusters, and a solve from nearly equal ones.",
            )
        ],
    )
