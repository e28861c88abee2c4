"""The nonlinear spectral solver against references, closed forms, symmetries and conservation laws."""

import json
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from spectral_mf.errors import Diverged, InputError, ResolutionExhausted
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.self_attention import SelfAttention
from spectral_mf.solvers import solve
from spectral_mf.solvers.dop853 import Dop853
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.spectral import (
    SpectralRightHandSide,
    SpectralSolver,
    folded_moments,
    grid_sizes,
    kept_modes,
    march_spectral,
)
from spectral_mf.trajectory import Snapshot


def start(modes, t=0.0):
    density = FourierDensity.from_modes(modes) if isinstance(modes, dict) else modes
    return Snapshot(t, density, "spectral", 0)


def run(model, modes, times, **options):
    return list(march_spectral(model, start(modes), np.asarray(times, dtype=float), MarchOptions(**options)))


def solver_for(model, modes, **options):
    return SpectralSolver(model, 0.0, folded_moments(start(modes).measure, 1), MarchOptions(**options))


def final(model, modes, t_end, n=40, **options):
    return run(model, modes, [t_end], **options)[-1].measure.moments(n)


def reference(name):
    case = json.loads(resources.files("spectral_mf.data").joinpath(f"{name}.json").read_text())
    modes = {int(k): complex(*value) for k, value in case["initial_moments"].items()}
    return SelfAttention(case["beta"], case["normalization"]), modes, case["rows"]


@pytest.mark.parametrize(("name", "last"), [("case_A", 7.0), ("case_B", 0.25)])
@pytest.mark.parametrize(("rtol", "allowed"), [(1e-11, 1e-10), (1e-8, 1e-7), (1e-6, 1e-5)])
def test_reference_moments_and_energy_up_to_the_collapse(name, last, rtol, allowed):
    model, modes, rows = reference(name)
    rows = [row for row in rows if row["t"] <= last]
    snapshots = run(model, modes, [row["t"] for row in rows], rtol=rtol)
    for row, snapshot in zip(rows, snapshots, strict=True):
        exact = np.array(row["moments"]) @ [1.0, 1j]
        assert np.abs(snapshot.measure.moments(12) - exact).max() < allowed
        assert snapshot.measure.energy(model) == pytest.approx(row["energy"], rel=10 * allowed)


def test_error_follows_the_tolerance():
    model, modes, rows = reference("case_A")
    exact = np.array(rows[3]["moments"]) @ [1.0, 1j]
    errors = [np.abs(final(model, modes, 6.0, 12, rtol=rtol) - exact).max() for rtol in (1e-7, 1e-9, 1e-11)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-12


@pytest.mark.parametrize("normalization", ["softmax", "none", "peak"])
@pytest.mark.parametrize("size", [1e-4, 1e-10, 1e-100])
def test_a_small_perturbation_grows_at_the_linear_rate(normalization, size):
    model = SelfAttention(5.0, normalization)
    t = 1.0 / model.growth_rate(3)
    modes = {1: size * 0.3, 2: size * 0.5j, 3: size, 4: size * (0.3 - 0.4j)}
    measured = final(model, modes, t, 4, rtol=1e-12)
    for k, value in modes.items():
        rate = np.log(measured[k] / value) / t
        assert abs(rate - model.growth_rate(k)) / model.growth_rate(3) < max(1e-8, 10 * size)


def test_linear_growth_of_a_tiny_perturbation_to_eight_digits_for_both_models_over_a_long_time():
    for normalization in ("softmax", "none"):
        model = SelfAttention(5.0, normalization)
        t = 2.0 / model.growth_rate(3)  # later, products of modes reach 1e-8 of the smaller ones
        c = final(model, {k: 1e-10 for k in range(1, 7)}, t, 6, rtol=1e-11)
        rates = np.log(np.abs(c[1:]) / 1e-10) / t
        np.testing.assert_allclose(rates, model.growth_rate(np.arange(1, 7)), rtol=0, atol=1e-8 * model.growth_rate(3))


def brute_force(model, modes, t_end, n=512):
    """The same equation by pointwise quadrature in real space and scipy's integrator: an oracle that shares no code."""
    theta = 2 * np.pi * np.arange(n) / n
    difference = theta[:, None] - theta
    kernel = np.exp(model.beta * np.cos(difference)) / n
    drift = -kernel * np.sin(difference)
    k = np.fft.rfftfreq(n, 1 / n)

    def rhs(t, g):
        velocity = drift @ g
        if model.normalization == "softmax":
            velocity = velocity / (kernel @ g)
        flux = np.fft.rfft(velocity * g)
        flux[-1] = 0
        return np.fft.irfft(-1j * k * flux - model.diffusion * k**2 * np.fft.rfft(g), n)

    g = 1 + sum(2 * (value * np.exp(1j * m * theta)).real for m, value in modes.items())
    method = "BDF" if model.diffusion else "DOP853"
    solution = solve_ivp(rhs, (0, t_end), g, method=method, rtol=3e-13 if not model.diffusion else 1e-9, atol=1e-13)
    return np.fft.rfft(solution.y[:, -1]) / n


@pytest.mark.parametrize("beta", [0.5, 2.0, 9.0])
@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_agrees_with_brute_force_in_real_space(beta, normalization):
    model = SelfAttention(beta, normalization)
    modes = {1: 0.02, 2: 0.01 - 0.02j, 3: 0.015j, 5: 0.01}
    t = 1.5 / float(model.growth_rate(np.arange(1, 8)).max())
    exact = brute_force(model, modes, t, 192)
    np.testing.assert_allclose(final(model, modes, t, 20, rtol=1e-12), exact[:21], rtol=0, atol=3e-12)


@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_diffusion_agrees_with_brute_force(normalization):
    model = SelfAttention(5.0, normalization, diffusion=0.02 if normalization == "softmax" else 0.5)
    modes = {1: 0.02, 2: 0.01 - 0.02j, 3: 0.05j}
    t = 3.0 / float(model.growth_rate(np.arange(1, 8)).max())
    exact = brute_force(model, modes, t, 96)
    np.testing.assert_allclose(final(model, modes, t, 20, rtol=1e-11), exact[:21], rtol=0, atol=2e-8)


@pytest.mark.parametrize("diffusion", [0.0, 1e-16, 1e-8, 0.1, 3.0])
def test_diffusion_from_none_to_strong_is_finite_and_continuous(diffusion):
    # case: exponential integrators divide 0 by 0 at k = 0 or diffusion 0
    modes = {1: 0.1, 2: 0.05j}
    c = final(SelfAttention(0.0, diffusion=diffusion), modes, 1.0, rtol=1e-12)
    assert np.isfinite(c).all()
    if diffusion <= 1e-8:
        without = final(SelfAttention(0.0), modes, 1.0, rtol=1e-12)
        assert np.abs(c - without).max() < 1e-6 * (diffusion > 0) + 1e-14


def test_strong_diffusion_lets_small_perturbations_decay_at_their_rates():
    model = SelfAttention(5.0, diffusion=0.7)
    c = final(model, {k: 1e-9 for k in range(1, 9)}, 0.5, 8, rtol=1e-11)
    np.testing.assert_allclose(
        np.log(np.abs(c[1:4]) / 1e-9) / 0.5, model.growth_rate(np.arange(1, 4)), rtol=1e-8, atol=1e-8
    )


def test_diffusion_reaches_the_stationary_von_mises_density_of_the_kuramoto_limit():
    # beta = 0: stationary p ~ exp((r / kappa) cos), r = I_1/I_0 (r / kappa)
    from scipy.optimize import brentq
    from scipy.special import ive

    kappa = 0.2
    r = brentq(lambda x: ive(1, x / kappa) / ive(0, x / kappa) - x, 0.1, 1.0, xtol=1e-15)
    c = final(SelfAttention(0.0, diffusion=kappa), {1: 0.3}, 300.0, 3, rtol=1e-10)
    expected = ive(np.arange(4), r / kappa) / ive(0, r / kappa)
    np.testing.assert_allclose(c, expected, atol=1e-9)


def test_kuramoto_limit_keeps_a_poisson_kernel():
    # beta = 0: c_k = r^k with r' = r (1 - r^2) / 2
    r0, t = 0.2, 2.0
    c = final(SelfAttention(0.0), {k: r0**k for k in range(1, 25)}, t, 10, rtol=1e-12)
    r = r0 * np.exp(t / 2) / np.sqrt(1 + r0**2 * (np.exp(t) - 1))
    np.testing.assert_allclose(c, r ** np.arange(11), atol=1e-12)


def test_mass_is_exact_and_energy_never_falls():
    model, modes, _ = reference("case_A")
    snapshots = run(model, modes, np.linspace(0.05, 7.0, 140), rtol=1e-10)
    assert all(s.measure.moments(0)[0] == 1.0 for s in snapshots)
    energies = np.array([s.measure.energy(model) for s in snapshots])
    assert np.diff(energies).min() > -4e-16 * energies.max()


@pytest.mark.parametrize("normalization", ["none", "softmax", "peak"])
def test_energy_grows_by_the_dissipation(normalization):
    # USA: dE/dt = int V^2 dmu; SA: int V^2 Z dmu. Rate by central differences of the energy in time.
    model = SelfAttention(5.0, normalization)
    modes = {1: 0.02, 2: 0.03 - 0.02j, 3: 0.05, 4: -0.02}
    t, h = 1.0 / float(model.growth_rate(3)), 2e-3 / float(model.growth_rate(3))
    times = t + h * np.array([-2, -1, 0, 1, 2])
    states = run(model, modes, times, rtol=1e-13)
    e = np.array([s.measure.energy(model) for s in states])
    rate = (e[0] - 8 * e[1] + 8 * e[3] - e[4]) / (12 * h)
    theta = 2 * np.pi * np.arange(1024) / 1024
    measure = states[2].measure
    weight = model.velocity(measure.moments(64), theta) ** 2 * measure.density(theta)
    if normalization == "softmax":
        phi = 2 * np.pi * np.arange(1024) / 1024
        kernel = np.exp(5.0 * np.cos(theta[:, None] - phi))
        weight *= kernel @ measure.density(phi) * (2 * np.pi / 1024)
    dissipation = weight.mean() * 2 * np.pi
    assert rate == pytest.approx(dissipation, rel=1e-8)
    assert abs(states[2].energy_rate_residual) < 1e-12 * dissipation + 1e-15


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_data_on_multiples_of_m_stay_there(m, normalization):
    model = SelfAttention(6.0, normalization)
    modes = {m: 0.05 - 0.02j, 2 * m: 0.02j}
    t = 3.0 / float(model.growth_rate(np.arange(1, 9)).max())
    folded = final(model, modes, t, 60, rtol=1e-11, fold=m)
    free = final(model, modes, t, 60, rtol=1e-11, fold=1)
    off = np.arange(61) % m != 0
    assert not folded[off].any()
    assert np.abs(free[off]).max() < 1e-14
    np.testing.assert_allclose(folded, free, atol=1e-10)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    angle=st.floats(0.0, 6.28),
    beta=st.floats(0.0, 20.0),
    phases=st.lists(st.floats(0.0, 6.28), min_size=5, max_size=5),
    normalization=st.sampled_from(["softmax", "none"]),
)
def test_rotation_and_reflection_commute_with_the_flow(angle, beta, phases, normalization):
    model = SelfAttention(beta, normalization)
    density = FourierDensity([1.0, *(0.03 * np.exp(1j * np.array(phases)))])
    t = 1.5 / float(model.growth_rate(np.arange(1, 9)).max())

    def flow(initial):
        return final(model, initial, t, 30, rtol=1e-12)

    after = flow(density)
    turn = np.exp(-1j * angle * np.arange(31))
    assert np.abs(flow(density.rotated(angle)) - after * turn).max() < 1e-12
    assert np.abs(flow(density.reflected()) - after.conj()).max() < 1e-12


def test_flow_has_the_semigroup_property_bit_for_bit_at_output_times():
    model, modes, _ = reference("case_A")
    whole = run(model, modes, [2.0, 5.0, 6.5])
    middle = Snapshot(5.0, whole[1].measure, "spectral", whole[1].n_modes, step=whole[1].step)
    again = next(march_spectral(model, middle, np.array([6.5]), MarchOptions()))
    np.testing.assert_array_equal(again.measure.to_vector(), whole[2].measure.to_vector())
    assert again.step == whole[2].step


def test_resolution_follows_the_solution():
    model, modes, _ = reference("case_A")
    sizes = [s.n_modes for s in run(model, modes, np.linspace(0.5, 7.5, 15))]
    assert sizes[0] == 64
    assert sizes == sorted(sizes)
    assert sizes[-1] > 400


def test_exhausted_resolution_says_when_and_keeps_the_last_good_state():
    model, modes, _ = reference("case_A")
    marching = march_spectral(model, start(modes), np.linspace(0.5, 20.0, 40), MarchOptions(max_modes=256))
    kept = []
    with pytest.raises(ResolutionExhausted, match=r"t = 6\.\d+ .*max_modes = 256; raise max_modes") as stop:
        kept.extend(marching)
    assert 6.0 < stop.value.time < 7.0
    assert stop.value.snapshot.t == stop.value.time
    exact = final(model, modes, stop.value.time, 20)
    np.testing.assert_allclose(stop.value.snapshot.measure.moments(20), exact, atol=1e-9)


class _Poisoned:
    """A model whose velocity becomes nan after some calls."""

    def __init__(self, model, calls):
        self.model, self.calls = model, calls

    def __getattr__(self, name):
        return getattr(self.model, name)

    def grid_fields(self, *args):
        fields = self.model.grid_fields(*args)
        evaluate = fields.evaluate

        def poisoned(c):
            evaluate(c)
            self.calls -= 1
            if self.calls < 0:
                fields.velocity[0, 3] = np.nan

        fields.evaluate = poisoned
        return fields


def test_nan_in_mid_run_stops_it_and_keeps_the_last_good_state():
    model = _Poisoned(SelfAttention(5.0), 200)
    with pytest.raises(Diverged, match=r"finite|rounding") as stop:
        list(march_spectral(model, start({3: 0.01}), np.array([7.0]), MarchOptions()))
    assert 0.0 < stop.value.time < 7.0
    assert np.isfinite(stop.value.snapshot.measure.to_vector()).all()


def test_the_right_hand_side_is_never_asked_beyond_the_end():
    seen = []
    solver = solver_for(SelfAttention(5.0), {3: 0.01}, progress=lambda t, n, method: seen.append(t))
    solver.advance(1e-6)
    assert seen[-1] == 1e-6
    assert max(seen) == solver.t == 1e-6


def test_uniform_density_stays_and_costs_one_step():
    solver = solver_for(SelfAttention(5.0), FourierDensity.uniform())
    solver.advance(1e6)
    assert solver.n_steps == 1
    assert not solver.moments[:, 1:].any()


def test_few_steps_are_rejected():
    model, modes, _ = reference("case_A")
    solver = solver_for(model, modes, rtol=1e-9)
    solver.advance(7.0)
    assert solver.n_rejected <= 2
    assert solver.n_steps < 60


def test_where_the_softmax_sees_no_mass_nothing_breaks():
    # von Mises, kappa = 40, beta = 40: the denominator at the far side is e^-80 of its mean, far below rounding
    model = SelfAttention(40.0)
    density = FourierDensity.von_mises(40.0)
    snapshots = run(model, density, [0.1, 0.5], rtol=1e-9)
    for snapshot in snapshots:
        c = snapshot.measure.moments(20)
        assert np.abs(c.imag).max() < 1e-13  # the mean angle stays at 0 by reflection symmetry
    # near one cluster the softmax contracts every point towards the mean at a rate below 1
    width = [1 - s.measure.moments(1)[1].real for s in [start(density), *snapshots]]
    assert width[0] > width[1] > width[2] > width[0] * np.exp(-2 * 0.5)


def test_large_beta_uses_enough_modes_for_the_kernel():
    solver = solver_for(SelfAttention(1000.0), {3: 0.01})
    assert solver.n_modes >= 280


@pytest.mark.parametrize(("beta", "max_modes"), [(1e4, 128)])
def test_a_kernel_wider_than_max_modes_is_refused(beta, max_modes):
    with pytest.raises(InputError, match="raise max_modes"):
        solver_for(SelfAttention(beta), {3: 0.01}, max_modes=max_modes)


def test_point_masses_are_refused_with_advice():
    from spectral_mf.atoms import Atoms

    with pytest.raises(InputError, match="smoothed"):
        run(SelfAttention(5.0), Atoms([0.0, 1.0]), [1.0])


def test_default_accuracy():
    # independent value for (1 + 0.02 cos 3 theta) / (2 pi), softmax, beta = 5
    c = final(SelfAttention(5.0), {3: 0.01}, 6.0, 6)
    assert abs(c[3]) == pytest.approx(0.5234631662191, abs=1e-11)
    assert abs(c[6]) == pytest.approx(0.2111373697287, abs=1e-11)


def test_aliases_stay_out_of_the_kept_modes():
    # USA: the velocity has the kernel's modes only, so the product is exact on a grid with room for them
    model = SelfAttention(1.0, "none")
    c = np.zeros(65, dtype=complex)
    c[0], c[2], c[55] = 1.0, 0.1, 1e-3
    out = np.empty_like(c)
    SpectralRightHandSide(model, 128)(c[None], out[None])
    wide = np.zeros(257, dtype=complex)
    wide[:65] = c
    expected = np.empty_like(wide)
    SpectralRightHandSide(model, 512)(wide[None], expected[None])
    np.testing.assert_allclose(out[: kept_modes(128) - 2], expected[: kept_modes(128) - 2], atol=1e-15)
    assert not out[kept_modes(128) + 1 :].any()


@pytest.mark.parametrize("rtol", [1e-3, 1e-7, 1e-11])
def test_grids_are_refined_before_a_step_would_fail(rtol, monkeypatch):
    attempts = []
    attempt = Dop853.attempt
    monkeypatch.setattr(Dop853, "attempt", lambda self, h: (attempts.append(h), attempt(self, h))[1])
    solver = solver_for(SelfAttention(5.0), {3: 0.01, 2: 0.003}, rtol=rtol)
    solver.advance(7.9)
    assert solver.n_points >= 384  # three refinements, each of which would waste a step if it came too late
    assert len(attempts) - solver.n_steps - solver.n_rejected <= 1


def test_grid_sizes():
    assert grid_sizes(512) == [128, 192, 256, 384, 512]
    assert grid_sizes(32768)[-1] == 32768
    assert all(kept_modes(m) < m // 2 for m in grid_sizes(4096))


class Misjudged(SelfAttention):
    """Self-attention that is wrong about its energy."""

    def energy_rate(self, moments, rates):
        return super().energy_rate(moments, rates) + 0.25


def test_an_energy_that_the_flow_does_not_raise_as_it_should_shows_in_every_row():
    run = solve(Misjudged(5.0), FourierDensity.from_modes({3: 0.1}), [0.0, 0.5, 1.0], method="spectral")
    np.testing.assert_allclose(run.energy_rate_residual, 0.25, rtol=1e-12)
