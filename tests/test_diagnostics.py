"""Clusters, mergers and the energy staircase: against closed forms, quadrature, and densities that are known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import i0e

from spectral_mf import Atoms, FourierDensity, InputError, PairPotential, SelfAttention, diagnostics, solve
from spectral_mf.cluster_links import carried_mass
from spectral_mf.clusters import Clusters
from spectral_mf.data import reference
from spectral_mf.diagnostics import clusters, energy_staircase, find_clusters
from spectral_mf.flow_map import FlowMap
from spectral_mf.panels import nodes_of
from spectral_mf.point_clusters import follow
from spectral_mf.trajectory import Row, RunInfo, Snapshot, Trajectory

TWO_PI = 2 * np.pi
H = 0.05
MODEL = SelfAttention(5.0)
ANGLES = st.floats(-10.0, 10.0)


def made_of(times, measures, model=MODEL):
    rows = [
        Row.from_snapshot(Snapshot(float(t), measure, "atoms", 64), model, 64, 128)
        for t, measure in zip(times, measures, strict=True)
    ]
    return Trajectory(RunInfo(model, {}, 64, 128, True, "complete"), rows)


@pytest.fixture(scope="module")
def case_a():
    moments = {int(k): complex(*c) for k, c in reference("case_A")["initial_moments"].items()}
    times = np.concatenate([[0.0], np.geomspace(1.0, 1e4, 120)])
    return solve(MODEL, FourierDensity.from_modes(moments), times)


# One measure


@settings(max_examples=20)
@given(st.sampled_from([1, 3]), ANGLES)
def test_peaks_of_a_smooth_density_wherever_they_are(k, angle):
    density = FourierDensity.from_function(lambda theta: np.exp(20 * np.cos(k * (theta - angle))), 256)
    found = find_clusters(density)
    assert found.positions.size == k
    resultant = np.exp(1j * k * found.positions) * np.exp(-1j * k * angle)
    np.testing.assert_allclose(resultant, 1.0, atol=1e-5)
    assert np.diff(found.positions) == pytest.approx(TWO_PI / k, abs=1e-5)
    np.testing.assert_allclose(found.masses, 1 / k, atol=1e-12)


def test_a_cluster_lies_where_the_density_is_high_and_keeps_its_track():
    """Bounded confidence with noise: for a while one peak stands out of a broad density, then a second one."""
    model = PairPotential.hegselmann_krause(0.8, 1.0, diffusion=0.02)
    run = solve(model, FourierDensity.from_modes({1: 0.05, 2: 0.02j}), np.append(0.0, np.arange(20.0, 41.0)))
    history = clusters(run)
    assert set(history.counts.tolist()) == {0, 1, 2}
    for row, found in zip(run.rows, history.rows, strict=True):
        assert (TWO_PI * row.snapshot.measure.density(found.positions) > 1.0).all()
    first, second = history.tracks
    assert np.ptp(first.positions) < 0.02
    assert (first.rows[-1], second.rows[-1]) == (21, 21)
    highest = run.rows[-1].snapshot.measure.density(np.linspace(0.0, TWO_PI, 2000)).argmax() * TWO_PI / 1999
    assert first.positions[-1] == pytest.approx(highest, abs=0.01)


def test_width_is_half_the_central_two_thirds():
    def mass(half):
        return quad(lambda x: math.exp(20 * (math.cos(x) - 1)) / (TWO_PI * i0e(20)), -half, half)[0]

    exact = brentq(lambda half: mass(half) - 0.6826894921370859, 0.01, 1.0)
    assert find_clusters(FourierDensity.von_mises(20.0, 2.0)).widths[0] == pytest.approx(exact, rel=2e-4)


@pytest.mark.parametrize(
    "measure",
    [
        FourierDensity.uniform(),
        FourierDensity.white_noise(1e-13, 256, seed=1),
        FourierDensity.from_modes({3: 0.2}),  # from 0.6 to 1.4 times uniform: ripples
        Atoms(TWO_PI * np.arange(1000) / 1000),
    ],
)
def test_nothing_stands_out(measure):
    found = find_clusters(measure)
    assert found.positions.size == found.masses.size == found.widths.size == 0


def test_a_low_peak_counts_if_it_stands_out_by_the_uniform_density():
    def with_share(share):
        both = (1 - share) * FourierDensity.von_mises(400.0, 1.0).moments(300)
        return FourierDensity(both + share * FourierDensity.von_mises(400.0, 4.0).moments(300))

    limit = math.sqrt((H**2 + 1 / 400) / TWO_PI)  # peak of a Gaussian of that mass is the uniform density
    assert find_clusters(with_share(0.97 * limit)).positions.size == 1
    assert find_clusters(with_share(1.03 * limit)).positions.size == 2
    assert find_clusters(with_share(1e-3)).positions.size == 1
    ratio = find_clusters(with_share(1e-3), prominence=0.9e-3 / limit)
    np.testing.assert_allclose(ratio.masses, [1 - 1e-3, 1e-3], rtol=1e-6)


def test_two_points_are_one_when_closer_than_twice_the_resolution():
    def stands_out(d):
        def seen(x):
            return sum(math.exp(-0.5 * ((x - c) / H) ** 2) for c in (-d / 2, d / 2)) * TWO_PI / (2 * H * TWO_PI**0.5)

        return max(seen(x) for x in np.linspace(d / 4, d, 4001)) - seen(0.0) - 1.0

    limit = brentq(stands_out, 2.0 * H, 3.0 * H)
    assert 2.0 * H < limit < 2.4 * H
    for centre in (0.0, 1.0):
        pair = np.array([-0.5, 0.5])
        assert find_clusters(Atoms(centre + 1.001 * limit * pair)).positions.size == 2
        one = find_clusters(Atoms(centre + 0.999 * limit * pair))
        assert one.masses.tolist() == [1.0]
        assert math.cos(one.positions[0] - centre) == pytest.approx(1.0, abs=1e-15)
        assert one.widths[0] == pytest.approx(0.999 * limit / 2, rel=1e-12, abs=0.0)


def test_what_is_narrower_than_any_grid_keeps_its_place_and_width():
    edges = np.linspace(0.0, TWO_PI, 13)
    labels = nodes_of(edges)
    centres = (0.5 + np.arange(12) // 4)[:, None] * (TWO_PI / 3)
    shrunk = FlowMap(edges, np.full_like(labels, 1 / TWO_PI), (centres - labels) * (1 - 1e-9))
    found = find_clusters(shrunk)
    np.testing.assert_allclose(found.positions, centres[::4, 0], atol=1e-14)
    np.testing.assert_allclose(found.masses, 1 / 3, rtol=1e-13)
    np.testing.assert_allclose(found.widths, 1e-9 * 0.6826894921370859 * np.pi / 3, rtol=5e-4)  # 64 nodes each


@settings(max_examples=20)
@given(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=6), ANGLES)
def test_separate_atoms_are_their_own_clusters(weights, angle):
    atoms = Atoms(angle + np.arange(len(weights)), weights)
    heavy = atoms.weights > 0.021
    found = find_clusters(atoms)
    if heavy.all():
        order = np.argsort(atoms.angles)
        np.testing.assert_allclose(found.positions, atoms.angles[order], atol=1e-14)
        np.testing.assert_allclose(found.masses, atoms.weights[order], rtol=1e-14)
        assert (found.widths == 0.0).all()
    assert found.masses.sum() == pytest.approx(1.0, abs=1e-14)


def test_what_lies_between_collapsed_clusters_belongs_to_the_nearer():
    found = find_clusters(Atoms([0.0, 1.0, 2.6], [0.6, 0.004, 0.396]))
    np.testing.assert_allclose(found.masses, [0.604, 0.396], rtol=1e-13)
    found = find_clusters(Atoms([0.0, 1.6, 2.6], [0.6, 0.004, 0.396]))
    np.testing.assert_allclose(found.masses, [0.6, 0.4], rtol=1e-13)


def test_flow_map_and_modes_agree_on_a_smooth_density():
    density = FourierDensity.from_modes({1: 0.2, 2: 0.3j, 3: 0.15})
    modes, flow = find_clusters(density), find_clusters(FlowMap.identity(density))
    assert modes.positions.size == flow.positions.size == 2
    np.testing.assert_allclose(flow.masses, modes.masses, atol=5e-3)
    np.testing.assert_allclose(flow.positions, modes.positions, atol=1e-2)
    np.testing.assert_allclose(flow.widths, modes.widths, rtol=1e-2)


def test_bad_input_is_one_sentence():
    with pytest.raises(InputError, match=r"resolution = 0 rad is not allowed; give a number from 1e-05 to 1\."):
        find_clusters(FourierDensity.uniform(), resolution=0.0)
    with pytest.raises(InputError, match="prominence = -1 is not allowed"):
        find_clusters(FourierDensity.uniform(), prominence=-1.0)
    cut = FourierDensity(Atoms([0.0, 2.0]).moments(30))
    with pytest.raises(InputError, match=r"30 moments do not tell .* use a resolution of at least 0\.17"):
        find_clusters(cut)
    assert find_clusters(cut, resolution=0.17).positions.size == 2


# Linked in time


POINTS = st.lists(st.tuples(st.floats(0.0, 6.28), st.floats(0.1, 1.0)), min_size=1, max_size=6)


@settings(max_examples=60)
@given(POINTS, POINTS)
def test_carried_mass_is_an_optimal_plan(first, second):
    rows = []
    for points in (first, second):
        angles, weights = np.array(sorted(points)).T
        rows.append(Clusters(angles, weights / weights.sum(), np.zeros_like(angles)))
    plan = carried_mass(*rows)
    np.testing.assert_allclose(plan.sum(axis=1), rows[0].masses, atol=1e-14)
    np.testing.assert_allclose(plan.sum(axis=0), rows[1].masses, atol=1e-14)
    away = np.abs(rows[0].positions[:, None] - rows[1].positions)
    cost = (plan * np.minimum(away, TWO_PI - away)).sum()
    least = Atoms(rows[0].positions, rows[0].masses).w1(Atoms(rows[1].positions, rows[1].masses))
    assert cost == pytest.approx(least, abs=1e-13)


def test_tracks_go_through_the_seam_and_merge_there():
    run = made_of(
        [0.0, 1.0, 2.0],
        [Atoms([6.1, 3.0, 0.3], [3, 4, 2]), Atoms([6.2, 3.0, 0.1], [3, 4, 2]), Atoms([0.02, 3.0], [5, 4])],
    )
    history = clusters(run)
    assert history.counts.tolist() == [3, 3, 2]
    assert [track.merged_into for track in history.tracks] == [2, None, None]
    light, still, heavy = history.tracks
    assert light.positions.tolist() == pytest.approx([0.3, 0.1])
    assert still.positions.tolist() == [3.0, 3.0, 3.0]
    assert heavy.positions.tolist() == pytest.approx([6.1, 6.2, 0.02])
    assert heavy.masses.tolist() == pytest.approx([3 / 9, 3 / 9, 5 / 9])
    (merger,) = history.mergers
    assert (merger.absorbed, merger.into, merger.interval) == (0, 2, (1.0, 2.0))


def test_points_either_side_of_zero_meet_at_zero():
    run = solve(MODEL, Atoms([0.3, TWO_PI - 0.3]), [0.0, 0.5, 30.0])
    (merger,) = clusters(run).mergers
    assert merger.interval == (0.5, 30.0)
    assert math.cos(clusters(run).rows[-1].positions[0]) == pytest.approx(1.0, abs=1e-15)


def test_new_clusters_and_those_that_fade():
    one, two = Atoms([1.0]), Atoms([1.0, 3.0, 5.0])
    history = clusters(made_of([0.0, 1.0, 2.0, 3.0], [FourierDensity.uniform(), one, two, FourierDensity.uniform()]))
    assert history.counts.tolist() == [0, 1, 3, 0]
    assert sorted(track.rows.tolist() for track in history.tracks) == [[1, 2], [2], [2]]
    assert all(track.merged_into is None for track in history.tracks)
    assert history.mergers == ()


# Mergers


def closing_time(beta, normalization, start, end):
    """Two equal points: from a distance to a smaller one, by quadrature of 1 / (d phi / dt)."""

    def rate(phi):
        if normalization == "softmax":
            return 2 * math.sin(phi) / (1 + math.exp(beta * (1 - math.cos(phi))))
        return math.exp(beta * (math.cos(phi) - (normalization == "peak"))) * math.sin(phi)

    return quad(lambda phi: 1 / rate(phi), end, start, epsabs=0.0, epsrel=1e-12, limit=500)[0]


@pytest.mark.parametrize(
    ("beta", "normalization"), [(2.0, "softmax"), (5.0, "softmax"), (20.0, "softmax"), (5.0, "none"), (9.0, "peak")]
)
def test_two_points_merge_when_quadrature_says(beta, normalization):
    model = SelfAttention(beta, normalization)
    start = 2.4
    exact = closing_time(beta, normalization, start, 2 * diagnostics.default_resolution(model))
    run = solve(model, Atoms([1.0, 1.0 + start]), np.array([0.0, 0.4, 0.8, 1.6, 2.4]) * exact)
    history = clusters(run)
    (merger,) = history.mergers
    assert merger.interval == (run.t[2], run.t[3])
    assert merger.t == merger.estimate == pytest.approx(exact, rel=1e-7)
    lifetime = history.lifetime(2)
    assert (lifetime.formed, lifetime.complete) == (0.0, True)
    assert lifetime.duration == pytest.approx(exact, rel=1e-7)
    rest = history.lifetime(1)
    assert (rest.formed, rest.ended, rest.complete) == (merger.t, run.t[-1], False)


def test_of_several_mergers_between_rows_each_has_its_time():
    before = Clusters(np.array([1.0, 1.5, 3.0, 6.0]), np.array([0.2, 0.3, 0.3, 0.2]), np.zeros(4))
    stretches = list(follow(MODEL, before, 0.0, 300.0, gap=0.1))
    assert [sorted(map(sorted, stretch.groups)) for stretch in stretches][:2] == [
        [[0], [1], [2], [3]],
        [[0, 1], [2], [3]],
    ]
    run = made_of(
        [0.0, 300.0], [Atoms(before.positions, before.masses), Atoms(stretches[-1].angles[-1], stretches[-1].masses)]
    )
    times = [merger.estimate for merger in clusters(run, resolution=0.05).mergers]
    assert times == [stretch.t[0] for stretch in stretches[1:]]
    assert len(times) == 3


def test_joined_points_lie_at_their_centre_of_mass():
    near = Clusters(np.array([0.02, 2.0, 2.06, 6.24]), np.array([0.1, 0.2, 0.3, 0.4]), np.zeros(4))
    stretch = next(follow(MODEL, near, 0.0, 1.0, gap=0.1))
    assert [sorted(group) for group in stretch.groups] == [[1, 2], [0, 3]]
    ahead = 0.02 + TWO_PI - 6.24
    np.testing.assert_allclose(stretch.angles[0], [2.0 + 0.6 * 0.06, 6.24 + 0.2 * ahead], rtol=1e-14)
    np.testing.assert_allclose(stretch.masses, [0.5, 0.5], rtol=1e-14)


def test_without_narrow_clusters_only_the_interval_is_known():
    wide = FourierDensity(
        0.5 * (FourierDensity.von_mises(40.0, 2.6).moments(64) + FourierDensity.von_mises(40.0, 3.7).moments(64))
    )
    (merger,) = clusters(made_of([1.0, 2.0], [wide, FourierDensity.von_mises(40.0, 3.15)])).mergers
    assert math.isnan(merger.estimate)
    assert merger.t == 1.5


def second_derivative(x, beta=5.0):
    return math.exp(beta * math.cos(x)) * (beta * math.sin(x) ** 2 - math.cos(x))


@pytest.mark.parametrize(("beta", "k"), [(2.0, 2), (5.0, 3), (7.0, 4), (9.0, 4)])
def test_contraction_and_merging_rates_of_equal_clusters(beta, k):
    model = SelfAttention(beta)
    at = TWO_PI * np.arange(k) / k
    mass = sum(math.exp(beta * math.cos(x)) for x in at)
    contraction = -sum(second_derivative(x, beta) for x in at) / mass
    run = solve(model, FourierDensity.from_modes({k: 0.05}), np.array([0.0, 16.0, 19.0]))
    widths = [found.widths.mean() for found in clusters(run).rows[1:]]
    assert math.log(widths[0] / widths[1]) / 3.0 == pytest.approx(contraction, rel=1e-5)

    q = k // 2
    merging = sum(second_derivative(x, beta) * (1 - math.cos(q * x)) for x in at) / mass
    shift = 1e-5 * np.cos(q * at)
    history = clusters(solve(model, Atoms(at + 0.5 + shift), [0.0, 1.0 / merging], rtol=1e-12))
    moved = [abs(np.mean((found.positions - at - 0.5) * np.exp(-1j * q * at))) for found in history.rows]
    assert math.log(moved[1] / moved[0]) == pytest.approx(1.0, rel=1e-5)


def test_case_a_stands_in_three_clusters_and_then_two(case_a):
    history = clusters(case_a)
    masses = np.array([found.masses.sum() for found in history.rows])
    np.testing.assert_allclose(masses[history.counts > 0], 1.0, atol=1e-13)
    lifetime = history.lifetime()
    assert (lifetime.n_clusters, lifetime.complete) == (3, True)
    late = history.counts[case_a.t > lifetime.formed]
    assert set(late.tolist()) == {3, 2}
    assert (np.diff(late) <= 0).all()
    (merger,) = [each for each in history.mergers if each.t > lifetime.formed]
    assert lifetime.ended == merger.estimate

    near = solve(MODEL, case_a.measure(0), np.concatenate([[0.0], np.linspace(85.0, 92.0, 141)]))
    angles = [np.sort(near.measure(i).angles) for i in range(1, len(near)) if near.measure(i).n_atoms == 3]
    apart = np.array([x[2] - x[1] for x in angles])
    dense = np.interp(2 * history.resolution, apart[::-1], near.t[1 : 1 + apart.size][::-1])
    assert merger.t == pytest.approx(dense, abs=2e-3)  # the rows' spacing of 0.05 interpolated


def test_no_lifetime_of_what_was_not_there(case_a):
    with pytest.raises(InputError, match=r"no row has 4 clusters narrower than 0\.04 rad; solve to a later time"):
        clusters(case_a).lifetime(4)
    early = made_of([0.0, 1.0], [FourierDensity.uniform(), FourierDensity.uniform()])
    with pytest.raises(InputError, match="no row has clusters narrower than"):
        clusters(early).lifetime()


# Energy


@pytest.mark.parametrize("normalization", ["softmax", "none", "peak"])
def test_clock_of_two_points(normalization):
    beta, start = 9.0, 2.2
    model = SelfAttention(beta, normalization)
    end = 2 * diagnostics.default_resolution(model)
    exact = closing_time(beta, normalization, start, end)
    steps = energy_staircase(solve(model, Atoms([1.0, 1.0 + start]), np.array([0.0, 0.3, 1.5, 3.0]) * exact))
    if normalization == "softmax":
        tau = quad(lambda phi: (1 + math.exp(beta * (math.cos(phi) - 1))) / (2 * math.sin(phi)), end, start)[0]
    else:
        tau = math.log(math.tan(start / 2) / math.tan(end / 2))
    assert steps.clock[0] == 0.0
    assert steps.clock[2] == steps.clock[3] == pytest.approx(tau / math.log(beta), rel=1e-7)

    (jump,) = steps.jumps
    assert jump.interval == (0.3 * exact, 1.5 * exact)
    assert jump.after == pytest.approx(1.0, rel=1e-12, abs=0.0)
    assert jump.before == pytest.approx(0.5 + 0.5 * math.exp(beta * (math.cos(start) - 1)), rel=1e-4)
    halfway = math.acos(1 + math.log(jump.before + jump.after - 1) / beta)  # 0.5 + 0.5 e^... is their mean
    assert jump.t == pytest.approx(closing_time(beta, normalization, start, halfway), rel=1e-3)
    assert jump.height == jump.after - jump.before


def test_energy_is_that_of_points_once_clusters_are_narrow(case_a):
    history = clusters(case_a)
    steps = energy_staircase(case_a, history=history)
    for row in (60, 90, 120):
        found = history.rows[row]
        difference = found.positions[:, None] - found.positions
        share = found.masses @ np.exp(5.0 * (np.cos(difference) - 1.0)) @ found.masses
        assert steps.share[row] == pytest.approx(share, rel=1e-4)
    assert (np.diff(steps.fine.share) > -1e-9).all()
    assert (np.diff(steps.fine.t) >= 0.0).all()
    running = np.isfinite(steps.clock)
    np.testing.assert_array_equal(running, case_a.t >= case_a.t[running][0])
    assert (np.diff(steps.clock[running]) >= 0.0).all()


def test_jumps_lead_from_plateau_to_plateau(case_a):
    history = clusters(case_a)
    first, second = energy_staircase(case_a, history=history).jumps
    assert first.after == second.before
    assert first.before == pytest.approx(i0e(5.0), rel=1e-2)
    assert first.t < history.lifetime(3).formed
    assert math.isnan(first.clock)
    assert history.counts[case_a.t > first.t][0] == 3  # one jump, although clusters come one after the other
    assert {1, 2} & set(history.counts[case_a.t < first.t].tolist())
    assert second.interval[0] <= second.t <= second.interval[1]
    assert second.t < history.lifetime(3).ended < second.t + 5.0
    assert 0.1 < second.clock < 2.0
    masses = history.rows[-1].masses
    assert second.after == pytest.approx((masses**2).sum(), rel=1e-3)


def test_the_staircase_of_another_model_is_refused_by_its_type():
    other = PairPotential(tuple(np.linspace(1.0, 0.0, 200)))
    with pytest.raises(
        InputError, match=r"known for SelfAttention, not for PairPotential; look at the energy itself\.$"
    ):
        energy_staircase(made_of([0.0, 1.0], [FourierDensity.uniform()] * 2, model=other))


def test_a_wide_cluster_on_the_way_is_no_plateau():
    wide, points = FourierDensity.von_mises(2.0), Atoms([0.0, 2.0, 4.0])
    steps = energy_staircase(made_of(np.arange(5.0), [FourierDensity.uniform()] * 2 + [wide] * 2 + [points]))
    (jump,) = steps.jumps
    assert (jump.before, jump.after) == (steps.share[0], steps.share[4])
    assert steps.share[0] < steps.share[2] - 0.05 < steps.share[4]
    assert math.isnan(steps.clock[3])
    assert steps.clock[4] == 0.0


def test_no_clock_with_diffusion_or_without_clusters():
    noisy = SelfAttention(5.0, diffusion=0.01)
    for run in (
        solve(noisy, FourierDensity.from_modes({1: 0.1}), 2.0),
        made_of([0.0, 1.0], [FourierDensity.uniform(), FourierDensity.uniform()]),
    ):
        steps = energy_staircase(run)
        assert np.isnan(steps.clock).all()
        np.testing.assert_array_equal(steps.fine.share, steps.share)


def test_kuramoto_limit():
    run = solve(SelfAttention(0.0), Atoms([1.0, 2.0]), [0.0, 1.0, 30.0])
    steps = energy_staircase(run)
    assert steps.share[0] == pytest.approx(math.cos(0.5) ** 2, rel=1e-12, abs=0.0)
    assert steps.share[-1] == pytest.approx(1.0, rel=1e-12, abs=0.0)
    assert len(clusters(run).mergers) == 1


def test_what_is_shown_of_a_history_fits_on_a_line(case_a):
    history = clusters(case_a)
    steps = energy_staircase(case_a, history=history)
    for shown in (history, history.tracks[0], history.mergers[0], steps, steps.fine):
        assert len(repr(shown)) < 150
        assert "\n" not in repr(shown)
    assert repr(history).startswith(f"ClusterHistory(121 rows, {history.counts[-1]} cluster")
    assert f"{len(history.mergers)} merger" in repr(history)
    assert f"t = {history.mergers[0].t:.4g}" in repr(history)
    assert f"{len(steps.jumps)} jump" in repr(steps)


def test_the_first_jump_is_the_formation_of_the_clusters(case_a):
    history = clusters(case_a)
    first, *others = energy_staircase(case_a, history=history).jumps
    assert math.isnan(first.clock)
    assert first.t < history.t[history.first_formed] < history.mergers[0].interval[1]
    assert all(jump.clock > 0.0 for jump in others)
