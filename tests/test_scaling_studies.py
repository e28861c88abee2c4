"""Scaling studies: the recipes say what they should, and a few cases of each have the exponent or rate of theory."""

import math

import numpy as np
import pytest
import xarray
from scipy.integrate import quad, solve_ivp

from spectral_mf import Atoms, FourierDensity, SelfAttention, solve
from spectral_mf.solvers import solve_sweep
from spectral_mf.solvers.sweep import solve_case
from spectral_mf.sweep import SweepPlan
from spectral_mf.validation.checks import scaling
from spectral_mf.validation.checks import scaling_laws as laws
from spectral_mf.validation.claims import chosen_claims
from spectral_mf.validation.crossings import first_fall, smooth_rise

CASES = {
    "exit-times": 40,
    "fast": 6,
    "intermediate": 6,
    "log-n": 15,
    "low-temperature": 7,
    "single-cluster": 20,
    "slow": 7,
}
ANGLE = math.pi / 3


@pytest.fixture(scope="module")
def recipes(checkout):
    return {path.stem: path for path in (checkout / "examples" / "scaling").glob("*.toml")}


@pytest.fixture(scope="module")
def computed(recipes):
    """Moments and axes' values of one case of a recipe."""

    def compute(name, number):
        plan = SweepPlan.from_toml(recipes[name])
        result = solve_case(number, plan.case(number))
        assert result.outcome == "complete", result.message
        moments = result.values["moment_real"] + 1j * result.values["moment_imag"]
        return plan.case(number), plan.times, moments, float(result.values["exit_time"])

    return compute


def test_recipes_are_plans_and_name_their_source(recipes):
    assert {name: SweepPlan.from_toml(path).n_cases for name, path in recipes.items()} == CASES
    for path in recipes.values():
        comment = path.read_text(encoding="utf-8").split("\n\n")[0]
        assert all(line.startswith("#") for line in comment.splitlines())
        assert "arXiv:" in comment


def test_beta_is_tied_to_the_number_of_tokens(recipes):
    plan = SweepPlan.from_toml(recipes["log-n"])
    ratios = []
    for number in range(plan.n_cases):
        case = plan.case(number)
        tokens = Atoms.from_file(case["initial"]["tokens"])
        n = 1.0 / tokens.weights.min()
        ratios.append(case["model"]["beta"] / math.log(n))
        np.testing.assert_allclose(tokens.angles, [0.0, ANGLE], rtol=1e-15)
        assert f"one-of-{round(n)}.csv" in case["initial"]["tokens"]
    np.testing.assert_allclose(ratios, [1.0, 2.0, 3.0] * 5, rtol=1e-13)
    axis = SweepPlan.from_toml(recipes["exit-times"]).axes[1]
    np.testing.assert_allclose(axis.tied[0].values, np.log(axis.values), atol=5e-7)


def test_the_file_has_tied_values_along_their_dimension(tmp_path):
    plan = {
        "grid": {"initial": {"seed": [0, 1]}},
        "together": [{"initial": {"uniform_tokens": [100, 1000]}, "model": {"beta": [4.5, 6.5]}}],
        "time": {"t_end": 0.1},
        "solver": {"method": "linear"},
    }
    solve_sweep(plan, tmp_path / "s.h5", workers=1)
    with xarray.open_dataset(tmp_path / "s.h5", engine="h5netcdf") as ds:
        assert ds["moment_real"].dims == ("seed", "uniform_tokens", "time", "mode")
        assert ds["beta"].dims == ("uniform_tokens",)
        assert ds["beta"].values.tolist() == [4.5, 6.5]
        one = float(ds["energy"].sel(uniform_tokens=1000, seed=1, time=0.0))
    # nearly uniform: I_0(beta) / (2 beta), at the beta tied to 1000 tokens; |c_k|^2 of 1000 tokens is 1e-3
    assert one == pytest.approx(np.i0(6.5) / 13.0, rel=0.03)


@pytest.mark.parametrize(
    ("number", "rate"),
    [(16, 1.0), (17, 2.0), (18, math.exp(-1.0)), (19, 2.0 * math.e)],
    ids=["SA density", "SA tokens", "USA density", "USA tokens"],
)
def test_rates_to_one_cluster(computed, number, rate):
    """At beta = 1; mass left opposite the cluster bends the line by e^{2 beta} (1 - |c_1|), tokens by 32 of it."""
    case, t, moments, _ = computed("single-cluster", number)
    assert case["model"]["beta"] == 1.0
    points = "uniform_tokens" in case["initial"]
    high, low = laws.WINDOWS["tokens" if points else "density"]
    measured = laws.decay_rate(t, 1.0 - np.abs(moments[:, 1]), high, low)
    assert measured == pytest.approx(rate, rel=high * (32.0 if points else math.exp(2.0)))
    assert laws.single_cluster_rate(case["model"]["normalization"], 1.0, points=points) == pytest.approx(rate)


def test_a_density_gathers_like_the_solution_of_ott_and_antonsen():
    """beta = 0, c_k = r^k: r^2 / (1 - r^2) grows like e^t, so 1 - r tends to (1 - r_0^2) / (2 r_0^2) e^{-t}."""
    r = 0.4
    run = solve(SelfAttention(0.0), FourierDensity(r ** np.arange(41.0)), np.linspace(0.0, 16.0, 65), n_modes=2)
    growing = r**2 / (1.0 - r**2) * np.exp(run.t)
    exact = 1.0 - np.sqrt(growing / (1.0 + growing))
    np.testing.assert_allclose(1.0 - np.abs(run.moments[:, 1]), exact, atol=1e-9)
    assert laws.decay_rate(run.t, exact, 1e-4, 1e-7) == pytest.approx(1.0, rel=1e-4)


def test_fast_phase(computed):
    """A correction of 1/beta has one of 1/beta^2, measured as (3.4/beta)^2 of it: 1e-3 at the least beta."""
    betas, t, moments = [100.0, 200.0, 400.0], None, []
    for number in (3, 4, 5):
        case, t, c, _ = computed("fast", number)
        assert case["model"]["heads"][0]["beta"] == betas[number - 3]
        moments.append(c[:, 2].real)
    limit = laws.aligned_moment(2.0, 1.0, 2.0)
    last = np.array([c[-1] for c in moments])
    assert laws.limit_exponent(betas, np.abs(last - limit)) == pytest.approx(-1.0, abs=3e-3)
    assert 2.0 * last[2] - last[1] == pytest.approx(limit, abs=1e-4)
    times = [float(np.interp(0.3, c, t)) for c in moments]
    assert 2.0 * times[2] - times[1] == pytest.approx(laws.alignment_time(2.0, 1.0, 0.3), abs=1e-4)


def test_aligned_moment_is_that_of_tokens_in_the_limiting_field():
    theta = (np.arange(512) + 0.5) * 2.0 * np.pi / 512

    def field(t, x):
        return -np.sin(x) * np.cos(x) / np.hypot(2.0 * np.cos(x), np.sin(x))

    moved = solve_ivp(field, (0.0, 2.0), theta, rtol=1e-12, atol=1e-12).y[:, -1]
    assert laws.aligned_moment(2.0, 1.0, 2.0) == pytest.approx(np.cos(2.0 * moved).mean(), abs=1e-10)
    assert laws.aligned_moment(2.0, 1.0, 0.0) == pytest.approx(0.0, abs=1e-12)


def heat_correction(k, s, c_1, c_2, c_3, n=64):
    """(beta times) what finite beta adds to c_k at t = s beta, V = -I, to first order, by Duhamel's formula.

    Z = p + p''/(2 beta), so dp/ds = p'' + (1/(2 beta)) d(p d(p''/p)) with the solution p of the heat equation.
    """
    theta = 2.0 * np.pi * np.arange(n) / n
    modes = np.fft.fftfreq(n, 1.0 / n)

    def source(sigma):
        parts = [c * np.exp(-(j**2) * sigma) for j, c in ((1, c_1), (2, c_2), (3, c_3))]
        waves = [c * np.exp(1j * j * theta) for j, c in enumerate(parts, 1)]
        p = 1.0 + 2.0 * sum(wave.real for wave in waves)
        bend = -2.0 * sum(j**2 * wave.real for j, wave in enumerate(waves, 1))
        slope = np.fft.ifft(1j * modes * np.fft.fft(bend / p)).real
        return complex(0.5j * k * np.fft.fft(p * slope)[k] / n)

    parts = [
        quad(lambda sigma, f=f: f(source(sigma)) * math.exp(-(k**2) * (s - sigma)), 0.0, s, epsabs=1e-11)[0]
        for f in (lambda z: z.real, lambda z: z.imag)
    ]
    return complex(*parts)


def test_intermediate_phase(computed):
    """Time of order beta: the heat flow, and its first correction with the factor that theory gives."""
    betas, start, row = np.array([100.0, 200.0, 400.0]), (0.3, 0.1 + 0.1j, 0.02), 25
    errors = []
    for number, beta in zip((3, 4, 5), betas, strict=True):
        case, s, moments, _ = computed("intermediate", number)
        assert case["model"]["heads"][0]["beta"] == beta
        assert s[row] == 0.5
        heat = np.array(start) * np.exp(-0.5 * np.array([1, 4, 9]))
        errors.append(moments[row, 1:4] - heat)
    errors = np.array(errors)
    for k in (1, 2, 3):
        size = np.abs(errors[:, k - 1])
        assert laws.limit_exponent(betas, size) == pytest.approx(-1.0, abs=3e-3)
        factor = 2.0 * betas[2] * errors[2, k - 1] - betas[1] * errors[1, k - 1]  # without the next order
        assert factor == pytest.approx(heat_correction(k, 0.5, *start), rel=1e-3, abs=1e-6)


def halving(beta, light):
    """Time in which the angle of two clusters is halved, by their equations of motion."""

    def approach(t, x):
        w = x[1] - x[0]
        far = math.exp(beta * (math.cos(w) - 1.0))
        heavy = 1.0 - light
        forces = light * far / (heavy + light * far), heavy * far / (light + heavy * far)
        return [forces[0] * math.sin(w), -forces[1] * math.sin(w)]

    def halved(t, x):
        return x[1] - x[0] - 0.5 * ANGLE

    halved.terminal = True
    found = solve_ivp(approach, (0.0, 1e9), [0.0, ANGLE], events=halved, rtol=1e-11, atol=1e-12, method="LSODA")
    return float(found.t_events[0][0])


@pytest.mark.parametrize(
    ("name", "number", "light"),
    [("slow", 2, 0.5), ("slow", 5, 0.5), ("log-n", 0, 0.01), ("log-n", 1, 0.01), ("log-n", 14, 1 / 25600)],
)
def test_lifetime_of_two_clusters(computed, name, number, light):
    case, t, moments, _ = computed(name, number)
    beta = case["model"]["beta"]
    expected = halving(beta, light)
    assert laws.pair_lifetime(beta, light, ANGLE) == pytest.approx(expected, rel=1e-8)
    w = laws.pair_angles(np.abs(moments[:, 1]), ANGLE)
    end = int(np.argmax(w < 0.45 * ANGLE))
    # moments to 1e-10 and an angle from 1 - |c_1|^2 = 2 m M (1 - cos w): 4e-6 for the lightest
    assert smooth_rise(t[:end], 1.0 / w[:end], 2.0 / ANGLE) == pytest.approx(expected, rel=1e-5)


def test_lifetimes_scale_as_said():
    """Laplace's method: e^{beta (1 - cos w)} / (2 beta sin^2 w) for equal masses, to relative order 1/beta."""
    for beta in (400.0, 800.0):
        leading = math.exp(0.5 * beta) / (2.0 * beta * math.sin(ANGLE) ** 2)
        assert laws.pair_lifetime(beta, 0.5, ANGLE) == pytest.approx(leading, rel=2.0 / beta)
    sizes = np.array([1e40, 1e60])
    for gamma, power in ((1.0, 0.0), (1.5, 0.0), (3.0, 0.5), (4.0, 1.0)):
        times = [laws.pair_lifetime(gamma * math.log(n), 1.0 / n, ANGLE) for n in sizes]
        (exponent,) = laws.exponents(sizes, times)
        assert exponent == pytest.approx(power, abs=1.5 / math.log(sizes[0]))  # 1/(ln n) from the factor 1/beta


@pytest.mark.parametrize("number", [1, 3])
def test_low_temperature(computed, number):
    """beta = 50 and 200; neglected are the squares of the angle and of the width, 0.04 and 0.05, halved in a sine."""
    case, t, moments, _ = computed("low-temperature", number)
    beta = case["model"]["heads"][0]["beta"]
    c = moments[:, 1]
    tolerance = 0.5 * (0.2**2 + 0.05)
    assert -np.angle(c[-1]) == pytest.approx(laws.frozen_angle(beta, 2.0, 1.0, 0.2, 0.05), rel=tolerance)
    width = -2.0 * np.log(np.abs(c)) * beta * 2.0
    assert first_fall(t, width, 1.0) == pytest.approx(laws.freezing_time(beta, 2.0, 1.0, 0.05), abs=2.0 * tolerance)


@pytest.mark.parametrize(("beta", "small"), [(25.0, 1.0), (3200.0, 0.4)])
def test_a_normal_cluster_freezes_as_its_two_equations_say(beta, small):
    def flow(t, state):
        m, s = state
        precision = 2.0 * beta + 1.0 / s**2
        return [(beta * small * m + m / s**2) / precision - m, s * (beta * small / precision - 1.0)]

    def narrow(t, state):
        return 2.0 * beta * state[1] ** 2 - 1.0

    found = solve_ivp(flow, (0.0, 25.0), [0.2, math.sqrt(0.05)], events=narrow, rtol=1e-11, atol=1e-14)
    assert laws.frozen_angle(beta, 2.0, small, 0.2, 0.05) == pytest.approx(found.y[0, -1], rel=1e-7)
    assert laws.freezing_time(beta, 2.0, small, 0.05) == pytest.approx(found.t_events[0][0], rel=1e-7)


@pytest.mark.parametrize("number", [1, 3])
def test_random_tokens_leave_when_linear_theory_says(computed, number):
    """10^4 and 10^6 tokens, beta = ln N; pairs of modes at 0.1 change a third by 0.1 of itself: 0.1/lambda in time."""
    case, _, moments, exit_time = computed("exit-times", number)
    beta = case["model"]["beta"]
    assert beta == pytest.approx(math.log(case["initial"]["uniform_tokens"]), abs=1e-6)
    expected = laws.linear_exit(beta, np.abs(moments[0, 1:]), 0.1)
    assert exit_time == pytest.approx(expected, abs=0.1 / 0.7)


def test_fits_find_the_laws_that_made_the_data():
    x = np.array([10.0, 30.0, 90.0, 270.0])
    y = 3.0 * x**-1.5 * (1.0 + 0.2 / x)
    assert laws.limit_exponent(x, y) == pytest.approx(-1.5, abs=1e-5)
    assert laws.exponents(x, y)[0] < -1.505
    t = np.linspace(0.0, 30.0, 301)
    assert laws.decay_rate(t, 2.0 * np.exp(-0.7 * t) + np.exp(-3.0 * t), 1e-4, 1e-8) == pytest.approx(0.7, abs=1e-9)
    size = np.sqrt(1.0 - 2.0 * 0.1 * 0.9 * (1.0 - np.cos([1.0, 0.5, 0.1])))
    np.testing.assert_allclose(laws.pair_angles(size, 1.0), [1.0, 0.5, 0.1], rtol=1e-12)


class FastClock:
    """A run whose clock is 10% fast."""

    def __init__(self, run):
        self.run, self.t, self.moments, self.measure = run, run.t / 1.1, run.moments, run.measure

    def __len__(self):
        return len(self.run)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["single-cluster-rates", "three-phases", "critical-scaling", "low-temperature", "exit-times-growing-beta"],
)
def test_claims_hold_and_see_a_clock_that_is_fast(name, monkeypatch):
    (claim,) = chosen_claims([name])
    assert claim.measure("quick").holds
    true = scaling.solve

    def fast(model, start, times, **options):
        return FastClock(true(model, start, 1.1 * np.asarray(times), **options))

    monkeypatch.setattr(scaling, "solve", fast)
    assert not claim.measure("quick").holds
