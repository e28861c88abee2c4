"""Densities with positions: causal, decaying and rotary attention against closed forms and direct quadrature."""

import json
from itertools import pairwise

import h5py
import numpy as np
import pytest
import xarray
from scipy.integrate import quad

from spectral_mf import (
    AttentionHead,
    FourierDensity,
    InputError,
    MultiHeadAttention,
    SelfAttention,
    StorageError,
    Trajectory,
    solve,
)
from spectral_mf.position_grid import PositionGrid
from spectral_mf.position_theory import influence, u_shape_limit
from spectral_mf.positional_heads import positional_system
from spectral_mf.positional_trajectory import PositionalTrajectory
from spectral_mf.positions import PositionalAttention
from spectral_mf.solvers.positional import StoppedWithPositions, solve_linear_positions, solve_positions

CAUSAL = PositionalAttention(5.0, "none", decay=1.0)
MATRIX = [[0.5, -2.0], [0.7, -0.4]]
MODE = 3
RATE = 18.5960703044714  # 9 I_3(5) / 5, of tests/test_theory.py's table


def power_data(p, size=1e-7):
    return lambda s: FourierDensity.from_modes({MODE: size * np.expm1(s) ** p})


@pytest.mark.parametrize("p", [0.0, 1.0, 2.5, 1.0 / 3.0])
def test_causal_powers_grow_exactly(p):
    t = 1.5 / RATE
    run = solve_positions(CAUSAL, power_data(p), [0.0, 0.5 * t, t], rtol=1e-12)
    exact = 1e-7 * np.expm1(run.positions) ** p * np.exp(RATE / (p + 1.0) * run.t[:, None])
    assert np.abs(run.moments[:, :, MODE] - exact).max() < 1e-10 * exact.max()
    assert run.unresolved().max() < 1e-12
    assert run.grid.n_nodes < 100


def test_more_nodes_are_taken_on_the_way():
    """Phases turn a density that is the same at all positions into one that oscillates."""
    model = PositionalAttention(1.0, "softmax", rotary=15.0)
    start = FourierDensity.from_modes({1: 0.2, 2: 0.05j})
    times = [0.0, 0.2, 1.0]
    run = solve_positions(model, start, times)
    assert run.grid.n_nodes > 32
    assert run.unresolved().max() < 1e-11
    assert run.configuration["n_positions"] == run.grid.n_nodes
    assert np.abs(run.moments[0, :, :3] - [1.0, 0.2, 0.05j]).max() < 1e-13
    fine = solve_positions(model, start, times, n_positions=100, rtol=1e-12)
    s = [0.0, 0.1, 0.6, 1.0]
    assert np.abs(run.at(s) - fine.at(s)).max() < 1e-12


def test_more_nodes_than_there_are(monkeypatch):
    monkeypatch.setattr("spectral_mf.solvers.position_nodes.SIZES", (8, 16))
    model = PositionalAttention(1.0, "softmax", rotary=50.0)
    with pytest.raises(
        StoppedWithPositions, match=r"that 16 nodes leave .* unresolved; end the run earlier"
    ) as stopped:
        solve_positions(model, FourierDensity.from_modes({1: 0.2}), [0.0, 1e-13, 1.0])
    assert len(stopped.value.rows) == 2
    assert stopped.value.rows.grid.n_nodes == 16

    def jump(s):
        return FourierDensity.from_modes({1: 0.1 * (s > 0.5)})

    with pytest.raises(InputError, match=r"so sharply on the position that 16 nodes leave .* of them unresolved"):
        solve_positions(CAUSAL, jump, 1.0)
    kept = solve_positions(CAUSAL, jump, 0.1, n_positions=8)
    assert kept.grid == PositionGrid(8)
    assert kept.unresolved().max() > 0.01


def errors_of_linear_power(grading, sizes):
    errors = []
    for n in sizes:
        grid = PositionGrid(n, grading)
        exact = np.expm1(grid.nodes) ** 2.5 * np.exp(2.0 / 3.5)
        found = solve_linear_positions(CAUSAL, np.expm1(grid.nodes) ** 2.5, MODE, [2.0 / RATE], grid)[0]
        errors.append(np.abs(found - exact).max() / exact.max())
    return np.array(errors)


def test_a_half_integer_power_at_the_first_position_wants_graded_nodes():
    plain = errors_of_linear_power(1, [16, 32, 64])
    assert np.log2(plain[:-1] / plain[1:]) == pytest.approx(5.0, abs=0.3)  # twice the power: nodes cluster like 1/S^2
    assert plain[1] > 1e-9
    assert errors_of_linear_power(2, [32])[0] < 1e-13


def points(theta):
    """Points of the circle, as columns."""
    return np.array([np.cos(theta), np.sin(theta)])


def direct_velocity(model, densities, s, theta):
    """Velocity at position s by nested quadrature: no moments, no Bessel functions, no nodes."""
    phi = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)

    def mean_over_angles(s_other, sine):
        score = points(theta) @ np.array(model.query_key) @ points(phi)
        if model.rotary:
            score = np.cos(theta - phi + model.rotary * (s - s_other))
        kernel = np.exp(model.beta * score)
        return (kernel * (np.sin(phi - theta) if sine else 1.0) * densities(s_other).density(phi)).mean() * 2.0 * np.pi

    def mean_over_positions(f):
        ends = [0.0, s] if model.causal else [0.0, s, 1.0]
        return sum(
            quad(lambda x: np.exp(-model.decay * abs(s - x)) * f(x), low, high, epsabs=1e-13, epsrel=1e-13)[0]
            for low, high in pairwise(ends)
        )

    below = mean_over_positions(
        (lambda x: mean_over_angles(x, False)) if model.normalization == "softmax" else np.ones_like
    )
    return mean_over_positions(lambda x: mean_over_angles(x, True)) / below


@pytest.mark.parametrize(
    "model",
    [
        PositionalAttention(2.0, "softmax", "causal", decay=3.0, rotary=2.5),
        PositionalAttention(2.0, "none", "full", decay=60.0),
        PositionalAttention(2.0, "none", "causal", rotary=-4.0),
        PositionalAttention(2.0, "softmax", "full", rotary=1.0),
        PositionalAttention(1.5, "softmax", decay=3.0, query_key=MATRIX),
        PositionalAttention(1.5, "none", "full", query_key=MATRIX),
        PositionalAttention(1.5, "softmax", "full", decay=2.0, query_key=[[-1.0, 0.0], [0.0, -1.0]]),
        PositionalAttention(1.5, "none", query_key=[[1.0, 0.0], [0.0, -1.0]]),
    ],
    ids=str,
)
def test_velocity_is_the_double_integral(model):
    def densities(s):
        return FourierDensity.from_modes({1: 0.2 * np.exp(1j * s), 2: 0.1 * (1 + s)})

    system = positional_system(model, PositionGrid(24))
    fields = system.grid_fields(64, 1, 24)
    moments = np.zeros((24, 33), dtype=np.complex128)
    moments[:, :3] = [densities(s).moments(2) for s in system.grid.nodes]
    fields.evaluate(moments)
    for node, point in ((2, 5), (20, 40)):
        expected = direct_velocity(model, densities, system.grid.nodes[node], 2.0 * np.pi * point / 64)
        assert fields.velocity[node, point] + system.turning[node] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize(
    "model",
    [
        PositionalAttention(3.0, "softmax", "causal", decay=2.0, rotary=7.0),
        PositionalAttention(3.0, "none", "full", decay=3.0, rotary=3.0, diffusion=0.1),
    ],
)
def test_nonlinear_runs_start_as_the_linearised_ones(model):
    def start(s):
        return 1e-7 * np.exp(1j * s) * (1.0 + s)

    run = solve_positions(model, lambda s: FourierDensity.from_modes({2: start(s)}), [0.0, 1.0], n_positions=24)
    linear = solve_linear_positions(model, start(run.positions), 2, [1.0], run.grid)[0]
    assert np.abs(run.moments[-1, :, 2] - linear).max() < 1e-9 * np.abs(linear).max()


@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_without_dependence_on_positions_all_is_as_without_them(normalization):
    start = FourierDensity.from_modes({1: 0.05, 2: 0.02j, 3: 0.03})
    single = solve(SelfAttention(2.0, normalization), start, [0.0, 1.0], method="spectral", rtol=1e-12)
    for order, decay in (("full", 0.0), ("causal", 0.0), ("causal", 4.0), ("full", 4.0)):
        model = PositionalAttention(2.0, normalization, order, decay)
        run = solve_positions(model, start, [0.0, 1.0], n_positions=6, rtol=1e-12)
        assert np.abs(run.moments[-1, :, :33] - single.moments[-1, :33]).max() < 1e-11


def test_with_a_matrix_and_one_density_at_all_positions_all_is_as_for_one_head():
    start = FourierDensity.from_modes({1: 0.05, 2: 0.02j, 3: 0.03})
    identity = [[1.0, 0.0], [0.0, 1.0]]
    single = MultiHeadAttention([AttentionHead(MATRIX, identity, 1.5)], "softmax", 0.1)
    exact = solve(single, start, [0.0, 1.0], method="spectral", rtol=1e-12).moments[-1, :33]
    for order, decay in (("full", 0.0), ("causal", 4.0)):
        model = PositionalAttention(1.5, "softmax", order, decay, diffusion=0.1, query_key=MATRIX)
        run = solve_positions(model, start, [0.0, 1.0], n_positions=6, rtol=1e-12)
        assert np.abs(run.moments[-1, :, :33] - exact).max() < 1e-11


def test_a_multiple_of_the_identity_is_another_beta():
    def start(s):
        return FourierDensity.from_modes({1: 0.2 * np.exp(1j * s), 4: 0.05 * s})

    for normalization in ("softmax", "none", "peak"):
        models = [
            PositionalAttention(3.0, normalization, decay=2.0),
            PositionalAttention(1.5, normalization, decay=2.0, query_key=[[2.0, 0.0], [0.0, 2.0]]),
        ]
        runs = [solve_positions(model, start, [0.0, 0.3], n_positions=12, rtol=1e-12) for model in models]
        assert np.abs(runs[0].moments[-1] - runs[1].moments[-1]).max() < 1e-12


def test_a_matrix_keeps_half_turns_only():
    """Modes 4 of the start are exact; mode 2 comes up under a matrix, and odd ones never do."""
    start = FourierDensity.from_modes({4: 0.1})
    run = solve_positions(PositionalAttention(1.0, query_key=MATRIX), start, [0.0, 0.5], n_positions=4)
    assert np.abs(run.moments[-1, :, 2]).min() > 1e-3
    assert (run.moments[:, :, 1::2] == 0.0).all()
    plain = solve_positions(PositionalAttention(1.0), start, [0.0, 0.5], n_positions=4)
    assert (plain.moments[:, :, 2] == 0.0).all()


def test_tokens_that_see_too_little_stop_the_densities():
    """Each token sees best what is opposite: one cluster at all positions drowns in rounding of what is not there."""
    model = PositionalAttention(12.0, query_key=[[-1.0, 0.0], [0.0, -1.0]])
    with pytest.raises(StoppedWithPositions, match="see so few of the others"):
        solve_positions(model, FourierDensity.von_mises(20.0), [0.0, 1.0], n_positions=4)


def window(centre, width=0.06):
    return lambda s: np.exp(-0.5 * ((s - centre) / width) ** 2)


@pytest.mark.parametrize("growth", [0.5, 3.0])
def test_influence_on_the_last_position(growth):
    """What a window of positions does to the last one is the integral of the influence over it."""
    grid = PositionGrid(128)
    for centre in (0.1, 0.5, 0.7):
        start = window(centre)
        exact = start(1.0) + sum(
            quad(
                lambda s, f=start: f(s) * influence([s], growth, 1.0)[0],
                low,
                high,
                epsabs=1e-13,
                epsrel=1e-12,
                limit=200,
            )[0]
            for low, high in ((0.0, 1e-6), (1e-6, 1e-3), (1e-3, 0.1), (0.1, 1.0))
        )
        linear = solve_linear_positions(CAUSAL, start(grid.nodes), MODE, [growth / RATE], grid)[0]
        last = grid.interpolation([1.0])[0]
        assert (last @ linear).real == pytest.approx(exact, rel=1e-8)


def test_influence_on_the_last_position_of_the_nonlinear_equation():
    start, growth = window(0.5, 0.15), 3.0
    run = solve_positions(
        CAUSAL,
        lambda s: FourierDensity.from_modes({MODE: 1e-7 * start(s)}),
        [0.0, growth / RATE],
        n_positions=64,
        rtol=1e-11,
        n_modes=3,
    )
    exact = start(1.0) + sum(
        quad(lambda s: start(s) * influence([s], growth, 1.0)[0], low, high, epsabs=1e-13, epsrel=1e-12)[0]
        for low, high in ((0.0, 1e-6), (1e-6, 1e-3), (1e-3, 0.1), (0.1, 1.0))
    )
    assert 1e7 * run.at([1.0])[-1, 0, MODE].real == pytest.approx(exact, rel=1e-8)


def test_influence_is_the_series():
    s, growth, decay = np.array([0.03, 0.4, 1.0]), 2.2, 1.7
    depth = np.log(np.expm1(decay) / np.expm1(decay * s))
    total, term = np.zeros(3), growth * np.ones(3)
    for j in range(60):
        total += term
        term = term * growth * depth / ((j + 1) * (j + 2))
    assert influence(s, growth, decay) == pytest.approx(
        decay * np.exp(decay * s) / np.expm1(decay) * total, rel=1e-13, abs=0.0
    )
    assert influence(s, growth, 1e-9) == pytest.approx(influence(s, growth, 0.0), rel=1e-7)


def turns(values):
    """Signs of the slope, without repetitions."""
    signs = np.sign(np.diff(values))
    return [int(sign) for i, sign in enumerate(signs) if i == 0 or sign != signs[i - 1]]


@pytest.mark.parametrize("decay", [0.3, 1.0, 3.0])
def test_influence_is_u_shaped_at_first_and_falls_later(decay):
    s = np.linspace(1e-4, 1.0, 20001)
    limit = u_shape_limit(decay)
    for share in (0.05, 0.5, 0.99):
        assert turns(influence(s, share * limit, decay)) == [-1, 1]
    assert turns(influence(s, 2.0 * limit + 1.5, decay))[-1] == -1
    assert turns(influence(s, 8.0, decay)) == [-1]


def test_the_first_bound_holds_for_steep_decay():
    assert u_shape_limit(3.0) == pytest.approx(1.2679491924311228, rel=1e-14, abs=0.0)  # 3 - sqrt 3


def test_the_last_position_turns_at_the_second_bound():
    """At the last position the slope changes its sign at a t = 2 (1 - e^-decay)."""
    s = np.array([1.0 - 1e-6, 1.0])
    for decay in (0.3, 0.8):
        bound = -2.0 * np.expm1(-decay)
        assert u_shape_limit(decay) == pytest.approx(bound)
        assert turns(influence(s, 0.999 * bound, decay)) == [1]
        assert turns(influence(s, 1.001 * bound, decay)) == [-1]


def test_rotary_ripples_on_a_ring_grow_at_half_k_times_the_mode_below():
    """c_k(s) = e^{i (k-1) omega s} grows at k I_{k-1} / 2, c_k(s) = e^{i (k+1) omega s} falls at k I_{k+1} / 2."""
    model = PositionalAttention(2.0, "none", "full", rotary=4.0 * np.pi)
    grid = PositionGrid(96)
    bessel = {1: 1.5906368546373291, 3: 0.21273995923985267}  # I_1(2), I_3(2): DLMF 10.25.2
    for shift, rate in ((-1, bessel[1]), (1, -bessel[3])):
        start = np.exp(1j * (2 + shift) * model.rotary * grid.nodes)
        found = solve_linear_positions(model, start, 2, [0.5], grid)[0]
        assert np.abs(found / start - np.exp(0.5 * rate)).max() < 1e-10


def test_densities_and_means_over_positions():
    run = solve_positions(CAUSAL, lambda s: FourierDensity.from_modes({1: 0.3 * s}), [0.0, 0.01], n_positions=6)
    theta = np.array([0.0, 1.0, 3.0])
    expected = (1.0 + 0.6 * run.positions[:, None] * np.cos(theta)) / (2.0 * np.pi)
    assert run.density(theta)[0] == pytest.approx(expected, abs=1e-15)
    assert run.mean_moments()[0, :2] == pytest.approx([1.0, 0.15], abs=1e-14)


def test_files_hold_all_and_xarray_reads_them(tmp_path):
    run = solve_positions(CAUSAL, power_data(1.0, 1e-2), 0.1, n_positions=5, n_modes=12)
    path = run.save(tmp_path / "run.h5")
    again = PositionalTrajectory.load(path)
    assert again.model == run.model
    assert again.grid == run.grid
    assert again.configuration == run.configuration
    assert (again.moments == run.moments).all()
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.moment_real.dims == ("time", "position", "mode")
        assert data.density.dims == ("time", "position", "theta")
        assert data.position.values == pytest.approx(run.positions)
        assert data.density.mean("theta").values * 2.0 * np.pi == pytest.approx(np.ones((101, 5)), abs=1e-13)
        assert float(data.position_weight.sum()) == pytest.approx(1.0, abs=1e-14)
        assert data.density.units == "rad-1"
    with pytest.raises(StorageError, match="exists"):
        run.save(path)


def test_files_hold_the_query_key_matrix_and_older_ones_have_none(tmp_path):
    model = PositionalAttention(1.0, decay=0.5, query_key=MATRIX)
    run = solve_positions(model, FourierDensity.from_modes({1: 0.1}), 0.1, n_positions=3)
    assert PositionalTrajectory.load(run.save(tmp_path / "matrix.h5")).model == model
    path = solve_positions(CAUSAL, FourierDensity.from_modes({1: 0.1}), 0.1, n_positions=3).save(tmp_path / "old.h5")
    with h5py.File(path, "r+") as file:
        stored = json.loads(file.attrs["model"])
        assert stored.pop("query_key") == [[1.0, 0.0], [0.0, 1.0]]
        file.attrs["model"] = json.dumps(stored)
    assert PositionalTrajectory.load(path).model == CAUSAL


def test_files_that_are_no_runs_with_positions_are_refused(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        PositionalTrajectory.load(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(StorageError, match="cannot be read"):
        PositionalTrajectory.load(tmp_path / "text.h5")
    plain = solve(SelfAttention(1.0), FourierDensity.uniform(), 1.0, method="linear").save(tmp_path / "plain.h5")
    with pytest.raises(StorageError, match=r"Trajectory\.load"):
        PositionalTrajectory.load(plain)


def test_other_trajectories_say_how_to_load_positions(tmp_path):
    path = solve_positions(CAUSAL, FourierDensity.from_modes({1: 0.1}), 0.1, n_positions=3).save(tmp_path / "s.h5")
    sentence = r"holds densities with positions, .*; load it with spectral_mf\.PositionalTrajectory\.load"
    with pytest.raises(StorageError, match=sentence):
        Trajectory.load(path)


def test_a_run_that_becomes_too_sharp_keeps_its_rows():
    with pytest.raises(StoppedWithPositions, match="raise max_modes") as stopped:
        solve_positions(CAUSAL, power_data(0.0, 0.1), 2.0, n_positions=4, max_modes=256)
    assert 1 < len(stopped.value.rows) < 101
    assert stopped.value.rows.status.startswith("stopped early")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"decay": -1.0}, "decay = -1 is not allowed"),
        ({"decay": 501.0}, "decay = 501 is not allowed"),
        ({"rotary": np.inf}, "rotary = inf is not finite"),
        ({"rotary": 2e4}, "rotary = 20000 is not allowed"),
        ({"order": "acausal"}, "order = 'acausal' is unknown"),
        ({"beta": -1.0}, "beta = -1 is not allowed"),
        ({"query_key": [1.0, 2.0]}, "query_key = .* is not a 2x2 matrix of finite numbers"),
        ({"query_key": np.eye(3)}, "query_key = .* is not a 2x2 matrix of finite numbers"),
        ({"query_key": [[1.0, np.nan], [0.0, 1.0]]}, "query_key = .* is not a 2x2 matrix of finite numbers"),
        ({"query_key": MATRIX, "rotary": 2.0}, "rotary = 2 cannot go with a query_key"),
        ({"query_key": [[1e5, 0.0], [0.0, 1.0]]}, "is too large; their product may be at most 10000"),
        ({"query_key": [[700.0, 0.0], [0.0, 1.0]], "normalization": "none"}, "speeds that overflow"),
        ({"normalization": "no"}, "normalization = 'no' is unknown"),
    ],
)
def test_parameters_that_are_not_allowed(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        PositionalAttention(**{"beta": 1.0, **arguments})


def test_a_model_with_positions_is_not_solved_without_them():
    with pytest.raises(InputError, match=r"has a density for each position; use solve_positions"):
        solve(PositionalAttention(1.0, rotary=1.0), FourierDensity.uniform(), 1.0)


def test_what_gives_no_densities_is_refused():
    with pytest.raises(InputError, match="has no positions"):
        solve_positions(SelfAttention(1.0), FourierDensity.uniform(), 1.0)
    with pytest.raises(InputError, match="gives no densities"):
        solve_positions(CAUSAL, lambda s: s, 1.0)
    for wrong, words in ((0, "n_positions = 0 is not allowed"), (2000, "n_positions = 2000 is too many")):
        with pytest.raises(InputError, match=words):
            solve_positions(CAUSAL, FourierDensity.uniform(), 1.0, n_positions=wrong)
    with pytest.raises(InputError, match=r"position 1\.5 is not allowed"):
        PositionGrid(4).interpolation([0.2, 1.5])
    with pytest.raises(InputError, match="modes of a perturbed uniform density do not grow each by itself"):
        solve_linear_positions(PositionalAttention(1.0, query_key=MATRIX), np.ones(4), 1, [1.0], PositionGrid(4))
    with pytest.raises(InputError, match="infinite influence"):
        influence([0.0], 1.0, 1.0)


def test_densities_at_no_angle_are_refused():
    run = solve_positions(CAUSAL, FourierDensity.from_modes({1: 0.1}), [0.0, 0.01], n_positions=3)
    with pytest.raises(InputError, match="angle nan is not finite; give radians"):
        run.density([0.0, np.nan])
