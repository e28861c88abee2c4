"""Matrices and heads, against reference moments, quadrature, the scalar model, and what their energy says."""

import json
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

from spectral_mf import Atoms, AttentionHead, FourierDensity, InputError, MultiHeadAttention, SelfAttention, solve
from spectral_mf.harmonics import point_moments
from spectral_mf.storage.kinds import restore_model
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.token_velocity import TokenVelocity

IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
REFERENCE = json.loads(resources.files("spectral_mf.data").joinpath("matrices_and_heads.json").read_text("utf-8"))
GENERAL = AttentionHead([[1.2, 0.3], [-0.1, 0.8]], [[0.9, 0.2], [0.1, -0.4]], 3.0)
OTHER = AttentionHead([[-0.3, 0.8], [0.5, 0.2]], [[0.1, -0.7], [0.6, 0.3]], 2.0)
DENSITY = FourierDensity.from_modes({1: 0.2, 2: 0.1j, 3: 0.05 - 0.02j})
NORMALIZATIONS = ("softmax", "none", "peak")


def case(name):
    stored = REFERENCE["cases"][name]
    heads = [AttentionHead(**head, beta=stored["beta"]) for head in stored["heads"]]
    modes = {int(k): complex(*c) for k, c in stored["initial_moments"].items()}
    model = MultiHeadAttention(heads, stored["normalization"])
    return model, FourierDensity.from_modes(modes), stored["times"], np.array(stored["moments"]) @ [1.0, 1j]


def by_quadrature(model, density, theta):
    """Velocity by the definition: coordinates, exponentials and the trapezoid rule."""
    phi = 2.0 * np.pi * np.arange(4096) / 4096
    y, x = np.stack([np.cos(phi), np.sin(phi)]), np.stack([np.cos(theta), np.sin(theta)], axis=1)
    tangent = np.stack([-np.sin(theta), np.cos(theta)], axis=1)
    total = np.zeros(len(theta))
    for head in model.heads:
        weights = np.exp(head.beta * x @ np.array(head.query_key) @ y) * density.density(phi)
        values = (weights * (tangent @ np.array(head.value) @ y)).sum(axis=1)
        total += values / (weights.sum(axis=1) if model.normalization == "softmax" else 4096 / (2.0 * np.pi))
    if model.normalization == "peak":
        norms = [head.beta * np.linalg.norm(head.query_key, 2) for head in model.heads]
        total *= np.exp(-max(norms))
    return total


# ---- reference values


@pytest.mark.parametrize("method", ["spectral", "characteristics", "auto"])
@pytest.mark.parametrize("name", REFERENCE["cases"])
def test_reference_moments(name, method):
    model, start, times, expected = case(name)
    run = solve(model, start, [0.0, *times], method=method, rtol=1e-11)
    assert np.abs(run.moments[1:, :9] - expected).max() < 1e-11


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("beta", [0.0, 1e-5, 0.5, 5.0, 9.0])
def test_identity_matrices_are_the_scalar_model(beta, normalization):
    scalar = SelfAttention(beta, normalization, 0.01)
    model = MultiHeadAttention([AttentionHead(IDENTITY, IDENTITY, beta)], normalization, 0.01)
    moments = np.zeros((1, 129), dtype=complex)
    moments[0, :4] = DENSITY.moments(3)
    expected, fields = scalar.grid_fields(256), model.grid_fields(256)
    expected.evaluate(moments)
    fields.evaluate(moments)
    speed = np.abs(expected.velocity).max()
    np.testing.assert_allclose(fields.velocity, expected.velocity, rtol=0, atol=1e-14 * speed)
    np.testing.assert_array_equal(fields.density, expected.density)
    np.testing.assert_allclose(fields.dissipation(), expected.dissipation(), rtol=1e-13)
    theta, weights = np.random.default_rng(1).uniform(0.0, 7.0, 50), np.full(50, 0.02)
    for name, args in {"velocity": (moments[0], theta), "pair_velocity": (theta, theta, weights)}.items():
        pair = getattr(model, name)(*args), getattr(scalar, name)(*args)
        np.testing.assert_allclose(*pair, rtol=0, atol=1e-14 * speed)
    jacobian = scalar.pair_jacobian(theta, weights)
    np.testing.assert_allclose(
        model.pair_jacobian(theta, weights), jacobian, rtol=0, atol=1e-14 * np.abs(jacobian).max()
    )
    np.testing.assert_allclose(model.energy(moments[0]), scalar.energy(moments[0]), rtol=1e-14)
    rates = scalar.growth_rate(np.arange(9))
    np.testing.assert_allclose(model.growth_rate(np.arange(9)), rates, rtol=0, atol=1e-14 * np.abs(rates).max())
    assert (model.turns, model.energy_log_unit) == (0, scalar.energy_log_unit)


# ---- velocities


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_velocities_are_those_of_the_definition(normalization):
    model = MultiHeadAttention([GENERAL, OTHER], normalization)
    theta = 2.0 * np.pi * np.arange(128) / 128
    expected = by_quadrature(model, DENSITY, theta)
    speed = np.abs(expected).max()
    moments = np.zeros((2, 65), dtype=complex)
    moments[:, :4] = DENSITY.moments(3)
    fields = model.grid_fields(128, n_densities=2)
    fields.evaluate(moments)
    np.testing.assert_allclose(fields.velocity, np.stack([expected] * 2), rtol=0, atol=1e-13 * speed)
    np.testing.assert_allclose(model.velocity(moments[0], theta), expected, rtol=0, atol=1e-13 * speed)
    cut = model.velocity(DENSITY.moments(3), theta)
    np.testing.assert_allclose(cut, expected, rtol=0, atol=1e-13 * speed)
    half = np.zeros((1, 65), dtype=complex)
    half[0, 0], half[0, 1] = 1.0, 0.1j
    folded, full = model.grid_fields(128, fold=2), model.grid_fields(256)
    folded.evaluate(half)
    unfolded = np.zeros((1, 129), dtype=complex)
    unfolded[0, ::2] = half[0]
    full.evaluate(unfolded)
    np.testing.assert_allclose(folded.velocity[0], full.velocity[0, :128], rtol=0, atol=1e-14 * speed)


matrices = st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4).map(lambda m: [m[:2], m[2:]])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(matrices, matrices, st.floats(0.0, 8.0), st.sampled_from(NORMALIZATIONS))
def test_pair_sums_moments_and_jacobian_agree(query_key, value, beta, normalization):
    model = MultiHeadAttention([AttentionHead(query_key, value, beta), OTHER], normalization)
    theta = np.array([0.3, 1.1, 2.0, 4.0, 5.9])
    weights = np.array([0.3, 0.1, 0.2, 0.15, 0.25])
    pairs = model.pair_velocity(theta, theta, weights)
    scale = max(1.0, np.abs(pairs).max())
    sums, mass = model.velocity_and_mass(point_moments(theta, weights, model.bandwidth), theta)
    np.testing.assert_allclose(sums, pairs, rtol=0, atol=1e-12 * scale / mass.min())
    jacobian = model.pair_jacobian(theta, weights)
    step = 1e-4
    for j in range(5):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += step
        behind[j] -= step
        difference = model.pair_velocity(ahead, ahead, weights) - model.pair_velocity(behind, behind, weights)
        np.testing.assert_allclose(jacobian[:, j], difference / (2.0 * step), rtol=0, atol=2e-4 * scale)


def test_large_scores_neither_overflow_nor_lose_the_direction_that_is_hardly_seen():
    # r(theta) runs from 20 to 2000: in one unit for all angles the smallest kernels would be e^{-1980}
    head = AttentionHead([[1.0, 0.0], [0.0, 0.01]], IDENTITY, 2000.0)
    model = MultiHeadAttention([head])
    moments = np.zeros((1, 513), dtype=complex)
    moments[0, :2] = 1.0, 0.3
    fields = model.grid_fields(1024)
    fields.evaluate(moments)
    theta = 2.0 * np.pi * np.arange(1024) / 1024
    phi = 2.0 * np.pi * np.arange(8192) / 8192
    for j in (0, 100, 255, 256, 257, 700):
        exponent = 2000.0 * (np.cos(theta[j]) * np.cos(phi) + 0.01 * np.sin(theta[j]) * np.sin(phi))
        weights = np.exp(exponent - exponent.max()) * (1.0 + 0.6 * np.cos(phi))
        expected = (weights * np.sin(phi - theta[j])).sum() / weights.sum()
        assert fields.velocity[0, j] == pytest.approx(expected, abs=1e-11)
    peak = MultiHeadAttention([head], "peak")
    assert peak.pair_velocity([0.1], [0.0], [1.0])[0] == pytest.approx(-np.sin(0.1) * np.exp(2000 * (np.cos(0.1) - 1)))


def test_methods_agree_where_series_see_too_little_mass():
    # near pi/2 the kernel is e^{-32} of what it is at 0: one unit for all angles would leave no digit there
    model = MultiHeadAttention([AttentionHead([[1.0, 0.0], [0.0, 0.2]], IDENTITY, 40.0)])
    theta = np.linspace(0.0, 2.0 * np.pi, 50)
    expected = by_quadrature(model, DENSITY, theta)
    np.testing.assert_allclose(model.velocity(DENSITY.moments(3), theta), expected, rtol=0, atol=1e-12)
    tokens = np.sort(np.random.default_rng(2).uniform(0.0, 2.0 * np.pi, 500))
    weights, out = np.full(500, 0.002), np.empty(500)
    TokenVelocity(model, weights)(tokens, out)
    np.testing.assert_allclose(out, model.pair_velocity(tokens, tokens, weights), rtol=0, atol=1e-11)
    runs = [solve(model, DENSITY, [0.0, 0.5], method=m, rtol=1e-9) for m in ("spectral", "characteristics")]
    assert np.abs(runs[0].moments - runs[1].moments).max() < 1e-8


@pytest.mark.parametrize(
    "make", [SelfAttention, lambda beta: MultiHeadAttention([AttentionHead(IDENTITY, IDENTITY, beta)])]
)
def test_velocities_on_a_grid_hold_until_the_mass_is_rounding_and_stay_bounded_beyond(make):
    # von Mises density exp(60 cos): Z = I_0(|30 e^{i theta} + 60|)/(I_0(30) I_0(60)), 1e-25 at pi
    fields = make(30.0).grid_fields(256)
    moments = np.zeros((1, 129), dtype=complex)
    moments[0] = FourierDensity.von_mises(60.0).moments(128)
    fields.evaluate(moments)
    theta = 2.0 * np.pi * np.arange(256) / 256
    r = np.abs(30.0 * np.exp(1j * theta) + 60.0)
    mass = ive(0, r) * np.exp(r - 90.0) / (ive(0, 30.0) * ive(0, 60.0))
    expected = -60.0 * np.sin(theta) / r * ive(1, r) / ive(0, r)  # log Z's derivative over beta
    seen = mass > 1e-12
    assert (mass[seen] < 1e-10).any()
    assert np.abs(fields.velocity[0] - expected)[seen].max() < 2e-3
    narrow = moments.copy()
    narrow[0] = FourierDensity.von_mises(2000.0).moments(128)
    fields.evaluate(narrow)  # here Z is rounding, of either sign
    assert np.abs(fields.velocity).max() < 1.1


def test_an_atom_without_mass_changes_nothing():
    # at its own place it would set the scale by which the others underflow
    model = MultiHeadAttention([AttentionHead(IDENTITY, IDENTITY, 2000.0)])
    angles, weights = np.array([0.0, 2.9, 2.901]), np.array([0.0, 0.25, 0.75])
    alone = model.pair_velocity([0.0], angles[1:], weights[1:])
    np.testing.assert_allclose(model.pair_velocity([0.0], angles, weights), alone, rtol=1e-14)
    assert np.isfinite(model.pair_jacobian(angles, weights)).all()


@pytest.mark.parametrize("far", [0.4, 2.9])
def test_pair_sums_with_softmax_have_no_scale(far):
    # exponents of 2000 and of -2000: the softmax of both masses is that of the difference
    model = MultiHeadAttention([AttentionHead(IDENTITY, IDENTITY, 2000.0)])
    angles, weights = np.array([far, far + 1e-3]), np.array([0.25, 0.75])
    exponents = 2000.0 * (np.cos(angles) - np.cos(far))
    attention = weights * np.exp(exponents) / (weights * np.exp(exponents)).sum()
    expected = attention @ np.sin(angles)
    assert model.pair_velocity([0.0], angles, weights)[0] == pytest.approx(expected, rel=1e-11, abs=0.0)


# ---- energy


def test_energy_is_the_double_integral():
    model, density = case("two_heads_gradient")[0], DENSITY.rotated(0.4)
    phi = 2.0 * np.pi * np.arange(512) / 512
    p = density.density(phi) * (2.0 * np.pi / 512)
    y = np.stack([np.cos(phi), np.sin(phi)])
    expected = sum(p @ np.exp(2.0 * y.T @ np.array(h.query_key) @ y) @ p / 4.0 for h in model.heads)
    assert density.energy(model) == pytest.approx(expected, rel=1e-14, abs=0.0)
    linear = MultiHeadAttention([AttentionHead(IDENTITY, [[1.0, 0.5], [0.5, -2.0]], 0.0)], "none")
    mean = p @ y.T
    assert density.energy(linear) == pytest.approx(0.5 * mean @ [[1.0, 0.5], [0.5, -2.0]] @ mean, rel=1e-13, abs=0.0)


@pytest.mark.parametrize(
    "model",
    [
        case("two_heads_gradient")[0],
        case("symmetric_indefinite")[0],
        MultiHeadAttention([AttentionHead([[1.0, 0.2], [0.2, 0.5]], [[-0.5, -0.1], [-0.1, -0.25]], 4.0)]),
        MultiHeadAttention([AttentionHead([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, -0.5]], 4.0)], "none"),
    ],
)
@pytest.mark.parametrize("method", ["spectral", "characteristics"])
def test_energy_of_gradient_flows_never_falls(model, method):
    run = solve(model, DENSITY, np.linspace(0.0, 1.5, 31), method=method)
    assert np.diff(run.energy).min() > 0.0
    if method == "spectral":
        rate = np.gradient(run.energy, run.t, edge_order=2)[1:-1]
        assert np.abs(run.energy_rate_residual).max() < 1e-12 * rate.max()


def test_a_symmetric_matrix_that_was_turned_has_an_energy():
    for angle in np.linspace(0.0, 3.0, 40):
        matrix = symmetric(2.0, -0.3, angle)
        assert MultiHeadAttention([AttentionHead(matrix, matrix, 2.0)]).has_energy
    tilted = [[1.0, 1e-12], [0.0, 1.0]]
    assert not MultiHeadAttention([AttentionHead(tilted, tilted, 2.0)]).has_energy
    almost = [[1.0, 0.0], [0.0, 0.5 + 1e-12]]
    assert not MultiHeadAttention([AttentionHead([[1.0, 0.0], [0.0, 0.5]], almost, 2.0)]).has_energy


@pytest.mark.parametrize(
    "heads",
    [[GENERAL], [AttentionHead([[1.0, 0.2], [0.2, 0.5]], IDENTITY, 4.0)], [AttentionHead(IDENTITY, IDENTITY)] * 2],
)
def test_no_gradient_flow_has_no_energy(heads, tmp_path):
    model = MultiHeadAttention(heads)
    run = solve(model, DENSITY, [0.0, 0.1, 0.2], output=tmp_path / "run.h5")
    assert np.isnan(run.energy).all()
    assert np.isnan(run.energy_rate_residual).all()
    assert np.isnan(model.energy_rate(DENSITY.moments(9), DENSITY.moments(9)))


# ---- what becomes of tokens


def ends(matrix, t_end, start=DENSITY, beta=2.0):
    run = solve(MultiHeadAttention([AttentionHead(matrix, matrix, beta)]), start, [0.0, t_end])
    return run.moments[1]


def symmetric(first, second, angle):
    """Eigenvalue `first` in the direction of the angle, `second` across."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s], [s, c]])
    return turn @ np.diag([first, second]) @ turn.T


def test_one_dominating_positive_eigenvalue_gives_one_cluster_at_its_direction():
    # with c = e^{2 beta 2} = 2.2 both ends of the direction cannot hold masses of a larger ratio than that
    moments = ends(symmetric(2.0, -0.3, 0.7), 40.0, FourierDensity.von_mises(1.0, 0.4), beta=0.2)
    assert abs(moments[1]) > 1.0 - 1e-9
    assert np.angle(np.exp(-0.7j) / moments[1]) == pytest.approx(0.0, abs=1e-6)


def test_a_negative_definite_matrix_gives_antipodal_clusters_at_its_most_negative_direction():
    moments = ends(symmetric(-0.4, -1.5, 0.7), 40.0)
    direction = 0.7 + 0.5 * np.pi
    assert abs(moments[2]) > 1.0 - 1e-9
    assert abs(moments[1]) < 1.0 - 1e-3  # both ends hold mass
    assert np.angle(np.exp(-2j * direction) / moments[2]) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0, 5.0])
def test_two_ends_of_a_direction_are_stable_up_to_the_closed_form(ratio):
    # V = B = diag(1, x), masses r : 1 at 0 and pi: stable iff x < (c - r)(c r - 1)/(r (c^2 - 1)), c = e^{2 beta}
    beta, weights = 0.7, np.array([ratio, 1.0]) / (ratio + 1.0)
    c = np.exp(2.0 * beta)
    critical = (c - ratio) * (c * ratio - 1.0) / (ratio * (c**2 - 1.0))
    for step in (-1e-6, 1e-6):
        matrix = np.diag([1.0, critical + step])
        model = MultiHeadAttention([AttentionHead(matrix, matrix, beta)])
        rates = np.linalg.eigvals(model.pair_jacobian([0.0, np.pi], weights)).real
        assert np.sign(rates.max()) == np.sign(step)
        assert 1e-7 < abs(rates.max()) < 2e-6


@pytest.mark.parametrize(
    ("beta", "expected"), [(25, 0.036656), (50, 0.019254), (100, 0.0098643), (200, 0.0049922), (400, 0.0025108)]
)
def test_heat_flow_of_values_turned_round(beta, expected):
    # V = -identity: density at t = 0.05 beta against the heat equation's after 0.05, first order in 1/beta. The
    # expected values are sums over 256 points; the integrals differ by up to 1e-4 of them (|.| has kinks).
    k = np.arange(41)
    centres = np.array([0.8, 2.5, 4.5])
    c = np.exp(-0.5 * 0.4**2 * k**2) * np.exp(-1j * np.outer(centres, k)).mean(axis=0)
    model = MultiHeadAttention([AttentionHead(IDENTITY, [[-1.0, 0.0], [0.0, -1.0]], beta)])
    run = solve(model, FourierDensity(c), [0.0, 0.05 * beta], method="spectral", rtol=1e-9)
    theta = 2.0 * np.pi * np.arange(256) / 256
    exact = FourierDensity(c * np.exp(-0.05 * k**2)).density(theta)
    error = np.abs(run.density(theta)[1] - exact).mean() * 2.0 * np.pi
    assert error == pytest.approx(expected, rel=3e-5)


# ---- tokens


@pytest.mark.parametrize("n_tokens", [50, 1000, 30_000])
@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_tokens_move_with_the_heads(n_tokens, normalization):
    model = MultiHeadAttention([GENERAL, OTHER], normalization)
    theta = np.sort(np.random.default_rng(3).uniform(0.0, 2.0 * np.pi, n_tokens))
    weights = np.full(n_tokens, 1.0 / n_tokens)
    out = np.empty(n_tokens)
    TokenVelocity(model, weights)(theta, out)
    some = slice(None, None, max(1, n_tokens // 50))
    expected = model.pair_velocity(theta[some], theta, weights)
    np.testing.assert_allclose(out[some], expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_run_of_tokens_follows_the_characteristics_of_atoms():
    model = MultiHeadAttention([GENERAL, OTHER])
    tokens = Atoms.sample_uniform(200, 5)
    run = simulate(model, tokens, [0.0, 1.0], rtol=1e-11)
    atoms = solve(model, tokens, [0.0, 1.0], method="characteristics", rtol=1e-11)
    assert np.abs(run.moments - atoms.moments).max() < 1e-9


# ---- doors


@pytest.mark.parametrize(
    "matrix", [[[1.0, 0.0]], [1.0, 0.0, 0.0, 1.0], np.eye(3), [[1.0, np.nan], [0.0, 1.0]], "ab", [[1j, 0], [0, 1]]]
)
def test_matrices_are_two_by_two_and_finite(matrix):
    with pytest.raises(InputError, match=r"query_key = .* is not a 2x2 matrix of finite numbers; give"):
        AttentionHead(matrix, IDENTITY)
    with pytest.raises(InputError, match=r"value = .* is not a 2x2 matrix"):
        AttentionHead(IDENTITY, matrix)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiHeadAttention([]), "heads are missing; give at least one"),
        (lambda: MultiHeadAttention(3), "heads = 3 are no heads; give"),
        (lambda: MultiHeadAttention([np.eye(2)]), "is no head; give"),
        (lambda: MultiHeadAttention([{"value": IDENTITY}]), "lacks its query_key; give"),
        (lambda: MultiHeadAttention([{"query_key": IDENTITY, "value": IDENTITY}]), "a head lacks its beta; give"),
        (lambda: MultiHeadAttention([{"query_key": IDENTITY, "value": IDENTITY, "b": 1}]), "has no b; give"),
        (lambda: MultiHeadAttention([GENERAL], "soft"), "'soft' is unknown; choose"),
        (lambda: MultiHeadAttention([GENERAL], diffusion=-1.0), "diffusion = -1 is not allowed"),
        (lambda: AttentionHead(IDENTITY, IDENTITY, -1.0), "beta = -1 is not allowed"),
        (lambda: AttentionHead(IDENTITY, IDENTITY, 2e4), "too large; their product may be at most 10000"),
        (lambda: MultiHeadAttention([AttentionHead(IDENTITY, IDENTITY, 700.0)], "none"), "use normalization = 'peak'"),
    ],
)
def test_what_is_no_model_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("method", ["linear", "quasilinear"])
def test_methods_about_the_uniform_density_are_refused_at_once(method, tmp_path):
    file = tmp_path / "run.h5"
    with pytest.raises(InputError, match=r"use theory\.spectrum"):
        solve(MultiHeadAttention([GENERAL]), DENSITY, 1.0, method=method, output=file)
    assert not file.exists()


def test_characteristics_with_diffusion_are_refused():
    with pytest.raises(InputError, match=r"diffusion = 0\.1 spreads mass"):
        solve(MultiHeadAttention([GENERAL], diffusion=0.1), DENSITY, 1.0, method="characteristics")


@pytest.mark.parametrize(
    ("query_key", "value", "turns", "rates"),
    [
        (IDENTITY, IDENTITY, 0, True),
        ([[1.0, 0.3], [-0.3, 1.0]], IDENTITY, 0, False),
        (IDENTITY, [[1.0, 0.3], [-0.3, 1.0]], 0, False),
        (IDENTITY, [[1.0, 0.0], [0.0, 0.5]], 2, False),
        ([[1.0, 0.1], [0.1, 1.0]], IDENTITY, 2, False),
    ],
)
def test_turns_are_kept_if_both_matrices_commute_with_them(query_key, value, turns, rates):
    model = MultiHeadAttention([AttentionHead(query_key, value, 2.0)])
    assert (model.turns, model.has_growth_rates) == (turns, rates)


def test_symmetry_is_the_models_too():
    three, model = FourierDensity.from_modes({3: 0.1}), MultiHeadAttention([GENERAL])
    run = solve(model, three, [0.0, 0.5])
    assert run.configuration["symmetry"] == 1
    assert abs(run.moments[1, 1]) > 1e-3
    with pytest.raises(InputError, match="symmetry = 3 is not kept by the model, which keeps symmetries of order 2"):
        solve(model, three, [0.0, 0.5], symmetry=3)
    even = solve(model, FourierDensity.from_modes({2: 0.1}), [0.0, 0.5])
    unfolded = solve(model, FourierDensity.from_modes({2: 0.1}), [0.0, 0.5], symmetry="none")
    assert even.configuration["symmetry"] == 2
    assert np.abs(even.moments - unfolded.moments).max() < 1e-10


def test_the_uniform_density_moves_by_every_method():
    model = MultiHeadAttention([GENERAL])
    runs = [solve(model, FourierDensity.uniform(), [0.0, 0.5], method=m) for m in ("spectral", "characteristics")]
    assert abs(runs[0].moments[1, 2]) > 1e-2
    assert np.abs(runs[0].moments - runs[1].moments).max() < 1e-9


def test_a_model_is_restored_from_its_parameters():
    model = MultiHeadAttention([GENERAL, OTHER], "peak", 0.1)
    assert restore_model(json.loads(json.dumps(model.to_dict()))) == model


def test_a_sharp_density_is_handed_over_however_deep_the_softmax_lies():
    # where the softmax sees nothing the density is below the spectral method's error, and negative by it
    model = MultiHeadAttention([AttentionHead(np.diag([2.0, 1.0]), np.eye(2), 200.0)], "softmax")
    start = FourierDensity.von_mises(20.0).rotated(0.4)
    run = solve(model, start, [0.0, 0.5], rtol=1e-8)
    assert run.rows[-1].snapshot.method == "characteristics"
    other = solve(model, start, [0.0, 0.5], rtol=1e-9, method="characteristics")
    np.testing.assert_allclose(run.moments[-1], other.moments[-1], atol=1e-7)
