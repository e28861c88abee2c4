"""Positions, tokens: all end at the first one, Rényi centres stay, twisted states ripple, densities are the limit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectral_mf import FourierDensity
from spectral_mf.position_theory import twisted_state
from spectral_mf.positions import PositionalAttention
from spectral_mf.solvers.positional import solve_positions
from spectral_mf.validation.checks import position_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, accent, colours, legend, panel
from spectral_mf.validation.findings import Comparison, Finding, Picture, at_least, at_most, equal, within
from spectral_mf.validation.positional_tokens import (
    PositionalTokenVelocity,
    move_tokens_with_positions,
    strong_renyi_centres,
)

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


def _distance(theta: FloatArray, place: float) -> FloatArray:
    return np.asarray(np.abs(np.remainder(theta - place + np.pi, 2.0 * np.pi) - np.pi))


def first_token(p: Parameters) -> Finding:
    """The first token stays where it is, bit for bit, and all others end there, whatever the query-key matrix."""
    rng = np.random.default_rng(p.seed)
    positions = np.arange(p.n_tokens) / p.n_tokens
    times = np.linspace(0.0, p.t_end, 81)
    comparisons: list[Comparison] = []
    with panel() as (figure, ax):
        for matrix in p.matrices:
            model = PositionalAttention(p.beta, query_key=matrix)
            moved, gathered, farthest = 0, 0, 0.0
            for _ in range(p.replicates):
                start = rng.uniform(0.0, 2.0 * np.pi, p.n_tokens)
                run = move_tokens_with_positions(model, start, times, positions=positions, rtol=1e-8)
                moved += int((run.angles[:, 0] != start[0]).any())
                last = float(_distance(run.angles[-1], start[0]).max())
                gathered += int(last < p.tolerance)
                farthest = max(farthest, last)
            title = f"B = {matrix}"
            comparisons += [
                equal(f"systems whose first token has moved, {title}", moved, 0),
                equal(f"systems with one cluster in the end, {title}", gathered, p.replicates),
                at_most(f"largest distance from the first token, {title}", farthest, p.tolerance, predicted=0.0),
            ]
        shown = _distance(run.angles, start[0])  # of the last system
        for column, colour in zip(shown.T, colours(p.n_tokens), strict=True):
            ax.semilogy(run.t, np.maximum(column, 1e-16), color=colour, linewidth=0.8)
        ax.set_xlabel("time t")
        ax.set_ylabel("distance from the first token")
        ax.set_title(f"B = {p.matrices[-1]}, β = {p.beta:g}")
    return Finding(
        f"In {p.replicates * len(p.matrices)} systems of {p.n_tokens} tokens the largest distance in the end is "
        f"{max(c.measured for c in comparisons if c.quantity.startswith('largest')):.1g}.",
        comparisons,
        [
            Picture(
                "distances",
                figure,
                "Distances of all tokens from the first one fall exponentially, those of early tokens soonest.",
                "Dark: early positions.",
            )
        ],
    )


def renyi_centres(p: Parameters) -> Finding:
    """Tokens that are alone among those before them stay visibly fixed, while others gather."""
    positions = np.arange(p.n_tokens) / p.n_tokens
    model = PositionalAttention(p.beta)
    width = 1.0 / math.sqrt(p.beta)  # of what a token sees
    ways: list[float] = []
    others, numbers = [], []
    for seed in p.seeds:
        start = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, p.n_tokens)
        centres = strong_renyi_centres(start, 4.0 * width)
        run = move_tokens_with_positions(model, start, np.linspace(0.0, p.t_end, 61), positions=positions, rtol=1e-6)
        moved = np.abs(run.angles[-1] - start)
        ways += moved[centres[1:]].tolist()  # without the first token, which never moves
        others.append(float(np.median(np.delete(moved, centres))))
        numbers.append(centres.size)
    comparisons = [
        at_most("largest way of a strong Rényi centre / β^(-1/2)", max(ways) / width, p.largest, predicted=0.0),
        at_most("median way of the centres / β^(-1/2)", float(np.median(ways)) / width, p.typical, predicted=0.0),
        at_least("median way of the other tokens / β^(-1/2)", min(others) / width, p.others),
        at_least("fewest centres", min(numbers), p.fewest),
    ]
    with panel() as (figure, ax):
        for i, column in enumerate(run.angles.T):  # of the last seed
            ax.plot(
                run.t,
                column,
                color=accent() if i in centres else "0.7",
                linewidth=1.6 if i in centres else 0.4,
                zorder=2 + (i in centres),
            )
        ax.set_xlabel("time t")
        ax.set_ylabel("angle θ")
        ax.set_title(f"{p.n_tokens} tokens, β = {p.beta:g}")
    return Finding(
        f"{sum(numbers)} centres in {len(numbers)} systems move by at most {max(ways):.2g} rad.",
        comparisons,
        [
            Picture(
                "centres",
                figure,
                "Lines of tokens run together into clusters; thick lines of the centres stay level.",
                "Thick: strong Rényi centres. Thin: all other tokens.",
            )
        ],
    )


def twisted_states(p: Parameters) -> Finding:
    """Twisted states on a ring with rotary phases stand still; ripples grow at rates of aliased Bessel functions."""
    harmonics = list(range(1, p.harmonics + 1))
    comparisons: list[Comparison] = []
    with panel() as (figure, ax):
        for (winding, turns, normalization, beta), colour in zip(p.states, colours(len(p.states)), strict=True):
            model = PositionalAttention(beta, normalization, "full", rotary=2.0 * np.pi * turns)
            positions, theta = twisted_state(p.n_tokens, winding)
            speed = np.empty_like(theta)
            PositionalTokenVelocity(model, positions)(theta, speed)
            exact = [
                position_forms.twisted_rate(normalization, beta, p.n_tokens, winding, turns, harmonic)
                for harmonic in harmonics
            ]
            time = min(1.0, 3.0 / max(map(abs, exact)))
            found = []
            for harmonic in harmonics:
                ripple = np.cos(2.0 * np.pi * harmonic * positions)
                ends = [
                    move_tokens_with_positions(
                        model, theta + size * ripple, [0.0, time], positions=positions, rtol=1e-14
                    )
                    for size in (p.size, -p.size)  # what is even in the size cancels
                ]
                growth = float((ends[0].angles[-1] - ends[1].angles[-1]) @ ripple) / (p.n_tokens * p.size)
                found.append(math.log(growth) / time)
            title = (
                f"θ = {2 * winding}πs, ω = {2 * turns}π, β = {beta:g}, {'SA' if normalization == 'softmax' else 'USA'}"
            )
            error = np.abs(np.array(found) - exact).max()
            comparisons += [
                at_most(f"largest speed, {title}", np.abs(speed).max(), p.speed_tolerance, predicted=0.0),
                at_most(f"largest error of {len(found)} rates, {title}", error, p.tolerance, predicted=0.0),
            ]
            ax.plot(harmonics, exact, **THEORY)
            ax.plot(harmonics, found, "o", color=colour, label=title, markersize=4)
        ax.set_xlabel("ripples around the ring")
        ax.set_ylabel("growth rate")
        ax.set_title("Twisted states")
        legend(ax, fontsize=6)
    return Finding(
        f"The largest error of a rate is {max(c.measured for c in comparisons if 'rates' in c.quantity):.1g}.",
        comparisons,
        [
            Picture(
                "rates",
                figure,
                "Growth rates of ripples by their number, for several twisted states, on dashed lines of theory.",
                "Rates from tokens moved for a short time; lines: Bessel functions.",
            )
        ],
    )


def _quantiles(size: float, n: int) -> FloatArray:
    """Quantiles of (1 + 2 size cos θ)/2π, by Newton's method."""
    share = 2.0 * np.pi * np.arange(n) / n
    theta = share.copy()
    for _ in range(60):
        theta -= (theta + 2.0 * size * np.sin(theta) - share) / (1.0 + 2.0 * size * np.cos(theta))
    return theta


def _last_moments(model: PositionalAttention, n_positions: int, angles: FloatArray, t_end: float) -> ComplexArray:
    """Moments 1 to 3 of the last of many positions, the start at s being a density that is turned by s."""
    positions = np.arange(1, n_positions + 1) / n_positions
    theta = (angles + positions[:, None]).ravel()
    places = np.repeat(positions, angles.size)
    run = move_tokens_with_positions(model, theta, [0.0, t_end], positions=places, rtol=1e-9)
    return np.asarray(np.exp(-1j * np.outer([1, 2, 3], run.angles[-1, -angles.size :])).mean(axis=1))


def mean_field(p: Parameters) -> Finding:
    """Tokens at more and more positions follow the densities, at first order in 1/positions."""
    comparisons: list[Comparison] = []
    numbers, angles = p.first_number * np.array([1, 2, 4]), _quantiles(p.size, p.n_angles)
    with panel() as (figure, ax):
        for parameters, colour in zip(p.models, colours(len(p.models)), strict=True):
            model = PositionalAttention(**parameters)
            run = solve_positions(
                model, lambda s: FourierDensity.from_modes({1: p.size * np.exp(-1j * s)}), [0.0, p.t_end], rtol=1e-10
            )
            exact = run.at([1.0])[-1, 0, 1:4]
            few, more, most = (_last_moments(model, n, angles, p.t_end) for n in numbers.tolist())
            errors = np.array([np.abs(found - exact).max() for found in (few, more, most)])
            better = float(np.abs((8.0 * most - 6.0 * more + few) / 3.0 - exact).max())
            title = ", ".join(f"{name} = {value}" for name, value in parameters.items())
            order = math.log2(errors[1] / errors[2])
            comparisons += [
                within(f"order in 1/positions, {title}", order, 1.0, absolute=p.order_tolerance),
                at_most(f"error of c_1 … c_3, extrapolated, {title}", better, p.tolerance, predicted=0.0),
            ]
            ax.loglog(numbers, errors, "o-", color=colour, label=title)
        ax.set_xlabel("positions")
        ax.set_ylabel("error of the last position's moments")
        ax.set_title("Tokens against densities")
        legend(ax, fontsize=6)
    return Finding(
        f"Extrapolated, tokens are within {max(c.measured for c in comparisons[1::2]):.1g} of the densities.",
        comparisons,
        [
            Picture(
                "errors",
                figure,
                "Errors fall along straight lines of slope -1 with the number of positions.",
                "Tokens at each position start at quantiles of its density.",
            )
        ],
    )
