"""Ensembles against single runs, and first passage times against an independent root search and theory."""

import numpy as np
import pytest
from scipy.optimize import brentq

from spectral_mf.attention_head import AttentionHead
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.multi_head_attention import MultiHeadAttention
from spectral_mf.self_attention import SelfAttention
from spectral_mf.solvers.ensemble import first_passage_times, solve_ensemble
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.spectral import march_spectral
from spectral_mf.trajectory import Snapshot


def random_moments(n, n_modes, n_tokens, seed):
    normal = np.random.default_rng(seed).standard_normal((n, n_modes, 2))
    c = np.ones((n, n_modes + 1), dtype=complex)
    c[:, 1:] = (normal[..., 0] + 1j * normal[..., 1]) / np.sqrt(2 * n_tokens)
    return c


def single(model, c, times, rtol=1e-12):
    start = Snapshot(0.0, FourierDensity(c), "spectral", 0)
    marching = march_spectral(model, start, np.asarray(times, dtype=float), MarchOptions(rtol=rtol))
    return np.array([s.measure.moments(c.size - 1) for s in marching])


@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_each_density_is_solved_as_if_alone(normalization):
    model = SelfAttention(5.0, normalization)
    c = random_moments(40, 12, 1e4, seed=3)
    c[7] = np.eye(1, 13)  # the uniform density among them
    times = np.array([0.0, 2.0, 3.0]) / float(model.growth_rate(3))
    together = solve_ensemble(model, c, times, rtol=1e-10)
    np.testing.assert_array_equal(together[:, 0], c)
    np.testing.assert_array_equal(together[7, -1], c[7])
    for i in (0, 20, 39):
        np.testing.assert_allclose(together[i, 1:], single(model, c[i], times[1:]), atol=1e-9)


def test_the_error_of_a_small_perturbation_is_measured_against_its_own_size():
    model = SelfAttention(5.0)
    c = np.zeros((2, 13), dtype=complex)
    c[:, 0] = 1.0
    c[0, 12] = 1e-2  # hardly moves, and ten orders larger than what is fast
    c[1, 3] = 1e-12
    t = 6.0 / float(model.growth_rate(3))
    together = solve_ensemble(model, c, [0.0, t], rtol=1e-10)
    assert together[1, 1, 3].real / 1e-12 == pytest.approx(np.exp(6.0), rel=1e-8)  # its square is 1e-24


@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_each_density_under_its_own_beta(normalization):
    betas = np.geomspace(0.5, 8.0, 20)  # more than one block, and kernels of different widths
    models = [SelfAttention(beta, normalization) for beta in betas]
    c = random_moments(20, 12, 1e4, seed=4)
    t = 2.5 / max(float(model.growth_rate(k)) for model in models for k in range(1, 6))
    together = solve_ensemble(models, c, [0.0, t], rtol=1e-10)
    for i in (0, 3, 15, 16, 19):
        np.testing.assert_allclose(together[i, 1], single(models[i], c[i], [t])[0], atol=1e-9)


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ([SelfAttention(1.0)], "1 models for 2 densities"),
        ([SelfAttention(1.0), SelfAttention(1.0, "none")], "with and without softmax"),
        ([SelfAttention(1.0), SelfAttention(1.0, diffusion=0.1)], "different diffusion"),
        ([SelfAttention(1.0), MultiHeadAttention([AttentionHead(np.eye(2), np.eye(2))])], "one by one"),
        ([SelfAttention(1.0), 3], "model"),
    ],
)
def test_models_that_cannot_be_solved_together_are_refused(models, words):
    with pytest.raises(InputError, match=words):
        solve_ensemble(models, random_moments(2, 4, 1e3, seed=1), [0.0, 0.1])


def test_diffusion_in_an_ensemble():
    model = SelfAttention(5.0, diffusion=0.05)
    c = random_moments(3, 8, 1e3, seed=5)
    together = solve_ensemble(model, c, [0.0, 4.0], rtol=1e-10)
    for i in range(3):
        np.testing.assert_allclose(together[i, 1], single(model, c[i], [4.0])[0], atol=1e-9)


def test_first_passage_agrees_with_a_root_search_on_single_runs():
    model = SelfAttention(2.0, "none")
    c = random_moments(6, 16, 16000, seed=11)
    times = first_passage_times(model, c, 2, 0.3, t_end=20.0)
    for i in range(6):
        exact = brentq(
            lambda t, i=i: abs(single(model, c[i], [t])[0, 2]) - 0.3, times[i] - 0.02, times[i] + 0.02, xtol=1e-9
        )
        assert times[i] == pytest.approx(exact, abs=2e-5)


def test_first_passage_of_one_mode_follows_the_logistic_law():
    # amplitude equation of the dominant mode, USA: t = (ln(R / R_0) - ln((1 - R^2)/(1 - R_0^2)) / 2) / lambda, to 0.1 %
    model = SelfAttention(5.0, "none")
    start = np.array([[1.0, 0, 0, np.pi * 0.01], [1.0, 0, 0, np.pi * 0.001]])
    measured = first_passage_times(model, start, 3, 0.5, t_end=1.0)
    np.testing.assert_allclose(measured, [0.15644, 0.28054], atol=2e-4)


def test_what_never_passes_is_infinite_and_what_has_passed_is_at_zero():
    model = SelfAttention(2.0, "none")
    c = np.zeros((3, 4), dtype=complex)
    c[:, 0] = 1.0
    c[0, 3] = 0.05  # clusters by mode 3 alone: mode 2 stays zero
    c[1, 2] = 0.4
    c[2, 2] = 1e-6  # too small to get there in time
    passed = first_passage_times(model, c, 2, 0.3, t_end=5.0)
    assert np.isinf(passed[0])
    assert passed[1] == 0.0
    assert np.isinf(passed[2])


@pytest.mark.parametrize(
    ("moments", "mode", "level", "message"),
    [
        (np.ones(3), 1, 0.3, "shape"),
        (np.ones((2, 3)) * 0.5, 1, 0.3, "c_0 = 1"),
        (np.eye(1, 4), 4, 0.3, "mode = 4"),
        (np.eye(1, 4), 2, 1.5, "level = 1.5"),
    ],
)
def test_bad_input(moments, mode, level, message):
    with pytest.raises(InputError, match=message):
        first_passage_times(SelfAttention(2.0), moments, mode, level, t_end=1.0)
