"""Linearisation about any density, against growth rates, differences of the nonlinear equation, and quadrature."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import i0, i1, ive

from spectral_mf import (
    Atoms,
    AttentionHead,
    FourierDensity,
    InputError,
    MultiHeadAttention,
    PairPotential,
    SelfAttention,
)
from spectral_mf.solvers.spectral import SpectralRightHandSide
from spectral_mf.theory import spectrum

UNIFORM = FourierDensity.uniform()
GENERAL = AttentionHead([[1.2, 0.3], [-0.1, 0.8]], [[0.9, 0.2], [0.1, -0.4]], 3.0)
DENSITY = FourierDensity.from_modes({1: 0.2, 2: 0.1j, 3: 0.05 - 0.02j})


@pytest.mark.parametrize(
    "model", [SelfAttention(5.0), SelfAttention(3.0, "none", 0.1), PairPotential((0.0, 0.5, 0.2, -0.1), 0.01)]
)
def test_about_the_uniform_density_each_mode_has_its_rate_twice(model):
    found = spectrum(model, UNIFORM, n_modes=20)
    expected = np.sort(np.repeat(model.growth_rate(np.arange(1, 21)), 2))[::-1]
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    assert found.residual < 1e-15
    assert found.unstable
    k = int(np.argmax(model.growth_rate(np.arange(1, 21)))) + 1
    assert np.abs(np.delete(found.modes[0], k)).max() < 1e-12


@pytest.mark.parametrize(
    "model",
    [
        SelfAttention(2.0, diffusion=0.05),
        MultiHeadAttention([GENERAL], diffusion=0.02),
        MultiHeadAttention([GENERAL, GENERAL], "none"),
        PairPotential((0.0, 0.5, 0.2), 0.01),
    ],
)
def test_the_matrix_is_the_derivative_of_the_nonlinear_equation(model):
    n = 24
    found = spectrum(model, DENSITY, n_modes=n)
    right = SpectralRightHandSide(model, 256)

    def rates(c):
        moments, out = np.zeros((1, 129), dtype=complex), np.empty((1, 129), dtype=complex)
        moments[0, 0], moments[0, 1 : n + 1] = 1.0, c
        right(moments, out)
        transport = out[0, 1 : n + 1]
        return transport - model.diffusion * np.arange(1, n + 1) ** 2 * c

    base, step = DENSITY.moments(n)[1:], 1e-5
    matrix = []
    for unit in (1.0, 1j):
        for j in range(n):
            change = step * unit * np.eye(n)[j]
            column = (rates(base + change) - rates(base - change)) / (2.0 * step)
            matrix.append(np.concatenate([column.real, column.imag]))
    values = np.linalg.eigvals(np.array(matrix).T)
    for value in found.eigenvalues[:6]:
        assert np.abs(values - value).min() < 1e-6 * np.abs(values).max()
    assert found.residual == pytest.approx(np.abs(rates(base)).max(), rel=1e-10, abs=0.0)


def test_a_uniform_density_under_an_indefinite_matrix():
    # V = B = diag(1, -1): <x, B y> = cos(theta + phi), so the uniform density is stationary, and mode k becomes its
    # mirror image: dc_k/dt = lambda_k conj(c_k), eigenvalues of both signs
    beta = 2.0
    matrix = [[1.0, 0.0], [0.0, -1.0]]
    found = spectrum(MultiHeadAttention([AttentionHead(matrix, matrix, beta)]), UNIFORM, n_modes=12)
    k = np.arange(1, 13)
    rates = k**2 * ive(k, beta) / (beta * ive(0, beta))
    assert found.residual < 1e-15
    np.testing.assert_allclose(found.eigenvalues, np.sort(np.concatenate([rates, -rates]))[::-1], atol=1e-13)


def test_the_stationary_density_of_noisy_oscillators_is_stable_but_for_its_rotation():
    noise = 0.3
    r = brentq(lambda r: i1(r / noise) / i0(r / noise) - r, 0.3, 0.99, xtol=1e-15)
    density = FourierDensity.von_mises(r / noise)
    found = spectrum(PairPotential.kuramoto(1.0, noise), density)
    assert found.residual < 1e-14
    assert abs(found.eigenvalues[0]) < 1e-11
    assert found.eigenvalues[1].real < -0.1
    turned = -1j * np.arange(9) * density.moments(8)  # derivative by a rotation
    np.testing.assert_allclose(np.abs(found.modes[0, :9]), np.abs(turned) / np.abs(turned).max(), atol=1e-10)
    assert not found.unstable


def test_the_softmax_has_to_see_a_hundred_millionth_of_its_mean():
    # von Mises of concentration beta: Z falls to 1/I_0(beta)^2 of its mean, 1.3e-7 at beta = 10 and 2.8e-9 at 12
    assert spectrum(SelfAttention(10.0), FourierDensity.von_mises(10.0)).eigenvalues.size
    with pytest.raises(InputError, match=r"falls to 2\.8e-09 of its mean"):
        spectrum(SelfAttention(12.0), FourierDensity.von_mises(12.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SelfAttention, UNIFORM), "is not a model"),
        ((SelfAttention(30.0), FourierDensity.von_mises(60.0)), "softmax's sum falls to .* of its mean"),
        ((SelfAttention(1.0), Atoms([0.0])), "has no linearisation here; give a FourierDensity"),
    ],
)
def test_what_cannot_be_linearised_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        spectrum(*arguments)


@pytest.mark.parametrize("n_modes", [0, 2000, 1.5])
def test_numbers_of_modes_are_checked(n_modes):
    with pytest.raises(InputError, match="n_modes"):
        spectrum(SelfAttention(1.0), UNIFORM, n_modes=n_modes)
