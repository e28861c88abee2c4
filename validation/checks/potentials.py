"""Pair potentials: Kuramoto oscillators in closed form, growth rates, and how bounded confidence gives way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import iv

from spectral_mf import FourierDensity, PairPotential, solve
from spectral_mf.solvers.continuation import Branch, continue_branch
from spectral_mf.solvers.stationary import stationary_state
from spectral_mf.theory import free_energy
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.checks.noise import initial_bend
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, colours, legend, panel
from spectral_mf.validation.findings import Finding, Picture, at_least, at_most, equal, within

FloatArray = NDArray[np.float64]

METHODS = ("spectral", "characteristics")


def kuramoto(p: Parameters) -> Finding:
    """Poisson kernels follow the closed form; with noise order is lost at K/2, and densities are von Mises."""
    comparisons = []
    with panel(rows=2) as (figure, (upper, lower)):
        for strength, colour in zip(p.strengths, colours(len(p.strengths)), strict=True):
            times = np.linspace(0.0, p.span / strength, 9)
            expected = closed_forms.poisson_order(strength, p.start, times)[:, None] ** np.arange(13)
            for method in METHODS:
                start = FourierDensity(np.array([p.start**k for k in range(p.n_modes)], dtype=np.complex128))
                run = solve(PairPotential.kuramoto(strength), start, times, method=method, rtol=1e-12)
                error = float(np.abs(run.moments[:, :13] - expected).max())
                comparisons.append(
                    at_most(
                        f"largest error of c_0 … c_12, K = {strength:g}, {method}", error, p.tolerance, predicted=0.0
                    )
                )
            upper.plot(run.t, np.abs(run.moments[:, 1]), "o", color=colour, label=f"K = {strength:g}")
            upper.plot(run.t, expected[:, 1], **THEORY)
            begin = stationary_state(PairPotential.kuramoto(strength, 0.6 * strength), FourierDensity.uniform())
            uniform = continue_branch(begin, "diffusion", (0.45 * strength, 0.7 * strength), increasing=False)
            comparisons.append(
                within(
                    f"noise at which the uniform density loses stability / K, K = {strength:g}",
                    uniform.of_kind("branch")[0].value / strength,
                    0.5,
                    absolute=p.threshold_tolerance,
                )
            )
            for share in p.noises:
                state = stationary_state(
                    PairPotential.kuramoto(strength, share * strength), FourierDensity.von_mises(2.0)
                )
                predicted = closed_forms.oscillator_order(strength, share * strength)
                comparisons.append(
                    within(
                        f"stationary |c_1|, K = {strength:g}, κ = {share:g} K",
                        state.order_parameter,
                        predicted,
                        absolute=p.order_tolerance,
                    )
                )
                lower.plot(share, state.order_parameter, "o", color=colour)
        shares = np.linspace(0.02, 0.4999, 120)
        lower.plot(shares, [closed_forms.oscillator_order(1.0, share) for share in shares], **THEORY)
        upper.set_xlabel("time t")
        upper.set_ylabel("$|c_1|$")
        upper.set_title("Without noise, from a Poisson kernel")
        legend(upper)
        lower.set_xlabel("κ / K")
        lower.set_ylabel("stationary $|c_1|$")
        lower.set_title("With noise")
    return Finding(
        f"The largest error of a moment without noise is {max(c.measured for c in comparisons[:2]):.1g}.",
        comparisons,
        [
            Picture(
                "kuramoto",
                figure,
                "Above, order parameters rise to 1 along their closed forms; below, they fall to 0 at noise K/2.",
                "Circles: solved; dashed: dr/dt = K r (1 - r²)/2, and r = I_1/I_0(K r/κ).",
            )
        ],
    )


def growth_rates(p: Parameters) -> Finding:
    """Small perturbations grow at k² W_k - κ k², in solves of the nonlinear equation."""
    k = np.arange(1, p.largest_mode + 1)
    potentials = {
        "Kuramoto, K = 3": (PairPotential.kuramoto(3.0, p.kappa), np.where(k == 1, 1.5, 0.0)),
        "Hegselmann-Krause, r = 0.8": (
            PairPotential.hegselmann_krause(0.8, 2.5, p.kappa),
            2.5 * closed_forms.bounded_confidence_coefficient(0.8, k),
        ),
        "exp(5 cos θ)/5": (
            PairPotential.from_function(lambda theta: np.exp(5.0 * np.cos(theta)) / 5.0, diffusion=p.kappa),
            iv(k, 5.0) / 5.0,
        ),
    }
    comparisons = []
    with panel() as (figure, ax):
        for (name, (model, w)), colour in zip(potentials.items(), colours(len(potentials)), strict=True):
            expected = k**2 * (w - p.kappa)
            t_end = p.span / float(np.abs(expected).max())
            measured = []
            for mode in k.tolist():
                start = FourierDensity.from_modes({mode: p.amplitude})
                run = solve(model, start, [0.0, t_end], method="spectral", rtol=1e-12)
                measured.append(float(np.log(run.moments[1, mode] / run.moments[0, mode]).real) / t_end)
            error = float(np.abs(np.array(measured) - expected).max() / np.abs(expected).max())
            comparisons.append(
                at_most(
                    f"largest error of modes 1 to {p.largest_mode} / largest rate, {name}",
                    error,
                    p.tolerance,
                    predicted=0.0,
                )
            )
            scale = float(np.abs(expected).max())
            ax.plot(k, np.array(measured) / scale, "o", color=colour, label=name)
            ax.plot(k, expected / scale, **THEORY)
        ax.set_xlabel("mode k")
        ax.set_ylabel("rate / largest |rate|")
        ax.set_title(f"Growth about the uniform density, κ = {p.kappa:g}")
        legend(ax)
    return Finding(
        f"The largest relative error of a rate is {max(c.measured for c in comparisons):.1g}.",
        comparisons,
        [
            Picture(
                "rates",
                figure,
                "Measured growth rates of modes lie on k² W_k - κ k² for three potentials.",
                "Circles: nonlinear solves from small perturbations; dashed: theory.",
            )
        ],
    )


def _clusters(radius: float, share: float, step: float = 0.02) -> tuple[float, Branch]:
    """Where the uniform density gives way, and the branch that leaves it there, of bounded confidence."""
    critical = float(closed_forms.bounded_confidence_coefficient(radius, 1))
    model = PairPotential.hegselmann_krause(radius, 1.0, 1.1 * critical, 64)
    start = stationary_state(model, FourierDensity.uniform())
    uniform = continue_branch(start, "diffusion", (0.9 * critical, 1.2 * critical), increasing=False)
    first = uniform.of_kind("branch")[0]
    return first.value, continue_branch(first, "diffusion", (share * critical, 2.0 * critical), step=step)


def bounded_confidence(p: Parameters) -> Finding:
    """Short-ranged attraction jumps to a cluster, long-ranged glides; with noise the free energy never rises."""
    comparisons = []
    with panel() as (figure, ax):
        for radius, colour in zip(p.radii, colours(len(p.radii)), strict=True):
            first, second = closed_forms.bounded_confidence_coefficient(radius, [1, 2]).tolist()
            critical, branch = _clusters(radius, p.lowest_share)
            bend = (2.0 * second - first) / (2.0 * (first - second))
            comparisons += [
                within(f"κ/W_1 where the uniform density loses stability, r = {radius:g}",
                       critical / first, 1.0, absolute=p.tolerance),
                within(f"dκ/d(c_1²) / W_1 where the branch begins, r = {radius:g}",
                       initial_bend(branch) / first, bend, absolute=p.bend_tolerance * max(1.0, abs(bend))),
                equal(f"folds, r = {radius:g}", len(branch.of_kind("fold")), int(radius < p.turning_radius)),
            ]  # fmt: skip
            ax.plot(branch.values / first, branch.order_parameter, color=colour, label=f"r = {radius:g}")
        near = [p.turning_radius - p.distance, p.turning_radius + p.distance]
        below, above = (initial_bend(_clusters(radius, 0.97, step=0.005)[1]) for radius in near)
        turning = near[0] + 2.0 * p.distance * below / (below - above)
        comparisons.append(
            within("radius at which the branch bends neither way", turning, p.turning_radius, absolute=p.distance**2)
        )
        ax.axvline(1.0, **THEORY)
        ax.set_xlabel("κ / $W_1$")
        ax.set_ylabel("$c_1$")
        ax.set_title("One cluster of bounded confidence")
        legend(ax)
    for radius in p.radii:
        model = PairPotential.hegselmann_krause(
            radius, 1.0, 0.7 * float(closed_forms.bounded_confidence_coefficient(radius, 1)), 64
        )
        start = FourierDensity.from_modes({1: 0.2, 2: 0.1j, 3: 0.05})
        run = solve(model, start, np.linspace(0.0, p.t_end, p.rows), method="spectral")
        states = [run.measure(i) for i in range(p.rows)]
        values = np.array([free_energy(model, state) for state in states if isinstance(state, FourierDensity)])
        comparisons += [
            at_most(f"largest rise of F between rows / |F|, r = {radius:g}",
                    float(np.diff(values).max() / abs(values[-1])), p.free_energy_tolerance, predicted=0.0),
            at_least(f"fall of F, r = {radius:g}", float(values[0] - values[-1]), p.least_fall),
        ]  # fmt: skip
    return Finding(
        f"The transition turns from discontinuous to continuous at the radius {turning:.5f}.",
        comparisons,
        [
            Picture(
                "branches",
                figure,
                "Branches of one cluster against noise: those of short range overhang the dashed line, others do not.",
                "To the right of the dashed line the uniform density is stable.",
            )
        ],
    )
