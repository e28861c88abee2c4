"""Pair potentials: attention without softmax is one, Kuramoto and Hegselmann-Krause are others."""

import json
import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from scipy.special import i0, i1, iv, sici

from spectral_mf import (
    Atoms,
    FourierDensity,
    InputError,
    PairPotential,
    SelfAttention,
    Trajectory,
    VectorFields,
    solve,
    theory,
)
from spectral_mf.cli.app import run as run_command
from spectral_mf.solvers import continue_branch, stationary_state
from spectral_mf.storage.kinds import restore_model
from spectral_mf.theory import (
    critical_noise,
    cubic_coefficient,
    dissipation,
    free_energy,
    free_energy_rate,
    stabilising_noise,
)
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.token_velocity import TokenVelocity

DENSITY = FourierDensity.from_modes({1: 0.2, 2: 0.1j, 3: 0.05 - 0.02j})
ROUGH = PairPotential((0.3, 0.5, -0.2, 0.1), 0.05)


def attention_as_potential(beta, n_modes=40):
    return PairPotential.from_function(lambda theta: np.exp(beta * np.cos(theta)) / beta, n_modes=n_modes)


def test_attention_without_softmax_is_a_pair_potential():
    potential, attention = attention_as_potential(5.0), SelfAttention(5.0, "none")
    np.testing.assert_allclose(potential.coefficients[:9], iv(range(9), 5.0) / 5.0, rtol=0, atol=1e-14 * i0(5.0))
    runs = [solve(model, DENSITY, [0.0, 0.1, 0.2, 0.5]) for model in (potential, attention)]
    assert set(runs[0].method) == {"spectral", "characteristics"}
    np.testing.assert_allclose(runs[0].moments, runs[1].moments, rtol=0, atol=1e-9)
    np.testing.assert_allclose(runs[0].energy, runs[1].energy, rtol=1e-9)
    k = np.arange(1, 9)
    np.testing.assert_allclose(potential.growth_rate(k), attention.growth_rate(k), rtol=1e-11)


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        (PairPotential.kuramoto(2.0, 0.4), "PairPotential(Kuramoto, strength 2, diffusion=0.4)"),
        (
            PairPotential.hegselmann_krause(0.8, kept_modes=128),
            "PairPotential(Hegselmann-Krause, radius 0.8, strength 1, 128 modes kept, diffusion=0)",
        ),
        (PairPotential.from_function(np.cos, label="one wave"), "PairPotential(one wave, diffusion=0)"),
        (ROUGH, "PairPotential((0.3, 0.5, -0.2, 0.1), diffusion=0.05)"),
    ],
)
def test_a_potential_is_shown_and_stored_with_its_name(tmp_path, capsys, model, shown):
    assert repr(model) == shown
    path = solve(model, DENSITY, [0.0, 0.01]).save(tmp_path / "run.h5")
    assert Trajectory.load(path).model == model
    assert repr(Trajectory.load(path).model) == shown
    assert run_command(["info", str(path)]) == 0
    assert f"  model     {shown}\n" in capsys.readouterr().out
    older = {key: value for key, value in model.to_dict().items() if key != "label"}
    assert restore_model(older) == model  # the name says nothing that the coefficients do not
    assert restore_model(older).label == ""


@pytest.mark.parametrize("beta", [0.5, 5.0, 12.0])
def test_attention_as_a_potential_is_equal_to_rounding(beta):
    attention = SelfAttention(beta, "none")
    n = attention.bandwidth
    exact = PairPotential(iv(np.arange(n + 1), beta) / beta)
    moments = np.zeros((1, 129), dtype=complex)
    moments[0, : n + 1] = FourierDensity.von_mises(2.0, 0.7).moments(n)
    rng = np.random.default_rng(3)
    theta, angles, weights = rng.uniform(0.0, 7.0, 40), rng.uniform(0.0, 7.0, 50), rng.dirichlet(np.ones(50))
    grids = [model.grid_fields(256) for model in (attention, exact)]
    for grid in grids:
        grid.evaluate(moments)
    assert grids[1].dissipation() == pytest.approx(grids[0].dissipation(), rel=1e-14, abs=0.0)

    def close(found, expected, tolerance=1e-14):
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())

    close(grids[1].velocity, grids[0].velocity)
    close(exact.velocity(moments[0], theta), attention.velocity(moments[0], theta))
    close(exact.pair_velocity(theta, angles, weights), attention.pair_velocity(theta, angles, weights))
    close(exact.pair_jacobian(angles, weights), attention.pair_jacobian(angles, weights))
    close(exact.energy(moments), attention.energy(moments))
    rates = moments[0] * np.arange(129) * (1.0 - 0.5j)
    assert exact.energy_rate(moments[0], rates) == pytest.approx(
        attention.energy_rate(moments[0], rates), rel=1e-13, abs=0.0
    )


def test_a_function_leaves_no_rounding_behind():
    model = PairPotential.from_function(lambda x: np.cos(3.0 * x) + 1e-3 * np.cos(7.0 * x), n_modes=300)
    assert len(model.coefficients) == 8
    np.testing.assert_allclose(model.coefficients, [0, 0, 0, 0.5, 0, 0, 0, 5e-4], rtol=0, atol=1e-16)
    assert np.count_nonzero(model.coefficients) == 2
    faint = PairPotential.from_function(lambda x: np.cos(x) + 1e-14 * np.cos(4.0 * x))  # 45 times the rounding
    np.testing.assert_allclose(faint.coefficients, [0, 0.5, 0, 0, 5e-15], rtol=0, atol=2e-16)
    # times k^2 rounding would grow: at k = 1000 by 1e-10 in a unit of time
    peaked = attention_as_potential(5.0, n_modes=2000)
    assert peaked.bandwidth <= SelfAttention(5.0, "none").bandwidth
    assert not peaked.growth_rate(np.arange(60, 2000)).any()
    theta = np.linspace(0.0, 6.0, 40)
    expected = SelfAttention(5.0, "none").velocity(DENSITY.moments(3), theta)
    np.testing.assert_allclose(
        peaked.velocity(DENSITY.moments(3), theta), expected, atol=1e-14 * np.abs(expected).max()
    )
    assert PairPotential.from_function(lambda x: np.full(x.shape, 2.0)).coefficients == (2.0, 0.0)


@pytest.mark.parametrize("method", ["linear", "quasilinear"])
def test_methods_about_the_uniform_density_serve_pair_potentials(method):
    start = FourierDensity.from_modes({3: 1e-3})
    runs = [
        solve(m, start, [0.0, 0.1, 0.2], method=method)
        for m in (attention_as_potential(5.0), SelfAttention(5.0, "none"))
    ]
    np.testing.assert_allclose(runs[0].moments, runs[1].moments, rtol=0, atol=1e-12)


def test_growth_rates_are_k_squared_times_coefficients_minus_noise():
    k = np.array([0, 1, 2, 3, 4, 99])
    np.testing.assert_allclose(ROUGH.growth_rate(k), k**2 * (np.array([0, 0.5, -0.2, 0.1, 0, 0]) - 0.05), rtol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
@pytest.mark.parametrize(
    ("model", "w"),
    [
        (ROUGH, [0.5, -0.2, 0.1, 0.0, 0.0]),
        (PairPotential.hegselmann_krause(0.8, 2.5, 0.05), None),
        (attention_as_potential(5.0), iv([1, 2, 3, 5, 9], 5.0) / 5.0),
    ],
)
def test_a_small_perturbation_grows_at_its_rate_to_ten_digits(model, w, k):
    if w is None:
        w = [
            quad(lambda x, k=k: 1.25 * (0.64 - x**2) * np.cos(k * x) / np.pi, 0.0, 0.8, epsabs=1e-15)[0]
            for k in (1, 2, 3, 5, 9)
        ]
    rate = k**2 * (dict(zip((1, 2, 3, 5, 9), w, strict=True))[k] - model.diffusion)
    assert model.growth_rate(k) == pytest.approx(rate, rel=1e-12, abs=1e-13)
    t_end = 1.5 / max(0.5, abs(rate))
    run = solve(model, FourierDensity.from_modes({k: 1e-9 * np.exp(0.4j)}), [0.0, t_end], method="spectral", rtol=1e-12)
    grown = run.moments[1, k] / run.moments[0, k]
    assert abs(grown / np.exp(rate * t_end) - 1.0) < 1e-10


def test_kuramoto_is_attention_at_beta_zero():
    runs = [solve(model, DENSITY, [0.0, 4.0]) for model in (PairPotential.kuramoto(), SelfAttention(0.0))]
    np.testing.assert_allclose(runs[0].moments, runs[1].moments, rtol=0, atol=1e-12)
    np.testing.assert_allclose(runs[0].energy, runs[1].energy, rtol=1e-12)


@pytest.mark.parametrize("strength", [0.4, 1.0, 2.5, -1.5])
@pytest.mark.parametrize("method", ["spectral", "characteristics"])
def test_poisson_kernels_of_oscillators_follow_the_closed_form(strength, method):
    # moments r^k e^{-ik psi} (Ott, Antonsen) stay such, with dr/dt = K r (1 - r^2)/2: r^2/(1 - r^2) grows like e^{K t}
    point = 0.5 * np.exp(-0.7j)
    run = solve(
        PairPotential.kuramoto(strength),
        FourierDensity(point ** np.arange(120)),
        np.linspace(0.0, 3.5 / abs(strength), 5),
        method=method,
        rtol=1e-12,
    )
    grown = np.exp(strength * run.t) * 0.25 / 0.75
    r = np.sqrt(grown / (1.0 + grown))
    expected = (r[:, None] * np.exp(-0.7j)) ** np.arange(run.moments.shape[1])
    np.testing.assert_allclose(run.moments, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(run.energy, 0.5 * strength * r**2, rtol=1e-10)


@pytest.mark.parametrize(
    "model", [PairPotential(ROUGH.coefficients), PairPotential.hegselmann_krause(1.0, 3.0, kept_modes=32)]
)
def test_spectral_and_characteristics_agree(model):
    runs = [
        solve(model, DENSITY, [0.0, 0.5, 1.0, 2.0], method=method, rtol=1e-12)
        for method in ("spectral", "characteristics")
    ]
    assert np.abs(runs[0].moments - runs[1].moments).max() < 1e-10
    assert np.abs(runs[0].moments[3] - runs[0].moments[0]).max() > 0.1


@pytest.mark.parametrize("strength", [1.0, 3.0])
def test_oscillators_need_noise_of_half_their_strength_to_lose_order(strength):
    model = PairPotential.kuramoto(strength, 0.2)
    assert critical_noise(model) == pytest.approx(0.5 * strength, rel=1e-15, abs=0.0)
    assert stabilising_noise(model) == pytest.approx(0.5 * strength, rel=1e-15, abs=0.0)
    assert stabilising_noise(PairPotential.kuramoto(-strength)) == 0.0
    start = stationary_state(PairPotential.kuramoto(strength, 0.6 * strength), FourierDensity.uniform())
    uniform = continue_branch(start, "diffusion", (0.4 * strength, 0.7 * strength), increasing=False)
    assert [point.value for point in uniform.special] == pytest.approx([0.5 * strength], rel=1e-10, abs=0.0)


@pytest.mark.parametrize(("strength", "noise"), [(1.0, 0.2), (1.0, 0.45), (3.0, 0.4), (3.0, 1.49)])
def test_stationary_densities_of_oscillators_are_von_mises(strength, noise):
    # V = -K r sin(theta) = d/dtheta K r cos(theta): p ~ exp(K r cos(theta)/kappa), r = I_1/I_0(K r/kappa)
    state = stationary_state(PairPotential.kuramoto(strength, noise), FourierDensity.von_mises(2.0))
    a = strength / noise
    r = brentq(lambda r: i1(a * r) / i0(a * r) - r, 1e-3, 1.0, xtol=1e-15)
    assert state.order_parameter == pytest.approx(r, abs=1e-12 / abs(0.5 * a - 1.0))
    expected = iv(np.arange(12), a * r) / i0(a * r)
    np.testing.assert_allclose(state.density.moments(11), expected, rtol=0, atol=1e-12 / abs(0.5 * a - 1.0))
    assert state.is_stable


@pytest.mark.parametrize(("strength", "noise"), [(1.0, 0.2), (3.0, 0.4)])
def test_kuramoto_with_noise_ends_in_the_von_mises_density(strength, noise):
    run = solve(PairPotential.kuramoto(strength, noise), DENSITY, [0.0, 200.0 / strength])
    r = abs(run.moments[1, 1])
    assert r == pytest.approx(i1(strength * r / noise) / i0(strength * r / noise), abs=1e-8)
    assert r > 0.5


def test_hegselmann_krause_coefficients_are_those_of_the_parabola():
    radius, strength = 0.8, 2.5
    model = PairPotential.hegselmann_krause(radius, strength)
    for k in (0, 1, 2, 7, 30):
        expected, _ = quad(
            lambda x, k=k: 0.5 * strength * (radius**2 - x**2) * np.cos(k * x) / np.pi, 0.0, radius, epsabs=1e-14
        )
        assert model.coefficients[k] == pytest.approx(expected, abs=1e-13)
    # inside the radius tokens attract in proportion to their distance, beyond it not at all
    velocity = model.pair_velocity([0.3, 0.6, 1.5, 3.0], [0.0], [1.0])
    np.testing.assert_allclose(velocity, [-0.75, -1.5, 0.0, 0.0], atol=0.02)


@pytest.mark.parametrize("n_modes", [64, 256, 1024])
def test_the_jump_of_hegselmann_krause_is_overshot_as_gibbs_says(n_modes):
    model = PairPotential.hegselmann_krause(1.0, kept_modes=n_modes)
    assert model.bandwidth == n_modes
    theta = np.linspace(0.5, 1.5, 20001)
    velocity = model.velocity(Atoms([0.0]).moments(n_modes), theta)
    overshoot = float(sici(np.pi)[0]) / np.pi - 0.5  # 8.95% of a jump of 1
    assert -velocity.min() == pytest.approx(1.0 - np.pi / n_modes + overshoot, abs=0.4 / n_modes)
    assert velocity.max() == pytest.approx(overshoot, abs=0.4 / n_modes)


TURNING_RADIUS = brentq(
    lambda r: 0.25 * (np.sin(2.0 * r) - 2.0 * r * np.cos(2.0 * r)) - np.sin(r) + r * np.cos(r), 0.5, 2.0, xtol=1e-15
)
"""Where 2 W_2 = W_1: 1.39535."""


@pytest.mark.parametrize("radius", [0.8, TURNING_RADIUS - 0.1, TURNING_RADIUS + 0.1, 2.0])
def test_bounded_confidence_jumps_to_a_cluster_below_a_radius_and_glides_above(radius):
    w1, w2 = (
        quad(lambda x, k=k: 0.5 * (radius**2 - x**2) * np.cos(k * x) / np.pi, 0.0, radius, epsabs=1e-15)[0]
        for k in (1, 2)
    )
    start = stationary_state(PairPotential.hegselmann_krause(radius, 1.0, 1.1 * w1, 64), FourierDensity.uniform())
    uniform = continue_branch(start, "diffusion", (0.9 * w1, 1.2 * w1), increasing=False)
    (first,) = uniform.of_kind("branch")
    assert first.value == pytest.approx(w1, rel=1e-8)
    clusters = continue_branch(first, "diffusion", (0.9 * w1, 1.5 * w1), step=0.01)
    square = clusters.order_parameter[1:3] ** 2
    bends = (clusters.values[1:3] - w1) / square
    bend = (bends[0] * square[1] - bends[1] * square[0]) / (square[1] - square[0])
    expected = w1 * (2.0 * w2 - w1) / (2.0 * (w1 - w2))
    assert bend == pytest.approx(expected, abs=1e-4 * w1)
    assert cubic_coefficient(first.state.model) == pytest.approx(expected, rel=1e-12, abs=0.0)
    folds = clusters.of_kind("fold")
    assert len(folds) == (1 if radius < TURNING_RADIUS else 0)
    if folds:
        assert folds[0].value > w1
        assert not clusters.stable[1]
        assert clusters.stable[-1]


@pytest.mark.parametrize(("radius", "noise"), [(0.8, 0.03), (2.0, 0.3)])
def test_free_energy_of_bounded_confidence_never_rises(radius, noise):
    model = PairPotential.hegselmann_krause(radius, 1.0, noise, 64)
    run = solve(model, DENSITY, np.linspace(0.0, 60.0, 61), method="spectral", rtol=1e-10)
    states = [run.measure(i) for i in range(len(run))]
    values = np.array([free_energy(model, state) for state in states])
    assert np.diff(values).max() < 1e-13 * np.abs(values).max()
    assert values[0] - values[-1] > 1e-3
    for state in states[::10]:
        assert free_energy_rate(model, state) == pytest.approx(-dissipation(model, state), rel=1e-9, abs=1e-14)


def test_energy_is_the_double_integral_and_never_falls():
    phi = 2.0 * np.pi * np.arange(64) / 64
    p = DENSITY.density(phi) * (2.0 * np.pi / 64)
    w = 0.3 + 2.0 * (0.5 * np.cos(phi) - 0.2 * np.cos(2.0 * phi) + 0.1 * np.cos(3.0 * phi))
    expected = 0.5 * p @ w[(np.arange(64)[:, None] - np.arange(64)) % 64] @ p
    assert DENSITY.energy(ROUGH) == pytest.approx(expected, rel=1e-14, abs=0.0)
    run = solve(PairPotential(ROUGH.coefficients), DENSITY, np.linspace(0.0, 2.0, 21), method="spectral")
    assert np.diff(run.energy).min() > 0.0
    assert np.abs(run.energy_rate_residual).max() < 1e-13


def test_free_energy_never_rises():
    run = solve(ROUGH, DENSITY, np.linspace(0.0, 5.0, 21))
    values = [free_energy(ROUGH, run.measure(i)) for i in range(len(run))]
    assert np.diff(values).max() < 0.0


def test_jacobian_is_the_derivative_of_the_velocity():
    theta, weights = np.array([0.3, 1.1, 2.0, 5.9]), np.array([0.4, 0.1, 0.2, 0.3])
    jacobian = ROUGH.pair_jacobian(theta, weights)
    for j in range(4):
        step = 1e-6 * np.eye(4)[j]
        ahead, behind = (ROUGH.pair_velocity(x, x, weights) for x in (theta + step, theta - step))
        np.testing.assert_allclose(jacobian[:, j], (ahead - behind) / 2e-6, atol=1e-9)


def test_tokens_move_by_the_potential():
    model = PairPotential.hegselmann_krause(1.0)
    theta = np.sort(np.random.default_rng(4).uniform(0.0, 2.0 * np.pi, 3000))
    weights, out = np.full(3000, 1.0 / 3000), np.empty(3000)
    TokenVelocity(model, weights)(theta, out)
    np.testing.assert_allclose(out[::100], model.pair_velocity(theta[::100], theta, weights), atol=1e-13)
    tokens = Atoms.sample_uniform(100, 2)
    run = simulate(PairPotential(ROUGH.coefficients), tokens, [0.0, 1.0], rtol=1e-11)
    atoms = solve(PairPotential(ROUGH.coefficients), tokens, [0.0, 1.0], method="characteristics", rtol=1e-11)
    assert np.abs(run.moments - atoms.moments).max() < 1e-9


def test_tokens_follow_an_independent_pairwise_integration():
    theta = np.random.default_rng(5).uniform(0.0, 2.0 * np.pi, 90)
    weights = np.full(90, 1.0 / 90)

    def rates(_, x):
        d = x[:, None] - x  # W' of W = 0.3 + cos(x) - 0.4 cos(2 x) + 0.2 cos(3 x)
        return (-np.sin(d) + 0.8 * np.sin(2.0 * d) - 0.6 * np.sin(3.0 * d)) @ weights

    times = [0.0, 1.0, 3.0]
    exact = solve_ivp(rates, (0.0, 3.0), theta, method="DOP853", t_eval=times, rtol=1e-13, atol=1e-13).y.T
    run = simulate(PairPotential(ROUGH.coefficients), Atoms(theta, weights), times, rtol=1e-12)
    expected = np.exp(-1j * np.arange(10) * exact[..., None]).mean(axis=1)
    np.testing.assert_allclose(run.moments[:, :10], expected, rtol=0, atol=1e-10)


def test_linear_theory_takes_pair_potentials():
    assert theory.dominant_mode(PairPotential((0.0, 0.1, 0.2, 0.01))).modes == (2,)


@pytest.mark.parametrize(
    ("model", "modes", "rate", "and_above"),
    [
        (PairPotential.kuramoto(-1.0), (2,), 0.0, True),  # mode 1 decays, all others rest
        (PairPotential((0.0, 0.0)), (1, 2), 0.0, True),
        (PairPotential((0.0, -0.1, 0.0, -0.2)), (2, 4), 0.0, True),
        (PairPotential.kuramoto(-1.0, 0.1), (2,), -0.4, False),
        (PairPotential.kuramoto(1.0), (1,), 0.5, False),
    ],
)
def test_modes_at_rest_tie_with_all_above(model, modes, rate, and_above):
    dominant = theory.dominant_mode(model)
    assert (dominant.modes, dominant.and_above) == (modes, and_above)
    assert dominant.rate == pytest.approx(rate, abs=1e-15)
    assert dominant.tie == (and_above or len(modes) > 1)
    higher = theory.growth_rate(model, np.arange(modes[-1] + 1, modes[-1] + 50))
    assert (higher == rate).all() == and_above


def test_the_command_line_names_modes_at_rest(capsys):
    assert run_command(["linear", "--type", "Kuramoto", "--strength", "-1"]) == 0
    assert "no mode grows (largest rate 0, that of every mode from 2 on)." in capsys.readouterr().out
    assert theory.unstable_manifold(PairPotential.kuramoto()).growth_rate == pytest.approx(0.5)


def test_a_model_is_restored_from_its_parameters():
    assert restore_model(json.loads(json.dumps(ROUGH.to_dict()))) == ROUGH


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PairPotential((1.0,)), "are not a row of finite numbers W_0, W_1, ...; give at least two"),
        (lambda: PairPotential((1.0, np.nan)), "are not a row of finite numbers"),
        (lambda: PairPotential(((1.0, 2.0), (3.0, 4.0))), "are not a row of finite numbers"),
        (lambda: PairPotential(np.ones(9000)), "have 8999 modes; give at most 8192"),
        (lambda: PairPotential((0.0, 1.0), -1.0), "diffusion = -1 is not allowed"),
        (lambda: PairPotential.from_function(np.sin), "is not even; give"),
        (lambda: PairPotential.from_function(lambda x: np.abs(x - np.pi)), "256 modes do not resolve the potential"),
        (lambda: PairPotential.from_function(lambda x: x / 0.0 + 1j), "are not finite real numbers"),
        (lambda: PairPotential.from_function(3.0), "is not a function"),
        (
            lambda: PairPotential.from_function(math.cos),
            "the potential takes no array of angles .*; give a function of",
        ),
        (lambda: PairPotential.from_function(lambda x: x if x < 1 else 1), "the potential takes no array of angles"),
        (lambda: FourierDensity.from_function(math.cos), "the density takes no array of angles .*; give a function of"),
        (lambda: VectorFields.from_functions([np.cos, math.cos]), "field number 1 takes no array of angles"),
        (lambda: PairPotential((0.0, 1.0), label=3), "label = 3 is no text"),
        (lambda: PairPotential.hegselmann_krause(4.0), "radius = 4 is not allowed; give a number from 0.05"),
        (lambda: PairPotential.hegselmann_krause(1.0, kept_modes=0), "kept_modes = 0 is not allowed; give an integer"),
        (
            lambda: PairPotential.hegselmann_krause(1.0, kept_modes=9000),
            "kept_modes = 9000 is not allowed; give at most 8192",
        ),
        (lambda: cubic_coefficient(PairPotential((0.0, -0.5))), "mode 1 is not brought forth by PairPotential"),
        (
            lambda: cubic_coefficient(PairPotential((0.0, 0.5, 0.5))),
            "mode 2 needs as much noise as mode 1 \\(0.5, 0.5\\)",
        ),
        (lambda: PairPotential.kuramoto("a"), "strength = 'a' is not a real number"),
    ],
)
def test_what_is_no_potential_is_refused(make, message):
    with pytest.raises(InputError, match=message.replace("...", r"\.\.\.")), np.errstate(all="ignore"):
        make()
