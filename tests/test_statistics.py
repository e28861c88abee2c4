"""Statistics of tokens: uniformity, pairs, clusters, peaks, intervals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_mf import Atoms, FourierDensity, InputError
from spectral_mf.circular import circular_mean
from spectral_mf.diagnostics import find_clusters
from spectral_mf.validation.replicates import sample_tokens
from spectral_mf.validation.statistics import (
    Interval,
    close_pair_share,
    mean_interval,
    proportion_interval,
    rayleigh_tail,
    rayleigh_test,
    token_clusters,
    uniform_close_pair_share,
)

TWO_PI = 2.0 * np.pi


# ---- uniformity


@pytest.mark.parametrize(
    ("n", "resultant", "expected"),
    [
        (10, 0.5, 0.07933452),
        (10, 0.3, 0.4171936),
        (100, 0.3, 1.04587136e-4),
        (100, 0.15, 0.10525026),
        (50, 0.2, 0.13533857),
    ],
)
def test_rayleigh_tail(n, resultant, expected):
    assert rayleigh_tail(n, resultant) == pytest.approx(expected, rel=2e-7)


@pytest.mark.parametrize("n", range(2, 9))
def test_walks_of_n_steps_end_within_one_step_once_in_n_plus_1(n):
    # Rayleigh's walk: P(R < 1) = 1 / (n + 1)
    assert rayleigh_tail(n, 1.0 / n) == pytest.approx(n / (n + 1), abs=1e-8 if n == 4 else 1e-11)


@pytest.mark.parametrize(
    ("n", "resultant", "expected"),
    [
        (6, 0.7, 0.045377212968378094778),
        (12, 0.45, 0.086004604935094390711),
        (30, 0.4, 0.007284719540214601416),
    ],
)
def test_rayleigh_tail_is_kluyvers_integral(n, resultant, expected):
    # mpmath, 25 digits, R = mpf(n * resultant): 1 - R * quadosc(J_0(t)^n J_1(R t), [0, inf], period=2 pi / R)
    assert rayleigh_tail(n, resultant) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(
    ("n", "z", "expected"),
    [
        (1000, 0.5, 0.60664440960365914),
        (1000, 3.0, 0.04974969224983565),
        (1000, 15.0, 2.9123097521233904e-7),
        (10**6, 0.5, 0.60653077343715753),
        (10**6, 3.0, 0.049787031027526866),
        (10**6, 15.0, 3.0588740800636663e-7),
        (10**8, 0.5, 0.6065306608498784),
        (10**8, 3.0, 0.049787067994460929),
        (10**8, 15.0, 3.0590217137446959e-7),
    ],
)
def test_rayleigh_tail_of_many_tokens_is_kluyvers_integral(n, z, expected):
    # mpmath, 30 digits, |c_1| = sqrt(z / n): quad in 60 parts to t = sqrt(240 / n), where J_0^n is 1e-26.
    # J_0(t)^n multiplies a rounding error of J_0 by n: plain powers are off by 1e-10 at n = 1e6 and 1e-8 at 1e8.
    assert rayleigh_tail(n, math.sqrt(z / n)) == pytest.approx(expected, abs=2e-15)


@pytest.mark.parametrize("n", [3, 5, 20])
def test_rayleigh_tail_of_random_tokens(n):
    # 2e5 draws; 5 standard errors, false alarms 6e-7 each
    theta = np.random.default_rng(n).uniform(0.0, TWO_PI, (200_000, n))
    found = np.abs(np.exp(1j * theta).mean(axis=1))
    for resultant in (0.2, 0.4, 0.6):
        p = rayleigh_tail(n, resultant)
        assert abs((found >= resultant).mean() - p) < 5.0 * math.sqrt(p * (1.0 - p) / 200_000)


@pytest.mark.parametrize("n", [3, 4, 10, 100, 1000])
def test_far_tails_join_the_near_ones(n):
    resultants = np.linspace(0.0, 1.0, 60 if n == 4 else 400)[1:]  # four steps take 20 ms each
    tails = np.array([rayleigh_tail(n, float(r)) for r in resultants])
    assert (tails >= 0.0).all()
    assert (tails <= 1.0).all()
    assert (np.diff(tails) <= 0.0).all()
    positive = tails[tails > 0.0]
    # ln P is concave enough: no jump of more than 1.5 / n where the saddle point takes over
    step = np.diff(np.log(positive))
    assert np.abs(np.diff(step[len(step) // 4 : -20])).max() < 1.5 / n + 0.1 + 0.003 * n


@pytest.mark.parametrize(("n", "resultant"), [(10, 0.99), (40, 0.62), (100, 0.45)])
def test_saddle_point_error_is_at_most_one_and_a_half_over_n(n, resultant):
    from spectral_mf.validation.statistics import _kluyver_tail, _saddle_point_tail

    assert 1.0 < _saddle_point_tail(n, resultant) / _kluyver_tail(n, resultant) < 1.0 + 1.5 / n


@pytest.mark.parametrize("n", [1000, 10**6, 10**8])
@pytest.mark.parametrize("z", [0.5, 3.0, 15.0, 60.0])
def test_many_tokens_have_the_exponential_tail(n, z):
    # Mardia and Jupp (2000), 6.3.5; the next terms are of order z^4 / n^2. At z = 60 by the saddle point.
    corrected = math.exp(-z) * (1.0 + (2.0 * z - z * z) / (4.0 * n))
    rel = (3.0 + z**4) / n**2 + (2.0 / n + 1e-7 if z > 20.0 else 0.0)
    assert rayleigh_tail(n, math.sqrt(z / n)) == pytest.approx(corrected, rel=rel, abs=2e-15)


def test_rayleigh_tail_at_its_ends():
    assert [rayleigh_tail(n, 0.0) for n in (1, 2, 3, 10)] == [1.0] * 4
    assert [rayleigh_tail(n, 1.0) for n in (1, 2, 3, 10)] == [1.0, 0.0, 0.0, 0.0]
    assert rayleigh_tail(2, 0.5) == pytest.approx(2.0 / 3.0)
    assert 0.0 < rayleigh_tail(3, 1.0 - 1e-12) < 1e-10


def test_rayleigh_test():
    equal = rayleigh_test(np.full(7, 1.3))
    assert 1.0 - 4e-16 < equal.resultant <= 1.0
    assert 0.0 <= equal.p_value < 1e-45
    assert rayleigh_test(TWO_PI * np.arange(12) / 12).p_value == pytest.approx(1.0, abs=1e-12)
    assert rayleigh_test(sample_tokens(1000, 3).angles).p_value > 1e-4
    assert rayleigh_test(FourierDensity.von_mises(0.5).sample(1000, 3).angles).p_value < 1e-10


# ---- circular means of samples that cross zero


def test_angles_around_zero():
    assert abs((circular_mean([0.1, TWO_PI - 0.1]) + 1.0) % TWO_PI - 1.0) < 1e-15
    found = token_clusters(Atoms([0.01, TWO_PI - 0.01, 3.0]), gap=0.1)
    around = np.sort((found.positions + 1.0) % TWO_PI - 1.0)
    np.testing.assert_allclose(around, [0.0, 3.0], atol=1e-14)
    assert found.masses.sum() == pytest.approx(1.0)


# ---- pairs


def brute_share(theta, cosine):
    difference = theta[:, None] - theta
    close = np.cos(difference) > cosine
    return close[np.triu_indices(theta.size, 1)].mean()


@given(
    st.lists(st.floats(-10.0, 10.0), min_size=2, max_size=40),
    st.sampled_from([-0.9, -0.123, 0.0, 0.3, 0.999]),
)
def test_close_pairs_are_counted_as_by_brute_force(angles, cosine):
    theta = np.array(angles)
    near = np.abs(np.cos(theta[:, None] - theta) - cosine) < 1e-12  # on the edge, rounding decides
    if not near.any():
        assert close_pair_share(theta, cosine) == pytest.approx(brute_share(theta, cosine), abs=1e-15)


def test_expected_share_of_close_pairs():
    assert uniform_close_pair_share(0.999) == pytest.approx(0.0142364374062396551, rel=1e-12, abs=0.0)
    # 4000 samples of 32 tokens; pairs are independent two by two, so the share has this exact variance
    p, pairs = uniform_close_pair_share(), 32 * 31 / 2
    found = np.mean([close_pair_share(sample_tokens(32, s).angles) for s in range(4000)])
    assert abs(found - p) < 5.0 * math.sqrt(p * (1.0 - p) / pairs / 4000)  # false alarms 6e-7


def test_pairs_of_many_tokens_need_no_matrix():
    # 1e6 tokens: a matrix would need 8 TB; the standard deviation is sqrt(2 p) / N
    share = close_pair_share(sample_tokens(1_000_000, 1).angles)
    assert share == pytest.approx(uniform_close_pair_share(), abs=1e-6)


def test_equal_tokens_are_close_and_no_token_is_its_own_pair():
    assert close_pair_share(np.full(9, 2.0)) == 1.0
    assert close_pair_share([0.0, np.pi], -1.0) == 0.0
    assert close_pair_share([0.0, 1.0], 0.999) == 0.0


# ---- clusters and peaks


def test_a_chain_is_one_cluster_of_single_linkage():
    chain = Atoms(6.0 + 0.014 * np.arange(100))  # crosses zero
    assert token_clusters(chain, gap=0.0141).masses.size == 1
    assert token_clusters(chain, gap=0.0141).widths[0] == pytest.approx(99 * 0.014)
    assert token_clusters(chain, gap=0.0139).masses.size == 100


def test_small_clusters_are_left_out():
    tokens = Atoms([0.0, 0.001, 2.0, 4.0], [0.5, 0.3, 0.19, 0.01])
    found = token_clusters(tokens, gap=0.01, least_mass=0.05)
    np.testing.assert_allclose(found.masses, [0.8, 0.19])
    np.testing.assert_allclose(found.positions, [0.001 * 3 / 8, 2.0])


def test_one_token_is_one_cluster():
    assert token_clusters(Atoms([1.0])).positions == pytest.approx([1.0])


@pytest.mark.parametrize("shift", [0.0, 0.5, 3.7, 6.2])
@pytest.mark.parametrize("count", [1, 3])
def test_peaks_are_counted_all_around(count, shift):
    density = FourierDensity.from_function(lambda theta: np.exp(20.0 * np.cos(count * (theta - shift))))
    found = find_clusters(density).positions
    assert found.size == count
    expected = (shift + TWO_PI * np.arange(count) / count) % TWO_PI
    distance = np.abs((found[:, None] - expected + np.pi) % TWO_PI - np.pi).min(axis=1)
    assert distance.max() < 1e-3  # a fifth of the cells into which masses are cut


def test_uniform_density_has_no_peak():
    noise = np.fft.rfft(1.0 + 1e-13 * np.random.default_rng(1).standard_normal(256))
    assert find_clusters(FourierDensity(noise / noise[0])).positions.size == 0
    assert find_clusters(FourierDensity.uniform()).positions.size == 0


def test_small_peaks_follow_the_rule():
    """A peak of a thousandth of the mass at kappa = 50 is 0.018 uniform densities high."""
    wide, narrow = FourierDensity.von_mises(50.0), FourierDensity.von_mises(50.0, np.pi)
    two = FourierDensity(0.999 * wide.moments(64) + 0.001 * narrow.moments(64))
    assert find_clusters(two).positions.size == 1
    assert find_clusters(two, prominence=0.01).positions.size == 2


@pytest.mark.parametrize("turn", [0.0, 1.0])
def test_peaks_of_tokens_are_those_of_their_kernel_density(turn):
    tokens = Atoms(np.array([0.05, TWO_PI - 0.05, 3.0, 3.1, 3.05]) + turn)
    density = tokens.kernel_density(50.0)
    assert density.moments(0)[0] == pytest.approx(1.0, abs=1e-12)
    found = find_clusters(density).positions
    assert np.abs((found[:, None] - np.array([0.0, 3.05]) - turn + np.pi) % TWO_PI - np.pi).min(axis=1).max() < 0.01
    assert found.size == 2


# ---- intervals


def test_mean_interval_covers_as_often_as_it_says():
    # 4000 intervals of 5 normal values: coverage 0.9 within 5 standard errors, false alarms 6e-7
    draws = np.random.default_rng(1).standard_normal((4000, 5)) + 2.0
    covered = np.mean([2.0 in mean_interval(x, 0.9) for x in draws])
    assert abs(covered - 0.9) < 5.0 * math.sqrt(0.09 / 4000)


def test_mean_interval_of_known_values():
    found = mean_interval([1.0, 2.0, 3.0], 0.95)
    assert found.value == 2.0
    assert found.high - 2.0 == pytest.approx(4.30265273 / math.sqrt(3.0), rel=1e-8)


def test_proportion_interval():
    # Clopper and Pearson (1934): 0 of 10 has the upper bound 1 - 0.025^(1/10)
    assert proportion_interval(0, 10, 0.95) == Interval(0.0, 0.0, pytest.approx(1.0 - 0.025**0.1), 0.95)
    assert proportion_interval(10, 10, 0.95).low == pytest.approx(0.025**0.1)
    found = proportion_interval(46, 60, 0.95)
    assert (found.low, found.high) == pytest.approx((0.6396, 0.8662), abs=2e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rayleigh_tail(0, 0.5), "n_tokens = 0"),
        (lambda: rayleigh_tail(5, 1.5), "resultant = 1.5 is"),
        (lambda: rayleigh_test([]), "at least one token"),
        (lambda: close_pair_share([1.0]), "at least 2"),
        (lambda: close_pair_share([1.0, 2.0], 1.5), "cosine = 1.5"),
        (lambda: uniform_close_pair_share(-2.0), "cosine = -2 is"),
        (lambda: token_clusters(Atoms([0.0]), gap=0.0), "gap = 0 is not allowed; give a positive number"),
        (lambda: mean_interval([1.0]), "at least 2"),
        (lambda: mean_interval([1.0, np.nan]), "not finite"),
        (lambda: mean_interval([1.0, 2.0], 1.0), "confidence = 1 is"),
        (lambda: proportion_interval(5, 3), "not possible"),
        (lambda: proportion_interval(0, 0), "not possible"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
