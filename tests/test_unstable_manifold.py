"""The unstable manifold's series, against 12-digit coefficients, closed forms and the equation itself."""

import math

import numpy as np
import pytest

from spectral_mf import InputError, SelfAttention, theory
from spectral_mf.data import reference

CASES = reference("unstable_manifold")["cases"]


@pytest.mark.parametrize("name", CASES)
def test_reference_coefficients(name):
    case = CASES[name]
    expected = np.zeros((7, 7))
    expected[0, 0] = 1.0
    for j, row in case["coefficients"].items():
        for p, value in row.items():
            expected[int(j), int(p)] = value
    manifold = theory.unstable_manifold(SelfAttention(5.0, name.split()[-1]), 3, 6)
    np.testing.assert_allclose(manifold.coefficients, expected, rtol=0, atol=1e-12)
    assert manifold.growth_rate == pytest.approx(case["lambda"], rel=1e-14, abs=0.0)
    assert (manifold.mode, manifold.order) == (3, 6)


@pytest.mark.parametrize(
    ("beta", "mode", "usa_ratio", "sa_ratio", "sa_cubic"),
    [
        (1.0, 1, 1.924511, 1.065429, 0.91497),
        (2.0, 2, 1.172696, 0.818277, 0.92687),
        (5.0, 3, 1.181165, 0.733189, 0.87748),
        (7.0, 4, 1.085604, 0.757183, 0.91751),
        (20.0, 6, 1.161470, 0.696814, 0.85933),
    ],
)
def test_amplitude_equation(beta, mode, usa_ratio, sa_ratio, sa_cubic):
    """c_2m = ratio c_m^2 and c_m' = lambda c_m (1 - cubic |c_m|^2): with c_m = z + a z^3, cubic = -2 a."""
    usa = theory.unstable_manifold(SelfAttention(beta, "none"), order=3)
    sa = theory.unstable_manifold(SelfAttention(beta), order=3)
    assert usa.mode == sa.mode == mode
    assert usa.coefficients[2, 2] == pytest.approx(usa_ratio, abs=5.1e-7)
    assert sa.coefficients[2, 2] == pytest.approx(sa_ratio, abs=5.1e-7)
    assert -2.0 * usa.coefficients[3, 1] == pytest.approx(1.0, abs=1e-13)
    assert -2.0 * sa.coefficients[3, 1] == pytest.approx(sa_cubic, abs=5.1e-6)


@pytest.mark.parametrize("normalization", ["softmax", "none", "peak"])
def test_kuramoto_limit_is_the_poisson_kernel(normalization):
    """At beta = 0, c_p = r^p with r' = r (1 - r^2)/2, so r = z / sqrt(1 + z^2); singular at |z|^2 = 1/2."""
    manifold = theory.unstable_manifold(SelfAttention(0.0, normalization), order=60)
    for p in (1, 2, 5):
        for n in range(12):
            binomial = math.prod((-0.5 * p - i) / (i + 1) for i in range(n))
            assert manifold.coefficients[p + 2 * n, p] == pytest.approx(binomial, rel=1e-12, abs=0.0)
    assert manifold.radius == pytest.approx(math.sqrt(0.5), rel=1e-6)
    z = 0.4
    r = z / math.sqrt(1.0 + z * z)
    np.testing.assert_allclose(manifold(z), r ** np.arange(61), atol=float(manifold.remainder(z)) + 1e-15)
    assert manifold.z_of_level(r) == pytest.approx(z, rel=1e-13, abs=0.0)


@pytest.mark.parametrize(
    ("beta", "normalization", "diffusion", "mode"),
    [
        (5.0, "softmax", 0.0, 3),
        (5.0, "none", 0.0, 3),
        (5.0, "peak", 0.0, 3),
        (5.0, "softmax", 0.05, 2),
        (5.0, "none", 1.5, 2),
        (60.0, "softmax", 0.001, 9),
        (5.0, "softmax", 0.0, 1),
        (0.0, "softmax", 0.1, 1),
    ],
)
def test_series_solves_the_equation(beta, normalization, diffusion, mode):
    """dc/dt along the series is the right-hand side, by the kernel itself on a grid (no Bessel functions)."""
    model = SelfAttention(beta, normalization, diffusion)
    manifold = theory.unstable_manifold(model, mode, 40)
    z = 0.35 * manifold.radius * np.exp(2.2j)
    n = 4 * 40 * mode
    theta = 2.0 * np.pi * np.arange(n) / n
    c = manifold(z)
    k = np.arange(c.size)
    p = 1.0 + 2.0 * (c[1:, None] * np.exp(1j * k[1:, None] * theta)).real.sum(axis=0)
    kernel = np.exp(beta * (np.cos(theta) - (normalization != "none"))) / n  # first column of a circulant matrix
    numerator = np.fft.irfft(np.fft.rfft(-kernel * np.sin(theta)) * np.fft.rfft(p), n)
    velocity = (
        numerator / np.fft.irfft(np.fft.rfft(kernel) * np.fft.rfft(p), n) if normalization == "softmax" else numerator
    )
    rates = -1j * k * np.fft.rfft(velocity * p)[: c.size] / n - diffusion * k**2 * c
    np.testing.assert_allclose(manifold.rates(z), rates, rtol=0, atol=1e-12 * max(1.0, np.abs(rates).max()))
    assert manifold.growth_rate == pytest.approx(float(theory.growth_rate(model, mode)), rel=1e-15, abs=0.0)


def test_rotation_and_vectorised_z():
    manifold = theory.unstable_manifold(SelfAttention(5.0))
    z = np.array([[0.1, 0.2j, -0.3], [0.0, 0.25 * np.exp(1j), 0.5]])
    moments = manifold(z)
    assert moments.shape == (2, 3, 121)
    k = np.arange(121)
    turned = manifold(abs(z[1, 1])) * np.exp(1j * k / 3.0)
    np.testing.assert_allclose(moments[1, 1], turned, atol=1e-15)
    np.testing.assert_array_equal(moments[1, 0], np.eye(1, 121)[0])
    assert not moments[..., k % 3 != 0].any()
    np.testing.assert_allclose(moments[..., 3], z, rtol=0.3)


@pytest.mark.parametrize("normalization", ["softmax", "none"])
@pytest.mark.parametrize("beta", [0.5, 2.0, 5.0, 20.0, 300.0])
def test_radius_and_remainder(beta, normalization):
    """Orders 40 and 90 differ by what `remainder` says, up to the radius, and do not converge beyond it."""
    model = SelfAttention(beta, normalization)
    short, long = (theory.unstable_manifold(model, order=order) for order in (40, 90))
    assert short.radius == pytest.approx(long.radius, rel=2e-3)
    sizes = np.abs(long.coefficients).sum(axis=1)
    assert sizes[-1] * (0.97 * long.radius) ** 90 < sizes[40] * (0.97 * long.radius) ** 40
    assert sizes[-1] * (1.03 * long.radius) ** 90 > sizes[40] * (1.03 * long.radius) ** 40
    for share in (0.5, 0.7, 0.9):
        z = share * short.radius
        error = float(np.abs(long(z)[: short(z).size] - short(z)).max())
        assert error <= 1.1 * float(short.remainder(z)) + 1e-15
    assert short.remainder(short.radius) == math.inf


@pytest.mark.parametrize("diffusion", [0.0, 0.01, 0.1])
def test_inverse_of_the_amplitude(diffusion):
    manifold = theory.unstable_manifold(SelfAttention(5.0, diffusion=diffusion))
    for level in (1e-12, 0.01, 0.3, 0.5):
        z = manifold.z_of_level(level)
        assert abs(manifold(z)[manifold.mode]) == pytest.approx(level, rel=1e-13, abs=0.0)
    assert manifold.z_of_level(0.0) == 0.0


@pytest.mark.parametrize(
    ("beta", "mode", "alpha", "times"),
    [(5.0, 3, 0.001, (0.18635, 0.24771, 0.28054)), (7.0, 4, 0.001, (0.029725, 0.039511, 0.044732))],
)
def test_times_of_the_reference_run(beta, mode, alpha, times):
    """1/(2 pi) + alpha cos(m theta), USA: times at |c_m| = 0.1, 0.3, 0.5, measured with 24,000 particles to 1e-4."""
    manifold = theory.unstable_manifold(SelfAttention(beta, "none"), order=64)
    assert manifold.mode == mode
    z = np.array([manifold.z_of_level(level) for level in (0.1, 0.3, 0.5)])
    np.testing.assert_allclose(np.log(z / (math.pi * alpha)) / manifold.growth_rate, times, rtol=1e-4)


@pytest.mark.parametrize("order", [0, -1, 1.5, True])
def test_bad_order(order):
    with pytest.raises(InputError, match="at least 1"):
        theory.unstable_manifold(SelfAttention(5.0), 3, order)


@pytest.mark.parametrize("mode", [0, -2, 2.5])
def test_bad_mode(mode):
    with pytest.raises(InputError, match="at least 1"):
        theory.unstable_manifold(SelfAttention(5.0), mode)


def test_modes_that_do_not_grow_and_points_out_of_reach():
    with pytest.raises(InputError, match="does not grow"):
        theory.unstable_manifold(SelfAttention(5.0, diffusion=0.3))
    with pytest.raises(InputError, match="does not grow"):
        theory.unstable_manifold(SelfAttention(0.0), 2)
    manifold = theory.unstable_manifold(SelfAttention(5.0))
    for z in (manifold.radius * 1.0001, -1.0, 1j, [0.1, 5.0], math.nan, math.inf):
        with pytest.raises(InputError, match="radius of convergence"):
            manifold(z)
    with pytest.raises(InputError, match="smaller level"):
        manifold.z_of_level(0.9)
    for level in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="from 0 to 1"):
            manifold.z_of_level(level)


def test_resonance_is_refused():
    """Mode 1 at the beta where lambda_2 = 2 lambda_1."""
    from scipy.optimize import brentq

    def excess(beta):
        rates = theory.growth_rate(SelfAttention(beta), [1, 2])
        return float(rates[1] - 2.0 * rates[0])

    beta = brentq(excess, 1.0, 5.0, xtol=1e-15)
    with pytest.raises(InputError, match="resonance"):
        theory.unstable_manifold(SelfAttention(beta), 1)


def test_order_one_is_the_eigenvector():
    manifold = theory.unstable_manifold(SelfAttention(5.0), order=1)
    np.testing.assert_array_equal(manifold.coefficients, np.eye(2))
    np.testing.assert_allclose(manifold(0.2j), [1, 0, 0, 0.2j], atol=1e-17)
