"""Stationary densities with noise and their stability, against closed forms, quadrature, and solves."""

import numpy as np
import pytest
from scipy import optimize, special

from spectral_mf import FourierDensity, InputError, SelfAttention, solve
from spectral_mf.critical_noise import critical_noise
from spectral_mf.solvers.linearised import EvenEquation
from spectral_mf.solvers.stationary import NotFound, stationary_state


def two_peaks():
    return FourierDensity.from_function(lambda theta: np.exp(4.0 * np.cos(2.0 * theta)))


@pytest.mark.parametrize("kappa", [0.1, 0.3, 0.45])
def test_without_temperature_it_is_a_von_mises_density(kappa):
    """r = I_1/I_0(r/κ), and c_k = I_k/I_0(r/κ)."""
    exact = optimize.brentq(lambda r: r - special.ive(1, r / kappa) / special.ive(0, r / kappa), 0.05, 1.0, xtol=1e-15)
    found = stationary_state(SelfAttention(0.0, diffusion=kappa), FourierDensity.von_mises(3.0))
    k = np.arange(1, found.moments.size + 1)
    expected = special.ive(k, exact / kappa) / special.ive(0, exact / kappa)
    assert np.abs(found.moments - expected).max() < 1e-13
    assert found.is_stable


def test_the_limit_of_small_beta():
    """The distance to the von Mises density falls like β."""
    ratios = []
    for normalization in ("none", "softmax"):
        limit, near, nearer = (
            stationary_state(SelfAttention(beta, normalization, 0.3), FourierDensity.von_mises(3.0)).order_parameter
            for beta in (0.0, 1e-2, 1e-3)
        )
        assert limit == pytest.approx(0.773129625370, abs=1e-11)
        ratios.append((near - limit) / (nearer - limit))
    assert ratios == pytest.approx([10.0, 10.0], rel=0.02)


@pytest.mark.parametrize(
    ("beta", "normalization", "kappa", "fold"),
    [(2.0, "none", 0.5, 1), (5.0, "none", 2.0, 1), (5.0, "none", 1.5, 2), (5.0, "softmax", 0.1, 1)],
)
def test_it_is_a_gibbs_density_of_its_own_potential(beta, normalization, kappa, fold):
    """p ∝ exp(Φ/κ), Φ = (1/β) K*p (USA), (1/β) log K*p (SA), by direct sums over the grid."""
    model = SelfAttention(beta, normalization, kappa)
    guess = FourierDensity.von_mises(4.0) if fold == 1 else two_peaks()
    found = stationary_state(model, guess, fold=fold)
    assert found.order_parameter > 0.3
    theta = 2.0 * np.pi * np.arange(512) / 512
    p = found.density.density(theta)
    attention = np.exp(beta * np.cos(theta[:, None] - theta)) @ p * (2.0 * np.pi / 512)
    gibbs = np.exp((attention if normalization == "none" else np.log(attention)) / (beta * kappa))
    assert p == pytest.approx(gibbs / gibbs.mean() / (2.0 * np.pi), abs=1e-12)


@pytest.mark.parametrize(("normalization", "kappa"), [("none", 2.0), ("softmax", 0.1)])
def test_solves_end_in_it_at_the_slowest_rate(normalization, kappa):
    model = SelfAttention(5.0, normalization, kappa)
    found = stationary_state(model, FourierDensity.von_mises(4.0))
    even, odd = found.eigenvalues()
    assert abs(odd[0]) < 1e-10 * abs(odd[5])  # the rotation
    n = found.moments.size
    rates, vectors = np.linalg.eig(EvenEquation(model, n).even_jacobian(found.moments))
    slowest = vectors[:, rates.real.argmax()].real
    start = found.density.moments(n) + 1e-6 * np.append(0.0, slowest)
    span = 1.0 / abs(even[0])
    run = solve(model, FourierDensity(start), [0.0, span], method="spectral", rtol=1e-12)
    distance = np.abs(run.moments[:, 1] - found.order_parameter)
    assert np.log(distance[1] / distance[0]) / span == pytest.approx(even[0], rel=1e-5)


@pytest.mark.parametrize("normalization", ["none", "softmax"])
def test_about_the_uniform_density_eigenvalues_are_growth_rates(normalization):
    model = SelfAttention(5.0, normalization, 0.05)
    even, odd = stationary_state(model, FourierDensity.uniform()).eigenvalues()
    rates = -np.sort(-model.growth_rate(np.arange(1, even.size + 1)))
    assert np.abs(even - rates).max() < 1e-12 * np.abs(rates).max()
    assert np.abs(odd - rates).max() < 1e-12 * np.abs(rates).max()


@pytest.mark.parametrize("normalization", ["none", "softmax"])
def test_jacobians_are_derivatives_of_the_rates(normalization):
    """The even one of `rates`; the odd one of the spectral solver's right-hand side."""
    from spectral_mf.solvers.spectral import SpectralRightHandSide

    model, n, h = SelfAttention(3.0, normalization, 0.2), 24, 1e-5
    equation = EvenEquation(model, n)
    c = 0.5 ** np.arange(1, n + 1)
    direction = np.random.default_rng(3).standard_normal(n) * c
    change = (equation.rates(c + h * direction) - equation.rates(c - h * direction)) / (2.0 * h)
    assert equation.even_jacobian(c) @ direction == pytest.approx(change, abs=1e-8)

    full, rhs = np.zeros((1, 129), dtype=complex), SpectralRightHandSide(model, 256)
    full[0, : n + 1] = np.append(1.0, c)
    rates = []
    for sign in (1.0, -1.0):
        moved, out = full.copy(), np.zeros_like(full)
        moved[0, 1 : n + 1] += sign * 1j * h * direction
        rhs(moved, out)
        rates.append(out[0, 1 : n + 1].imag - 0.2 * equation.k**2 * moved[0, 1 : n + 1].imag)
    assert equation.odd_jacobian(c) @ direction == pytest.approx((rates[0] - rates[1]) / (2.0 * h), abs=1e-8)


def test_two_clusters_are_stable_in_their_symmetry_and_unstable_without():
    model = SelfAttention(5.0, "none", 1.5)
    found = stationary_state(model, two_peaks(), fold=2)
    assert found.order_parameter > 0.5
    equation = EvenEquation(model, found.moments.size, 2)
    assert np.linalg.eigvals(equation.even_jacobian(found.moments)).real.max() < -1.0
    even, odd = found.eigenvalues()
    assert (even > 1e-6).sum() == 1  # one cluster gains what the other loses
    assert (odd > 1e-6).sum() == 1  # the two approach each other
    assert found.n_unstable == 2


def test_more_noise_than_critical_leaves_the_uniform_density():
    model = SelfAttention(2.0, "none", 1.1 * critical_noise(SelfAttention(2.0, "none")))
    found = stationary_state(model, FourierDensity.from_modes({1: 0.05}))
    assert np.abs(found.moments).max() < 1e-12
    assert found.is_uniform
    assert found.is_stable


def by_direct_sums(beta, kappa):
    """c_1 of p ∝ (K*p)^{1/(βκ)}, iterated: sums of positive numbers, which know K*p where Fourier sums do not."""
    theta = 2.0 * np.pi * np.arange(1024) / 1024
    kernel = np.exp(beta * (np.cos(theta[:, None] - theta) - 1.0))
    p = np.exp(20.0 * (np.cos(theta) - 1.0))
    for _ in range(200):
        logarithm = np.log(kernel @ p) / (beta * kappa)
        before, p = p, np.exp(logarithm - logarithm.max())
        if np.abs(p - before).max() < 1e-14:
            break
    return p @ np.cos(theta) / p.sum()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("concentration", [3.0, 20.0])
@pytest.mark.parametrize("kappa", [0.025, 0.02, 0.005, 0.001])
def test_where_the_softmax_sees_no_mass(kappa, concentration):
    """From far guesses Newton's method alone ends at the uniform density, or nowhere."""
    found = stationary_state(SelfAttention(30.0, diffusion=kappa), FourierDensity.von_mises(concentration))
    assert found.order_parameter == pytest.approx(by_direct_sums(30.0, kappa), abs=1e-12)
    assert not found.is_uniform


@pytest.mark.parametrize("kappa", [0.001, 0.0175])
def test_it_does_not_come_back_with_an_unstable_density_of_another_kind(kappa, monkeypatch):
    """The uniform one, and one of three peaks: where Newton's method goes if nothing brings it closer first."""
    monkeypatch.setattr("spectral_mf.solvers.stationary._closer", lambda model, c, fold: c)
    with pytest.raises(NotFound, match=r"arrives only at a density with c_1 = .*, far from the guess \(0\.81\)"):
        stationary_state(SelfAttention(30.0, diffusion=kappa), FourierDensity.von_mises(3.0))


def test_what_is_not_allowed(monkeypatch):
    uniform = FourierDensity.uniform()
    with pytest.raises(InputError, match="diffusion = 0 leaves points"):
        stationary_state(SelfAttention(5.0), uniform)
    with pytest.raises(InputError, match="not even about the angle 0"):
        stationary_state(SelfAttention(5.0, diffusion=0.1), FourierDensity.von_mises(3.0, 1.0))
    with pytest.raises(InputError, match="fold = 0"):
        stationary_state(SelfAttention(5.0, diffusion=0.1), uniform, fold=0)
    with pytest.raises(InputError, match="no smooth density"):
        stationary_state(SelfAttention(5.0, diffusion=0.1), "uniform")
    monkeypatch.setattr("spectral_mf.solvers.stationary.MOST_MODES", 60)
    with pytest.raises(NotFound, match="more than 60 modes"):
        stationary_state(SelfAttention(0.0, diffusion=2e-3), FourierDensity.von_mises(500.0))
