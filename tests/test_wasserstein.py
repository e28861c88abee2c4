"""W1 on the circle against closed forms, permutations, POT, and quadrature with bracketed roots."""

import itertools

import mpmath as mp
import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from spectral_mf import Atoms, FourierDensity, InputError
from spectral_mf.distribution import Distribution
from spectral_mf.wasserstein import w1

TWO_PI = 2.0 * np.pi
angle = st.floats(-10.0, 10.0)


def brute_force_permutations(a, b):
    """Equal weights, same number: the best of all assignments under the geodesic distance."""
    arc = np.abs(a[:, None] - b) % TWO_PI
    cost = np.minimum(arc, TWO_PI - arc)
    rows = np.arange(a.size)
    return min(cost[rows, list(p)].mean() for p in itertools.permutations(rows))


def by_quadrature(difference, breaks):
    """min_c int |D - c|, D smooth between breaks: Gauss panels cut at sign changes, bracketed on a dense grid."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.unique(np.concatenate([np.linspace(0.0, TWO_PI, 400), breaks]))
    mid = 0.5 * (edges[1:] + edges[:-1])

    def panel(low, high, c):
        half = 0.5 * (high - low)
        return abs(half * (weights @ (difference(low + half * (nodes + 1.0)) - c)))

    def objective(c):
        total = 0.0
        for low, middle, high in zip(edges[:-1], mid, edges[1:], strict=True):
            inner = (high - low) * 1e-13
            cuts = [low]
            for p, q in ((low + inner, middle), (middle, high - inner)):
                fp, fq = difference(np.array([p, q])) - c
                if fp * fq < 0.0:
                    cuts.append(brentq(lambda x: difference(np.array([x]))[0] - c, p, q, xtol=1e-14))
            cuts.append(high)
            total += sum(panel(p, q, c) for p, q in itertools.pairwise(cuts))
        return total

    sample = difference(np.linspace(0.0, TWO_PI, 2001)[:-1] + 1e-9)
    around = float(np.median(sample))
    best = minimize_scalar(objective, bracket=(around - 1e-3, around + 1e-3), tol=1e-9)
    return best.fun


@pytest.mark.parametrize(
    ("kappa", "turn", "expected"),
    [
        (4, 0.5, 0.491211558122557112),
        (4, 3.0, 2.27954360753270379),
        (4, np.pi, 2.28723537930872681),
        (1, np.pi, 1.14169884948571894),
        (20, 0.5, 0.499999994668660815),
        (20, 1.0, 0.999999357363566373),
    ],
)
def test_rotated_von_mises(kappa, turn, expected):
    a, b = FourierDensity.von_mises(kappa), FourierDensity.von_mises(kappa, turn)
    assert a.w1(b) == pytest.approx(expected, abs=2e-15)
    assert b.w1(a) == pytest.approx(expected, abs=2e-15)
    assert a.rotated(2.1).w1(b.rotated(2.1)) == pytest.approx(expected, abs=4e-15)


@pytest.mark.parametrize(
    ("kappa", "expected"), [(1, 0.570849424742859472), (4, 1.1436176896543634), (20, 1.39044371609890494)]
)
def test_uniform_to_von_mises(kappa, expected):
    assert FourierDensity.uniform().w1(FourierDensity.von_mises(kappa, 1.2)) == pytest.approx(expected, abs=2e-15)


@pytest.mark.parametrize("kappa", [0.5, 4, 20, 1e3])
def test_von_mises_to_its_centre_is_its_mean_distance_from_it(kappa):
    with mp.workdps(30):
        split = [0, *(2**j / mp.sqrt(kappa) for j in range(8) if 2**j < 3 * mp.sqrt(kappa)), mp.pi]
        density = lambda x: mp.exp(kappa * (mp.cos(x) - 1))  # noqa: E731
        exact = mp.quad(lambda x: x * density(x), split) / mp.quad(density, split)
    for centre in (0.0, 1.3, 6.2):
        distance = Atoms([centre]).w1(FourierDensity.von_mises(kappa, centre))
        assert distance == pytest.approx(float(exact), abs=2e-14)


@pytest.mark.parametrize(
    ("r", "expected"), [(0.1, 0.127465937444133335), (0.5, 0.656135181759458145), (0.9, 1.30626604303878024)]
)
def test_uniform_to_poisson(r, expected):
    n = int(np.ceil(np.log(1e-17) / np.log(r)))
    assert FourierDensity.uniform().w1(FourierDensity(r ** np.arange(n))) == pytest.approx(expected, abs=2e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 100])
def test_uniform_to_equally_spaced_atoms(k):
    atoms = Atoms(TWO_PI * np.arange(k) / k + 0.3)
    assert FourierDensity.uniform().w1(atoms) == pytest.approx(np.pi / (2 * k), abs=1e-14)


def test_distance_over_the_origin_is_the_short_way():
    assert Atoms([0.1]).w1(Atoms([-0.1])) == pytest.approx(0.2, abs=1e-15)
    assert Atoms([0.0]).w1(Atoms([np.pi])) == pytest.approx(np.pi, abs=1e-15)


@pytest.mark.parametrize("turn", [0.0, 0.02, 0.05, 0.3, 0.77])
def test_published_four_point_example_does_not_change_by_rotation(turn):
    x, y = np.array([0.1, 0.11, 0.4, 0.6]), np.array([0.21, 0.15, 0.7, 0.95])
    distance = Atoms((x + turn) * TWO_PI).w1(Atoms((y + turn) * TWO_PI))
    assert distance == pytest.approx(0.753982236861550377, abs=1e-14)


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(angle, min_size=n, max_size=n)] * 2)))
def test_equal_atoms_against_all_permutations(points):
    a, b = map(np.array, points)
    assert Atoms(a).w1(Atoms(b)) == pytest.approx(brute_force_permutations(a, b), abs=1e-13)


@pytest.mark.parametrize(("n", "m"), [(1, 7), (5, 8), (40, 40), (300, 211)])
def test_weighted_atoms_against_pot(n, m):
    rng = np.random.default_rng([n, m])
    a, b = rng.random(n), rng.random(m)
    wa, wb = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    expected = TWO_PI * ot.wasserstein_circle(a, b, wa, wb, p=1)[0]
    assert Atoms(TWO_PI * a, wa).w1(Atoms(TWO_PI * b, wb)) == pytest.approx(expected, abs=1e-12)


def test_atoms_in_one_place_and_massless_atoms():
    many = Atoms([1.0] * 5 + [4.0], [0.1, 0.2, 0.0, 0.1, 0.2, 0.4])
    few = Atoms([4.0, 1.0, 2.0], [2.0, 3.0, 0.0])
    assert many.w1(few) == pytest.approx(0.0, abs=1e-15)
    assert many.w1(Atoms([0.0])) == pytest.approx(few.w1(Atoms([0.0])), abs=1e-15)


def test_density_to_itself_is_zero():
    f = FourierDensity.von_mises(50.0)
    assert f.w1(f) == 0.0
    assert f.w1(FourierDensity(f.moments(f.n_modes + 9))) == 0.0
    assert FourierDensity.uniform().w1(FourierDensity.uniform()) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_density_to_unequal_atoms_against_quadrature(seed):
    rng = np.random.default_rng(seed)
    c = np.array([1.0, 0.3, 0.1 - 0.2j, 0.05j])
    n = 4
    x, w = np.sort(rng.uniform(0.0, TWO_PI, n)), rng.dirichlet(np.ones(n))
    k = np.arange(1, 4)

    def difference(theta):
        smooth = theta / TWO_PI + (c[1:] * np.exp(1j * np.outer(theta, k)) / (1j * k)).sum(axis=1).real / np.pi
        return smooth - (w * (theta[:, None] >= x)).sum(axis=1)

    assert FourierDensity(c).w1(Atoms(x, w)) == pytest.approx(by_quadrature(difference, x), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_density_to_density_against_quadrature(seed):
    rng = np.random.default_rng(seed)
    k = np.arange(1, 7)
    a, b = rng.standard_normal((2, 6))
    a, b = 0.05 * (a + 1j * rng.standard_normal(6)), 0.05 * (b + 1j * rng.standard_normal(6))

    def difference(theta):
        return ((a - b) * np.exp(1j * np.outer(theta, k)) / (1j * k)).sum(axis=1).real / np.pi

    distance = FourierDensity([1.0, *a]).w1(FourierDensity([1.0, *b]))
    assert distance == pytest.approx(by_quadrature(difference, np.empty(0)), abs=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("turn", [0.05, 1.0])
def test_two_crossings_between_grid_points(delta, turn):
    """D = s (cos^2 - delta) sin, whose median is 0: pairs of roots 2 sqrt(delta) apart around an extremum."""
    s = 0.05
    density = FourierDensity.from_modes({1: np.pi * s * (0.25 - delta), 3: 3.0 * np.pi * s * 0.25}).rotated(turn)
    exact = 2.0 * s * (2.0 / 3.0 - 2.0 * delta + 8.0 / 3.0 * delta**1.5)
    assert FourierDensity.uniform().w1(density) == pytest.approx(exact, abs=1e-15)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("turn", [0.05, 1.0])
def test_three_crossings_between_grid_points(delta, turn):
    """D = s (cos^2 - delta) cos: three roots at an inflection, where the slope vanishes twice in one cell."""
    s = 0.05
    modes = {1: 1j * np.pi * s * (0.75 - delta), 3: 3j * np.pi * s * 0.25}
    root = mp.acos(mp.sqrt(delta))
    exact = 4 * s * mp.quad(lambda t: abs((mp.cos(t) ** 2 - delta) * mp.cos(t)), [0, root, mp.pi / 2])
    distance = FourierDensity.uniform().w1(FourierDensity.from_modes(modes).rotated(turn))
    assert distance == pytest.approx(float(exact), abs=1e-15)


@settings(max_examples=40)
@given(st.lists(st.tuples(angle, st.floats(0.01, 1.0)), min_size=1, max_size=8), angle)
def test_rotation_and_reflection_change_nothing(points, turn):
    x, w = map(np.array, zip(*points, strict=True))
    density = FourierDensity([1.0, 0.2 + 0.1j, -0.3j, 0.05])
    distance = density.w1(Atoms(x, w))
    assert density.rotated(turn).w1(Atoms(x + turn, w)) == pytest.approx(distance, abs=1e-13)
    assert density.reflected().w1(Atoms(-x, w)) == pytest.approx(distance, abs=1e-13)


@settings(max_examples=40)
@given(*[st.lists(angle, min_size=1, max_size=6)] * 2, st.floats(0.0, 30.0))
def test_symmetry_and_triangle_inequality(x, y, kappa):
    a, b, f = Atoms(x), Atoms(y), FourierDensity.von_mises(kappa, 2.0)
    assert a.w1(b) == pytest.approx(b.w1(a), abs=1e-14)
    assert a.w1(f) == pytest.approx(f.w1(a), abs=1e-14)
    assert a.w1(b) <= a.w1(f) + f.w1(b) + 1e-13
    assert a.w1(f) <= np.pi


def test_many_tokens_and_many_modes():
    """N = 2e5 against 885 modes in well under a second or two; the size is that of random fluctuations."""
    density = FourierDensity.von_mises(1e4, 1.0)
    tokens = density.sample(200_000, seed=1)
    sd = 1e-2
    assert 0.0 < density.w1(tokens) < 8.0 * sd / np.sqrt(tokens.n_atoms)
    uniform = FourierDensity.uniform()
    assert uniform.w1(density) == pytest.approx(np.pi / 2 - density.w1(Atoms([1.0])), abs=1e-6)


@pytest.mark.parametrize("n", [10, 1000])
def test_quantiles_are_a_quarter_cell_away(n):
    """Each of n equal masses moves onto its median: for the uniform density W1 = pi / (2 n) exactly."""
    assert FourierDensity.uniform().quantiles(n).w1(FourierDensity.uniform()) == pytest.approx(np.pi / 2 / n, abs=1e-14)
    density = FourierDensity.from_modes({2: 0.3})
    assert density.quantiles(n).w1(density) < 1.2 * np.pi / 2 / n


class Push:
    """A third kind of measure: nothing but quantile nodes."""

    def __init__(self, angles, cumulative):
        self.angles, self.cumulative = np.asarray(angles), np.asarray(cumulative)

    def distribution(self):
        return Distribution(self.angles, self.cumulative, np.ones(1, dtype=complex))


def test_a_polyline_is_all_that_a_new_kind_of_measure_needs():
    shifted = Push([2.0, 2.5, 5.0, 2.0 + TWO_PI], [0.0, 0.5 / TWO_PI, 3.0 / TWO_PI, 1.0])  # uniform, in pieces
    assert w1(shifted, FourierDensity.uniform()) == pytest.approx(0.0, abs=1e-15)
    assert w1(shifted, Atoms([0.7])) == pytest.approx(np.pi / 2, abs=1e-15)
    bar = Push([6.0, 6.5, 6.0 + TWO_PI], [0.0, 1.0, 1.0])  # uniform on an arc over the origin
    assert w1(bar, Atoms([6.25])) == pytest.approx(0.125, abs=1e-15)
    assert w1(Atoms([1.5]), bar) == pytest.approx(1.5 + TWO_PI - 6.25, abs=1e-15)
    point = Push([1.0, 1.0, 1.0 + TWO_PI], [0.0, 1.0, 1.0])
    assert w1(point, Atoms([1.0])) == pytest.approx(0.0, abs=1e-15)
    kappa = FourierDensity.von_mises(4.0)
    levels = np.linspace(0.0, 1.0, 20001)
    nodes = np.concatenate([[0.0], _quantile_angles(kappa, levels[1:-1]), [TWO_PI]])
    assert w1(Push(nodes, levels), kappa) < 1e-5  # second order in the spacing, 0.2 where there is least mass


def _quantile_angles(density, levels):
    from spectral_mf.distribution import smooth_quantiles

    return smooth_quantiles(density.moments(density.n_modes), levels)


def test_what_has_no_distribution_function_is_refused():
    with pytest.raises(InputError, match="distribution function"):
        w1(FourierDensity.uniform(), np.ones(3))
