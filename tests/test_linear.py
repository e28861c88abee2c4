"""The linear mode: the exact propagator."""

import math

import numpy as np
import pytest

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention, StoppedEarly
from spectral_mf.solvers.linear import march_linear
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Snapshot


def march(model, density, times, **options):
    start = Snapshot(float(times[0]), density, "linear", density.n_modes)
    return list(march_linear(model, start, np.array(times[1:], dtype=float), MarchOptions(**options)))


@pytest.mark.parametrize("normalization", ["softmax", "none", "peak"])
@pytest.mark.parametrize("diffusion", [0.0, 0.4])
def test_propagator(normalization, diffusion):
    model = SelfAttention(5.0, normalization, diffusion)
    density = FourierDensity([1.0, 1e-6j, 2e-6, 1e-8 - 1e-7j, 0.0, 1e-5])
    times = [2.0, 2.01, 2.3, 2.4]
    rows = march(model, density, times)
    c = density.moments(5)
    k = np.arange(6)
    for t, row in zip(times[1:], rows, strict=True):
        expected = c * np.exp(model.growth_rate(k) * (t - 2.0))
        np.testing.assert_allclose(row.measure.moments(5), expected, rtol=1e-13)
        assert (row.t, row.method, row.n_modes) == (t, "linear", 5)
    assert isinstance(rows[0].measure, FourierDensity)
    assert math.isnan(rows[0].energy_rate_residual)


def test_pure_diffusion_decays_to_zero_without_underflow_trouble():
    model = SelfAttention(0.0, diffusion=0.5)  # mode 1 is neutral
    rows = march(model, FourierDensity([1.0, 0.1, 0.1, 0.1j]), [0.0, 1.0, 1e3, 1e6])
    c = rows[0].measure.moments(3)
    np.testing.assert_allclose(c[1:], [0.1, 0.1 * math.exp(-2.0), 0.1j * math.exp(-4.5)], rtol=1e-13)
    np.testing.assert_allclose(rows[2].measure.moments(3), [1.0, 0.1, 0.0, 0.0])


def test_uniform_density_stays():
    rows = march(SelfAttention(5.0, "none"), FourierDensity.uniform(), [0.0, 1.0, 1e9])
    assert all(row.measure.moments(2).tolist() == [1.0, 0.0, 0.0] for row in rows)


@pytest.mark.parametrize("t_end", [0.2475, 2.0, 1e9])
def test_stops_where_no_measure_exists(t_end):
    model = SelfAttention(5.0, "none")
    density = FourierDensity.from_modes({1: 0.3, 3: 1e-3 + 1e-3j})
    rate = float(model.growth_rate(3))
    t_one = math.log(1.0 / abs(1e-3 + 1e-3j)) / rate
    times = np.array([0.1, 0.2, t_end])
    seen = []
    options = MarchOptions(progress=lambda t, n_modes, method: seen.append(t))
    t_one = min(t_one, math.log(1.0 / 0.3) / float(model.growth_rate(1)))
    rows = march_linear(model, Snapshot(0.0, density, "linear", 3), times, options)
    with pytest.raises(StoppedEarly, match=r"\|c_1\|") as stop:
        list(rows)
    assert seen == [0.1, 0.2]
    assert stop.value.time == pytest.approx(t_one, rel=1e-12, abs=0.0)
    largest = np.abs(stop.value.snapshot.measure.moments(3)[1:]).max()
    assert largest == pytest.approx(1.0, rel=1e-12, abs=0.0)
    assert stop.value.snapshot.t == stop.value.time
    assert "auto" in str(stop.value)


def test_a_resumed_march_gives_the_same_bits():
    model = SelfAttention(7.0)
    density = FourierDensity.white_noise(0.001, 1000, seed=4)
    times = np.linspace(0.0, 3.0, 31)
    whole = march(model, density, times)
    head = march(model, density, times[:12])
    tail = list(march_linear(model, head[-1], times[12:], MarchOptions()))
    for one, other in zip(whole, head + tail, strict=True):
        np.testing.assert_array_equal(one.measure.to_vector(), other.measure.to_vector())


def test_progress_and_wrong_start():
    seen = []
    march(
        SelfAttention(5.0),
        FourierDensity.from_modes({2: 1e-9}),
        [0.0, 1.0, 2.0],
        progress=lambda t, n, method: seen.append((t, n, method)),
    )
    assert seen == [(1.0, 2, "linear"), (2.0, 2, "linear")]
    start = Snapshot(0.0, Atoms(np.array([0.0, 1.0])), "linear", 2)
    with pytest.raises(InputError, match="smoothed"):
        march_linear(SelfAttention(5.0), start, np.array([1.0]), MarchOptions())
