"""Distances and means of angles around the wrap."""

import numpy as np
import pytest

from spectral_mf.circular import circular_deviation, circular_distance, circular_mean, resultant_length

TWO_PI = 2.0 * np.pi


def test_distance_is_symmetric_and_wraps():
    assert circular_distance(0.1, TWO_PI - 0.1) == pytest.approx(0.2, abs=1e-15)
    assert circular_distance(TWO_PI - 0.1, 0.1) == pytest.approx(0.2, abs=1e-15)
    assert circular_distance(0.0, np.pi) == pytest.approx(np.pi)
    assert circular_distance(-1.0, 1.0 + 3 * TWO_PI) == pytest.approx(2.0, abs=1e-14)
    assert circular_distance([[0.0], [1.0]], [0.0, 1.0, 6.0]).shape == (2, 3)


def test_nearest_neighbour_over_the_wrap():
    others = np.array([6.2, 0.5])
    assert others[circular_distance(0.05, others).argmin()] == 6.2


@pytest.mark.parametrize("turn", [0.0, 1.0, -2.5, 6.2])
def test_mean_over_the_wrap(turn):
    mean = circular_mean(np.array([0.1, TWO_PI - 0.1]) + turn)
    assert circular_distance(mean, turn) < 1e-15 * 20
    assert 0.0 <= mean < TWO_PI
    assert circular_distance(circular_mean(np.array([0.0, 0.3]) + turn, [1.0, 0.0]), turn) < 1e-14


def test_no_mean_direction():
    assert np.isnan(circular_mean([0.0, np.pi]))
    assert circular_deviation([0.0, np.pi]) > 8.0


@pytest.mark.parametrize("n", [1, 3, 7, 1000])
@pytest.mark.parametrize("angle", [0.1, 1.0, 2.0, 6.0])
def test_equal_angles_have_length_at_most_one_and_no_spread(n, angle):
    same = np.full(n, angle)
    assert 1.0 - 1e-15 <= resultant_length(same) <= 1.0
    assert 0.0 <= circular_deviation(same) < 1e-7
    assert circular_mean(same) == pytest.approx(angle, abs=1e-14)


def test_deviation_of_a_wrapped_normal_sample():
    """sd 0.3: the estimate's standard error is 0.3 / sqrt(2 n); 6 of them."""
    sample = np.random.default_rng(1).normal(6.0, 0.3, 20_000) % TWO_PI
    assert circular_deviation(sample) == pytest.approx(0.3, abs=6 * 0.3 / np.sqrt(40_000))
