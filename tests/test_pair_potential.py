"""Pair potentials: attention without softmax is one, Kuramoto and Hegselmann-Krause are others."""

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import i0, i1, iv

from spectral_mf import Atoms, FourierDensity, InputError, PairPotential, SelfAttention, solve, theory
from spectral_mf.free_energy import free_energy
from spectral_mf.storage.kinds import restore_model
from spectral_mf.validation.particles import TokenVelocity, simulate

DENSITY = FourierDensity.from_modes({1: 0.2, 2: 0.1j, 3: 0.05 - 0.02j})
ROUGH = PairPotential((0.3, 0.5, -0.2, 0.1), 0.05)


def attention_as_potential(beta):
    return PairPotential.from_function(lambda theta: np.exp(beta * np.cos(theta)) / beta, n_modes=40)


def test_attention_without_softmax_is_a_pair_potential():
    potential, attention = attention_as_potential(5.0), SelfAttention(5.0, "none")
    np.testing.assert_allclose(potential.coefficients[:9], iv(range(9), 5.0) / 5.0, rtol=0, atol=1e-14 * i0(5.0))
    runs = [solve(model, DENSITY, [0.0, 0.1, 0.2, 0.5]) for model in (potential, attention)]
    assert set(runs[0].method) == {"spectral", "characteristics"}
    np.testing.assert_allclose(runs[0].moments, runs[1].moments, rtol=0, atol=1e-9)
    np.testing.assert_allclose(runs[0].energy, runs[1].energy, rtol=1e-9)
    k = np.arange(1, 9)
    np.testing.assert_allclose(potential.growth_rate(k), attention.growth_rate(k), rtol=1e-11)


@pytest.mark.parametrize("method", ["linear", "quasilinear"])
def test_methods_about_the_uniform_density_serve_pair_potentials(method):
    start = FourierDensity.from_modes({3: 1e-3})
    runs = [
        solve(m, start, [0.0, 0.1, 0.2], method=method)
        for m in (attention_as_potential(5.0), SelfAttention(5.0, "none"))
    ]
    np.testing.assert_allclose(runs[0].moments, runs[1].moments, rtol=0, atol=1e-12)


def test_growth_rates_are_k_squared_times_coefficients_minus_noise():
    k = np.array([0, 1, 2, 3, 4, 99])
    np.testing.assert_allclose(ROUGH.growth_rate(k), k**2 * (np.array([0, 0.5, -0.2, 0.1, 0, 0]) - 0.05), rtol=1e-15)
    start = FourierDensity.from_modes({1: 1e-9, 2: 1e-9j, 5: 1e-9})
    run = solve(ROUGH, start, [0.0, 0.5], method="spectral")
    grown = run.moments[1, [1, 2, 5]] / start.moments(5)[[1, 2, 5]]
    np.testing.assert_allclose(grown, np.exp(0.5 * ROUGH.growth_rate([1, 2, 5])), rtol=1e-7)


def test_kuramoto_is_attention_at_beta_zero():
    runs = [solve(model, DENSITY, [0.0, 4.0]) for model in (PairPotential.kuramoto(), SelfAttention(0.0))]
    np.testing.assert_allclose(runs[0].moments, runs[1].moments, rtol=0, atol=1e-12)
    np.testing.assert_allclose(runs[0].energy, runs[1].energy, rtol=1e-12)


@pytest.mark.parametrize(("strength", "noise"), [(1.0, 0.2), (3.0, 0.4)])
def test_kuramoto_with_noise_ends_in_the_von_mises_density(strength, noise):
    run = solve(PairPotential.kuramoto(strength, noise), DENSITY, [0.0, 200.0 / strength])
    r = abs(run.moments[1, 1])
    assert r == pytest.approx(i1(strength * r / noise) / i0(strength * r / noise), abs=1e-8)
    assert r > 0.5


def test_hegselmann_krause_coefficients_are_those_of_the_parabola():
    radius, strength = 0.8, 2.5
    model = PairPotential.hegselmann_krause(radius, strength)
    for k in (0, 1, 2, 7, 30):
        expected, _ = quad(
            lambda x, k=k: 0.5 * strength * (radius**2 - x**2) * np.cos(k * x) / np.pi, 0.0, radius, epsabs=1e-14
        )
        assert model.coefficients[k] == pytest.approx(expected, abs=1e-13)
    # inside the radius tokens attract in proportion to their distance, beyond it not at all
    velocity = model.pair_velocity([0.3, 0.6, 1.5, 3.0], [0.0], [1.0])
    np.testing.assert_allclose(velocity, [-0.75, -1.5, 0.0, 0.0], atol=0.02)


def test_energy_is_the_double_integral_and_never_falls():
    phi = 2.0 * np.pi * np.arange(64) / 64
    p = DENSITY.density(phi) * (2.0 * np.pi / 64)
    w = 0.3 + 2.0 * (0.5 * np.cos(phi) - 0.2 * np.cos(2.0 * phi) + 0.1 * np.cos(3.0 * phi))
    expected = 0.5 * p @ w[(np.arange(64)[:, None] - np.arange(64)) % 64] @ p
    assert DENSITY.energy(ROUGH) == pytest.approx(expected, rel=1e-14)
    run = solve(PairPotential(ROUGH.coefficients), DENSITY, np.linspace(0.0, 2.0, 21), method="spectral")
    assert np.diff(run.energy).min() > 0.0
    assert np.abs(run.energy_rate_residual).max() < 1e-13


def test_free_energy_never_rises():
    run = solve(ROUGH, DENSITY, np.linspace(0.0, 5.0, 21))
    values = [free_energy(ROUGH, run.measure(i)) for i in range(len(run))]
    assert np.diff(values).max() < 0.0


def test_jacobian_is_the_derivative_of_the_velocity():
    theta, weights = np.array([0.3, 1.1, 2.0, 5.9]), np.array([0.4, 0.1, 0.2, 0.3])
    jacobian = ROUGH.pair_jacobian(theta, weights)
    for j in range(4):
        step = 1e-6 * np.eye(4)[j]
        ahead, behind = (ROUGH.pair_velocity(x, x, weights) for x in (theta + step, theta - step))
        np.testing.assert_allclose(jacobian[:, j], (ahead - behind) / 2e-6, atol=1e-9)


def test_tokens_move_by_the_potential():
    model = PairPotential.hegselmann_krause(1.0)
    theta = np.sort(np.random.default_rng(4).uniform(0.0, 2.0 * np.pi, 3000))
    weights, out = np.full(3000, 1.0 / 3000), np.empty(3000)
    TokenVelocity(model, weights)(theta, out)
    np.testing.assert_allclose(out[::100], model.pair_velocity(theta[::100], theta, weights), atol=1e-13)
    tokens = Atoms.sample_uniform(100, 2)
    run = simulate(PairPotential(ROUGH.coefficients), tokens, [0.0, 1.0], rtol=1e-11)
    atoms = solve(PairPotential(ROUGH.coefficients), tokens, [0.0, 1.0], method="characteristics", rtol=1e-11)
    assert np.abs(run.moments - atoms.moments).max() < 1e-9


def test_linear_theory_takes_pair_potentials():
    assert theory.dominant_mode(PairPotential((0.0, 0.1, 0.2, 0.01))).modes == (2,)
    assert theory.unstable_manifold(PairPotential.kuramoto()).growth_rate == pytest.approx(0.5)


def test_a_model_is_restored_from_its_parameters():
    assert restore_model(json.loads(json.dumps(ROUGH.to_dict()))) == ROUGH


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PairPotential((1.0,)), "are not a row of finite numbers W_0, W_1, ...; give at least two"),
        (lambda: PairPotential((1.0, np.nan)), "are not a row of finite numbers"),
        (lambda: PairPotential(((1.0, 2.0), (3.0, 4.0))), "are not a row of finite numbers"),
        (lambda: PairPotential(np.ones(9000)), "have 8999 modes; give at most 8192"),
        (lambda: PairPotential((0.0, 1.0), -1.0), "diffusion = -1 is not allowed"),
        (lambda: PairPotential.from_function(np.sin), "is not even; give"),
        (lambda: PairPotential.from_function(lambda x: np.abs(x - np.pi)), "256 modes do not resolve the potential"),
        (lambda: PairPotential.from_function(lambda x: x / 0.0 + 1j), "are not finite real numbers"),
        (lambda: PairPotential.from_function(3.0), "is not a function"),
        (lambda: PairPotential.hegselmann_krause(4.0), "radius = 4 is not allowed; give a number from 0.05"),
        (lambda: PairPotential.kuramoto("a"), "strength = 'a' is not a real number"),
    ],
)
def test_what_is_no_potential_is_refused(make, message):
    with pytest.raises(InputError, match=message.replace("...", r"\.\.\.")), np.errstate(all="ignore"):
        make()
