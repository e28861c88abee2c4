"""Densities by moments: values, mass, cells, samples, quantiles, and what no density can be."""

import copy
import pickle
import re
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spectral_mf import FourierDensity, InputError, SelfAttention
from spectral_mf.measure import Measure

TWO_PI = 2.0 * np.pi
small_moments = st.lists(st.complex_numbers(max_magnitude=0.08), min_size=1, max_size=6)


def test_a_density_is_a_measure():
    assert isinstance(FourierDensity.uniform(), Measure)


# ---------------------------------------------------------------- values and mass


@pytest.mark.parametrize(
    ("kappa", "theta", "value"),
    [
        (0, 2.0, 0.159154943091895336),
        (4, 0.0, 0.768857323404653442),
        (4, 1.0, 0.122255686245621514),
        (800, 0.1, 0.207327254445879885),
        (1e4, 0.0, 39.8937293404733111),
        (1e6, 0.0, 398.942230533625811),
    ],
)
def test_von_mises_density(kappa, theta, value):
    turned = FourierDensity.von_mises(kappa, 1.5)
    assert FourierDensity.von_mises(kappa).density(theta) == pytest.approx(value, rel=1e-12, abs=0.0)
    assert turned.density(theta + 1.5) == pytest.approx(value, rel=1e-11, abs=0.0)


@pytest.mark.parametrize("kappa", [0, 1e-300, 1e-8, 1.0, 700.0, 800.0, 1e4, 1e6])
def test_von_mises_is_positive_and_resolved(kappa):
    density = FourierDensity.von_mises(kappa).require_positive()
    assert density.moments(5)[0] == 1.0
    assert np.abs(density.moments(density.n_modes)[-1]) < 1e-14 or kappa == 0


@pytest.mark.parametrize("kappa", [-1.0, np.nan, np.inf, 1.1e6])
def test_bad_concentrations(kappa):
    with pytest.raises(InputError, match=r"kappa = .*give a number from 0 to 1e"):
        FourierDensity.von_mises(kappa)


def test_bad_mean():
    with pytest.raises(InputError, match="mean"):
        FourierDensity.von_mises(1.0, np.nan)


def test_from_modes_is_one_plus_twice_the_moment():
    density = FourierDensity.from_modes({3: 0.01, 5: 0.02j})
    theta = np.linspace(-3.0, 9.0, 20)
    exact = (1.0 + 0.02 * np.cos(3 * theta) - 0.04 * np.sin(5 * theta)) / TWO_PI
    np.testing.assert_allclose(density.density(theta), exact, rtol=0, atol=1e-15)
    assert density.n_modes == 5
    assert FourierDensity.from_modes({np.int64(3): np.complex64(0.5)}).moments(3)[3] == 0.5
    assert FourierDensity.from_modes({}).n_modes == 0


@given(small_moments, st.integers(1, 40))
def test_cell_means_are_exact_integrals_and_hold_the_mass(values, n):
    """The mean over [theta_j - h/2, theta_j + h/2] from the antiderivative; more modes than cells included."""
    density = FourierDensity([1.0, *values])
    means = density.cell_means(n)
    assert means.shape == (n,)
    assert means.sum() * TWO_PI / n == pytest.approx(1.0, abs=1e-14)
    k = np.arange(1, len(values) + 1)
    edges = TWO_PI * (np.arange(n + 1) - 0.5) / n
    primitive = edges / TWO_PI + (np.exp(1j * np.outer(edges, k)) @ (np.array(values) / (1j * k))).real / np.pi
    np.testing.assert_allclose(means * TWO_PI / n, np.diff(primitive), rtol=0, atol=1e-14)


@given(small_moments, small_moments, st.floats(0.0, 1.0))
def test_densities_are_linear_in_the_measure(one, two, share):
    a, b = FourierDensity([1.0, *one]), FourierDensity([1.0, *two])
    mixed = FourierDensity(share * a.moments(6) + (1.0 - share) * b.moments(6))
    theta = np.linspace(0.0, 6.0, 11)
    exact = share * a.density(theta) + (1.0 - share) * b.density(theta)
    np.testing.assert_allclose(mixed.density(theta), exact, rtol=0, atol=1e-15)


@given(small_moments, st.floats(-7.0, 7.0))
def test_rotation_and_reflection(values, turn):
    density = FourierDensity([1.0, *values])
    theta = np.linspace(0.0, 6.0, 11)
    expected = density.density(theta)
    np.testing.assert_allclose(density.rotated(turn).density(theta + turn), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(density.reflected().density(-theta), expected, rtol=0, atol=1e-15)


@given(small_moments, st.sampled_from([0.3, 1.0, 5.0, 25.0]))
def test_energy_is_the_double_integral(values, beta):
    density = FourierDensity([1.0, *values])
    n = 256
    theta = TWO_PI * np.arange(n) / n
    mass = density.density(theta) * TWO_PI / n
    kernel = np.exp(beta * (np.cos(theta[:, None] - theta) - 1.0))
    exact = mass @ kernel @ mass / (2.0 * beta)
    assert density.energy(SelfAttention(beta, "peak")) == pytest.approx(exact, rel=1e-12, abs=0.0)


def test_moments_padded_and_cut():
    density = FourierDensity.from_modes({2: 0.1})
    np.testing.assert_array_equal(density.moments(4), [1, 0, 0.1, 0, 0])
    np.testing.assert_array_equal(density.moments(1), [1, 0])
    density.moments(4)[2] = 7.0
    assert density.moments(2)[2] == 0.1


def test_input_is_copied():
    c = np.array([1.0, 0.1 + 0j])
    density = FourierDensity(c)
    c[1] = 9.0
    assert density.moments(1)[1] == 0.1


def test_single_precision_moments_are_worked_on_in_double():
    density = FourierDensity(np.array([1.0, 0.1], dtype=np.complex64))
    assert density.moments(1).dtype == np.complex128
    assert density.cell_means(8).dtype == np.float64
    assert density.cell_means(8).sum() * TWO_PI / 8 == pytest.approx(1.0, abs=1e-15)


def test_vector_and_copies_are_exact():
    density = FourierDensity.von_mises(7.0, 1.0)
    for twin in (
        FourierDensity.from_vector(density.to_vector()),
        copy.deepcopy(density),
        pickle.loads(pickle.dumps(density)),
    ):
        np.testing.assert_array_equal(twin.moments(30), density.moments(30))


# ---------------------------------------------------------------- bad moments


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        ([], "shape"),
        (1.0, "shape"),
        ([[1.0]], "shape"),
        ([0.0, 0.0], "c_0 = 0"),
        ([2.0, 0.1], "c_0 = 2"),
        ([1.0 + 1e-6, 0.1], "total mass"),
        ([1.0, np.nan], "c_1"),
        ([1.0, 0.0, np.inf], "c_2"),
        ([np.nan], "c_0"),
        ([1.0, 0.0, 1.01], r"\|c_2\|"),
        ([1.0, 0.8 + 0.8j], r"\|c_1\|"),
        (["x"], "not numbers"),
        (None, "shape"),
        ([1.0, [2.0]], "not numbers"),
    ],
)
def test_bad_moments(moments, message):
    with pytest.raises(InputError, match=message):
        FourierDensity(moments)


@pytest.mark.parametrize("modes", [{0: 0.1}, {-1: 0.1}, {1.5: 0.1}, {True: 0.1}, {"1": 0.1}, {None: 1}, {np.nan: 0.1}])
def test_bad_modes(modes):
    with pytest.raises(InputError, match="integers k >= 1"):
        FourierDensity.from_modes(modes)


@pytest.mark.parametrize("value", ["0.1", None, True, [0.1]])
def test_bad_values_of_modes(value):
    with pytest.raises(InputError, match=r"c_2 = .* is not a number"):
        FourierDensity.from_modes({2: value})


@pytest.mark.parametrize("value", [np.nan, np.inf, 1.5])
def test_values_that_no_measure_has(value):
    with pytest.raises(InputError, match="c_2"):
        FourierDensity.from_modes({2: value})


# ---------------------------------------------------------------- positivity


def test_dip_between_grid_points_is_found():
    """Fejer-like kernels: their zeros lie between the points of any grid that is a small multiple of the modes."""
    k_max = 40
    for turn in np.linspace(0.0, TWO_PI / 320, 7):
        k = np.arange(k_max + 1)
        fejer = 1.0 - k / (k_max + 1.0)  # >= 0, with zeros
        density = FourierDensity(fejer).rotated(turn)
        density.require_positive()
        dipped = fejer.copy()
        dipped[1:] *= 1.0 + 1e-9
        dipped[1:] = np.minimum(dipped[1:], 1.0)
        with pytest.raises(InputError, match="negative at theta"):
            FourierDensity(dipped).rotated(turn).require_positive()


@pytest.mark.parametrize("place", np.linspace(1.0, 1.1, 9))
def test_place_and_size_of_the_minimum(place):
    """(1 - 2 a cos(theta - place)) / 2 pi with a just above 1/2: negative in a narrow dip."""
    a = 0.5 + 1e-6
    density = FourierDensity([1.0, -a]).rotated(place)
    with pytest.raises(InputError) as caught:
        density.require_positive()
    angle, lowest = re.search(r"theta = ([\d.]+) \((.*)\)", str(caught.value)).groups()
    assert float(angle) == pytest.approx(place, abs=6e-4)
    assert float(lowest) == pytest.approx(-2e-6 / TWO_PI, rel=5e-3)


def test_touching_zero_is_positive():
    FourierDensity.from_modes({1: 0.5}).require_positive()
    FourierDensity.from_modes({7: 0.5j}).require_positive()
    assert FourierDensity.uniform().require_positive().n_modes == 0


# ---------------------------------------------------------------- white noise and functions


def test_white_noise_has_mass_one_and_the_size_it_says():
    sigma, n = 0.01, 9999
    draws = np.array([FourierDensity.white_noise(sigma, n, seed).moments(64) for seed in range(200)])
    np.testing.assert_array_equal(draws[:, 0], 1.0)
    power = np.abs(draws[:, 1:]) ** 2 * n / sigma**2  # Exp(1); the mean of 12800 has a standard error of 1 / 113
    assert power.mean() == pytest.approx(1.0, abs=5.0 / np.sqrt(power.size))
    assert FourierDensity.white_noise(sigma, n, 3).cell_means(100).sum() * TWO_PI / 100 == pytest.approx(1, abs=1e-14)


def test_low_modes_of_white_noise_do_not_depend_on_how_many_are_kept():
    few, many = (FourierDensity.white_noise(0.01, 9999, 5, n_modes=n) for n in (128, 512))
    np.testing.assert_array_equal(few.moments(20), many.moments(20))
    np.testing.assert_array_equal(few.moments(128), FourierDensity.white_noise(0.01, 9999, 5, n_modes=128).moments(128))
    assert (few.moments(20)[1:] != FourierDensity.white_noise(0.01, 9999, 6).moments(20)[1:]).all()


def test_white_noise_that_makes_a_negative_density_is_refused():
    with pytest.raises(InputError, match="negative at theta"):
        FourierDensity.white_noise(5.0, 1000, 0, n_modes=500)
    for bad in ({"sigma": -1.0}, {"sigma": np.nan}, {"n_points": 1}, {"n_modes": 0}):
        with pytest.raises(InputError):
            FourierDensity.white_noise(**({"sigma": 0.01, "n_points": 100, "seed": 0} | bad))


def test_from_function_normalises_and_resolves():
    density = FourierDensity.from_function(lambda t: 7.0 * np.exp(4.0 * np.cos(t - 1.0)))
    np.testing.assert_allclose(density.moments(20), FourierDensity.von_mises(4.0, 1.0).moments(20), rtol=0, atol=1e-15)
    assert density.n_modes < 40
    assert FourierDensity.from_function(lambda t: 3.0).n_modes == 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: np.where(t > 3.0, np.nan, 1.0), "not finite"),
        (lambda t: np.where(t == 0.0, np.inf, 1.0), "not finite"),
        (lambda t: np.cos(t), "negative"),
        (lambda t: 0.0 * t, "zero everywhere"),
        (lambda t: np.where(t < 1.0, 1.0, 0.0), "do not resolve"),
    ],
)
def test_bad_functions(function, message):
    with pytest.raises(InputError, match=message):
        FourierDensity.from_function(function)


# ---------------------------------------------------------------- samples and quantiles


def test_a_million_draws_of_von_mises():
    """R_1, R_2 and the mean angle within 5.5 standard errors (false alarms below 1e-7)."""
    tokens = FourierDensity.von_mises(4.0, 3.0).sample(1_000_000, seed=1)
    assert tokens.angles.min() >= 0.0
    assert tokens.angles.max() < TWO_PI
    c = tokens.moments(2)
    assert abs(c[1]) == pytest.approx(0.863522611024550583, abs=5.5e-4 * 0.14)
    assert abs(c[1]) == pytest.approx(0.8635226110, abs=4e-4)
    assert abs(c[2]) == pytest.approx(0.5682386945, abs=1e-3)
    assert -np.angle(c[1]) % TWO_PI == pytest.approx(3.0, abs=1e-3 * 5)


def test_sample_follows_the_distribution():
    """Kolmogorov-Smirnov against the exact distribution function; fixed seed, p > 1e-5."""
    density = FourierDensity.from_modes({1: 0.3, 2: 0.1 - 0.1j})
    tokens = density.sample(20_000, seed=7)

    def cdf(x):
        k = np.arange(1, 3)
        c = density.moments(2)[1:]
        return x / TWO_PI + ((np.exp(1j * np.outer(x, k)) - 1.0) @ (c / (1j * k))).real / np.pi

    assert stats.kstest(tokens.angles, cdf).pvalue > 1e-5
    np.testing.assert_array_equal(tokens.angles, density.sample(20_000, seed=7).angles)
    assert (tokens.angles != density.sample(20_000, seed=8).angles).all()


@pytest.mark.parametrize("kappa", [0.0, 1.0, 100.0, 1e4])
def test_quantiles_invert_the_distribution_function(kappa):
    with mp.workdps(25):
        n = 6
        angles = FourierDensity.von_mises(kappa, np.pi).quantiles(n).angles
        assert (np.diff(angles) > 0).all()
        norm = TWO_PI * mp.besseli(0, kappa) * mp.exp(-mp.mpf(kappa)) if kappa < 1e3 else None
        step = 1 / np.sqrt(max(kappa, 1.0))
        marks = [mp.mpf(0)] + [mp.pi - mp.mpf(step) * 2**j for j in range(9, -2, -1) if step * 2**j < 3.0]
        density = lambda x: mp.exp(mp.mpf(kappa) * (mp.cos(x - mp.pi) - 1))  # noqa: E731
        if norm is None:
            norm = 2 * mp.quad(density, [*marks, mp.pi])
        for j in (0, 1, 2):
            end = mp.mpf(float(angles[j]))
            mass = mp.quad(density, [m for m in marks if m < end] + [end]) / norm
            assert float(mass) == pytest.approx((j + 0.5) / n, abs=2e-13)
    np.testing.assert_allclose(angles + angles[::-1], TWO_PI, rtol=0, atol=1e-13)


def test_quantiles_over_a_zero_of_the_density_and_of_the_uniform():
    uniform = FourierDensity.uniform().quantiles(4).angles
    np.testing.assert_allclose(uniform, TWO_PI * (np.arange(4) + 0.5) / 4, rtol=0, atol=1e-14)
    touching = FourierDensity.from_modes({1: -0.5}).quantiles(1001).angles  # p = 0 at theta = 0
    assert (np.diff(touching) > 0).all()
    x = touching
    np.testing.assert_allclose((x - np.sin(x)) / TWO_PI, (np.arange(1001) + 0.5) / 1001, rtol=0, atol=1e-14)


def test_samples_of_what_is_no_density_are_refused():
    negative = FourierDensity.from_modes({1: 0.6})
    for draw in (partial(negative.sample, 10, seed=0), partial(negative.quantiles, 10)):
        with pytest.raises(InputError, match="negative at theta"):
            draw()
    for n in (0, -1):
        with pytest.raises(InputError, match="give an integer of at least 1"):
            FourierDensity.uniform().sample(n, seed=0)
        with pytest.raises(InputError, match="give an integer of at least 1"):
            FourierDensity.uniform().quantiles(n)


def test_representation_tells_size():
    assert repr(FourierDensity.uniform()) == "FourierDensity(0 modes)"
    assert "|c_3| = 0.01" in repr(FourierDensity.from_modes({3: 0.01}))
