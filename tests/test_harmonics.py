"""Fourier sums and moments at points, against sums of complex exponentials."""

import numpy as np
import pytest

from spectral_mf.harmonics import fourier_sum, point_moments


@pytest.mark.parametrize("n_points", [1, 2047, 2048, 5000])
@pytest.mark.parametrize("n_modes", [0, 1, 60])
def test_fourier_sum(n_points, n_modes):
    rng = np.random.default_rng([n_points, n_modes])
    a = rng.standard_normal((3, n_modes + 1)) + 1j * rng.standard_normal((3, n_modes + 1))
    theta = rng.uniform(-20.0, 20.0, n_points)
    phases = np.exp(1j * np.outer(np.arange(1, n_modes + 1), theta))
    exact = a[:, :1].real + 2.0 * (a[:, 1:] @ phases).real
    np.testing.assert_allclose(fourier_sum(a, theta), exact, rtol=0, atol=1e-13 * (n_modes + 1))


def test_shapes_follow_the_input():
    a = np.ones((2, 3, 5), dtype=complex)
    assert fourier_sum(a, 0.5).shape == (2, 3)
    assert fourier_sum(a, np.zeros((4, 6))).shape == (2, 3, 4, 6)
    assert fourier_sum(a[0, 0], np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("n_points", [1, 2049, 5000])
def test_point_moments(n_points):
    rng = np.random.default_rng(n_points)
    theta, w = rng.uniform(0.0, 6.28, n_points), rng.random(n_points)
    exact = np.exp(-1j * np.outer(np.arange(301), theta)) @ w
    np.testing.assert_allclose(point_moments(theta, w, 300), exact, rtol=0, atol=1e-12 * w.sum())


def test_high_moments_keep_their_size():
    """|c_k| of one atom stays 1: the recurrence loses k roundings, not more."""
    assert abs(np.abs(point_moments([2.0], [1.0], 10_000)) - 1.0).max() < 1e-12
    assert abs(point_moments([2.0], [1.0], 10_000)[-1] - np.exp(-1j * 2e4)) < 1e-11


def test_the_two_are_adjoint():
    """sum_j w_j f(theta_j) = sum_k a_k conj(c_k) for real f with coefficients a."""
    rng = np.random.default_rng(3)
    theta, w = rng.uniform(0.0, 6.28, 50), rng.random(50)
    a = rng.standard_normal(21) + 1j * rng.standard_normal(21)
    c = point_moments(theta, w, 20)
    pairing = (a[0] * c[0]).real + 2.0 * (a[1:] * c[1:].conj()).real.sum()
    assert w @ fourier_sum(a, theta) == pytest.approx(pairing, abs=1e-12)


def test_single_precision_input_is_worked_on_in_double():
    theta = np.linspace(0.0, 6.0, 7, dtype=np.float32)
    assert fourier_sum(np.ones(4, dtype=np.complex64), theta).dtype == np.float64
    np.testing.assert_array_equal(
        point_moments(theta, np.ones(7, dtype=np.float32), 9), point_moments(theta.astype(float), np.ones(7), 9)
    )
