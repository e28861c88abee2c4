"""Exit times of random data against the law that theory gives them."""

import numpy as np
import pytest

from spectral_mf.errors import InputError
from spectral_mf.self_attention import SelfAttention
from spectral_mf.validation.exit_times import ExitTimeSample, density_exit_times, judge, sampled_modes


def test_sampled_modes_have_the_moments_of_tokens():
    # N |c_k|^2 ~ Exp(1): mean 1, and its mean over 4e4 draws is within 5 standard errors (false alarms: 6e-7 a mode)
    c = sampled_modes(1000, 4, 40000, np.random.SeedSequence(1))
    power = 1000 * np.abs(c[:, 1:]) ** 2
    assert np.abs(power.mean(axis=0) - 1.0).max() < 5 / 200
    assert np.abs((power**2).mean(axis=0) - 2.0).max() < 5 * np.sqrt(20) / 200
    assert np.abs((c[:, 1] * c[:, 2]).mean()) * 1000 < 5 / 200


def test_exit_times_of_densities_follow_theory():
    # 300 replicates; intervals at 1 - 1e-5 each for 3 means, 3 deviations and the slope: false alarms below 1e-4
    model = SelfAttention(2.0, "none")
    sample = density_exit_times(model, [64_000, 256_000, 1_024_000], replicates=300, level=0.1, seed=2)
    verdict = judge(sample, confidence=1 - 1e-5, mean_confidence=1 - 1e-5)
    assert verdict.agrees
    assert verdict.lost_share.max() < 0.02


@pytest.mark.slow
def test_exit_times_from_16000_to_a_million_tokens_to_three_percent():
    # 99 % interval of the slope, 3 standard errors of each mean; seeded, so this is one draw of the stated level
    model = SelfAttention(2.0, "none")
    sample = density_exit_times(model, [16_000 * 2**i for i in range(7)], replicates=1500, level=0.3, seed=5)
    verdict = judge(sample)
    assert verdict.slope.agrees
    assert verdict.slope.relative_half_width < 0.03
    assert all(mean.agrees for mean in verdict.means)
    assert all(deviation.agrees for deviation in verdict.deviations)
    assert 0.0 < verdict.lost_share[0] < 0.03
    assert verdict.lost_share[-1] < 0.003


def test_a_wrong_rate_is_seen():
    model = SelfAttention(2.0, "none")
    sample = density_exit_times(model, [64_000, 1_024_000], replicates=300, level=0.1, seed=2)
    wrong = ExitTimeSample(
        SelfAttention(2.1, "none"), sample.level, sample.n_tokens, sample.times, sample.lost, sample.source
    )
    assert not judge(wrong).agrees


def test_seeds_give_the_same_sample_and_each_count_its_own_stream():
    model = SelfAttention(2.0, "none")
    one, two = (density_exit_times(model, [100_000, 100_000], replicates=5, level=0.1, seed=9) for _ in range(2))
    np.testing.assert_array_equal(one.times[0], two.times[0])
    assert not np.array_equal(one.times[0], one.times[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicates": 0}, "replicates = 0"),
        ({"replicates": 5, "level": 1.2}, "level"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(InputError, match=message):
        density_exit_times(SelfAttention(2.0), [1000, 2000], **arguments)


def test_too_few_exit_times_for_a_verdict():
    sample = density_exit_times(SelfAttention(2.0), [10_000, 100_000], replicates=1, level=0.1)
    with pytest.raises(InputError, match="more replicates"):
        judge(sample)
