"""Phases of runs whose phases are known: f^alpha, hand-made covers, tokens."""

import math

import numpy as np
import pytest

from spectral_mf import Atoms, FourierDensity, SelfAttention, solve
from spectral_mf.errors import InputError
from spectral_mf.validation.covers import cover
from spectral_mf.validation.crossings import between, first_fall, first_rise, smooth_rise
from spectral_mf.validation.fluctuations import expected_h_minus_one, h_minus_one
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.phase_curves import manifold_distance, periodicity_defect
from spectral_mf.validation.phases import cluster_positions, find_phases
from spectral_mf.validation.replicates import sample_tokens

USA = SelfAttention(5.0, "none")
SA = SelfAttention(5.0)
RATE = 18.596070304472047
RATE_2ND = 2 * RATE - 5.704456817  # 2 lambda_3 - lambda_6, USA, beta = 5


def reference_run(alpha, t_end, phase=0.0, rows=201, model=USA):
    start = FourierDensity.from_modes({3: np.pi * alpha * np.exp(1j * phase)})
    return solve(model, start, np.linspace(0.0, t_end, rows))


@pytest.fixture(scope="module")
def f_alpha():
    return {alpha: find_phases(reference_run(alpha, t_end, 1.0)) for alpha, t_end in ((1e-2, 0.45), (1e-3, 0.57))}


@pytest.mark.parametrize(("alpha", "passage"), [(0.01, 0.12369), (0.001, 0.24771)])
def test_quasilinear_phase_of_f_alpha_ends_at_the_published_passage_of_the_level(f_alpha, alpha, passage):
    phases = f_alpha[alpha]
    assert phases.quasilinear.state == "ended"
    assert phases.quasilinear.end == pytest.approx(passage, abs=1.5e-5)
    assert phases.measured_exit == phases.quasilinear.end
    assert phases.predicted_exit == pytest.approx(np.log(0.3 / (np.pi * alpha)) / RATE, rel=1e-12, abs=0.0)
    assert phases.leading_mode == phases.mode == 3


def test_linear_phase_of_f_alpha_ends_when_the_second_harmonic_says(f_alpha):
    # c_3 = A (1 - A^2/2 ..) and c_6 = B A^2 to third order: solve 0.1 = the ratio of norms for A (manifold without c_9)
    b, a = 1.181165, np.linspace(0.05, 0.3, 200_001)
    error = np.sqrt((a**3 / 2) ** 2 / 10 + (b * a**2) ** 2 / 37)
    size = np.sqrt((a - a**3 / 2) ** 2 / 10 + (b * a**2) ** 2 / 37)
    amplitude = a[np.argmax(error / size >= 0.1)]
    # the orders left out are A^2 = 0.026 of those kept
    assert f_alpha[1e-3].linear.end == pytest.approx(np.log(amplitude / (np.pi * 1e-3)) / RATE, abs=0.026 / RATE)


def test_phases_of_two_alphas_are_shifted_by_ln_10_over_lambda(f_alpha):
    one, two = f_alpha[1e-2], f_alpha[1e-3]
    # 24000 particles at these alphas: 0.12402 at |c_3| = 0.3, 0.12425 at 0.9, 0.12429 at 0.99; 0.123821 as alpha falls
    assert two.quasilinear.end - one.quasilinear.end == pytest.approx(0.12402, abs=3e-5)
    assert two.clustering.end - one.clustering.end == pytest.approx(0.12427, abs=5e-5)
    # the linear phase ends by the second harmonic, which starts at 0: e^{-(2 lambda_3 - lambda_6) t} of it is missing
    missing = math.exp(-RATE_2ND * one.linear.end) / RATE
    assert two.linear.end - one.linear.end == pytest.approx(math.log(10) / RATE - missing, abs=0.1 * missing)


def test_clusters_of_f_alpha_are_where_the_phase_of_c_m_says(f_alpha):
    # c_3 = R e^{i 1.0}, density 1 + 2 R cos(3 theta + 1): peaks at (2 pi j - 1)/3
    phases = f_alpha[1e-2]
    expected = np.sort((2 * np.pi * np.arange(3) - 1.0) / 3 % (2 * np.pi))
    np.testing.assert_allclose(phases.predicted_positions, expected, atol=1e-14)
    assert phases.clustering.state == "ended"
    assert phases.n_clusters == 3
    np.testing.assert_allclose(phases.positions, expected, atol=1e-3)
    assert phases.position_error < 1e-3
    np.testing.assert_allclose(phases.masses, 0.95 / 3, atol=4e-3)
    assert phases.periodicity_defect == 0.0


def test_positions_are_the_peaks_of_the_density():
    for mode, moment in ((1, 0.1j), (3, 0.1 * np.exp(2.5j)), (4, -0.1)):
        theta = 2 * np.pi * np.arange(100_000) / 100_000
        p = FourierDensity.from_modes({mode: moment}).density(theta)
        peaks = theta[(p > np.roll(p, 1)) & (p >= np.roll(p, -1))]
        np.testing.assert_allclose(cluster_positions(moment, mode), peaks, atol=1e-4)


def test_a_phase_that_does_not_end_says_so():
    early = find_phases(reference_run(1e-3, 0.1))
    assert early.linear.state == "not ended"
    assert early.linear.end is early.measured_exit is early.n_clusters is early.position_error is None
    assert early.quasilinear.state == early.clustering.state == "not entered"
    middle = find_phases(reference_run(1e-3, 0.23))
    assert (middle.linear.state, middle.quasilinear.state) == ("ended", "not ended")
    late = find_phases(reference_run(1e-3, 0.27))
    assert (late.quasilinear.state, late.clustering.state) == ("ended", "not ended")


def test_f_alpha_is_on_the_manifold_and_two_modes_are_not(f_alpha):
    # the second harmonic starts at 0 and is made by time e^{-(2 lambda_3 - lambda_6) t}; at t = 0.2 that is 2e-3
    curves = f_alpha[1e-3].curves
    row = 70  # t = 0.1995
    amplitude = curves.amplitude[row]
    late = 1.181165 * amplitude**2 * math.exp(-RATE_2ND * 0.1995) / np.sqrt(37) / (amplitude / np.sqrt(10))
    assert curves.manifold_distance[row] == pytest.approx(late, rel=0.3)
    c = np.zeros((1, 27), dtype=complex)
    c[0, [0, 2, 3]] = 1.0, 0.03, 1e-3
    assert manifold_distance(USA, c, 3)[0] == pytest.approx(0.03 * np.sqrt(2 / 5), rel=1e-3)
    c[0, 3] = 0.95
    assert np.isinf(manifold_distance(USA, c, 3)[0])


def test_another_mode_that_wins_leaves_no_quasilinear_phase():
    start = FourierDensity.from_modes({3: 1e-4, 4: 0.02})
    phases = find_phases(solve(SA, start, np.linspace(0.0, 14.0, 57)))
    assert phases.leading_mode == 4
    assert phases.quasilinear.state == "not entered"
    assert "no multiples" in phases.quasilinear.reason
    assert phases.n_clusters == 4
    assert phases.clustering.start == phases.linear.end


def test_tokens_and_density_have_the_same_phases():
    # a sample whose third mode is large; the pair stays together to 1e-3 or so
    tokens = sample_tokens(30_000, 2)
    times = np.linspace(0.0, 11.0, 45)
    particles = find_phases(simulate(SA, tokens, times, rtol=1e-6))
    density = find_phases(solve(SA, tokens.smoothed(64), times), n_tokens=30_000)
    for phase in ("linear", "quasilinear", "clustering"):
        one, two = getattr(particles, phase), getattr(density, phase)
        assert one.state == two.state
        if one.end is not None:
            assert one.end == pytest.approx(two.end, abs=0.05)
    assert particles.n_clusters == density.n_clusters
    # T_1 and T_2 by their definitions
    c = tokens.moments(64)
    rate = RATE / 27.2398718236
    norm = math.sqrt(2 * sum(abs(c[k]) ** 2 / (1 + k * k) for k in range(1, 65)))
    assert particles.predicted_t1 == pytest.approx(math.log(30_000**-0.25 / norm) / rate, rel=1e-9, abs=0.0)
    alpha = 30_000**-0.25 * abs(c[3]) / norm
    assert particles.predicted_t2 == pytest.approx(math.log(0.3 / alpha) / rate, rel=1e-9, abs=0.0)
    assert particles.predicted_t1 + particles.predicted_t2 == pytest.approx(
        particles.predicted_exit, rel=1e-12, abs=0.0
    )
    assert particles.measured_exit == pytest.approx(particles.predicted_exit, rel=0.1)


def test_t1_is_measured_where_one_mode_is_all_there_is():
    # a single mode: the size is |c_3| sqrt(2/10) e^{lambda t}, up to its square, so N^{-1/4} is reached at T_1
    phases = find_phases(reference_run(1e-4, 0.3), n_tokens=10**6)
    assert phases.measured_t1 == pytest.approx(phases.predicted_t1, rel=2e-3)


def test_h_minus_one_norm():
    c = np.array([1.0, 0.3j, -0.2, 0.0])
    assert h_minus_one(c) == pytest.approx(math.sqrt(2 * (0.09 / 2 + 0.04 / 5)), rel=1e-14, abs=0.0)
    assert periodicity_defect(c, 2) == pytest.approx(0.3, rel=1e-14, abs=0.0)
    assert expected_h_minus_one(1) ** 2 == pytest.approx(2.15335, abs=5e-6)
    assert expected_h_minus_one(100, 20_000) == pytest.approx(expected_h_minus_one(100), rel=1e-4)
    # mean of 400 samples within 5 standard errors (false alarms: 6e-7)
    squares = np.array([h_minus_one(sample_tokens(200, s).moments(40)) ** 2 for s in range(400)])
    assert abs(squares.mean() - expected_h_minus_one(200, 40) ** 2) < 5 * squares.std() / 20


def test_cover_counts_points_and_what_lies_outside():
    angles = np.array([6.25, 0.02, 2.0, 2.05, 4.0])  # the first two are one cluster across 0
    found = cover(Atoms(angles, [2, 2, 2, 1, 1]), 0.05, 5)
    np.testing.assert_allclose(found.masses, [0.5, 0.375, 0.125], atol=1e-14)
    np.testing.assert_allclose(found.uncovered, [1.0, 0.5, 0.125, 0.0], atol=1e-14)
    np.testing.assert_allclose(found.positions[1:], [2.0 + 0.05 / 3, 4.0], atol=1e-12)
    assert np.cos(found.positions[0] - (6.25 + 0.02 + 2 * np.pi) / 2) > 1 - 1e-12
    assert cover(Atoms(angles, [2, 2, 2, 1, 1]), 0.05, 5, least_mass=0.2).masses.size == 2
    # a wide cluster is not two: its sides are left uncovered
    assert cover(Atoms(np.linspace(1.0, 1.25, 101)), 0.05, 5).masses.size == 1
    assert cover(Atoms(angles), 0.05, 2).outside(2) == pytest.approx(0.2)


def test_cover_of_a_density_is_its_mass():
    # von Mises, concentration 400: mass within 0.05 of the mean, by quadrature of the density itself
    theta = np.linspace(-0.05, 0.05, 20_001)
    p = np.exp(400 * (np.cos(theta) - 1))
    whole = np.linspace(-np.pi, np.pi, 200_001)
    expected = np.trapezoid(p, theta) / np.trapezoid(np.exp(400 * (np.cos(whole) - 1)), whole)
    found = cover(FourierDensity.von_mises(400.0, 0.3), 0.05, 1)
    assert found.masses[0] == pytest.approx(expected, abs=0.02)
    assert found.positions[0] == pytest.approx(0.3, abs=2e-3)


def test_crossings_are_exact_for_exponentials():
    t = np.array([0.0, 1.0, 2.5, 4.0])
    assert first_rise(t, np.exp(t), 5.0) == pytest.approx(math.log(5.0), rel=1e-14, abs=0.0)
    assert smooth_rise(t, np.exp(t), 5.0) == pytest.approx(math.log(5.0), rel=1e-12, abs=0.0)
    assert first_fall(t, np.exp(-t), 0.2) == pytest.approx(math.log(5.0), rel=1e-14, abs=0.0)
    assert first_rise(t, np.exp(t), 100.0) is first_fall(t, np.exp(t), 0.5) is smooth_rise(t, np.exp(t), 99.0) is None
    assert first_rise(t, np.exp(t), 0.5) == first_fall(t, np.exp(t), 2.0) == 0.0
    assert between(1.0, 3.0, 0.0, 4.0, 1.0) == 1.5
    assert between(1.0, 3.0, 0.1, np.inf, 0.2) == 1.0
    fine = np.linspace(0.0, 4.0, 21)  # logistic curve: its logarithm bends
    curve = 1 / (1 + 9 * np.exp(-2 * fine))
    assert smooth_rise(fine, curve, 0.5) == pytest.approx(math.log(9) / 2, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linear": 0.0}, "linear = 0"),
        ({"harmonics": 1.0}, "harmonics = 1"),
        ({"manifold": -1.0}, "manifold = -1"),
        ({"delta": 0.95}, "0.95"),
        ({"eps": 0.0}, "eps = 0"),
        ({"most_clusters": 0}, "most_clusters = 0"),
        ({"n_tokens": 0}, "n_tokens = 0"),
    ],
)
def test_bad_thresholds(options, message):
    with pytest.raises(InputError, match=message):
        find_phases(reference_run(1e-2, 0.05, rows=3), **options)


def test_runs_without_phases_are_refused_and_few_modes_warned_of():
    with pytest.raises(InputError, match="stable"):
        find_phases(reference_run(1e-2, 0.05, rows=3, model=SelfAttention(5.0, diffusion=0.5)))
    with pytest.raises(InputError, match="starts from the uniform"):
        find_phases(solve(USA, FourierDensity.uniform(), [0.0, 0.1]))
    start = FourierDensity.from_modes({3: 0.01})
    with pytest.raises(InputError, match="2 modes, without the dominant mode 3"):
        find_phases(solve(USA, start, [0.0, 0.01], n_modes=2))
    with pytest.warns(UserWarning, match=f"n_modes = {USA.bandwidth}"):
        find_phases(solve(USA, start, [0.0, 0.01], n_modes=6))
