"""Through the collapse: characteristics and auto against references, closed forms and the spectral solver."""

import json
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_mf import (
    Atoms,
    FourierDensity,
    InputError,
    ResolutionExhausted,
    SelfAttention,
    Trajectory,
    panels,
    resume,
    solve,
)
from spectral_mf.flow_map import FlowMap
from spectral_mf.solvers.atom_dynamics import point_velocity
from spectral_mf.solvers.auto import march_auto
from spectral_mf.solvers.characteristics import CharacteristicSolver, march_characteristics
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.spectral import march_spectral
from spectral_mf.trajectory import Snapshot

MARCHES = {"auto": march_auto, "characteristics": march_characteristics}


def reference(name):
    case = json.loads(resources.files("spectral_mf.data").joinpath(f"{name}.json").read_text())
    modes = {int(k): complex(*value) for k, value in case["initial_moments"].items()}
    return SelfAttention(case["beta"], case["normalization"]), FourierDensity.from_modes(modes), case["rows"]


def march(method, model, measure, times, **options):
    start = Snapshot(0.0, measure, "", 0)
    return list(MARCHES[method](model, start, np.asarray(times, dtype=float), MarchOptions(**options)))


@pytest.mark.parametrize("name", ["case_A", "case_B"])
@pytest.mark.parametrize("method", ["auto", "characteristics"])
@pytest.mark.parametrize(("rtol", "allowed"), [(1e-11, 1e-9), (1e-8, 1e-6)])
def test_every_row_of_the_references_through_collapse_and_merging(name, method, rtol, allowed):
    model, density, rows = reference(name)
    snapshots = march(method, model, density, [row["t"] for row in rows], rtol=rtol)
    for row, snapshot in zip(rows, snapshots, strict=True):
        exact = np.array(row["moments"]) @ [1.0, 1j]
        moments = snapshot.measure.moments(12)
        assert np.abs(moments - exact).max() < allowed
        assert abs(moments[0] - 1.0) < 1e-14
        assert snapshot.measure.energy(model) == pytest.approx(row["energy"], rel=allowed)
        assert snapshot.n_modes <= 6000


def test_the_number_of_nodes_is_bounded_in_time():
    model, density, _ = reference("case_A")
    at_20, at_30, at_100 = march("characteristics", model, density, [20.0, 30.0, 100.0], rtol=1e-11)
    assert at_20.n_modes <= 6000
    assert at_30.n_modes <= 1.1 * at_20.n_modes
    assert at_100.n_modes <= at_20.n_modes


@settings(max_examples=24, deadline=None, derandomize=True)
@given(
    beta=st.floats(0.0, 50.0),
    normalization=st.sampled_from(["softmax", "none"]),
    seed=st.integers(0, 2**31),
    size=st.floats(1e-3, 0.03),
)
def test_spectral_and_characteristics_agree_while_both_are_resolved(beta, normalization, seed, size):
    model = SelfAttention(beta, normalization)
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, 12)
    density = FourierDensity([1.0, *(size * np.exp(1j * phases))])
    fastest = float(model.growth_rate(np.arange(1, 13)).max())
    times = np.array([0.5, 1.0]) * np.log(0.25 / size) / fastest
    options = MarchOptions(rtol=1e-12)
    start = Snapshot(0.0, density, "", 0)
    for one, other in zip(
        march_spectral(model, start, times, options),
        march_characteristics(model, start, times, options),
        strict=True,
    ):
        assert np.abs(one.measure.moments(30) - other.measure.moments(30)).max() < 1e-11


def test_a_small_perturbation_grows_at_the_linear_rate_down_to_quadrature_noise():
    model = SelfAttention(5.0)
    for size, digits in ((1e-4, 1e-7), (1e-8, 1e-6)):
        (state,) = march("characteristics", model, FourierDensity.from_modes({3: size}), [2.0], rtol=1e-10)
        growth = np.log(abs(state.measure.moments(3)[3]) / size) / 2.0
        assert growth == pytest.approx(float(model.growth_rate(3)), rel=digits)


def test_kuramoto_limit_keeps_a_poisson_kernel_through_the_collapse():
    # r' = r (1 - r^2) / 2 has r^2 / (1 - r^2) = e^t r_0^2 / (1 - r_0^2)
    r0 = 0.2
    times = np.array([1.0, 4.0, 8.0, 14.0])
    states = march(
        "characteristics",
        SelfAttention(0.0),
        FourierDensity.from_modes({k: r0**k for k in range(1, 26)}),
        times,
        rtol=1e-12,
    )
    odds = np.exp(times) * r0**2 / (1 - r0**2)
    for state, r in zip(states, np.sqrt(odds / (1 + odds)), strict=True):
        np.testing.assert_allclose(state.measure.moments(12), r ** np.arange(13), atol=1e-10)


@pytest.mark.parametrize(("normalization", "beta", "m"), [("softmax", 5.0, 3), ("none", 7.0, 4)])
def test_symmetric_data_stay_symmetric_for_ever(normalization, beta, m):
    model = SelfAttention(beta, normalization)
    run = solve(
        model,
        FourierDensity.from_modes({m: 0.01}),
        np.append(np.array([0.0, 4.5, 30.0]) / float(model.growth_rate(m)), 1e6),
    )
    off = np.arange(run.moments.shape[1]) % m != 0
    assert not run.moments[:2, off].any()
    assert np.abs(run.moments[:, off]).max() < 1e-13  # sums over atoms at their places: rounding, which does not grow
    assert np.abs(np.abs(run.moments[-1, ::m]) - 1.0).max() < 1e-9
    assert list(run.method)[-1] == "atoms"


def test_auto_goes_through_all_phases_to_the_single_cluster():
    model, density, _ = reference("case_A")
    run = solve(model, density, [0.0, 5.0, 12.0, 60.0, 1e6])
    assert list(run.method) == ["spectral", "spectral", "characteristics", "atoms", "atoms"]
    assert run.complete
    assert np.abs(np.abs(run.moments[-1]) - 1.0).max() < 1e-9
    assert run.energy[-1] == pytest.approx(np.exp(5.0) / 10.0, rel=1e-10, abs=0.0)
    assert np.diff(run.energy).min() >= 0.0
    assert run.cells.min() >= 0.0
    np.testing.assert_allclose(run.cells.sum(axis=1) * 2 * np.pi / 512, 1.0, atol=1e-13)


def test_hand_overs_change_no_moment_by_more_than_the_tolerance():
    model, density, _ = reference("case_A")
    fine = np.linspace(6.0, 30.0, 400)
    snapshots = march("auto", model, density, fine, rtol=1e-9)
    c = np.array([s.measure.moments(12) for s in snapshots])
    methods = [s.method for s in snapshots]
    for i in range(2, len(methods) - 3):
        if methods[i] != methods[i + 1]:
            jump = (
                c[i + 1] - c[i] - (c[i] - c[i - 1] + c[i + 2] - c[i + 1]) / 2
            )  # third difference: smooth parts cancel
            smooth = np.abs(np.diff(c[i - 2 : i + 4], n=3, axis=0)).max()
            assert np.abs(jump).max() < smooth + 1e-8
    assert len(set(methods)) >= 2


def test_resume_in_each_phase_gives_the_same_bits(tmp_path):
    model, density, _ = reference("case_A")
    times = np.array([0.0, 4.0, 8.5, 12.0, 40.0, 60.0, 100.0])
    whole = solve(model, density, times)
    assert set(whole.method) == {"spectral", "characteristics", "atoms"}
    for cut in (2, 3, 4, 5, 6):
        path = tmp_path / f"{cut}.h5"
        solve(model, density, times[:cut], output=path)
        again = resume(path, times[cut:])
        np.testing.assert_array_equal(again.moments, whole.moments)
        np.testing.assert_array_equal(Trajectory.load(path).moments, whole.moments)


def test_density_from_the_map_agrees_with_the_spectral_density():
    model, density, _ = reference("case_A")
    theta = np.linspace(0, 2 * np.pi, 200)
    spectral = solve(model, density, [0.0, 7.0], method="spectral", rtol=1e-12)
    flow = solve(model, density, [0.0, 7.0], method="characteristics", rtol=1e-12)
    np.testing.assert_allclose(flow.density(theta)[-1], spectral.density(theta)[-1], atol=1e-8)
    np.testing.assert_allclose(flow.cells[-1], spectral.cells[-1], atol=1e-8)


def test_where_the_softmax_sees_no_mass_the_far_nodes_still_move_right():
    # a narrow bump and a far one with 1e-6 of the mass, beta = 30: against brute force on the same point masses
    from scipy.integrate import solve_ivp

    model = SelfAttention(30.0)
    tokens = Atoms(np.concatenate([np.linspace(0.9, 1.1, 20), np.linspace(3.9, 4.3, 5)]), [*[1.0] * 20, *[1e-6] * 5])
    (state,) = march("characteristics", model, tokens, [1.5], rtol=1e-11)

    def rhs(t, x):
        d = x[:, None] - x
        e = tokens.weights * np.exp(30.0 * (np.cos(d) - 1.0))
        return -(e * np.sin(d)).sum(axis=1) / e.sum(axis=1)

    exact = solve_ivp(rhs, (0, 1.5), tokens.angles, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    expected = Atoms(exact, tokens.weights).moments(12)
    np.testing.assert_allclose(state.measure.moments(12), expected, atol=1e-10)


def test_diffusion_is_refused_and_auto_stays_spectral_with_it():
    density = FourierDensity.from_modes({3: 0.01})
    noisy = SelfAttention(5.0, diffusion=0.01)
    with pytest.raises(InputError, match="spreads mass across characteristics"):
        solve(noisy, density, 1.0, method="characteristics")
    assert set(solve(noisy, density, 30.0).method) == {"spectral"}


def test_negative_densities_are_refused_by_characteristics():
    with pytest.raises(InputError, match="negative at theta"):
        solve(SelfAttention(5.0), FourierDensity.from_modes({1: 0.6}), 1.0, method="characteristics")


def test_spectral_alone_still_stops_at_the_collapse():
    with pytest.raises(ResolutionExhausted):
        solve(SelfAttention(5.0), FourierDensity.from_modes({3: 0.01}), 30.0, method="spectral", max_modes=512)


@pytest.mark.parametrize("method", ["auto", "characteristics"])
def test_the_uniform_density_stays_for_ever(method):
    run = solve(SelfAttention(5.0), FourierDensity.uniform(), [0.0, 1.0, 1000.0], method=method)
    assert np.abs(run.moments[:, 1:]).max() < 1e-14
    assert run.complete


def test_a_perturbation_below_what_a_quadrature_sees_is_refused_but_not_by_auto():
    model, density = SelfAttention(5.0), FourierDensity.from_modes({3: 1e-11})
    with pytest.raises(InputError, match="1e-11"):
        solve(model, density, [0.0, 1.0], method="characteristics")
    run = solve(model, density, [0.0, 60.0])
    assert abs(run.moments[-1, 3]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("rtol", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("method", ["auto", "characteristics"])
def test_loose_tolerances_go_through_all_phases(method, rtol):
    model, density, rows = reference("case_A")
    times = [row["t"] for row in rows]
    snapshots = march(method, model, density, times, rtol=rtol)
    for row, snapshot in zip(rows, snapshots, strict=True):
        error = np.abs(snapshot.measure.moments(3) - (np.array(row["moments"]) @ [1.0, 1j])[:4]).max()
        assert error < 30 * rtol


def test_auto_keeps_what_it_has_when_a_negative_density_gets_too_sharp_for_modes():
    start = Snapshot(0.0, FourierDensity.from_modes({3: 0.02, 1: 0.502}), "", 0)  # past the door, which refuses it
    snapshots = MARCHES["auto"](SelfAttention(5.0), start, np.array([0.1, 40.0]), MarchOptions(rtol=1e-10))
    assert next(snapshots).t == 0.1
    with pytest.raises(ResolutionExhausted, match="too sharp for Fourier modes, and the density is negative"):
        next(snapshots)


def test_auto_at_a_bandwidth_above_its_hand_over():
    run = solve(SelfAttention(1e4), FourierDensity.from_modes({141: 1e-6}), [0.0, 2.0], symmetry="none")
    rate = np.log(abs(run.moments[-1, 141]) / 1e-6) / 2.0
    assert rate == pytest.approx(0.73572135460673, rel=1e-8)


def test_far_from_all_mass_velocities_are_those_of_direct_sums():
    # beta = 30, mass near 1: at pi + 1 the softmax's denominator is e^-60 of its maximum, moments know nothing
    model = SelfAttention(30.0)
    angles = np.linspace(0.9, 1.1, 20)
    masses = np.full(20, 0.05)
    theta = np.concatenate([[1.05, 2.0], np.linspace(2.8, 5.4, 60)])
    moments = Atoms(angles, masses).moments(model.bandwidth)
    d = theta[:, None] - angles
    e = np.exp(30.0 * (np.cos(d) - np.cos(d).max(axis=1, keepdims=True)))
    exact = -(e * np.sin(d)).sum(axis=1) / e.sum(axis=1)
    np.testing.assert_allclose(point_velocity(model, theta, angles, masses, moments), exact, atol=1e-6)
    np.testing.assert_allclose(
        point_velocity(model, theta, angles, masses, moments)[2:], exact[2:], rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize(("stray", "gathered"), [(1e-13, True), (1e-8, False)])
def test_mass_on_its_way_is_not_given_to_a_point(stray, gathered):
    # one period of 64 panels: all labels sit at 1, but for one panel half way between that point and its image
    edges = np.linspace(0.0, 2.0 * np.pi, 65)
    initial = np.full((64, 16), 1.0)
    initial[40] = stray
    initial /= (panels.weights_of(edges) * initial).sum()
    displacement = 1.0 - panels.nodes_of(edges)
    displacement[40] = 0.5
    solver = CharacteristicSolver(
        SelfAttention(5.0), 0.0, FlowMap(edges, initial, displacement), MarchOptions(rtol=1e-10)
    )
    found = solver.points()
    assert (found is not None) == gathered
    if found is not None:
        np.testing.assert_allclose(found[0], [1.0], atol=1e-12)
        assert found[1].sum() == pytest.approx(1.0, abs=1e-15)
