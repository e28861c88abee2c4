"""The quasi-linear mode, against a brute-force integration that shares no code with it."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from spectral_mf import (
    Atoms,
    FourierDensity,
    InputError,
    SelfAttention,
    StoppedEarly,
    Trajectory,
    resume,
    solve,
    theory,
)
from spectral_mf.solvers.cascade import cascade, march_cascade
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.quasilinear import manifold_through, march_quasilinear
from spectral_mf.solvers.spectral import march_spectral
from spectral_mf.trajectory import Snapshot

N = 160


def brute_force(model, moments, times):
    """Densities on a grid, velocities by quadrature with the kernel itself, DOP853 at tolerance 1e-13."""
    theta = 2.0 * np.pi * np.arange(N) / N
    difference = theta[:, None] - theta
    kernel = np.exp(model.beta * (np.cos(difference) - (model.normalization == "peak"))) / N
    drift = -kernel * np.sin(difference)
    k = np.arange(N // 2 + 1)
    kept = k < N // 2

    def slope(t, p):
        velocity = drift @ p
        if model.normalization == "softmax":
            velocity = velocity / (kernel @ p)
        flux = -1j * k * kept * np.fft.rfft(velocity * p) - model.diffusion * k**2 * np.fft.rfft(p)
        return np.fft.irfft(flux, N)

    spectrum = np.zeros(N // 2 + 1, dtype=complex)
    spectrum[: min(len(moments), N // 2)] = moments[: N // 2]
    p = np.fft.irfft(spectrum * N, N)
    damping = model.diffusion * (N / 2) ** 2
    largest = 4.0 / damping if damping > 0.0 else np.inf  # stay away from the edge of stability
    run = solve_ivp(slope, (times[0], times[-1]), p, "DOP853", times, rtol=1e-13, atol=1e-16, max_step=largest)
    return np.fft.rfft(run.y.T, axis=1) / N


def difference(moments, expected):
    n = min(moments.shape[-1], expected.shape[-1])
    return float(np.abs(moments[..., :n] - expected[..., :n]).max())


def start_at(density, t=0.0):
    return Snapshot(t, density, "initial", density.n_modes)


GENERAL = np.array([1, 0.003j, 0.004, 0.01, 0.002 - 0.004j, 0.001])


@cache
def general_solution(normalization, diffusion, scale):
    model = SelfAttention(5.0, normalization, diffusion)
    c = GENERAL * scale
    c[0] = 1.0
    times = np.linspace(0.0, 1.5 / float(SelfAttention(5.0, normalization).growth_rate(3)), 3)
    return model, c, times, brute_force(model, c, times)


@pytest.mark.parametrize("normalization", ["softmax", "none", "peak"])
@pytest.mark.parametrize("diffusion", [0.0, 0.02])
def test_series_follows_the_nonlinear_solution(normalization, diffusion):
    """From |z| = 0.02 to |z| = 0.3, beta = 5; with diffusion kappa relative to the units of time."""
    unit = {"softmax": 1.0, "none": 20.0, "peak": 20.0 * np.exp(-5.0)}[normalization]
    model = SelfAttention(5.0, normalization, diffusion * unit)
    manifold = theory.unstable_manifold(model)
    z = 0.02 * np.exp(0.7j)
    t_end = np.log(0.3 / 0.02) / manifold.growth_rate
    times = 4.0 + np.linspace(0.0, t_end, 4)
    expected = brute_force(model, manifold(z), times)
    start = start_at(FourierDensity(manifold(z)), 4.0)
    rows = list(march_quasilinear(model, start, times[1:], MarchOptions(rtol=1e-11, fold=manifold.mode)))
    got = np.array([row.measure.moments(N // 2) for row in rows])
    assert difference(got, expected[1:]) < 1e-12
    assert [row.method for row in rows] == ["quasilinear"] * 3
    assert rows[-1].n_modes == 64 * manifold.mode
    scale = float(model.energy_rate(manifold(0.3), manifold.rates(0.3)))
    assert abs(rows[-1].energy_rate_residual) < 1e-12 * scale
    assert difference(manifold(0.3 * np.exp(0.7j)), expected[-1]) < 1e-12


@pytest.mark.parametrize(("normalization", "diffusion"), [("softmax", 0.0), ("none", 0.0), ("softmax", 0.02)])
def test_series_and_spectral_solver_agree(normalization, diffusion):
    model = SelfAttention(5.0, normalization, diffusion)
    manifold = theory.unstable_manifold(model)
    times = np.array([np.log(0.3 / 0.02) / manifold.growth_rate])
    start = start_at(FourierDensity(manifold(0.02)))
    options = MarchOptions(rtol=1e-13, fold=manifold.mode)
    (series,) = march_quasilinear(model, start, times, MarchOptions(rtol=1e-11, fold=manifold.mode))
    (spectral,) = march_spectral(model, start, times, options)
    assert difference(spectral.measure.moments(200), series.measure.moments(200)) < 1e-11


@pytest.mark.parametrize("normalization", ["softmax", "none"])
@pytest.mark.parametrize("diffusion", [0.0, 0.03])
def test_cascade_converges_and_knows_its_error(normalization, diffusion):
    model, c, times, expected = general_solution(normalization, diffusion, 1.0)
    previous = np.inf
    for order in (1, 2, 3, 5, 8):
        result = cascade(model, FourierDensity(c), times, order=order)
        error = difference(result.moments[-1], expected[-1])
        assert error < 0.2 * previous
        assert error == pytest.approx(result.remainder[-1], rel=0.1, abs=3e-14)
        previous = error
    assert previous < 1e-10
    many = cascade(model, FourierDensity(c), times, order=14)
    assert difference(many.moments, expected) < 1e-13


@pytest.mark.parametrize("order", [1, 2, 3])
def test_error_falls_like_the_amplitude_to_the_power_of_order_plus_one(order):
    errors = []
    for scale in (1.0, 0.5):
        model, c, times, expected = general_solution("softmax", 0.0, scale)
        errors.append(difference(cascade(model, FourierDensity(c), times, order=order).moments[-1], expected[-1]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.1)


def test_each_order_scales_exactly_with_the_amplitude():
    model, c, times, _ = general_solution("none", 0.0, 1.0)
    half = c / 2
    half[0] = 1.0
    whole, halved = (cascade(model, FourierDensity(m), times, order=4).orders for m in (c, half))
    for j in range(1, 5):
        np.testing.assert_allclose(halved[:, j] * 2.0**j, whole[:, j], atol=1e-11 * np.abs(whole[:, j]).max())


def test_first_order_is_linear_theory():
    model = SelfAttention(5.0, "none", 0.3)
    times = np.linspace(0.0, 0.05, 3)
    result = cascade(model, FourierDensity(GENERAL), times, order=1)
    k = np.arange(6)
    expected = GENERAL * np.exp(np.outer(times, model.growth_rate(k)))
    np.testing.assert_allclose(result.moments[:, :6], expected, rtol=1e-12)


def test_cascade_on_the_manifold_sums_to_the_series():
    """Multiples of one mode: folded, and the sum over orders is the solution that the series gives."""
    model = SelfAttention(5.0)
    manifold = theory.unstable_manifold(model)
    density = FourierDensity(manifold(0.05)[:40])
    times = np.array([0.0, 1.0])
    z = 0.05 * np.exp(manifold.growth_rate)
    result = cascade(model, density, times, order=13)
    assert difference(result.moments[-1], manifold(z)) < 1e-12
    assert not result.moments[:, np.arange(result.moments.shape[1]) % 3 != 0].any()


def test_choice_between_series_and_expansion():
    model = SelfAttention(5.0)
    manifold = theory.unstable_manifold(model)
    on = FourierDensity(manifold(0.1j))
    assert manifold_through(model, start_at(on), order=64, rtol=1e-10).mode == 3
    bare = FourierDensity.from_modes({3: 0.1})  # lacks the harmonics
    assert manifold_through(model, start_at(bare), order=64, rtol=1e-10) is None
    assert manifold_through(model, start_at(bare), order=64, rtol=0.5).mode == 3
    tiny = FourierDensity.from_modes({3: 1e-12})  # its harmonics are below the tolerance
    assert manifold_through(model, start_at(tiny), order=64, rtol=1e-10).mode == 3
    assert manifold_through(model, start_at(FourierDensity.from_modes({1: 1e-12})), order=64, rtol=1e-10) is None
    assert manifold_through(model, start_at(FourierDensity.uniform()), order=64, rtol=1e-10) is None
    large = FourierDensity.from_modes({3: 0.9})
    assert manifold_through(model, start_at(large), order=64, rtol=1e-2) is None
    rows = list(march_quasilinear(model, start_at(bare), np.array([0.5]), MarchOptions(fold=3), order=12))
    expected = brute_force(model, bare.moments(3), np.array([0.0, 0.5]))
    assert difference(rows[0].measure.moments(60), expected[-1]) < 1e-8
    assert rows[0].n_modes == 3 * 13


def test_from_tiny_amplitude_with_one_harmonic_missing():
    """A bare mode of 1e-6 is drawn to the manifold; the march agrees with the series' own clock."""
    model = SelfAttention(5.0)
    manifold = theory.unstable_manifold(model)
    t_end = np.log(0.2 / 1e-6) / manifold.growth_rate
    density = FourierDensity.from_modes({3: 1e-6})
    series = list(march_quasilinear(model, start_at(density), np.array([t_end]), MarchOptions(rtol=1e-5, fold=3)))
    expansion = list(march_cascade(model, start_at(density), np.array([t_end]), MarchOptions(fold=3), order=16))
    np.testing.assert_allclose(series[0].measure.moments(12), manifold(0.2)[:13], atol=1e-10)
    np.testing.assert_allclose(expansion[0].measure.moments(12), manifold(0.2)[:13], atol=1e-9)


def test_series_stops_where_it_is_no_longer_accurate():
    model = SelfAttention(5.0, "none")
    manifold = theory.unstable_manifold(model, order=64)
    start = start_at(FourierDensity(manifold(0.1)))
    seen = []
    options = MarchOptions(rtol=1e-10, fold=3, progress=lambda t, n_modes, method: seen.append(t))
    rows = march_quasilinear(model, start, np.array([0.02, 0.2, 0.3]), options)
    with pytest.raises(StoppedEarly, match="series of order 64") as stop:
        list(rows)
    assert seen == [0.02]
    z = 0.1 * np.exp(manifold.growth_rate * stop.value.time)
    assert manifold.remainder(z) == pytest.approx(1e-10 * z, rel=1e-6)
    assert stop.value.snapshot.t == stop.value.time
    np.testing.assert_allclose(stop.value.snapshot.measure.moments(9), manifold(z)[:10], rtol=1e-10)


def test_expansion_stops_where_it_diverges():
    model, c, _, _ = general_solution("none", 0.0, 1.0)
    with pytest.raises(StoppedEarly, match="stops converging") as stop:
        list(march_quasilinear(model, start_at(FourierDensity(c)), np.array([0.02, 5.0]), MarchOptions(), order=4))
    assert 0.1 < stop.value.time < 0.3
    reached = np.array([0.0, stop.value.time])
    expected = brute_force(model, c, reached)
    assert difference(stop.value.snapshot.measure.moments(40), expected[-1]) < 0.05
    with pytest.raises(StoppedEarly):
        cascade(model, FourierDensity(c), [0.0, 5.0])


def test_uniform_density_and_neutral_dynamics():
    for model in (SelfAttention(5.0), SelfAttention(0.0, diffusion=0.5), SelfAttention(5.0, diffusion=1.0)):
        rows = list(march_quasilinear(model, start_at(FourierDensity.uniform()), np.array([1.0, 2.0]), MarchOptions()))
        assert not rows[-1].measure.moments(8)[1:].any()
    # Pure decay is followed too: strong diffusion.
    model = SelfAttention(5.0, diffusion=1.0)
    c = np.array([1, 0.02, 0.01j, 0.005])
    rows = list(march_quasilinear(model, start_at(FourierDensity(c)), np.array([0.5, 1.0]), MarchOptions(rtol=1e-12)))
    expected = brute_force(model, c, np.array([0.0, 0.5, 1.0]))
    assert difference(np.array([row.measure.moments(40) for row in rows]), expected[1:]) < 1e-12


def test_wide_band_start_is_not_aliased():
    """White noise in 40 modes: more than the kernel sees."""
    model = SelfAttention(5.0)
    density = FourierDensity.white_noise(0.01, 200, seed=7, n_modes=40)
    times = np.array([0.0, 1.0])
    result = cascade(model, density, times, order=5)
    expected = brute_force(model, density.moments(40), times)
    assert difference(result.moments[-1, :60], expected[-1, :60]) < 2.0 * result.remainder[-1] + 1e-13


@pytest.mark.parametrize("order", [0, -1, 2.5, True])
def test_bad_order(order):
    density = FourierDensity(GENERAL)
    with pytest.raises(InputError, match="at least 1"):
        march_quasilinear(SelfAttention(5.0), start_at(density), np.array([1.0]), MarchOptions(), order=order)
    with pytest.raises(InputError, match="at least 1"):
        cascade(SelfAttention(5.0), density, [0.0, 1.0], order=order)


def test_bad_start_and_times():
    atoms = Snapshot(0.0, Atoms(np.array([0.0, 1.0])), "initial", 2)
    with pytest.raises(InputError, match="smoothed"):
        march_quasilinear(SelfAttention(5.0), atoms, np.array([1.0]), MarchOptions())
    with pytest.raises(InputError, match="max_modes"):
        march_quasilinear(
            SelfAttention(5.0), start_at(FourierDensity(GENERAL)), np.array([1.0]), MarchOptions(max_modes=20)
        )
    with pytest.raises(InputError, match="increasing"):
        cascade(SelfAttention(5.0), FourierDensity(GENERAL), [0.0, 1.0, 0.5])


def test_the_remainder_is_in_the_file_and_is_the_error(tmp_path):
    model, c, times, expected = general_solution("softmax", 0.0, 1.0)
    run = solve(model, FourierDensity(c), times, method="quasilinear", order=3, output=tmp_path / "q.h5")
    error = difference(run.moments[-1, :60], expected[-1, :60])
    assert error == pytest.approx(run.remainder[-1], rel=0.3)
    np.testing.assert_array_equal(Trajectory.load(tmp_path / "q.h5").remainder, run.remainder)
    spectral = solve(model, FourierDensity(c), times, method="spectral")
    assert np.isnan(spectral.remainder).all()


@pytest.mark.parametrize("order", [2, 6])
def test_resuming_an_expansion_gives_the_same_bits(tmp_path, order):
    model, c, times, _ = general_solution("softmax", 0.0, 1.0)
    grid = np.linspace(times[0], times[-1], 7)
    whole = solve(model, FourierDensity(c), grid, method="quasilinear", order=order)
    solve(model, FourierDensity(c), grid[:4], method="quasilinear", order=order, output=tmp_path / "q.h5")
    again = resume(tmp_path / "q.h5", grid[4:])
    np.testing.assert_array_equal(again.moments, whole.moments)
    np.testing.assert_array_equal(again.remainder, whole.remainder)
