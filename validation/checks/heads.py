"""Matrices and heads: reference moments, the scalar model, clusters at eigendirections, energy, and heat flow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from spectral_mf import AttentionHead, FourierDensity, MultiHeadAttention, SelfAttention, solve
from spectral_mf.data import reference
from spectral_mf.trajectory import Trajectory
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, accent, colours, legend, panel
from spectral_mf.validation.findings import Finding, Picture, at_least, at_most, within

FloatArray = NDArray[np.float64]

IDENTITY = np.eye(2)
METHODS = ("spectral", "characteristics")


def reference_solution(p: Parameters) -> Finding:
    """Moments of general matrices and of two heads are those of another computation, by two methods."""
    cases, comparisons = reference("matrices_and_heads")["cases"], []
    with panel() as (figure, ax):
        for name, colour in zip(cases, colours(len(cases)), strict=True):
            case = cases[name]
            heads = [AttentionHead(**head, beta=case["beta"]) for head in case["heads"]]
            model = MultiHeadAttention(heads, case["normalization"])
            start = FourierDensity.from_modes({int(k): complex(*c) for k, c in case["initial_moments"].items()})
            expected = np.array([[complex(*value) for value in row] for row in case["moments"]])
            for method, marker in zip(METHODS, "ox", strict=True):
                run = solve(model, start, [0.0, *case["times"]], method=method, rtol=p.rtol)
                error = np.abs(run.moments[1:, : expected.shape[1]] - expected).max(axis=1)
                title = f"{name.replace('_', ' ')}, {method}"
                comparisons.append(
                    at_most(
                        f"largest error of c_0 … c_{expected.shape[1] - 1}, {title}",
                        error.max(),
                        p.tolerance,
                        predicted=0.0,
                    )
                )
                ax.semilogy(run.t[1:], np.maximum(error, 1e-17), marker, color=colour, label=title)
        ax.set_xlabel("time t")
        ax.set_ylabel("largest error of a moment")
        ax.set_title("Distance from the reference solution")
        legend(ax)
    return Finding(
        f"The largest error of a moment is {max(c.measured for c in comparisons):.1g}.",
        comparisons,
        [
            Picture(
                "error",
                figure,
                "Errors of moments against time, three cases and two methods: all near rounding.",
                "General matrices, a symmetric indefinite matrix, and two heads without softmax.",
            )
        ],
    )


def identity_matrices(p: Parameters) -> Finding:
    """B = V = I is the scalar model, to rounding."""
    comparisons, shown = [], []
    moments = np.zeros((1, 129), dtype=np.complex128)
    moments[0, :4] = [1.0, 0.2, 0.1j, 0.05 - 0.02j]
    angles = np.random.default_rng(p.seed).uniform(0.0, 2.0 * np.pi, p.n_tokens)
    weights = np.full(p.n_tokens, 1.0 / p.n_tokens)
    for normalization in ("softmax", "none"):
        name = "SA" if normalization == "softmax" else "USA"
        for beta in p.betas:
            scalar = SelfAttention(beta, normalization)
            model = MultiHeadAttention((AttentionHead(IDENTITY, IDENTITY, beta),), normalization)
            grids = [m.grid_fields(256) for m in (model, scalar)]
            for grid in grids:
                grid.evaluate(moments)
            pairs = {
                "velocity on a grid": (grids[0].velocity, grids[1].velocity),
                "velocity of tokens": tuple(m.pair_velocity(angles, angles, weights) for m in (model, scalar)),
                "energy": (model.energy(moments), scalar.energy(moments)),
            }
            for what, (found, expected) in pairs.items():
                difference = float(np.abs(found - expected).max() / np.abs(expected).max())
                comparisons.append(
                    at_most(
                        f"{what}, {name}, β = {beta:g}: relative difference", difference, p.tolerance, predicted=0.0
                    )
                )
                shown.append((beta, difference))
    with panel() as (figure, ax):
        beta, difference = np.array(shown).T
        ax.semilogy(beta, np.maximum(difference, 1e-17), "o", color=accent())
        ax.axhline(p.tolerance, **THEORY)
        ax.set_xlabel("β")
        ax.set_ylabel("relative difference")
        ax.set_title("Identity matrices against the scalar model")
    return Finding(
        f"The largest relative difference is {max(c.measured for c in comparisons):.1g}.",
        comparisons,
        [Picture("identity", figure, "Relative differences against β, all below 1e-14.", "Velocities and energies.")],
    )


def _symmetric(first: float, second: float, angle: float) -> FloatArray:
    """The matrix with one eigenvalue in the direction of the angle, the other across."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s], [s, c]])
    return np.asarray(turn @ np.diag([first, second]) @ turn.T)


def _gathered(matrix: FloatArray, beta: float, start: tuple[float, float], times: FloatArray) -> Trajectory:
    """A run with V = B from a von Mises density of given concentration and mean."""
    model = MultiHeadAttention((AttentionHead(matrix, matrix, beta),))
    run: Trajectory = solve(model, FourierDensity.von_mises(*start), times, rtol=1e-9)
    return run


def eigendirections(p: Parameters) -> Finding:
    """Where tokens gather for V = B symmetric: at an eigendirection, or at both of its ends."""
    across = p.direction + 0.5 * np.pi
    cases = (
        ("weak attention", (2.0, -0.3), p.weak_beta, (1.0, 0.4), 1, p.direction),
        ("strong, data on one side", (2.0, -0.3), p.strong_beta, (20.0, 0.4), 1, p.direction),
        ("strong, data on both sides", (2.0, -0.3), p.strong_beta, (1.0, 0.4), 2, p.direction),
        ("negative definite", (-0.4, -1.5), p.strong_beta, (1.0, 0.4), 2, across),
    )
    times = np.append(np.linspace(0.0, p.shown_end, p.rows), p.t_end)
    comparisons, left = [], {}
    with panel(rows=2) as (figure, (upper, lower)):
        for (name, eigenvalues, beta, start, ends, direction), colour in zip(cases, colours(len(cases)), strict=True):
            run = _gathered(_symmetric(*eigenvalues, p.direction), beta, start, times)
            c = run.moments[-1]
            left[name] = abs(c[1])
            off = float(np.angle(np.exp(-1j * ends * direction) / c[ends])) / ends
            comparisons += [
                within(f"|c_{ends}| in the end, {name}", abs(c[ends]), 1.0, absolute=p.tolerance),
                within(f"its direction's error, {name}", off, 0.0, absolute=p.angle_tolerance),
            ]
            if ends == 2:
                comparisons.append(
                    at_most(f"|c_1| in the end, {name}: both ends hold mass", abs(c[1]), 1.0 - p.least_share)
                )
            upper.plot(run.t[:-1], np.abs(run.moments[:-1, 1]), color=colour, label=name)
            lower.plot(run.t[:-1], np.abs(run.moments[:-1, 2]), color=colour)
        for ax, k in ((upper, 1), (lower, 2)):
            ax.set_ylabel(f"$|c_{k}|$")
        upper.set_title("One cluster: $|c_1| = 1$; both ends: $|c_2| = 1$")
        lower.set_xlabel("time t")
        legend(upper, fontsize="x-small")
    for ratio in p.ratios:
        predicted = closed_forms.split_limit(ratio, p.split_beta, 1.0)
        found = _largest_stable(ratio, p.split_beta, predicted)
        comparisons.append(
            within(
                f"second eigenvalue at which masses {ratio:g} : 1 part", found, predicted, absolute=p.split_tolerance
            )
        )
    return Finding(
        f"At t = {p.t_end:g}, |c_1| is {', '.join(f'{size:.4f} ({name})' for name, size in left.items())}.",
        comparisons,
        [
            Picture(
                "eigendirections",
                figure,
                "|c_1| and |c_2| against time: one cluster for weak attention or one-sided data, both ends otherwise.",
                "V = B symmetric, with softmax; eigenvalues 2 and -0.3, and -0.4 and -1.5.",
            )
        ],
    )


def _largest_stable(ratio: float, beta: float, near: float) -> float:
    """Second eigenvalue at which masses r : 1 at both ends of the first direction lose stability."""
    weights = np.array([ratio, 1.0]) / (ratio + 1.0)

    def rate(second: float) -> float:
        matrix = np.diag([1.0, second])
        model = MultiHeadAttention((AttentionHead(matrix, matrix, beta),))
        return float(np.linalg.eigvals(model.pair_jacobian([0.0, np.pi], weights)).real.max())

    found: Any = brentq(rate, near - 0.3, near + 0.3, xtol=1e-14)
    return float(found)


def energy(p: Parameters) -> Finding:
    """Energies of heads that climb one never fall, and grow at the rate of their dissipation."""
    small = [[0.2, 0.5], [0.5, 0.3]]
    two = (
        AttentionHead([[1.0, 0.0], [0.0, 0.4]], [[1.0, 0.0], [0.0, 0.4]], 2.0),
        AttentionHead(small, small, 2.0),
    )
    indefinite = [[1.0, 0.2], [0.2, -0.5]]
    repelling = AttentionHead([[1.0, 0.2], [0.2, 0.5]], [[-0.5, -0.1], [-0.1, -0.25]], 4.0)
    models = {
        "two heads, USA": MultiHeadAttention(two, "none"),
        "indefinite, SA": MultiHeadAttention((AttentionHead(indefinite, indefinite, 2.0),)),
        "V = -B/2, SA": MultiHeadAttention((repelling,)),
    }
    start = FourierDensity.from_modes({1: 0.2, 2: 0.1j, 3: 0.05 - 0.02j})
    comparisons = []
    with panel() as (figure, ax):
        for (name, model), colour in zip(models.items(), colours(len(models)), strict=True):
            run = solve(model, start, np.linspace(0.0, p.t_end, p.rows), rtol=1e-10)
            early = solve(model, start, np.linspace(0.0, p.balance_end, 31), method="spectral", rtol=1e-11)
            growth = np.abs(np.gradient(early.energy, early.t, edge_order=2)).max()
            comparisons += [
                at_least(
                    f"smallest step of the energy / its gain, {name}",
                    float(np.diff(run.energy).min() / abs(run.energy[-1] - run.energy[0])),
                    -p.tolerance,
                    predicted=0.0,
                ),
                at_most(
                    f"|dE/dt - ∫ V² (Z) dμ| / largest dE/dt, {name}",
                    float(np.abs(early.energy_rate_residual).max() / growth),
                    p.balance_tolerance,
                    predicted=0.0,
                ),
            ]
            ax.plot(run.t, (run.energy - run.energy[0]) / np.ptp(run.energy), color=colour, label=name)
        ax.set_xlabel("time t")
        ax.set_ylabel("share of the gain in energy")
        ax.set_title("Energy of gradient flows")
        legend(ax)
    return Finding(
        f"The energies of {len(models)} models were followed to t = {p.t_end:g}.",
        comparisons,
        [Picture("energy", figure, "Three energies that rise to a plateau and never fall.", "V_h a multiple of B_h.")],
    )


def heat_flow(p: Parameters) -> Finding:
    """V = -I with softmax approaches the heat flow, with errors of first order in 1/beta."""
    k = np.arange(41)
    normals = np.exp(-0.08 * k**2) * np.exp(-1j * np.outer([0.8, 2.5, 4.5], k)).mean(axis=0)
    theta = 2.0 * np.pi * np.arange(256) / 256
    exact = FourierDensity(closed_forms.heat_flow(normals, p.time)).density(theta)
    comparisons, errors = [], []
    for beta, predicted in zip(p.betas, p.errors, strict=True):
        model = MultiHeadAttention((AttentionHead(IDENTITY, -IDENTITY, beta),))
        run = solve(model, FourierDensity(normals), [0.0, p.time * beta], method="spectral", rtol=p.rtol)
        errors.append(2.0 * np.pi * float(np.abs(run.density(theta)[1] - exact).mean()))
        comparisons.append(
            within(f"L1 distance from the heat flow, β = {beta:g}", errors[-1], predicted, relative=p.tolerance)
        )
    with panel() as (figure, ax):
        ax.loglog(p.betas, errors, "o", color=accent(), label="measured")
        ax.loglog(p.betas, 1.0 / np.array(p.betas), **THEORY, label="1/β")
        ax.set_xlabel("β")
        ax.set_ylabel(f"L1 distance at t = {p.time:g} β")
        ax.set_xticks(p.betas, [f"{beta:g}" for beta in p.betas])
        ax.minorticks_off()
        ax.set_title("V = -I against the heat equation")
        legend(ax)
    return Finding(
        f"The distance falls from {errors[0]:.5g} at β = {p.betas[0]:g} to {errors[-1]:.5g} at β = {p.betas[-1]:g}.",
        comparisons,
        [
            Picture(
                "heat",
                figure,
                "L1 distance from the heat flow falling like 1/β.",
                "From the mean of three wrapped normal densities; sums over 256 points.",
            )
        ],
    )
