"""W2 of atoms on the circle against permutations, linear programs and closed forms."""

import itertools
import math

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_mf import Atoms, FourierDensity, InputError
from spectral_mf.wasserstein2 import w2

TWO_PI = 2.0 * np.pi
angle = st.floats(-10.0, 10.0)


def squared_arcs(a, b):
    arc = np.abs(np.asarray(a)[:, None] - b) % TWO_PI
    return np.minimum(arc, TWO_PI - arc) ** 2


def same_square(found, expected, error=1e-13):
    return abs(found**2 - expected) < error


@pytest.mark.parametrize("turn", [0.0, 0.02, 0.05, 0.3, 0.77])
def test_published_four_point_example_does_not_change_by_rotation(turn):
    # PythonOT/POT issue 738, in turns; W2 is the square root of the mean square, 0.132476412994917703 turn
    a = Atoms(TWO_PI * (np.array([0.1, 0.11, 0.4, 0.6]) + turn))
    b = Atoms(TWO_PI * (np.array([0.21, 0.15, 0.7, 0.95]) + turn))
    assert w2(a, b) == pytest.approx(0.832373851677521748, abs=2e-15)
    assert b.w2(a) == pytest.approx(0.832373851677521748, abs=2e-15)


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(angle, min_size=n, max_size=n)] * 2)))
def test_equal_atoms_against_all_permutations(points):
    a, b = points
    cost = squared_arcs(a, b)
    rows = np.arange(len(a))
    best = min(cost[rows, list(p)].mean() for p in itertools.permutations(rows))
    assert same_square(w2(Atoms(a), Atoms(b)), best)


@pytest.mark.parametrize(("n", "m"), [(1, 5), (7, 3), (20, 30), (60, 60)])
@pytest.mark.parametrize("spread", [0.3, 3.0, 7.0])
def test_weighted_atoms_against_a_linear_program(n, m, spread):
    rng = np.random.default_rng(n)
    a = Atoms(6.0 + rng.uniform(0.0, spread, n), rng.dirichlet(np.ones(n)))
    b = Atoms(rng.uniform(0.0, TWO_PI, m), rng.dirichlet(np.ones(m)))
    best = ot.emd2(a.weights, b.weights, squared_arcs(a.angles, b.angles))
    assert same_square(w2(a, b), best)
    assert w2(b, a) == pytest.approx(w2(a, b), rel=1e-12, abs=0.0)


@pytest.mark.parametrize(("k", "n"), [(1, 8), (3, 300), (4, 1000), (1, 3)])
def test_equally_spaced_atoms_to_fewer(k, n):
    # n / k points around each of k, at half odd or at whole multiples of 2 pi / n from it
    offset = (np.arange(n // k) - 0.5 * (n // k - 1)) * TWO_PI / n
    many = Atoms(TWO_PI * (np.arange(n) + 0.5 * (1 - (n // k) % 2)) / n)
    few = Atoms(TWO_PI * np.arange(k) / k)
    assert same_square(w2(many, few), float((offset**2).mean()))


def test_a_point_to_the_uniform_density_is_pi_over_root_three():
    uniform = FourierDensity.uniform().quantiles(20_000)
    assert w2(uniform, Atoms([1.0])) == pytest.approx(math.pi / math.sqrt(3.0), abs=1e-8)


def test_the_short_way_over_the_origin():
    assert w2(Atoms([0.1]), Atoms([TWO_PI - 0.1])) == pytest.approx(0.2, abs=1e-15)
    assert w2(Atoms([0.0]), Atoms([np.pi])) == pytest.approx(np.pi, abs=1e-15)


def test_atoms_in_one_place_and_massless_atoms():
    one = Atoms([1.0, 1.0, 5.0, 1.0], [0.2, 0.3, 0.0, 0.5])
    assert w2(one, Atoms([1.5])) == pytest.approx(0.5, abs=1e-15)
    assert w2(one, Atoms([1.0])) == 0.0


@given(st.lists(angle, min_size=1, max_size=8), st.lists(angle, min_size=1, max_size=8), angle)
def test_rotation_and_reflection_change_nothing_and_w1_is_below(x, y, turn):
    a, b = Atoms(x), Atoms(y)
    distance = w2(a, b)
    assert same_square(w2(Atoms(np.array(x) + turn), Atoms(np.array(y) + turn)), distance**2)
    assert same_square(w2(Atoms(-np.array(x)), Atoms(-np.array(y))), distance**2)
    assert a.w1(b) ** 2 <= distance**2 + 1e-13


@given(st.lists(angle, min_size=1, max_size=8))
def test_a_measure_is_at_zero_from_itself(x):
    assert w2(Atoms(x), Atoms(x)) == 0.0


@pytest.mark.parametrize("shift", [1e-6, 1e-3])
def test_small_moves_of_many_atoms(shift):
    x = np.random.default_rng(1).uniform(0.0, TWO_PI, 10_000)
    moved = Atoms(x + shift * np.cos(3.0 * x))
    assert same_square(w2(Atoms(x), moved), float(((shift * np.cos(3.0 * x)) ** 2).mean()), 1e-15)


def test_hundred_thousand_tokens():
    a, b = (Atoms.sample_uniform(n, seed=1) for n in (100_000, 99_999))
    assert a.w1(b) <= w2(a, b) < 0.05


def test_other_measures_are_refused():
    for pair in ((FourierDensity.uniform(), Atoms([0.0])), (Atoms([0.0]), 0.5)):
        with pytest.raises(InputError, match=r"give Atoms, such as density\.quantiles"):
            w2(*pair)
