"""Positions, densities: causal growth, the influence of each position on the last one, and how long it is U-shaped."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectral_mf import FourierDensity
from spectral_mf.position_grid import PositionGrid
from spectral_mf.positions import PositionalAttention
from spectral_mf.solvers.positional import solve_linear_positions, solve_positions
from spectral_mf.validation.checks import closed_forms, position_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, accent, colours, legend, panel
from spectral_mf.validation.findings import Comparison, Finding, Picture, at_most, equal, within
from spectral_mf.validation.positional_tokens import move_tokens_with_positions

FloatArray = NDArray[np.float64]

EXPONENTS = np.array([20, 32, 48, 70, 95, 120])
"""Powers of s that see the last position from nearer and nearer."""


def causal_growth(p: Parameters) -> Finding:
    """Data (e^{λs} - 1)^p grow as e^{a t/(p+1)} at all positions, in the nonlinear equation."""
    comparisons: list[Comparison] = []
    with panel() as (figure, ax):
        for beta in p.betas:
            k = closed_forms.dominant_mode(beta)
            rate = float(closed_forms.growth_rate("none", beta, k))
            t = np.linspace(0.0, p.growth / rate, p.rows)
            for decay in p.decays:
                model = PositionalAttention(beta, "none", "causal", decay)
                for power, colour in zip(p.powers, colours(len(p.powers)), strict=True):

                    def shape(s: float | FloatArray, decay: float = decay, power: float = power) -> FloatArray:
                        return np.asarray((np.expm1(decay * np.asarray(s)) / math.expm1(decay)) ** power)

                    def start(s: float, k: int = k) -> FourierDensity:
                        return FourierDensity.from_modes({k: p.size * float(shape(s))})

                    run = solve_positions(model, start, t, rtol=p.rtol)
                    exact = p.size * shape(run.positions) * np.exp(rate * t[:, None] / (power + 1.0))
                    error = np.abs(run.moments[:, :, k] - exact).max(axis=1) / exact.max(axis=1)
                    title = f"p = {power:g}, λ = {decay:g}, β = {beta:g}"
                    comparisons.append(
                        at_most(f"error of c_{k} / its largest, {title}", error.max(), p.tolerance, predicted=0.0)
                    )
                    if beta == p.betas[0] and decay == p.decays[0]:
                        grown = run.at([1.0])[:, 0, k].real / p.size
                        ax.plot(rate * t, np.log(grown), color=colour, label=f"p = {power:g}")
                        ax.plot(rate * t, rate * t / (power + 1.0), **THEORY)
        ax.set_xlabel("a t")
        ax.set_ylabel("ln of the last position's growth")
        ax.set_title(f"Data $(e^{{λs}} - 1)^p$, λ = {p.decays[0]:g}")
        legend(ax)
    return Finding(
        f"The largest relative error is {max(c.measured for c in comparisons):.1g}.",
        comparisons,
        [
            Picture(
                "growth",
                figure,
                "Three straight lines of logarithms, the steeper the smaller p, on dashed lines of theory.",
                "The later a perturbation begins to rise in s, the slower it grows.",
            )
        ],
    )


def _window(centre: float, width: float, s: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * ((s - centre) / width) ** 2))


def _token_responses(
    model: PositionalAttention, n_positions: int, place: float, growths: list[float], rate: float, size: float
) -> FloatArray:
    """Mode 1 of the last of many positions of 24 tokens, for one position that is perturbed by c_1 = size."""
    n_angles = 24
    phi = 2.0 * np.pi * np.arange(n_angles) / n_angles
    angles = np.tile(phi, (n_positions, 1))
    angles[round(place * n_positions) - 1] -= 2.0 * size * np.sin(phi)
    positions = np.repeat(np.arange(1, n_positions + 1) / n_positions, n_angles)
    times = [0.0, *(growth / rate for growth in growths)]
    run = move_tokens_with_positions(model, angles.ravel(), times, positions=positions, rtol=1e-12)
    moved = run.angles[1:, -n_angles:] - phi
    return np.asarray(-n_positions * (moved * np.sin(phi)).mean(axis=1) / size)


def influence(p: Parameters) -> Finding:
    """What each position does to the last one, by densities and by tokens, is the closed form."""
    model = PositionalAttention(p.beta, "none", "causal", p.decay)
    rate = float(closed_forms.growth_rate("none", p.beta, 1))
    grid, centres = PositionGrid(p.n_nodes), np.array(p.centres)
    nodes, weights = position_forms.fine_rule()
    windows = np.array([_window(centre, p.width, grid.nodes) for centre in centres]).T
    fine = np.array([_window(centre, p.width, nodes) for centre in centres]).T
    growths = list(p.growths)
    ends = solve_linear_positions(model, windows, 1, np.array(growths) / rate, grid)
    densities = (grid.interpolation([1.0])[0] @ (ends - windows)).real  # shape (growths, windows)
    places = np.array(p.places)
    few, more, most = (
        np.array([_token_responses(model, n, place, growths, rate, p.size) for place in places]).T
        for n in p.n_positions
    )  # each twice the one before
    tokens = (8.0 * most - 6.0 * more + few) / 3.0  # without the first and second order in 1 / positions
    s = np.linspace(0.01, 1.0, 500)
    comparisons = []
    with panel() as (figure, ax):
        for i, (growth, colour) in enumerate(zip(growths, colours(len(growths)), strict=True)):
            exact = position_forms.mean_influence(fine, nodes, weights, growth, p.decay)
            points = position_forms.influence(places, growth, p.decay)
            wrong = np.abs(densities[i] / exact - 1.0).max()
            far = np.abs(tokens[i] / points - 1.0).max()
            found, expected = (int((np.diff(values) < 0.0).sum()) for values in (tokens[i], points))
            at = f"a t = {growth:g}"
            comparisons += [
                at_most(f"densities, largest relative error of windows, {at}", wrong, p.tolerance, predicted=0.0),
                at_most(f"tokens, largest relative error of places, {at}", far, p.token_tolerance, predicted=0.0),
                equal(f"tokens, falls from place to place, {at}", found, expected),
            ]
            share = math.expm1(growth)  # of all positions together
            ax.plot(s, position_forms.influence(s, growth, p.decay) / share, color=colour, label=f"a t = {growth:g}")
            ax.plot(places, tokens[i] / share, "o", color=colour, markersize=4)
            ax.plot(centres, densities[i] / (weights @ fine) / share, "x", color="black", markersize=6)
        ax.set_ylim(0.0, 3.0)
        ax.set_xlabel("position s")
        ax.set_ylabel("share of the influence")
        ax.set_title("Influence on the last position")
        legend(ax)
    return Finding(
        f"The influence is U-shaped at a t = {growths[0]:g}, and falls throughout at a t = {growths[-1]:g}.",
        comparisons,
        [
            Picture(
                "influence",
                figure,
                "Curves of the influence by position: first a U, later falling from left to right. Dots and crosses "
                "lie on them.",
                "Lines: closed form. Crosses: densities, over windows. Dots: tokens, extrapolated in their positions.",
            )
        ],
    )


def _shapes(model: PositionalAttention, k: int, times: FloatArray, grid: PositionGrid) -> tuple[FloatArray, FloatArray]:
    """Influence on the last position over windows, (n_times, windows), and its derivatives at s = 1, (n_times, 6).

    ∫ (m+1) s^m g ds = Σ_j (-1)^j g^(j)(1)/((m+2) ... (m+1+j)) for several m tells the derivatives.
    """
    s = grid.nodes[:, None]
    windows = np.exp(-0.5 * ((s - np.arange(0.1, 0.86, 0.05)) / 0.03) ** 2)
    windows /= grid.weights @ windows
    powers = (EXPONENTS + 1) * s**EXPONENTS
    start = np.hstack([windows, powers])
    ends = solve_linear_positions(model, start, k, times, grid)
    responses = (grid.interpolation([1.0])[0] @ (ends - start)).real
    j = np.arange(EXPONENTS.size)
    series = np.array([[(-1.0) ** n / np.prod(m + 2.0 + np.arange(n)) for n in j] for m in EXPONENTS])
    derivatives = np.linalg.solve(series, responses[:, windows.shape[1] :].T).T
    return responses[:, : windows.shape[1]], derivatives


def _zero(x: FloatArray, values: FloatArray) -> float:
    """Where a smooth function given at a few points near its zero vanishes."""
    return float(np.polynomial.Polynomial.fit(values, x, x.size - 1)(0.0))


def u_shape(p: Parameters) -> Finding:
    """U-shaped in all modes up to t sup_k a_k = min(3 - √3, 2 (1 - e^{-λ})); beyond, each part of the bound is felt."""
    grid = PositionGrid(p.n_nodes)
    modes = np.arange(1, p.n_modes + 1)
    comparisons: list[Comparison] = []
    turned: list[tuple[float, float]] = []
    for beta in p.betas:
        rates = closed_forms.growth_rate("none", beta, modes)
        fastest = float(rates.max())
        for decay in p.decays:
            model = PositionalAttention(beta, "none", "causal", decay)
            end = position_forms.fall_at_the_end(decay)
            bound = min(position_forms.convexity_limit(), end)
            shaped, falling, fallen = 0, 0, 0
            for k in modes.tolist():
                times = bound * np.array([1.0 - p.margin, 1.0 + p.margin]) / fastest
                windows, derivatives = _shapes(model, k, times, grid)
                rises = np.append(np.diff(windows[0]) > 0.0, derivatives[0, 1] > 0.0)
                shaped += int(rises[-1] and np.diff(rises.astype(int)).min() == 0)  # no fall after a rise
                falling += int(not rises[0] and rates[k - 1] == fastest)
                fallen += int(derivatives[1, 1] < 0.0)
            title = f"β = {beta:g}, λ = {decay:g}"
            comparisons += [
                equal(f"modes of {modes.size} that fall, then rise, just below the bound, {title}", shaped, modes.size),
                equal(f"fastest modes that fall from the first window on, {title}", falling, 1),
            ]
            if bound == end:
                comparisons.append(equal(f"modes that fall at the end just above it, {title}", fallen, 1))
            k = int(modes[np.argmax(rates)])
            x = end * np.linspace(0.97, 1.03, 5)
            slopes = _shapes(model, k, x / fastest, grid)[1][:, 1]
            turned.append((decay, _zero(x, slopes)))
            comparisons.append(
                within(f"a t where the last slope vanishes, {title}", turned[-1][1], end, relative=p.tolerance)
            )
    steep = PositionalAttention(p.betas[0], "none", "causal", p.steep_decay)
    x = position_forms.convexity_limit() * np.linspace(0.97, 1.03, 5)
    rate = float(closed_forms.growth_rate("none", p.betas[0], 1))
    bend = _zero(x, _shapes(steep, 1, x / rate, grid)[1][:, 2])
    comparisons.append(
        within(
            f"a t where the last curvature vanishes, λ = {p.steep_decay:g}",
            bend,
            position_forms.convexity_limit(),
            relative=p.bend_tolerance,
        )
    )
    with panel() as (figure, ax):
        decays = np.linspace(0.05, 4.0, 200)
        ends = np.array([position_forms.fall_at_the_end(decay) for decay in decays])
        ax.plot(decays, ends, **THEORY, label="2 (1 - e$^{-λ}$)")
        ax.axhline(position_forms.convexity_limit(), color="0.6", linewidth=1.1, label="3 - √3")
        ax.plot(*np.array(turned).T, "o", color=accent(), label="last slope vanishes")
        ax.set_xlabel("decay λ")
        ax.set_ylabel("t sup a$_k$")
        ax.set_title("How long the influence is U-shaped")
        legend(ax)
    worst = max(abs(x / position_forms.fall_at_the_end(decay) - 1.0) for decay, x in turned)
    return Finding(
        f"The last slope vanishes {worst:.0e} from the bound's second part; "
        f"at λ = {p.steep_decay:g} the last curvature vanishes at {bend:.5f}.",
        comparisons,
        [
            Picture(
                "bound",
                figure,
                "Times at which the influence stops rising towards the last position lie on a curve that grows with "
                "the decay; the bound is that curve up to a level line.",
                "Measured on densities. Above the level line the influence may still be a U, but not a convex one.",
            )
        ],
    )
