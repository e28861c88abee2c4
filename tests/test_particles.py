"""Tokens on the circle: sums, velocities, runs, layers, replicates, growth rates."""

import itertools
import math
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention, Trajectory
from spectral_mf.errors import Diverged
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Snapshot
from spectral_mf.validation import token_velocity
from spectral_mf.validation.fast_sums import NonuniformFFT, Recurrences, SortedCells, fast_sums, token_moments
from spectral_mf.validation.growth import growth_rates, measure_growth
from spectral_mf.validation.particles import condensed, simulate
from spectral_mf.validation.replicates import replicate, sample_tokens
from spectral_mf.validation.token_march import march_particles
from spectral_mf.validation.token_velocity import TokenVelocity

TWO_PI = 2.0 * np.pi
SA, USA = SelfAttention(5.0), SelfAttention(5.0, "none")


def direct_moments(theta, weights, n_modes):
    return np.array([(weights * np.exp(-1j * k * theta)).sum() for k in range(n_modes + 1)])


def direct_sums(coefficients, theta):
    k = np.arange(coefficients.shape[1])
    wave = np.exp(1j * np.outer(k, theta))
    return coefficients[:, :1].real + 2.0 * (coefficients[:, 1:] @ wave[1:]).real


def pairwise(theta, weights, beta, softmax):
    difference = theta[:, None] - theta
    attention = weights * np.exp(beta * np.cos(difference))
    velocity = -(attention * np.sin(difference)).sum(axis=1)
    return velocity / attention.sum(axis=1) if softmax else velocity


def velocity_of(model, theta, weights=None, **settings):
    w = np.full(theta.size, 1.0 / theta.size) if weights is None else weights
    out = np.empty_like(theta)
    TokenVelocity(model, w, **settings)(theta, out)
    return out


def apart(a, b):
    return np.abs((np.asarray(a) - b + np.pi) % TWO_PI - np.pi)


# ---- sums


@pytest.mark.parametrize("way", [Recurrences, NonuniformFFT, SortedCells])
@pytest.mark.parametrize(("n_tokens", "n_modes"), [(1, 3), (257, 26), (5000, 26), (900, 150)])
def test_every_way_of_summing_is_the_sum(way, n_tokens, n_modes):
    rng = np.random.default_rng(1)
    theta = np.sort(rng.uniform(0.0, TWO_PI, n_tokens))
    weights = rng.dirichlet(np.ones(n_tokens))
    coefficients = rng.standard_normal((2, n_modes + 1)) + 1j * rng.standard_normal((2, n_modes + 1))
    sums = way(n_modes)
    sums.place(theta)
    np.testing.assert_allclose(sums.moments(weights), direct_moments(theta, weights, n_modes), atol=2e-14)
    expected = direct_sums(coefficients, theta)
    scale = np.abs(coefficients).sum()
    np.testing.assert_allclose(sums.sums(coefficients), expected, atol=3e-14 * scale)
    np.testing.assert_allclose(sums.sums(coefficients[:1]), expected[:1], atol=3e-14 * scale)


@pytest.mark.parametrize("way", [NonuniformFFT, SortedCells])
@pytest.mark.parametrize("shift", [-TWO_PI, -0.7, 3.0, 9.0])
def test_angles_on_any_turn_are_the_same_tokens(way, shift):
    theta = np.sort(np.random.default_rng(2).uniform(0.0, TWO_PI, 700)) + shift
    weights = np.full(700, 1 / 700)
    sums = way(10)
    sums.place(theta)
    np.testing.assert_allclose(sums.moments(weights), direct_moments(theta, weights, 10), atol=1e-14)


@pytest.mark.parametrize("disorder", [1e-12, 0.5])
def test_cells_take_tokens_that_are_not_in_order(disorder):
    rng = np.random.default_rng(3)
    theta = np.sort(rng.uniform(0.0, TWO_PI, 3000)) + disorder * rng.standard_normal(3000)
    weights = np.full(3000, 1 / 3000)
    cells = SortedCells(26)
    for _ in range(2):  # and go back to cells after a detour
        cells.place(theta)
        np.testing.assert_allclose(cells.moments(weights), direct_moments(theta, weights, 26), atol=2e-14)
        coefficients = np.ones((2, 27)) + 0.5j
        np.testing.assert_allclose(cells.sums(coefficients), direct_sums(coefficients, theta), atol=5e-12)
        theta = np.sort(theta)


@given(
    st.lists(st.sampled_from([0.0, 1e-300, 1.0, 1.0 + 1e-9, 3.0, 6.283185307179586, 6.2]), min_size=1, max_size=30),
    st.integers(1, 40),
)
def test_cells_with_piled_up_tokens(angles, n_modes):
    theta = np.sort(np.array(angles))
    weights = np.full(theta.size, 1.0 / theta.size)
    cells = SortedCells(n_modes)
    cells.place(theta)
    np.testing.assert_allclose(cells.moments(weights), direct_moments(theta, weights, n_modes), atol=1e-13)


@pytest.mark.parametrize("way", [NonuniformFFT, SortedCells])
def test_an_angle_that_is_no_number_gives_no_numbers(way):
    theta = np.sort(np.random.default_rng(4).uniform(0.0, TWO_PI, 100))
    theta[[3, 99]] = np.nan
    sums = way(5)
    sums.place(theta)
    assert np.isnan(sums.moments(np.full(100, 0.01))).all()
    assert np.isnan(sums.sums(np.ones((2, 6), dtype=complex))).all()


def test_the_way_is_chosen_by_size():
    assert isinstance(fast_sums(300, 26, in_order=True), Recurrences)
    assert isinstance(fast_sums(300, 280, in_order=True), NonuniformFFT)
    assert isinstance(fast_sums(10_000, 26, in_order=True), NonuniformFFT)
    assert isinstance(fast_sums(1_000_000, 26, in_order=True), SortedCells)
    assert isinstance(fast_sums(1_000_000, 26), NonuniformFFT)


@pytest.mark.parametrize("n_tokens", [100, 20_000, 200_000])
def test_moments_of_many_tokens(n_tokens):
    tokens = sample_tokens(n_tokens, 5)
    np.testing.assert_allclose(
        token_moments(tokens.angles, tokens.weights, 12), direct_moments(tokens.angles, tokens.weights, 12), atol=1e-13
    )


# ---- velocities


@pytest.mark.parametrize("n_tokens", [2, 63, 65, 400, 3000])
@pytest.mark.parametrize(("model", "softmax"), [(SA, True), (USA, False)])
def test_velocity_is_the_pairwise_sum(n_tokens, model, softmax):
    rng = np.random.default_rng(n_tokens)
    theta = np.sort(rng.uniform(0.0, TWO_PI, n_tokens))
    weights = rng.dirichlet(np.ones(n_tokens))
    expected = pairwise(theta, weights, 5.0, softmax)
    scale = 1.0 if softmax else math.exp(5.0)
    np.testing.assert_allclose(velocity_of(model, theta, weights), expected, atol=1e-13 * scale)


def test_velocity_of_ten_thousand_tokens_to_1e_12():
    theta = np.sort(np.random.default_rng(1).uniform(0.0, TWO_PI, 10_000))
    some = slice(None, None, 37)
    difference = theta[some, None] - theta
    attention = np.exp(5.0 * np.cos(difference))
    expected = -(attention * np.sin(difference)).sum(axis=1) / attention.sum(axis=1)
    assert np.abs(velocity_of(SA, theta)[some] - expected).max() < 1e-12


def test_velocity_through_cells_is_that_through_finufft():
    theta = np.sort(np.random.default_rng(1).uniform(0.0, TWO_PI, 150_000))
    velocity = TokenVelocity(SA, np.full(theta.size, 1 / theta.size))
    assert isinstance(velocity._sums, SortedCells)
    by_cells, by_finufft = np.empty_like(theta), np.empty_like(theta)
    velocity(theta, by_cells)
    velocity._sums = NonuniformFFT(SA.bandwidth)
    velocity(theta, by_finufft)
    assert np.abs(by_cells - by_finufft).max() < 1e-13


@pytest.mark.parametrize("n_tokens", [3, 300])
def test_momentum(n_tokens):
    # the force between two tokens is opposite: USA conserves the mean angle, SA does not
    usa = velocity_of(USA, np.array([0.0, 1.0, 3.0]))
    np.testing.assert_allclose(usa, [4.180267372678033, -4.142095706977173, -0.03817166570085931], rtol=1e-13)
    sa = velocity_of(SA, np.array([0.0, 1.0, 3.0]))
    np.testing.assert_allclose(sa, [0.07678552220000532, -0.07602954639746427, -0.0007709107302593021], rtol=1e-12)
    assert abs(sa.sum() + 1.493492771825703e-5) < 1e-16
    theta = np.sort(np.random.default_rng(6).uniform(0.0, TWO_PI, n_tokens))
    assert abs(velocity_of(USA, theta).mean()) < 1e-14 * math.exp(5.0)
    assert abs(velocity_of(SA, theta).mean()) > 1e-6


def test_weighted_tokens():
    tokens = Atoms([0.0, 1.0], [0.3, 0.7])
    usa = velocity_of(USA, tokens.angles, tokens.weights)
    np.testing.assert_allclose(usa, [8.77786172886408921, -3.76194074094175252], rtol=1e-13)
    sa = velocity_of(SA, tokens.angles, tokens.weights)
    np.testing.assert_allclose(sa, [0.159726673933872017, -0.0347170984787530029], rtol=1e-13)
    run = simulate(USA, tokens, [0.0])
    assert run.energy[0] == pytest.approx(9.23385730301619267, rel=1e-13, abs=0.0)


def test_light_tokens_far_from_all_mass_move_by_direct_sums():
    # weight 1e-13 at pi, all else near 0: its denominator is below what moments know. e^{-2 beta} sets its speed.
    beta, far = 25.0, 2.9
    theta = np.sort(np.append(np.linspace(-0.01, 0.01, 99) % TWO_PI, far))
    weights = np.where(theta == far, 1e-13, (1.0 - 1e-13) / 99)
    model = SelfAttention(beta)
    expected = pairwise(theta, weights, beta, True)
    np.testing.assert_allclose(velocity_of(model, theta, weights), expected, rtol=1e-9, atol=1e-13)
    assert 0.0 < abs(expected[theta == far][0]) < 1e-6


def test_equal_tokens_always_see_themselves():
    # the worst case of the bound: all others at the other side; the error of the velocity is below 1e-15 N
    theta = np.sort(np.append(np.linspace(-0.01, 0.01, 19_999) % TWO_PI, np.pi))
    model = SelfAttention(9.0)
    weights = np.full(20_000, 1 / 20_000)
    lone = velocity_of(model, theta, weights)[theta == np.pi][0]
    assert abs(lone - model.pair_velocity([np.pi], theta, weights)[0]) < 1e-15 * 20_000


class TwoHalves:
    """A model whose velocity is a sum of two terms, each half of another's."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)

    def velocity_series(self, moments):
        half = self._model.velocity_series(moments)
        half[:, 0] *= 0.5
        return np.concatenate([half, half])


@pytest.mark.parametrize("model", [SA, USA])
def test_a_velocity_of_several_terms_is_their_sum(model):
    theta = np.sort(np.random.default_rng(8).uniform(0.0, TWO_PI, 1000))
    np.testing.assert_allclose(velocity_of(TwoHalves(model), theta), velocity_of(model, theta), atol=1e-12)


# ---- runs


@pytest.mark.parametrize(("model", "t_end"), [(SA, 6.0), (USA, 0.25)])
@pytest.mark.parametrize("n_tokens", [50, 100])
def test_run_agrees_with_an_integrator_of_the_pairwise_system(model, t_end, n_tokens):
    theta = np.random.default_rng(1).uniform(0.0, TWO_PI, n_tokens)
    weights = np.full(n_tokens, 1.0 / n_tokens)
    times = [0.0, 0.5 * t_end, t_end]
    run = simulate(model, Atoms(theta), times, rtol=1e-12)
    softmax = model.normalization == "softmax"
    oracle = solve_ivp(
        lambda t, y: pairwise(y, weights, 5.0, softmax), (0, t_end), theta, "DOP853", times, rtol=1e-12, atol=1e-12
    )
    for i in range(3):
        assert apart(run.measure(i).angles, oracle.y[:, i]).max() < 1e-9
    assert list(run.method) == ["particles"] * 3
    assert run.complete
    assert run.mass == pytest.approx(1.0, abs=1e-14)


def test_one_token_stays():
    run = simulate(SA, Atoms([1.0]), 5.0)
    assert (np.array([run.measure(i).angles[0] for i in range(101)]) == 1.0).all()
    assert run.energy == pytest.approx(math.exp(5.0) / 10.0, rel=1e-14, abs=0.0)
    assert np.abs(run.moments) == pytest.approx(1.0, abs=1e-13)  # 64 powers by a recurrence


def test_an_antipodal_pair_stays_for_long():
    # escape rate 9.08e-5: rounding grows by 9.5 % only
    pair = Atoms([0.0, np.pi])
    assert np.abs(velocity_of(SA, pair.angles)).max() < 1e-15
    run = simulate(SA, pair, [0.0, 1000.0])
    assert abs(np.diff(run.measure(1).angles)[0] - np.pi) < 1e-12


def test_two_tokens_under_usa_in_closed_form():
    # delta' = -e^{cos delta} sin delta at beta = 1, delta(0) = 2
    run = simulate(SelfAttention(1.0, "none"), Atoms([1.0, 3.0]), [0.0, 0.1, 0.5, 1.0, 2.0], rtol=1e-12)
    found = [np.diff(run.measure(i).angles)[0] for i in range(1, 5)]
    expected = [1.93745547572100902, 1.62249978922134644, 1.01904536820193642, 0.100150153327635831]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_clusters_across_zero_merge_at_zero():
    run = simulate(SelfAttention(1.0), Atoms([0.1, TWO_PI - 0.1]), [0.0, 40.0], rtol=1e-10)
    assert apart(run.measure(1).angles, 0.0).max() < 1e-8


@pytest.mark.parametrize(("model", "t_end"), [(SA, 10.0), (USA, 0.4)])
def test_energy_rises_order_stays_and_usa_keeps_the_mean_angle(model, t_end):
    tokens = sample_tokens(2000, 11)
    run = simulate(model, tokens, t_end)
    assert (np.diff(run.energy) > 0.0).all()
    assert run.energy[-1] > 1.3 * run.energy[0]
    last = run.measure(100).angles
    # cyclic order: going round by the initial order turns by at most once in total
    steps = np.diff(last[np.argsort(tokens.angles)], append=last[np.argsort(tokens.angles)][0])
    assert (steps < -1e-6).sum() == 1
    if model is USA:
        turn = (last - tokens.angles + np.pi) % TWO_PI - np.pi
        assert abs(turn.mean()) < 1e-8


def test_energy_rate_has_the_right_sign_and_size():
    # dE/dt = int V_USA V dmu: vM(4), beta = 5
    tokens = FourierDensity.von_mises(4.0).quantiles(4000)
    for model, rate in ((USA, 136.783039906375335), (SA, 2.24106299100054444)):
        h = 1e-4 / np.abs(velocity_of(model, np.sort(tokens.angles))).max()
        run = simulate(model, tokens, [0.0, h, 2.0 * h], rtol=1e-12)
        slope = (-1.5 * run.energy[0] + 2.0 * run.energy[1] - 0.5 * run.energy[2]) / h
        assert slope == pytest.approx(rate, rel=1e-5)


def test_many_tokens_follow_the_density():
    # quantiles of a smooth density: the particle solution is the density's, to O(1/N^2) in the moments
    from spectral_mf import solve

    density = FourierDensity.from_modes({3: 0.02, 2: 0.01j})
    times = [0.0, 2.0, 4.0]
    exact = solve(SA, density, times)
    run = simulate(SA, density.quantiles(20_000), times)
    assert np.abs(run.moments[:, :13] - exact.moments[:, :13]).max() < 3e-8


def test_a_small_perturbation_grows_at_its_rate():
    # 2000 tokens on a lattice, moved by 1e-7: errors are judged against the perturbation, not against the circle
    lattice = TWO_PI * np.arange(2000) / 2000
    run = simulate(SA, Atoms(lattice + 1e-7 * np.sin(3 * lattice)), [0.0, 2.0], rtol=1e-8)
    rate = math.log(abs(run.moments[1, 3] / run.moments[0, 3])) / 2.0
    assert rate == pytest.approx(float(SA.growth_rate(3)), rel=1e-6)


def test_rows_are_resumed_bit_for_bit():
    tokens = sample_tokens(500, 3)
    times = np.array([1.0, 2.0, 3.0])
    options = MarchOptions(rtol=1e-8)
    start = Snapshot(0.0, tokens, "particles", 500)
    straight = list(march_particles(SA, start, times, options))
    (resumed,) = march_particles(SA, straight[1], times[2:], options)
    np.testing.assert_array_equal(resumed.measure.angles, straight[2].measure.angles)
    assert resumed.step == straight[2].step


def test_a_run_is_stored_and_read(tmp_path):
    run = simulate(SA, sample_tokens(200, 1), [0.0, 1.0], provenance={"seed": 1})
    read = Trajectory.load(run.save(tmp_path / "run.h5"))
    np.testing.assert_array_equal(read.measure(1).angles, run.measure(1).angles)
    np.testing.assert_array_equal(read.moments, run.moments)
    assert read.configuration["seed"] == 1


def test_rows_of_many_tokens_are_condensed():
    tokens = sample_tokens(40_000, 2)
    full = simulate(SA, tokens, [0.0, 1.0, 2.0])
    short = simulate(SA, tokens, [0.0, 1.0, 2.0], keep_states=False)
    np.testing.assert_array_equal(short.moments, full.moments)
    np.testing.assert_array_equal(short.cells, full.cells)
    assert short.measure(1).n_atoms < 16_385
    assert short.measure(1).w1(full.measure(1)) < np.pi / 16_384
    np.testing.assert_array_equal(short.measure(2).angles, full.measure(2).angles)


def test_condensing_keeps_mass_and_moves_little():
    tokens = Atoms([0.0, 6.283, 1.0, 1.0001, 2.0], [0.1, 0.2, 0.3, 0.2, 0.2])
    joined = condensed(tokens, 100)
    assert joined.n_atoms == 4
    assert joined.weights.sum() == pytest.approx(1.0, abs=1e-15)
    assert joined.w1(tokens) == pytest.approx(0.5e-4 * 0.48, rel=0.01)


def test_progress_is_told():
    seen = []
    simulate(SA, sample_tokens(100, 1), [0.0, 1.0], progress=lambda *step: seen.append(step))
    assert seen[-1] == (1.0, 100, "particles")
    assert all(a[0] < b[0] for a, b in itertools.pairwise(seen))


def test_a_run_that_cannot_go_on_keeps_its_rows(monkeypatch):
    def broken(self, theta, out):
        ordinary(self, theta, out)
        if apart(theta, initial).max() > 0.05:
            out[:] = np.nan

    ordinary = TokenVelocity.__call__
    tokens = sample_tokens(100, 1)
    initial = np.sort(tokens.angles)
    monkeypatch.setattr(TokenVelocity, "__call__", broken)
    with pytest.raises(Diverged) as stopped:
        simulate(SA, tokens, [0.0, 0.01, 10.0])
    assert len(stopped.value.trajectory) == 2
    assert not stopped.value.trajectory.complete
    assert stopped.value.trajectory.status.startswith("stopped early")


# ---- layers


def test_a_layer_normalises_the_sum():
    tokens = sample_tokens(100, 4)
    run = simulate(SA, tokens, [0.0, 0.5], method="euler", layer_step=0.25)
    x = np.exp(1j * tokens.angles)
    for _ in range(2):
        theta = np.angle(x)
        x = x + 0.25 * 1j * x * pairwise(theta, tokens.weights, 5.0, True)
        x /= np.abs(x)
    assert apart(run.measure(1).angles, np.angle(x)).max() < 1e-13
    assert list(run.method) == ["layers"] * 2


def test_layers_converge_to_the_flow_at_first_order():
    tokens = sample_tokens(100, 4)
    exact = simulate(SA, tokens, [0.0, 2.0], rtol=1e-11).moments[1]
    errors = [
        np.abs(simulate(SA, tokens, [0.0, 2.0], method="euler", layer_step=h).moments[1] - exact)[1:6].max()
        for h in (0.02, 0.01, 0.005)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.1)
    assert errors[1] / errors[2] == pytest.approx(2.0, abs=0.05)


def test_layers_are_counted():
    seen = []
    run = simulate(
        SA,
        sample_tokens(100, 4),
        [0.0, 0.3, 0.7],
        method="euler",
        layer_step=0.1,
        progress=lambda t, n, method: seen.append(t),
    )
    np.testing.assert_allclose(seen, 0.1 * np.arange(1, 8), atol=1e-15)
    assert list(run.t) == [0.0, 0.3, 0.7]


# ---- replicates


def first_draw(seed):
    return float(np.random.default_rng(seed).uniform())


def one_run(seed, n_tokens):
    threads = os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("OMP_NUM_THREADS")
    moments = simulate(SA, sample_tokens(n_tokens, seed), [0.0, 0.2]).moments[-1, 1:4]
    return first_draw(seed), moments, os.getpid(), threads


def fails_sometimes(seed):
    if seed.spawn_key == (1,):
        raise ValueError("an unlucky draw")
    return 1


def test_replicates_are_the_same_in_any_number_of_processes(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    work = partial(one_run, n_tokens=600)  # finufft in spawned workers
    one, four = replicate(work, 8, seed=7), replicate(work, 8, seed=7, n_jobs=4)
    assert len({draw for draw, *_ in four.results}) == 8
    assert [draw for draw, *_ in one.results] == [draw for draw, *_ in four.results]
    np.testing.assert_array_equal([run[1] for run in one.results], [run[1] for run in four.results])
    assert os.getpid() not in {process for _, _, process, _ in four.results}
    assert {threads for *_, threads in four.results} == {("1", "1")}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"
    assert "OMP_NUM_THREADS" not in os.environ


def test_more_replicates_leave_the_first_ones():
    few, many = replicate(first_draw, 3, seed=5), replicate(first_draw, 9, seed=5)
    assert few.results == many.results[:3]


def test_a_seed_that_was_not_given_is_returned():
    done = replicate(first_draw, 3)
    assert replicate(first_draw, 3, seed=done.entropy).results == done.results
    assert replicate(first_draw, 3).entropy != done.entropy


def test_one_failure_leaves_the_others():
    done = replicate(fails_sometimes, 3, seed=1)
    assert done.results == [1, 1]
    assert done.failures == {1: "ValueError: an unlucky draw"}
    with pytest.raises(ZeroDivisionError):
        replicate(lambda seed: 1 // 0, 2, seed=1)


def test_tokens_are_drawn_from_their_seed():
    np.testing.assert_array_equal(sample_tokens(10, 3).angles, sample_tokens(10, np.random.SeedSequence(3)).angles)
    assert sample_tokens(100_000, 3).angles.max() < TWO_PI


# ---- growth


def test_growth_estimate_on_exact_growth():
    rng = np.random.default_rng(1)
    before = rng.standard_normal((8, 3)) + 1j * rng.standard_normal((8, 3))
    rates, errors = growth_rates(before, before * np.exp([0.3, 0.6, 1.2]), 2.0)
    np.testing.assert_allclose(rates, [0.15, 0.3, 0.6], rtol=1e-13)
    assert errors.max() < 1e-13


def test_growth_of_modes():
    # 12 replicates: |t_11| < 7.5 for six modes, false alarms 7e-5 (seeded)
    found = measure_growth(SA, n_tokens=20_000, replicates=12, seed=3)
    assert np.abs(found.deviations).max() < 7.5
    assert (found.standard_errors / found.predicted).max() < 0.05
    np.testing.assert_allclose(found.predicted, SA.growth_rate(np.arange(1, 7)))


def test_a_kernel_cut_after_its_fourth_mode_is_seen():
    with pytest.warns(UserWarning, match=f"needs {SA.bandwidth} modes"):
        found = measure_growth(SA, n_tokens=20_000, replicates=5, seed=3, kernel_modes=4, duration=0.5)
    assert np.abs(found.rates[:4] / found.predicted[:4] - 1.0).max() < 0.05
    assert np.abs(found.rates[4:] / found.predicted[4:]).max() < 0.1


@pytest.mark.slow
def test_growth_of_modes_one_to_six_to_one_percent():
    # N = 1e5, 40 replicates: within 3 standard errors of theory, standard errors below 1 %; seeded, one draw
    found = measure_growth(SA, n_tokens=100_000, replicates=40, seed=2024, n_jobs=2)
    assert np.abs(found.deviations).max() < 3.0
    assert (found.standard_errors / found.predicted).max() < 0.01


@pytest.mark.slow
def test_a_million_tokens_to_t_20():
    run = simulate(SA, sample_tokens(1_000_000, 1), [0.0, 10.0, 20.0])
    assert run.complete
    assert (np.diff(run.energy) > 0.0).all()
    k = np.arange(1, 4)
    early = simulate(SA, sample_tokens(1_000_000, 1), [0.0, 0.5]).moments
    # one sample: second-order terms are below 1 % of the moments
    assert np.abs(early[1, k] / early[0, k] / np.exp(0.5 * SA.growth_rate(k)) - 1.0).max() < 0.01


@pytest.mark.slow
def test_ten_million_tokens_fit_in_four_gibibytes():
    # in a process of its own, whose peak is that of the run alone; getrusage counts KiB, on macOS bytes
    code = """
import resource, sys
from spectral_mf import SelfAttention
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import sample_tokens
run = simulate(SelfAttention(5.0), sample_tokens(10_000_000, 1), [0.0, 0.05], rtol=1e-6, keep_states=False)
assert run.complete and run.measure(1).n_atoms == 10_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout)
    assert 10_000_000 * 8 * 14 < peak < 4 * 2**30  # the stepper alone holds 14 arrays


# ---- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tokens": [0.1, 0.2]}, "not tokens"),
        ({"model": SelfAttention(5.0, diffusion=0.1)}, "diffusion = 0.1 moves tokens at random"),
        ({"rtol": 1.0}, "rtol = 1 is not allowed"),
        ({"times": [1.0, 0.5]}, "not increasing"),
        ({"times": "soon"}, "not numbers"),
        ({"times": []}, "non-empty"),
        ({"times": -1.0}, "lies before"),
        ({"method": "rk4"}, "choose one of adaptive, euler"),
        ({"method": "euler"}, "needs layer_step"),
        ({"layer_step": 0.1}, "leave it out"),
        ({"method": "euler", "layer_step": -0.1}, "layer_step = -0.1"),
        ({"method": "euler", "layer_step": 0.3}, "not a whole number of layers"),
        ({"kernel_modes": 0}, "kernel_modes = 0"),
        ({"n_cells": 2}, "n_cells = 2"),
        ({"n_modes": 0}, "n_modes = 0"),
        ({"n_threads": 0}, "n_threads = 0"),
    ],
)
def test_bad_input_of_a_run(settings, message):
    arguments = {"model": SA, "tokens": Atoms([0.1, 0.2]), "times": [0.0, 1.0]} | settings
    with pytest.raises(InputError, match=message) as raised:
        simulate(**arguments)
    assert "\n" not in str(raised.value)


def test_bad_starts_of_a_march():
    options = MarchOptions()
    with pytest.raises(InputError, match="start from Atoms"):
        march_particles(SA, Snapshot(0.0, FourierDensity.uniform(), "spectral", 1), np.array([1.0]), options)
    with pytest.raises(InputError, match="symmetry of order 3"):
        march_particles(SA, Snapshot(0.0, Atoms([0.0]), "particles", 1), np.array([1.0]), MarchOptions(fold=3))


def test_fewer_modes_than_the_kernel_has_are_warned_of():
    with pytest.warns(UserWarning, match=f"kernel_modes = 4 cuts the interaction short, which needs {SA.bandwidth}"):
        simulate(SA, sample_tokens(30, 1), [0.0, 0.1], kernel_modes=4)


@pytest.mark.parametrize("n_tokens", [0, -3, 2.5, True])
def test_bad_numbers_of_tokens(n_tokens):
    with pytest.raises(InputError, match="at least 1"):
        sample_tokens(n_tokens, 1)


@pytest.mark.parametrize(("replicates", "n_jobs", "message"), [(0, 1, "replicates = 0"), (3, 0, "n_jobs = 0")])
def test_bad_numbers_of_replicates(replicates, n_jobs, message):
    with pytest.raises(InputError, match=message):
        replicate(first_draw, replicates, n_jobs=n_jobs)


def test_growth_needs_two_replicates_and_a_time():
    with pytest.raises(InputError, match="give an integer of at least 2"):
        measure_growth(SA, n_tokens=10, replicates=1)
    with pytest.raises(InputError, match="duration = 0"):
        measure_growth(SA, n_tokens=10, replicates=2, duration=0.0)


def test_nothing_is_of_size_n_squared():
    # 2e5 tokens: a matrix would need 320 GB
    assert token_velocity.FEW <= 64
    assert np.isfinite(velocity_of(SA, np.sort(sample_tokens(200_000, 1).angles))).all()
