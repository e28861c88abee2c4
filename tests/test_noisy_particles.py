"""Tokens with noise: the scheme's order, its law without interaction, and the equation of their density."""

import numpy as np
import pytest
from scipy import stats

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention, Trajectory, solve
from spectral_mf.validation.fast_sums import token_moments
from spectral_mf.validation.noisy_particles import HeunStep, Increments, simulate_noisy
from spectral_mf.validation.particles import simulate

START = FourierDensity.from_modes({1: 0.25, 2: 0.1j})
MODES = 40


def moments_of_the_scheme(model, t_end, n_steps):
    """Moments that infinitely many tokens have after steps of the scheme, by quadrature instead of random numbers.

    The density's grid points times Gauss-Hermite nodes of the increment are weighted tokens; the moments after each
    step make the next density.
    """
    theta = 2.0 * np.pi * np.arange(128) / 128
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    moments, h = START.moments(MODES), t_end / n_steps
    for _ in range(n_steps):
        p = FourierDensity.from_vector(moments.view(np.float64)).density(theta)
        masses = np.outer(p * (2.0 * np.pi / 128), weights).ravel()
        move = HeunStep(model, masses)
        moved = move(np.repeat(theta, nodes.size), h, np.tile(np.sqrt(h) * nodes, theta.size))
        moments = token_moments(moved, masses, MODES)
    return moments


@pytest.mark.parametrize(("normalization", "kappa"), [("softmax", 0.3), ("none", 0.6)])
def test_the_bias_falls_like_the_square_of_the_step(normalization, kappa):
    model = SelfAttention(1.5, normalization, kappa)
    exact = solve(model, START, [0.0, 1.0], method="spectral", rtol=1e-13).moments[-1, :4]
    biases = [np.abs(moments_of_the_scheme(model, 1.0, n)[:4] - exact).max() for n in (8, 16, 32, 64)]
    orders = np.log2(np.array(biases[:-1]) / biases[1:])
    assert orders[-1] == pytest.approx(2.0, abs=0.05)
    assert np.abs(orders - 2.0)[1] < np.abs(orders - 2.0)[0]
    assert 1e-7 < biases[-1] < 1e-3


@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_tokens_agree_with_the_density(normalization):
    """False alarm 1e-4: Student's intervals of 24 replicates for 12 numbers."""
    model = SelfAttention(2.0, normalization, 0.2 if normalization == "softmax" else 0.5)
    times = [0.0, 1.0, 2.5]
    exact = solve(model, START, times, method="spectral").moments[1:, 1:4].ravel()
    found = np.array([
        simulate_noisy(model, START.sample(4000, 100 + i), times, step=0.05, seed=i).moments[1:, 1:4].ravel()
        for i in range(24)
    ])  # fmt: skip
    values, wanted = np.hstack([found.real, found.imag]), np.hstack([exact.real, exact.imag])
    errors = values.std(axis=0, ddof=1) / np.sqrt(24)
    deviates = np.abs(values.mean(axis=0) - wanted) / errors
    assert errors.max() < 0.012
    assert deviates.max() < stats.t.ppf(1.0 - 1e-4 / 24, 23)


def test_a_token_alone_diffuses():
    """E cos = e^{-κt}; false alarm 6e-5 (4 standard errors). Alone it feels no velocity, so one run is many steps."""
    model, n, h = SelfAttention(1.0, diffusion=0.7), 5000, 0.8
    run = simulate_noisy(model, Atoms([0.0]), h * np.arange(n + 1.0), step=h, seed=11, n_modes=1, n_cells=4)
    sample = np.cos(np.diff(np.unwrap(np.array([run.measure(i).angles[0] for i in range(n + 1)]))))
    assert abs(sample.mean() - np.exp(-0.7 * h)) < 4.0 * sample.std() / np.sqrt(n)


def test_without_noise_it_is_heuns_rule():
    tokens = START.quantiles(500)
    exact = simulate(SelfAttention(2.0), tokens, [0.0, 1.0], rtol=1e-12).moments[-1, :4]
    errors = [
        np.abs(simulate_noisy(SelfAttention(2.0), tokens, [0.0, 1.0], step=h, seed=0).moments[-1, :4] - exact).max()
        for h in (0.1, 0.05, 0.025)
    ]
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.1)
    assert errors[2] < 1e-4


def test_increments_are_the_seeds_own():
    one, other = Increments(3, 5), Increments(3, 5)
    assert (one(7, 0.1) == other(7, 0.1)).all()
    assert (one(7, 0.1) != one(8, 0.1)).all()
    assert (one(7, 0.1) != Increments(4, 5)(7, 0.1)).all()
    assert one(7, 0.4) == pytest.approx(2.0 * one(7, 0.1), rel=1e-15, abs=0.0)


def test_a_longer_run_repeats_a_shorter_one_and_is_stored(tmp_path):
    model, tokens = SelfAttention(2.0, diffusion=0.2), START.sample(300, 1)
    short = simulate_noisy(model, tokens, [0.0, 0.5], step=0.1, seed=9)
    long = simulate_noisy(model, tokens, [0.0, 0.5, 1.0], step=0.1, seed=9)
    assert (long.measure(1).angles == short.measure(1).angles).all()
    long.save(tmp_path / "noisy.h5")
    loaded = Trajectory.load(tmp_path / "noisy.h5")
    assert (loaded.measure(2).angles == long.measure(2).angles).all()
    assert loaded.configuration["seed"] == 9
    assert set(loaded.method) == {"noisy particles"}


def test_what_is_not_allowed():
    model, tokens = SelfAttention(2.0, diffusion=0.2), Atoms([0.0, 1.0])
    with pytest.raises(InputError, match="step = 0 is not allowed"):
        simulate_noisy(model, tokens, 1.0, step=0.0, seed=0)
    with pytest.raises(InputError, match="seed = -1"):
        simulate_noisy(model, tokens, 1.0, step=0.1, seed=-1)
    with pytest.raises(InputError, match="are not tokens"):
        simulate_noisy(model, START, 1.0, step=0.1, seed=0)
