"""Tokens on spheres: velocities, runs, and growth rates of harmonics against linear theory."""

import math

import numpy as np
import pytest
from scipy import special

from spectral_mf import Atoms, InputError, SelfAttention, theory
from spectral_mf.validation import sphere_particles
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.sphere_particles import (
    SphereTokens,
    degree_powers,
    gegenbauer,
    planted_growth_rate,
    sample_sphere_tokens,
    simulate_sphere,
    sphere_velocity,
)

MODELS = [SelfAttention(2.0), SelfAttention(2.0, "none"), SelfAttention(2.0, "peak")]


def plain_velocity(model, x, weights):
    """One token after the other, straight from the definition."""
    velocity = np.empty_like(x)
    for i, here in enumerate(x):
        attention = np.array([w * math.exp(model.beta * (here @ y)) for y, w in zip(x, weights, strict=True)])
        if model.normalization == "softmax":
            attention /= attention.sum()
        if model.normalization == "peak":
            attention *= math.exp(-model.beta)
        output = sum(a * y for a, y in zip(attention, x, strict=True))
        velocity[i] = output - (output @ here) * here
    return velocity


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dimension", [3, 8, 16])
def test_velocity_is_the_definition(model, dimension, monkeypatch):
    monkeypatch.setattr(sphere_particles, "CHUNK", 100)  # several chunks, the last one short
    tokens = sample_sphere_tokens(40, dimension, 1)
    tokens = SphereTokens(tokens.points, np.random.default_rng(2).uniform(0.0, 1.0, 40))
    velocity = sphere_velocity(model, tokens.points, tokens)
    np.testing.assert_allclose(velocity, plain_velocity(model, tokens.points, tokens.weights), atol=1e-14)
    assert np.abs((velocity * tokens.points).sum(axis=1)).max() < 1e-15


@pytest.mark.parametrize("model", MODELS)
def test_the_circle_is_the_sphere_of_two_dimensions(model):
    theta = np.random.default_rng(3).uniform(0.0, 2.0 * np.pi, 50)
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    velocity = sphere_velocity(model, x, SphereTokens(x))
    tangent = np.stack([-np.sin(theta), np.cos(theta)], axis=1)
    expected = model.pair_velocity(theta, theta, np.full(50, 0.02))
    np.testing.assert_allclose((velocity * tangent).sum(axis=1), expected, atol=1e-14)


def test_a_great_circle_is_kept():
    # tokens in a plane stay there and move as on the circle
    theta = np.random.default_rng(4).uniform(0.0, 2.0 * np.pi, 20)
    frame = np.linalg.qr(np.random.default_rng(5).standard_normal((5, 2)))[0]
    model = SelfAttention(3.0)
    states = simulate_sphere(
        model, SphereTokens(np.stack([np.cos(theta), np.sin(theta)], axis=1) @ frame.T), [0.0, 2.0]
    )
    inside = states[1].points @ frame
    assert np.abs(np.linalg.norm(inside, axis=1) - 1.0).max() < 1e-9
    moved = simulate(model, Atoms(theta), [0.0, 2.0], rtol=1e-11).measure(1).angles
    found = np.arctan2(inside[:, 1], inside[:, 0])
    assert np.abs((found - moved + np.pi) % (2.0 * np.pi) - np.pi).max() < 1e-7


def test_rotations_turn_the_velocity():
    tokens = sample_sphere_tokens(30, 4, 1)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    turned = SphereTokens(tokens.points @ turn)
    model = SelfAttention(4.0)
    expected = sphere_velocity(model, tokens.points, tokens) @ turn
    np.testing.assert_allclose(sphere_velocity(model, turned.points, turned), expected, atol=1e-14)


def test_large_beta_does_not_overflow():
    tokens = sample_sphere_tokens(30, 3, 1)
    velocity = sphere_velocity(SelfAttention(1e5), tokens.points, tokens)
    assert np.isfinite(velocity).all()
    assert np.abs(velocity).max() <= 1.0


@pytest.mark.parametrize("dimension", [2, 3, 4, 8, 16])
def test_gegenbauer_polynomials(dimension):
    x = np.linspace(-1.0, 1.0, 11)
    for degree, (value, slope) in enumerate(gegenbauer(x, 6, dimension)):
        if dimension == 2:
            polynomial = special.chebyt(degree)
            expected, derivative = polynomial(x), polynomial.deriv()(x)
        else:
            alpha = 0.5 * dimension - 1.0
            scale = special.eval_gegenbauer(degree, alpha, 1.0)
            expected = special.eval_gegenbauer(degree, alpha, x) / scale
            derivative = (
                2.0 * alpha * special.eval_gegenbauer(degree - 1, alpha + 1.0, x) / scale if degree else 0.0 * x
            )
        np.testing.assert_allclose(value, expected, atol=1e-12)
        np.testing.assert_allclose(slope, derivative, atol=1e-11)


@pytest.mark.parametrize("dimension", [3, 4, 8, 16])
@pytest.mark.parametrize("normalization", ["softmax", "none", "peak"])
@pytest.mark.parametrize("beta", [0.0, 0.5, 5.0])
def test_planted_perturbations_grow_at_the_rates_of_theory(dimension, normalization, beta):
    model = SelfAttention(beta, normalization)
    for degree in (1, 2, 3):
        expected = float(theory.growth_rate(model, degree, dimension=dimension))
        harmonics = math.comb(degree + dimension - 1, degree)
        found = planted_growth_rate(model, degree, dimension)
        assert abs(found - expected) < 2e-8 * abs(expected) + 2e-12 * harmonics * model.speed


@pytest.mark.parametrize("beta", [30.0, 100.0])
def test_planted_perturbations_at_large_beta(beta):
    model = SelfAttention(beta)
    for degree in (3, 8):
        expected = float(theory.growth_rate(model, degree, dimension=3))
        assert planted_growth_rate(model, degree, 3) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("dimension", [3, 8])
@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_random_tokens_grow_at_the_rates_of_theory(dimension, normalization):
    # 16 replicates: |t_15| < 6.5 for three degrees, false alarms 3e-5 (seeded); SA is slowed by self-attention
    model = SelfAttention(2.0, normalization)
    degrees = [1, 2, 3]
    found = np.array([degree_powers(model, sample_sphere_tokens(500, dimension, s), degrees) for s in range(16)])
    powers, rates = found[:, 0], found[:, 1]
    ratio = 0.5 * rates.sum(axis=0) / powers.sum(axis=0)
    residual = 0.5 * rates - ratio * powers
    error = residual.std(axis=0, ddof=1) / 4.0 / powers.mean(axis=0)
    expected = theory.growth_rate(model, degrees, dimension=dimension)
    order = 0.5 * dimension - 1.0
    mean = math.gamma(0.5 * dimension) * (2.0 / 2.0) ** order * special.iv(order, 2.0)
    slowing = math.exp(2.0) / (500 * mean) if normalization == "softmax" else 0.0
    assert (np.abs(ratio - expected / (1.0 + slowing)) < 6.5 * error + 0.003 * expected).all()
    assert (error < 0.1 * expected).all()


def test_powers_are_sums_of_squared_components():
    # degree 1 on S^2: E_1 = |mean vector|^2; degree 2: (3/2) |Q|^2 - 1/2 with Q = sum w x x^T
    tokens = sample_sphere_tokens(60, 3, 2)
    tokens = SphereTokens(tokens.points, np.random.default_rng(1).uniform(0.0, 1.0, 60))
    powers, _ = degree_powers(SelfAttention(1.0), tokens, [2, 1])
    mean = tokens.weights @ tokens.points
    second = (tokens.points.T * tokens.weights) @ tokens.points
    np.testing.assert_allclose(powers, [1.5 * (second**2).sum() - 0.5, mean @ mean], rtol=1e-12)


def test_rates_of_powers_are_their_derivatives():
    model, tokens = SelfAttention(3.0), sample_sphere_tokens(60, 4, 2)
    h = 1e-3
    states = simulate_sphere(model, tokens, [0.0, h, 2 * h], rtol=1e-12)
    powers = np.array([degree_powers(model, state, [1, 2, 3])[0] for state in states])
    _, rates = degree_powers(model, states[1], [1, 2, 3])
    np.testing.assert_allclose((powers[2] - powers[0]) / (2 * h), rates, rtol=1e-5)


def test_tokens_gather_on_the_sphere():
    states = simulate_sphere(SelfAttention(1.0), sample_sphere_tokens(20, 3, 1), [0.0, 30.0])
    assert np.abs(np.linalg.norm(states[1].points, axis=1) - 1.0).max() < 1e-14
    assert (states[1].points @ states[1].points.T).min() > 1.0 - 1e-6


def test_tokens_on_spheres_are_drawn_from_their_seed():
    one, two = (sample_sphere_tokens(5, 8, s) for s in (3, np.random.SeedSequence(3)))
    np.testing.assert_array_equal(one.points, two.points)
    assert one.dimension == 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_sphere_tokens(0, 3, 1), "n_tokens = 0 is not allowed"),
        (lambda: sample_sphere_tokens(5, 1, 1), "dimension = 1 is not allowed"),
        (lambda: SphereTokens([1.0, 2.0]), r"shape \(N, d\)"),
        (lambda: SphereTokens([[0.0, 0.0]]), "not zero"),
        (lambda: SphereTokens([[1.0, np.nan]]), "finite"),
        (lambda: SphereTokens([[1.0, 0.0]], [-1.0]), "weights"),
        (lambda: planted_growth_rate(SelfAttention(1.0), 1, 2), "an integer of at least 3"),
        (lambda: planted_growth_rate(SelfAttention(1.0), 0, 3), "degrees"),
        (lambda: degree_powers(SelfAttention(1.0), sample_sphere_tokens(3, 3, 1), []), "degrees"),
        (lambda: simulate_sphere(SelfAttention(1.0, diffusion=0.1), sample_sphere_tokens(3, 3, 1), 1.0), "diffusion"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
