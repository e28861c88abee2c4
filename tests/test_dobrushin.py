"""Dobrushin's constant against its definition, the bound on random pairs, and the pair that makes it exponential."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

from spectral_mf import Atoms, SelfAttention
from spectral_mf.errors import InputError
from spectral_mf.validation.dobrushin import (
    DobrushinCheck,
    antipodal_rate,
    check_bound,
    dobrushin_constant,
    measure_slope_bound,
    random_pair,
    two_tokens,
    velocity_slope_bound,
)

MODELS = [SelfAttention(beta, normalization) for beta in (0.5, 2.0, 5.0) for normalization in ("softmax", "none")]


def velocities(model, points, tokens):
    """Velocities by the definition, for the oracle."""
    x = points[:, None] - tokens.angles
    kernel = np.exp(model.beta * np.cos(x)) * tokens.weights
    flux = -(kernel * np.sin(x)).sum(axis=1)
    return flux / kernel.sum(axis=1) if model.normalization == "softmax" else flux


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0, 2.0, 5.0, 7.0])
def test_usa_constant_is_the_largest_second_derivative(beta):
    theta = np.linspace(-np.pi, np.pi, 20001)  # contains 0
    second = np.exp(beta * np.cos(theta)) * (beta * np.sin(theta) ** 2 - np.cos(theta))
    assert dobrushin_constant(SelfAttention(beta, "none")) == pytest.approx(np.abs(second).max(), rel=1e-14, abs=0.0)
    assert dobrushin_constant(SelfAttention(beta, "peak")) == 1.0


@pytest.mark.parametrize(("beta", "twice"), [(1.0, 5.44), (2.0, 14.8), (5.0, 296.8), (7.0, 2193.0)])
def test_usa_constant_in_print(beta, twice):
    assert 2 * dobrushin_constant(SelfAttention(beta, "none")) == pytest.approx(twice, rel=2e-3)


@pytest.mark.parametrize("beta", [0.2, 1.0, 5.0, 30.0])
def test_sa_slope_bound_is_kept_and_nearly_reached(beta):
    # two tokens either side at u = cos a = -1/(2 beta) reach beta (1 - u^2) - u in the middle between them
    rng = np.random.default_rng(3)
    model, step = SelfAttention(beta), 1e-6
    u = max(-1.0, -0.5 / beta)
    trials = [Atoms([math.acos(u), -math.acos(u)])] + [
        Atoms(rng.uniform(0, 2 * np.pi, n), rng.exponential(size=n)) for n in (1, 2, 3, 5, 20) for _ in range(40)
    ]
    points = np.append(0.0, rng.uniform(0, 2 * np.pi, 200))
    slopes = [
        np.abs(velocities(model, points + step, a) - velocities(model, points - step, a)) / (2 * step) for a in trials
    ]
    assert max(s.max() for s in slopes) <= velocity_slope_bound(beta) * (1 + 1e-6)
    assert slopes[0][0] == pytest.approx(velocity_slope_bound(beta), rel=1e-6)


@pytest.mark.parametrize("beta", [0.0, 0.2, 1.0, 5.0, 30.0])
def test_sa_measure_bound_is_kept_by_hard_cases(beta):
    # nu: tokens of very different weights, far apart or within the kernel's width; mu: nu with tokens moved by a little
    rng = np.random.default_rng(4)
    model, worst = SelfAttention(beta), 0.0
    for trial in range(300):
        n = 1 + trial % 6
        width = np.pi if trial % 2 else min(np.pi, 2.0 / math.sqrt(beta + 0.1))
        angles, weights = rng.uniform(-width, width, n), rng.exponential(size=n) ** (1 + trial % 7)
        moved = 1e-6 * rng.choice([-1.0, 0.0, 1.0], n)
        moved[rng.integers(n)] = 1e-6
        nu, mu = Atoms(angles, weights), Atoms(angles + moved, weights)
        change = np.abs(velocities(model, nu.angles, mu) - velocities(model, nu.angles, nu))
        worst = max(worst, float(nu.weights @ change / (nu.weights @ np.abs(moved))))
    assert worst <= measure_slope_bound(beta) * (1 + 1e-5)
    assert worst > 1.0 - 1e-5  # a single token's own motion already changes what it sees at rate 1


def test_sa_constant_is_not_exponential_in_beta():
    # L_2 grows like sqrt(beta), L_1 like beta
    ratio = measure_slope_bound(1000.0) / measure_slope_bound(250.0)
    assert 1.8 < ratio < 2.1
    assert dobrushin_constant(SelfAttention(1000.0)) < 1000.0


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_bound_holds_on_random_pairs(model):
    unit = 1.0 if model.normalization == "softmax" else math.exp(-model.beta)
    for seed, distance in ((0, None), (1, 1e-2), (2, 1e-5)):
        check = check_bound(model, *random_pair(12, seed, distance=distance), unit * np.array([0.0, 0.3, 1.0, 3.0]))
        assert check.holds
        assert check.tightness < 1.0
        assert check.distances[0] > 0.0


def test_distances_are_those_of_optimal_transport():
    check = check_bound(SelfAttention(2.0), *random_pair(4, 7), [0.0, 0.5])
    one, other = random_pair(4, 7)
    cost = np.abs(one.angles[:, None] - other.angles) % (2 * np.pi)
    cost = np.minimum(cost, 2 * np.pi - cost)
    rows, columns = np.kron(np.eye(4), np.ones(4)), np.kron(np.ones(4), np.eye(4))
    plan = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([one.weights, other.weights]))
    assert check.distances[0] == pytest.approx(plan.fun, abs=1e-9)


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        (SelfAttention(1.0), 0.238405844044235),
        (SelfAttention(1.0, "none"), 0.367879441171442),
        (SelfAttention(5.0), 2 / (math.exp(10) + 1)),
        (SelfAttention(5.0, "none"), math.exp(-5)),
        (SelfAttention(5.0, "peak"), math.exp(-10)),
    ],
)
def test_two_tokens_leave_the_antipodal_position_at_the_exact_rate(model, rate):
    assert antipodal_rate(model) == pytest.approx(rate, rel=1e-14, abs=0.0)
    check = check_bound(model, *two_tokens(3e-6), np.array([0.0, 1.0, 4.0]) / rate)
    assert check.holds
    np.testing.assert_allclose(check.distances, 3e-6 * np.exp([0.0, 1.0, 4.0]), rtol=1e-6)


def test_two_tokens_at_finite_gap_follow_their_equation():
    beta = 1.0

    def rhs(_, omega):
        peak = np.exp(beta * np.cos(omega))
        return -2 * peak * np.sin(omega) / (np.exp(beta) + peak)

    t = np.array([0.0, 1.0, 5.0])
    omega = solve_ivp(rhs, (0, 5), [np.pi - 0.6], t_eval=t, rtol=1e-12, atol=1e-13).y[0]
    check = check_bound(SelfAttention(beta), *two_tokens(0.3), t)
    np.testing.assert_allclose(check.distances, (np.pi - omega) / 2, rtol=1e-9)


def test_a_bound_that_is_broken_is_seen():
    assert not DobrushinCheck(np.array([0.0, 1.0]), np.array([0.1, 0.1 * math.exp(2.01)]), 1.0).holds
    assert DobrushinCheck(np.array([0.0, 1.0]), np.array([0.1, 0.1 * math.exp(1.99)]), 1.0).holds
    far = DobrushinCheck(np.array([0.0, 100.0]), np.array([0.1, 1.0]), 1e4)
    assert far.holds
    assert far.log_bounds[1] == pytest.approx(2e6, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_bound(SelfAttention(2.0), Atoms([1.0, 2.0]), Atoms([2.0, 1.0]), 1.0), "same measure"),
        (lambda: two_tokens(0.0), "gap = 0"),
        (lambda: two_tokens(2.0), "gap = 2"),
        (lambda: random_pair(0, 1), "n_tokens = 0"),
        (lambda: dobrushin_constant(None), "not for None"),
        (lambda: check_bound(SelfAttention(2.0, diffusion=0.1), *two_tokens(0.1), 1.0), "diffusion"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
