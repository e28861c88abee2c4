"""Few atoms: closed forms, quadratures, rates of symmetric states, merging, very long times."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from spectral_mf import Atoms, SelfAttention, solve
from spectral_mf.solvers.atom_dynamics import AtomSolver
from spectral_mf.solvers.march import MarchOptions


def gap_speed(beta, normalization):
    """- d phi / dt for two atoms of mass 1/2 at distance phi."""
    if normalization == "softmax":
        return lambda phi: 2 * np.sin(phi) / (1 + np.exp(beta * (1 - np.cos(phi))))
    return lambda phi: np.exp(beta * np.cos(phi)) * np.sin(phi)


def time_between(beta, normalization, start, end):
    """Time from one distance to a smaller one, by quadrature in ln tan(phi / 2), d phi / sin phi."""
    speed = gap_speed(beta, normalization)
    low, high = (np.log(np.tan(phi / 2)) for phi in (end, start))

    def integrand(s):
        phi = 2 * np.arctan(np.exp(s))
        return np.sin(phi) / speed(phi)

    points = np.linspace(low, high, 40)
    return sum(quad(integrand, a, b, epsabs=0, epsrel=1e-13)[0] for a, b in pairwise(points))


@pytest.mark.parametrize("normalization", ["softmax", "none"])
@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0, 10.0, 20.0])
def test_collision_times_of_two_atoms_by_quadrature(normalization, beta):
    # metastable times of order e^{2 beta}; the time to a distance is compared to 1e-9, relative
    start, end = 3.0, 0.01
    exact = time_between(beta, normalization, start, end)
    before = exact * (1 - 1e-9)
    run = solve(
        SelfAttention(beta, normalization),
        Atoms([1.0, 1.0 + start]),
        [0.0, before],
        method="characteristics",
        rtol=1e-12,
        symmetry="none",
    )
    angles = run.measure(1).angles
    gap = abs((angles[1] - angles[0] + np.pi) % (2 * np.pi) - np.pi)
    reached = time_between(beta, normalization, start, gap)
    assert reached == pytest.approx(before, rel=1e-9, abs=0.0)


@pytest.mark.parametrize(
    ("t", "gap"),
    [(0.1, 1.93745547572100902), (0.5, 1.62249978922134644), (1.0, 1.01904536820193642), (2.0, 0.100150153327635831)],
)
def test_clock_of_the_model_without_softmax(t, gap):
    run = solve(SelfAttention(1.0, "none"), Atoms([0.0, 2.0]), [0.0, t], method="characteristics", rtol=1e-12)
    a, b = run.measure(1).angles
    assert (b - a) % (2 * np.pi) == pytest.approx(gap, abs=1e-10)


def test_one_atom_stays_and_antipodal_atoms_stay():
    for beta in (0.0, 5.0):
        run = solve(SelfAttention(beta), Atoms([2.0]), [0.0, 1000.0])
        assert run.measure(1).angles == pytest.approx([2.0], abs=0)
        run = solve(SelfAttention(beta), Atoms([0.5, 0.5 + np.pi]), [0.0, 1000.0])
        assert np.diff(run.measure(1).angles) == pytest.approx(np.pi, abs=1e-12)
    free = solve(SelfAttention(5.0), Atoms([0.5, 0.5 + np.pi]), [0.0, 1000.0], symmetry="none")
    assert np.diff(free.measure(1).angles) == pytest.approx(np.pi, abs=1e-12)  # escape rate 9e-5


def drift(x, beta):
    return np.exp(beta * np.cos(x)) * (beta * np.sin(x) ** 2 - np.cos(x))  # W''


def rates(beta, k, normalization):
    """Contraction of a test particle, and merging by mode q, for k equal, equally spaced atoms (theory)."""
    x = 2 * np.pi * np.arange(k) / k
    z = np.exp(beta * np.cos(x)).mean() if normalization == "softmax" else 1.0
    merging = [(drift(x, beta) * (1 - np.cos(q * x))).mean() / z for q in range(1, k)]
    return -drift(x, beta).mean() / z, max(merging)


@pytest.mark.parametrize("normalization", ["softmax", "none"])
@pytest.mark.parametrize(("beta", "k"), [(2.0, 2), (5.0, 3), (7.0, 4), (9.0, 3), (9.0, 4)])
def test_rates_of_k_equal_atoms(normalization, beta, k):
    model = SelfAttention(beta, normalization)
    contraction, merging = rates(beta, k, normalization)
    places = 2 * np.pi * np.arange(k) / k
    x = 2 * np.pi * np.arange(k) / k
    weight = drift(x, beta)
    q = int(np.argmax([(weight * (1 - np.cos(j * x))).mean() for j in range(1, k)])) + 1
    shift = 1e-6 * np.cos(q * places + 0.3)
    t = 0.5 / merging

    def moved(start):
        run = solve(model, Atoms(places + start), [0.0, t], method="characteristics", rtol=1e-11, symmetry="none")
        return (run.measure(1).angles - places + np.pi) % (2 * np.pi) - np.pi

    mode = np.exp(-1j * q * places)
    odd = 0.5 * (moved(shift) - moved(-shift))  # without the terms of second order, 1e-6 of the first
    growth = np.log(abs((odd * mode).sum() / (shift * mode).sum())) / t
    assert growth == pytest.approx(merging, rel=1e-6)

    probe = Atoms([*places, 1e-6], [*[1.0] * k, 1e-14])
    t = 1.0 / contraction
    run = solve(model, probe, [0.0, t], method="characteristics", rtol=1e-13, symmetry="none")
    gap = run.measure(1).angles[-1] - run.measure(1).angles[0]
    assert -np.log(gap / 1e-6) / t == pytest.approx(contraction, rel=1e-6)


@pytest.mark.parametrize("normalization", ["softmax", "none"])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_k_equal_atoms_stay_for_a_million_time_units_with_symmetry(normalization, k):
    places = 0.4 + 2 * np.pi * np.arange(k) / k
    run = solve(SelfAttention(5.0, normalization), Atoms(places), [0.0, 1e6])
    assert run.configuration["symmetry"] == k
    np.testing.assert_allclose(np.sort(run.measure(1).angles), np.sort(places), atol=1e-12)


def test_merging_keeps_mass_and_takes_the_weighted_mean_across_zero():
    solver = AtomSolver(
        SelfAttention(5.0),
        0.0,
        np.array([0.1e-8, 2 * np.pi - 0.1e-8, 3.0]),
        np.array([0.25, 0.25, 0.5]),
        MarchOptions(),
    )
    state = solver.snapshot().measure
    assert state.n_atoms == 2
    assert sorted(state.weights) == [0.5, 0.5]
    near = state.angles[np.argmin(np.abs(np.sin(state.angles / 2)))]
    assert min(near, 2 * np.pi - near) < 1e-15


def test_three_unequal_atoms_merge_to_one_at_the_weighted_place():
    # without softmax the mean angle is conserved
    atoms = Atoms([1.0, 2.0, 3.5], [0.2, 0.3, 0.5])
    run = solve(SelfAttention(2.0, "none"), atoms, [0.0, 1e4])
    assert run.n_modes[-1] == 1
    assert run.measure(1).weights == pytest.approx([1.0], abs=1e-15)
    assert run.measure(1).angles == pytest.approx([0.2 + 0.6 + 1.75], abs=1e-6)
    assert run.method[-1] == "atoms"


def test_lifetime_of_a_metastable_pair_is_exponential_in_beta():
    # time until the distance falls from 3 to 2, by root search on runs against quadrature
    for beta in (6.0, 12.0):
        exact = time_between(beta, "softmax", 3.0, 2.0)
        model = SelfAttention(beta)

        def gap(t, model=model):
            run = solve(model, Atoms([0.0, 3.0]), [0.0, t], method="characteristics", symmetry="none")
            angles = run.measure(1).angles
            return (angles[1] - angles[0] if angles.size == 2 else 0.0) - 2.0

        assert brentq(gap, 0.5 * exact, 1.5 * exact, rtol=1e-9) == pytest.approx(exact, rel=1e-7)


def test_many_tokens_move_as_their_pairs_do():
    from scipy.integrate import solve_ivp

    tokens = Atoms.sample_uniform(500, seed=3)  # more than are summed in pairs
    model = SelfAttention(4.0)
    run = solve(model, tokens, [0.0, 3.0], method="characteristics", rtol=1e-11)

    def rhs(t, x):
        d = x[:, None] - x
        e = np.exp(4.0 * np.cos(d))
        return -(e * np.sin(d)).sum(axis=1) / e.sum(axis=1)

    exact = solve_ivp(rhs, (0, 3.0), tokens.angles, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(run.moments[-1, :13], Atoms(exact).moments(12), atol=1e-9)


def test_a_distant_end_time_is_no_reason_to_stop():
    # three unequal gaps: the steps of the last merging, of order 1, are 1e-18 of the end time
    run = solve(SelfAttention(14.0), Atoms([0.0, 2.1, 4.3]), [0.0, 1e6, 1e18])
    assert run.complete
    assert run.n_modes[-1] == 1
    assert run.energy[-1] == pytest.approx(np.exp(14.0) / 28.0, rel=1e-12, abs=0.0)
