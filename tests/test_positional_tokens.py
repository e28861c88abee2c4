"""Tokens with positions: running sums, collapse, Renyi centres, twisted states, and the mean-field limit."""

import numpy as np
import pytest

from spectral_mf import FourierDensity, InputError, SelfAttention
from spectral_mf.position_theory import influence, twisted_rates, twisted_state
from spectral_mf.positions import PositionalAttention
from spectral_mf.solvers.positional import solve_positions
from spectral_mf.validation.positional_tokens import (
    PositionalTokenVelocity,
    move_tokens_with_positions,
    strong_renyi_centres,
)

MATRIX = [[0.5, -2.0], [0.7, -0.4]]


def random_tokens(n, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.0, 2.0 * np.pi, n), np.sort(rng.uniform(0.0, 1.0, n))


def velocity(model, theta, s):
    out = np.empty_like(theta)
    PositionalTokenVelocity(model, s)(theta, out)
    return out


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"decay": 3.0},
        {"order": "full", "decay": 300.0},
        {"rotary": 20.0, "decay": 2.0},
        {"normalization": "none", "rotary": 3.0, "order": "full", "decay": 2.0},
        {"normalization": "peak", "decay": 500.0},
        {"beta": 64.0},
        {"beta": 0.0, "rotary": 1.0},
        {"query_key": MATRIX, "decay": 2.0},
        {"query_key": MATRIX, "order": "full", "normalization": "none"},
        {"query_key": MATRIX, "normalization": "peak", "decay": 1.0},
        {"query_key": [[0.0, 0.0], [0.0, 3.0]], "beta": 8.0},
        {"query_key": [[-1.0, 0.0], [0.0, -1.0]], "beta": 30.0, "decay": 3.0},
        {"query_key": [[-1.0, 0.0], [0.0, -1.0]], "beta": 30.0, "order": "full", "decay": 3.0},
        {"query_key": [[0.0, 0.0], [0.0, 0.0]]},
    ],
)
@pytest.mark.parametrize("shared", [True, False])
def test_running_sums_are_the_sums_over_pairs(arguments, shared):
    model = PositionalAttention(**{"beta": 5.0, **arguments})
    theta, s = random_tokens(120, seed=1)
    if shared:
        s[10:14] = s[10]  # tokens at one position see each other
    weight = np.exp(-model.decay * np.abs(s[:, None] - s)) * (s <= s[:, None] if model.causal else 1.0)
    x = np.array([np.cos(theta), np.sin(theta)])
    matrix = np.array(model.query_key)
    score = np.cos(theta[:, None] - theta + model.rotary * (s[:, None] - s)) if model.rotary else x.T @ matrix @ x
    scale = model.beta * np.linalg.norm(matrix, 2) if model.normalization == "peak" else 0.0
    pairs = weight * np.exp(model.beta * score - scale)
    below = pairs if model.normalization == "softmax" else weight
    exact = -(pairs * np.sin(theta[:, None] - theta)).sum(axis=1) / below.sum(axis=1)
    assert np.abs(velocity(model, theta, s) - exact).max() < 1e-13 * max(1.0, np.abs(exact).max())


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"rotary": 9.0, "decay": 4.0},
        {"normalization": "none", "rotary": 2.0},
        {"query_key": MATRIX},
        {"beta": 15.0, "query_key": [[-1.0, 0.0], [0.0, -1.0]]},
    ],
)
def test_the_first_token_of_a_causal_system_never_moves(arguments):
    theta, s = random_tokens(50, seed=2)
    model = PositionalAttention(**{"beta": 3.0, **arguments})
    run = move_tokens_with_positions(model, theta, [0.0, 0.5, 2.0], positions=s)
    assert (run.angles[:, 0] == theta[0]).all()
    assert (run.angles[-1, 1:] != theta[1:]).all()


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        ({"beta": 1.0}, 200.0),
        ({"beta": 2.0, "rotary": 5.0}, 500.0),
        ({"beta": 1.0, "query_key": MATRIX}, 200.0),
        ({"beta": 1.0, "query_key": [[-1.0, 0.0], [0.0, -1.0]]}, 200.0),
        ({"beta": 1.0, "query_key": [[0.0, 2.0], [-2.0, 0.0]]}, 200.0),
    ],
    ids=str,
)
def test_a_causal_softmax_gathers_all_at_the_first_token(seed, arguments, end):
    theta = random_tokens(32, seed)[0]
    model = PositionalAttention(**arguments)
    run = move_tokens_with_positions(model, theta, [0.0, end], positions=np.arange(32) / 32, rtol=1e-8)
    distance = np.abs(np.remainder(run.angles - theta[0] + np.pi, 2.0 * np.pi) - np.pi).max(axis=1)
    assert distance[0] > 2.0
    assert distance[1] < 1e-6


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_strong_renyi_centres_stay_visibly_fixed(seed):
    beta = 64.0
    theta = random_tokens(200, seed)[0]
    centres = strong_renyi_centres(theta, 4.0 / np.sqrt(beta))
    model = PositionalAttention(beta)
    run = move_tokens_with_positions(model, theta, [0.0, 75.0], positions=np.arange(200) / 200, rtol=1e-6)
    moved = np.abs(run.angles[-1] - theta)
    assert centres.size >= 4
    assert moved[centres].max() < 0.01  # a token's width of sight is beta^{-1/2} = 0.125
    assert np.median(moved) > 0.1


def test_strong_renyi_centres_look_back_only():
    angles = [0.0, 0.3, 1.0, 0.7, 6.2, 3.0]  # 6.2 is near 0 around the circle
    assert strong_renyi_centres(angles, 0.5).tolist() == [0, 2, 5]


@pytest.mark.parametrize(
    ("winding", "turns", "normalization", "beta"),
    [
        (1, 0, "softmax", 1.0),
        (1, 1, "softmax", 3.0),
        (2, -1, "none", 2.0),
        (1, -1, "none", 1.5),
        (3, 2, "softmax", 5.0),
    ],
)
def test_twisted_states_are_equilibria_and_ripples_grow_at_their_rates(winding, turns, normalization, beta):
    n, harmonics = 40, np.arange(1, 6)
    model = PositionalAttention(beta, normalization, "full", rotary=2.0 * np.pi * turns)
    s, theta = twisted_state(n, winding)
    assert np.abs(velocity(model, theta, s)).max() < 1e-12
    rates = twisted_rates(model, n, winding, harmonics)
    time, size = min(1.0, 3.0 / np.abs(rates).max()), 1e-5
    for p, rate in zip(harmonics, rates, strict=True):
        ripple = np.cos(2.0 * np.pi * p * s)
        ends = [
            move_tokens_with_positions(model, theta + sign * size * ripple, [0.0, time], positions=s, rtol=1e-14)
            for sign in (1.0, -1.0)  # what is even in the size cancels
        ]
        growth = ((ends[0].angles[-1] - ends[1].angles[-1]) @ ripple) / (n * size)
        assert np.log(growth) / time == pytest.approx(rate, abs=1e-6)


def response_of_last(model, n_positions, position, growth, rate, size=1e-5):
    """Mode 1 of the last of many positions, for one that is perturbed; 24 tokens at each, evenly."""
    n_angles = 24
    phi = 2.0 * np.pi * np.arange(n_angles) / n_angles
    s = np.repeat(np.arange(1, n_positions + 1) / n_positions, n_angles)
    theta = np.tile(phi, n_positions)
    j = round(position * n_positions) - 1
    theta[j * n_angles : (j + 1) * n_angles] -= 2.0 * size * np.sin(phi)  # c_1 = size
    run = move_tokens_with_positions(model, theta, [0.0, growth / rate], positions=s, rtol=1e-12)
    return -n_positions * np.mean(np.sin(phi) * (run.angles[-1, -n_angles:] - phi)) / size


@pytest.mark.parametrize("growth", [0.5, 3.0])
def test_influence_on_the_last_token(growth):
    """First order in 1 / (number of positions): extrapolated twice, a part in a thousand; U-shaped, then falling."""
    model, rate = PositionalAttention(1.0, "none", decay=1.0), 0.565159103992485  # I_1(1)
    places = np.array([0.1, 0.3, 0.5, 0.8, 0.96])
    found = []
    for place in places:
        rows = [response_of_last(model, n, place, growth, rate) for n in (50, 100, 200)]
        found.append((8.0 * rows[2] - 6.0 * rows[1] + rows[0]) / 3.0)
    assert found == pytest.approx(influence(places, growth, 1.0), rel=1e-3)
    signs = np.sign(np.diff(found)).tolist()
    assert signs == ([-1, 1, 1, 1] if growth < 1.0 else [-1, -1, -1, -1])


@pytest.mark.parametrize("further", [{"rotary": 3.0}, {"query_key": MATRIX}], ids=str)
@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_many_tokens_follow_the_densities(normalization, further):
    """Far from uniform, with decay, and phases or a matrix: first order in 1 / (number of positions)."""
    n_angles, size = 40 if "query_key" in further else 32, 0.25
    model = PositionalAttention(1.0, normalization, "causal", decay=2.0, **further)
    numbers, end_time = ((25, 50, 100), 0.2) if "query_key" in further else ((50, 100, 200), 1.0)
    phi = 2.0 * np.pi * np.arange(n_angles) / n_angles
    angles = phi.copy()
    for _ in range(60):  # quantiles of (1 + 2 size cos) / 2 pi
        angles -= (angles + 2.0 * size * np.sin(angles) - phi) / (1.0 + 2.0 * size * np.cos(angles))

    def last(n):
        s = np.repeat(np.arange(1, n + 1) / n, n_angles)
        theta = (np.tile(angles, n).reshape(n, n_angles) + np.linspace(1.0 / n, 1.0, n)[:, None]).ravel()
        end = move_tokens_with_positions(model, theta, [0.0, end_time], positions=s, rtol=1e-9).angles[-1, -n_angles:]
        return np.exp(-1j * np.outer([1, 2, 3], end)).mean(axis=1)

    run = solve_positions(
        model, lambda s: FourierDensity.from_modes({1: size * np.exp(-1j * s)}), [0.0, end_time], n_positions=24
    )
    exact = run.at([1.0])[-1, 0, 1:4]
    rows = [last(n) for n in numbers]
    first = [np.abs(row - exact).max() for row in rows]
    assert first[1] / first[2] == pytest.approx(2.0, abs=0.15)
    assert np.abs((8.0 * rows[2] - 6.0 * rows[1] + rows[0]) / 3.0 - exact).max() < 2e-5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"positions": [0.0, 0.5, 1.5]}, r"position 1\.5 is not allowed; positions are numbers from 0 to 1"),
        ({"positions": [-0.1, 0.5, 0.6]}, r"position -0\.1 is not allowed"),
        ({"positions": [0.0, np.nan, 0.6]}, "position nan is not allowed"),
        ({"positions": [0.0, 0.5, 0.4]}, r"positions are not sorted: 0\.4 comes after 0\.5"),
        ({"positions": [0.0, 0.5]}, r"positions have shape \(2,\) for 3 tokens"),
        ({"positions": ["a", "b", "c"]}, "positions are not real numbers"),
        ({"positions": None}, "order = 'causal' needs the tokens' positions"),
        ({"rtol": 1.0, "positions": [0.0, 0.5, 1.0]}, "rtol = 1 is not allowed"),
    ],
)
def test_positions_that_are_not_allowed(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        move_tokens_with_positions(PositionalAttention(1.0), [0.0, 1.0, 2.0], 1.0, **arguments)


def test_models_that_cannot_move_these_tokens():
    with pytest.raises(InputError, match=r"rotary = 2 needs the tokens' positions"):
        move_tokens_with_positions(PositionalAttention(1.0, order="full", rotary=2.0), [0.0, 1.0], 1.0)
    with pytest.raises(InputError, match=r"decay = 2 needs the tokens' positions"):
        move_tokens_with_positions(PositionalAttention(1.0, order="full", decay=2.0), [0.0, 1.0], 1.0)
    with pytest.raises(InputError, match="diffusion = 1 moves tokens at random"):
        move_tokens_with_positions(PositionalAttention(1.0, diffusion=1.0), [0.0, 1.0], 1.0, positions=[0.0, 1.0])
    with pytest.raises(InputError, match="has no positions"):
        move_tokens_with_positions(SelfAttention(1.0), [0.0, 1.0], 1.0)
    with pytest.raises(InputError, match="are not tokens"):
        move_tokens_with_positions(PositionalAttention(1.0), [], 1.0)
    for ring in (
        PositionalAttention(1.0, order="full", rotary=1.0),
        PositionalAttention(1.0, order="full", query_key=MATRIX),
    ):
        with pytest.raises(InputError, match="has no ring of positions"):
            twisted_rates(ring, 10, 1, [1])


def test_full_attention_without_positions_is_that_of_all_tokens():
    theta = random_tokens(30, seed=5)[0]
    full = move_tokens_with_positions(PositionalAttention(2.0, order="full"), theta, [0.0, 1e-6])
    speed = (full.angles[-1] - theta) / 1e-6
    exact = SelfAttention(2.0).pair_velocity(theta, theta, np.full(30, 1.0 / 30))
    assert speed == pytest.approx(exact, abs=1e-5)
