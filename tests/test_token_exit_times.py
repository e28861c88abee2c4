"""Exit times of tokens by both statistics, against theory, hand-made runs, and the published experiment run again."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from spectral_mf import Atoms, SelfAttention, theory
from spectral_mf.errors import InputError
from spectral_mf.validation.histogram_exit import (
    expected_variation,
    histogram_exit_time,
    sampling_floor,
    total_variation,
)
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import sample_tokens
from spectral_mf.validation.token_exit_times import (
    TokenExit,
    TokenExitTimes,
    judge_tokens,
    moment_exit,
    token_exit_times,
)

USA = SelfAttention(2.0, "none")
RATE = 1.377896895397


@pytest.fixture(scope="module")
def sample():
    return token_exit_times(USA, [3000, 16_000], replicates=[16, 10], seed=4)


def test_tokens_leave_when_theory_says(sample):
    # intervals at 1 - 1e-5 each for a slope, 2 means and 2 deviations: false alarms below 1e-4
    verdict = judge_tokens(sample, confidence=1 - 1e-5, mean_confidence=1 - 1e-5)
    assert verdict.slope.theory == pytest.approx(0.5 / RATE, rel=1e-9, abs=0.0)
    assert verdict.agrees
    assert verdict.plain.agrees
    assert sample.failures == 0


def test_controlled_means_are_far_sharper_than_plain_ones(sample):
    verdict = judge_tokens(sample)
    for controlled, plain in zip(verdict.means, verdict.plain.means, strict=True):
        assert controlled.relative_half_width < 0.5 * plain.relative_half_width
        assert controlled.theory == plain.theory


def test_moment_time_is_where_a_fine_run_crosses(sample):
    seed = np.random.SeedSequence(sample.entropies[1]).spawn(1)[0]
    exit_ = sample.runs[1][0]
    fine = exit_.moment_time + np.array([-2e-3, 0.0, 2e-3])
    run = simulate(USA, sample_tokens(16_000, seed), [0.0, *fine], rtol=1e-9)
    assert abs(run.moments[0, 2]) == pytest.approx(exit_.start, rel=1e-12, abs=0.0)
    assert abs(run.moments[1, 2]) < 0.3 < abs(run.moments[3, 2])
    assert abs(run.moments[2, 2]) == pytest.approx(0.3, abs=3e-4)


def test_histogram_time_is_where_a_fine_run_crosses(sample):
    seed = np.random.SeedSequence(sample.entropies[1]).spawn(1)[0]
    exit_ = sample.runs[1][0]
    run = simulate(USA, sample_tokens(16_000, seed), [0.0, exit_.histogram_time], rtol=1e-8)
    angles = run.measure(1).angles
    counts = np.histogram((angles + np.pi / 100) % (2 * np.pi), bins=100, range=(0, 2 * np.pi))[0]
    # the histogram jumps as single tokens pass from bin to bin: 1/N each
    assert 0.5 * np.abs(counts / 16_000 - 0.01).sum() == pytest.approx(0.3, abs=2e-3)


def test_histogram_is_biased_as_published_data_show():
    # 200 runs a size of the published experiment (beta = 2, USA): mean exits at thresholds 0.15, 0.2, 0.3, to 0.03
    measured = {
        0.15: [0.903, 1.600, 2.025, 2.324, 2.606],
        0.2: [1.522, 1.933, 2.302, 2.579, 2.848],
        0.3: [2.008, 2.346, 2.677, 2.942, 3.199],
    }
    sizes = np.array([1000, 2000, 4000, 8000, 16_000])
    for threshold, times in measured.items():
        expected = [histogram_exit_time(USA, n, threshold) for n in sizes]
        np.testing.assert_allclose(expected[1:], times[1:], atol=0.06)
        slope = np.polyfit(np.log(sizes), expected, 1)[0]
        assert slope == pytest.approx(np.polyfit(np.log(sizes), times, 1)[0], rel=0.08)
        assert slope > 1.1 * 0.5 / RATE
    late = [histogram_exit_time(USA, n) for n in (10**12, 10**16)]
    assert np.diff(late)[0] / math.log(1e4) == pytest.approx(0.5 / RATE, rel=1e-3)


def test_sampling_floor():
    assert sampling_floor(10_000) == pytest.approx(0.0397, rel=1e-3)
    # the mean of 300 samples is within 5 standard errors (false alarms: 6e-7)
    found = np.array([total_variation(sample_tokens(10_000, s)) for s in range(300)])
    assert abs(found.mean() - sampling_floor(10_000)) < 5 * found.std() / math.sqrt(300)
    assert total_variation(Atoms([1.0])) == pytest.approx(0.99)
    assert total_variation(Atoms(2 * np.pi * np.arange(500) / 500 + 1e-3)) < 1e-15


def test_expected_variation_is_the_mean_of_a_folded_normal():
    x = np.array([0.3, -0.7])
    direct = [
        integrate.quad(lambda g, v=v: abs(v + 0.4 * g) * math.exp(-g * g / 2) / math.sqrt(2 * math.pi), -9, 9)[0]
        for v in x
    ]
    assert expected_variation(x, 0.4) == pytest.approx(0.25 * sum(direct), rel=1e-8)


def made_up(rate=RATE, lost=0, shift=0.0):
    """Runs that obey t = (ln z - ln|c|) / rate exactly, but for a scatter of 0.05; the last ones are lost."""
    rng = np.random.default_rng(1)
    runs, counts = [], [16_000, 256_000, 1_024_000]
    for n in counts:
        start = np.sqrt(rng.exponential(size=60) / n)
        p = theory.exit_time(USA, n, 0.3)
        r = p.mean * RATE - 0.5 * (math.log(n) + np.euler_gamma)
        t = (r - np.log(start)) / rate + 0.05 * rng.standard_normal(60) + shift
        gone = np.arange(60) >= 60 - lost
        runs.append(
            tuple(
                TokenExit(s, None if g else x, x + 0.3, 3 if g else 2) for s, x, g in zip(start, t, gone, strict=True)
            )
        )
    return TokenExitTimes(USA, 0.3, 0.3, 100, np.array(counts), tuple(runs), (0, 0, 0))


def test_made_up_runs_agree_and_lost_ones_are_kept_apart():
    # intervals at 1 - 1e-5 each
    verdict = judge_tokens(made_up(lost=6), confidence=1 - 1e-5, mean_confidence=1 - 1e-5)
    assert verdict.agrees
    np.testing.assert_array_equal(verdict.lost_share, 0.1)
    np.testing.assert_array_equal(verdict.overtaken_share, 0.1)
    assert [t.size for t in made_up(lost=6).moment_sample().times] == [54, 54, 54]
    assert [t.size for t in made_up(lost=6).histogram_times()] == [60, 60, 60]
    assert [t.size for t in made_up(lost=6).residuals()] == [54, 54, 54]
    assert verdict.slope.relative_half_width < 0.03


def test_overtaken_runs_count_in_plain_statistics_and_not_in_controlled_ones():
    clean = made_up()
    late = [TokenExit(run.start, run.moment_time + 1.0, run.histogram_time, 3) for run in clean.runs[0][:5]]
    mixed = replace(clean, runs=((*late, *clean.runs[0][5:]), *clean.runs[1:]))
    np.testing.assert_array_equal(mixed.residuals()[0], clean.residuals()[0][5:])
    assert mixed.moment_sample().times[0].size == 60
    assert mixed.overtaken.tolist() == [5, 0, 0]
    assert mixed.lost.tolist() == [0, 0, 0]


@pytest.mark.parametrize("wrong", [made_up(rate=1.02 * RATE), made_up(rate=0.98 * RATE), made_up(shift=0.05)])
def test_a_rate_off_by_two_percent_or_a_shift_is_seen(wrong):
    assert not judge_tokens(wrong).agrees


def test_a_run_that_another_mode_wins_is_lost():
    # N = 60 at beta = 5: the dominant mode wins about one time in six or more
    found = token_exit_times(SelfAttention(5.0), [60], replicates=30, seed=2)
    lost = [run for run in found.runs[0] if run.moment_time is None]
    assert 5 < found.overtaken[0] < 30
    assert 0 < len(lost) == found.lost[0] <= found.overtaken[0]
    assert all(run.first_mode not in (None, 3) for run in lost)
    assert all(np.isfinite(t) for times in found.moment_sample().times for t in times)


def test_a_mode_that_reaches_the_level_after_another_has_clustered_has_no_exit():
    t = np.linspace(0.0, 6.0, 13)
    others, mine = 0.01 * np.exp(t), 0.01 * np.exp(0.7 * t)  # 0.3 at ln(30) = 3.4 and at 4.86; 0.6 at ln(60) = 4.09
    sizes = np.stack([np.ones_like(t), others, mine, 1e-3 * np.ones_like(t)], axis=1)
    assert moment_exit(t, sizes, 2, 0.3) == (None, 1)
    assert moment_exit(t, sizes[:, [0, 2, 1, 3]], 2, 0.3) == (pytest.approx(math.log(30), abs=1e-9), 2)
    # a level that is reached between the other's exit and its clustering: overtaken, not lost
    time, first = moment_exit(t, sizes, 2, 0.15)
    assert (time, first) == (pytest.approx(math.log(15) / 0.7, abs=1e-9), 1)
    # multiples of the mode do not win against it
    assert moment_exit(t, np.stack([np.ones_like(t), mine, others], axis=1), 1, 0.3)[0] is not None
    assert moment_exit(t[:3], sizes[:3], 2, 0.3) == (None, None)


def test_replicates_are_reproducible_one_by_one():
    one = token_exit_times(USA, [500, 600], replicates=[1, 2], seed=8)
    two = token_exit_times(USA, [500, 600], replicates=[3, 1], seed=8)
    assert one.runs[0][0] == two.runs[0][0]
    assert one.runs[1][0] == two.runs[1][0]
    assert two.runs[0][0] != two.runs[0][1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: token_exit_times(USA, [0], replicates=3), "n_tokens = 0"),
        (lambda: token_exit_times(USA, [100], replicates=0), "replicates = 0"),
        (lambda: token_exit_times(USA, [100, 200], replicates=[3]), "1 numbers of replicates for 2"),
        (lambda: token_exit_times(USA, [], replicates=3), "0 numbers of replicates|give one for each"),
        (lambda: token_exit_times(USA, [100], replicates=3, level=0.6), "level = 0.6"),
        (lambda: token_exit_times(USA, [100], replicates=3, threshold=1.0), "threshold = 1 is"),
        (lambda: token_exit_times(USA, [100], replicates=3, bins=1), "bins = 1"),
        (lambda: sampling_floor(0), "n_tokens = 0"),
        (lambda: histogram_exit_time(USA, 1000, 0.9), "threshold = 0.9"),
        (lambda: judge_tokens(token_exit_times(USA, [50, 60], replicates=1)), "more replicates"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
