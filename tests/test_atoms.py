"""Point masses: angles that wrap, weights, moments, cells, and what is no measure."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention
from spectral_mf.measure import Measure

TWO_PI = 2.0 * np.pi
points = st.lists(st.tuples(st.floats(-50.0, 50.0), st.floats(0.01, 1.0)), min_size=1, max_size=8)


def test_atoms_are_a_measure():
    assert isinstance(Atoms([0.0]), Measure)


def test_angles_outside_the_base_interval():
    """-0.1, 2 pi, its neighbours, -pi and 1e6 all count where they are on the circle."""
    given_angles = np.array(
        [-0.1, TWO_PI, np.nextafter(TWO_PI, 0), np.nextafter(TWO_PI, 9), -np.pi, 1e6, -1e-17, -1e-300]
    )
    atoms = Atoms(given_angles)
    assert ((atoms.angles >= 0.0) & (atoms.angles < TWO_PI)).all()
    exact = np.exp(-1j * np.outer(np.arange(9), given_angles)).mean(axis=1)
    np.testing.assert_allclose(atoms.moments(8), exact, rtol=0, atol=1e-9)  # 1e6 has lost 8 digits on the circle
    np.testing.assert_allclose(Atoms(given_angles[[0, 1, 4]]).angles, [TWO_PI - 0.1, 0.0, np.pi], rtol=1e-15)
    assert atoms.moments(8)[0] == 1.0
    for n in (1, 7, 64):
        assert atoms.cell_means(n).sum() * TWO_PI / n == pytest.approx(1.0, abs=1e-15)


def test_data_on_minus_pi_to_pi_keeps_its_negative_half():
    x = np.random.default_rng(0).uniform(-np.pi, np.pi, 500)
    np.testing.assert_allclose(Atoms(x).moments(20), Atoms(x % TWO_PI).moments(20), rtol=0, atol=1e-14)
    assert (Atoms(x).angles > np.pi).sum() == (x < 0).sum()


def test_input_is_copied_and_what_is_kept_is_read_only():
    x, w = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    atoms = Atoms(x, w)
    x[0] = w[0] = 9.0
    np.testing.assert_array_equal(atoms.angles, [1.0, 2.0])
    np.testing.assert_array_equal(atoms.weights, [0.25, 0.75])
    for kept in (atoms.angles, atoms.weights, Atoms.from_vector(atoms.to_vector()).weights):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 0.0


@pytest.mark.parametrize("dtype", ["f2", "f4", "i4", "u8", ">f8"])
def test_other_number_types(dtype):
    atoms = Atoms(np.array([1, 2, 5], dtype=dtype), np.array([1, 1, 2], dtype=dtype))
    assert atoms.angles.dtype == atoms.weights.dtype == np.float64
    np.testing.assert_array_equal(atoms.angles, [1.0, 2.0, 5.0])
    np.testing.assert_array_equal(atoms.weights, [0.25, 0.25, 0.5])


@pytest.mark.parametrize("weights", [[1e308, 1e308], [5e-324, 5e-324], [1e-310, 1e-310]])
def test_extreme_weights_are_normalised(weights):
    np.testing.assert_array_equal(Atoms([1.0, 2.0], weights).weights, [0.5, 0.5])


@pytest.mark.parametrize(
    ("angles", "message"),
    [
        ([], "at least one angle"),
        (3.0, "at least one angle"),
        ([[1.0, 2.0]], "at least one angle"),
        ([0.0, np.nan], "number 1 is nan"),
        ([np.inf], "number 0 is inf"),
        (["a"], "not real numbers"),
        (None, "not real numbers"),
        ([1j], "not real numbers"),
        (np.array([1 + 0j]), "not real numbers"),
        ([True], "not real numbers"),
        ([[1.0], [1.0, 2.0]], "not real numbers"),
    ],
)
def test_bad_angles(angles, message):
    with pytest.raises(InputError, match=message):
        Atoms(angles)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "one weight for each angle"),
        ([1.0, 1.0, 1.0], "one weight for each angle"),
        ([[1.0, 1.0]], "one weight for each angle"),
        ([1.0, -1e-9], "number 1 is -1e-09"),
        ([np.nan, 1.0], "number 0 is nan"),
        ([np.inf, 1.0], "number 0 is inf"),
        ([0.0, 0.0], "sum to 0"),
        (["a", "b"], "not real numbers"),
        ([1j, 1.0], "not real numbers"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(InputError, match=message):
        Atoms([0.0, 1.0], weights)


def test_uniform_sample():
    atoms = Atoms.sample_uniform(20_000, seed=3)
    assert atoms.n_atoms == 20_000
    np.testing.assert_array_equal(atoms.angles, Atoms.sample_uniform(20_000, seed=3).angles)
    assert (atoms.angles != Atoms.sample_uniform(20_000, seed=4).angles).all()
    # N |c_k|^2 is Exp(1): the largest of 10 exceeds 16 with probability 1e-6
    assert 20_000 * (np.abs(atoms.moments(10)[1:]) ** 2).max() < 16.0
    for n in (0, -5):
        with pytest.raises(InputError, match="give an integer of at least 1"):
            Atoms.sample_uniform(n, seed=0)


@given(points)
def test_moments_against_their_definition(data):
    x, w = map(np.array, zip(*data, strict=True))
    exact = np.exp(-1j * np.outer(np.arange(21), x)) @ w / w.sum()
    np.testing.assert_allclose(Atoms(x, w).moments(20), exact, rtol=0, atol=1e-12)


@given(points, points, st.floats(0.0, 1.0))
def test_moments_are_linear_in_the_measure(one, two, share):
    (xa, wa), (xb, wb) = (map(np.array, zip(*data, strict=True)) for data in (one, two))
    a, b = Atoms(xa, wa), Atoms(xb, wb)
    mixed = Atoms(np.concatenate([xa, xb]), np.concatenate([share * a.weights, (1.0 - share) * b.weights]))
    exact = share * a.moments(20) + (1.0 - share) * b.moments(20)
    np.testing.assert_allclose(mixed.moments(20), exact, rtol=0, atol=1e-14)


@given(points, st.integers(1, 200))
def test_cells_hold_all_the_mass(data, n):
    x, w = map(np.array, zip(*data, strict=True))
    assert Atoms(x, w).cell_means(n).sum() * TWO_PI / n == pytest.approx(1.0, abs=1e-14)


def test_cells_are_centred_on_the_grid_points():
    mass = Atoms([0.0, 0.39, -0.39, 0.40, 3.0]).cell_means(8) * (TWO_PI / 8)
    np.testing.assert_allclose(mass, [0.6, 0.2, 0, 0, 0.2, 0, 0, 0], rtol=0, atol=1e-15)


def test_point_masses_have_no_density():
    with pytest.raises(InputError, match="cell_means"):
        Atoms([0.0]).density(1.0)


def test_smoothed_keeps_moments_or_says_why_not():
    atoms = Atoms.sample_uniform(2000, seed=1)
    np.testing.assert_allclose(atoms.smoothed(12).moments(12), atoms.moments(12), rtol=0, atol=1e-15)
    with pytest.raises(InputError, match="negative at theta"):
        Atoms([0.05, -0.05]).smoothed(12)
    with pytest.raises(InputError, match="n_modes = 0 is not allowed"):
        atoms.smoothed(0)


def test_kernel_density_knows_the_circle():
    """One bump at 0 from tokens on both sides of it; mass 1; it turns with the sample."""
    atoms = Atoms([0.05, TWO_PI - 0.05])
    theta = TWO_PI * np.arange(2048) / 2048
    values = atoms.kernel_density(50.0).density(theta)
    assert values.argmax() == 0
    turning = np.sign(np.diff(np.concatenate([values[1024:], values[:1025]])))
    near = np.abs(np.arange(2048) - 1024) < 400  # further away the density is below rounding
    assert (turning[near & (np.arange(2048) < 1024)] > 0).all()
    assert (turning[near & (np.arange(2048) >= 1024)] < 0).all()
    assert values.mean() * TWO_PI == pytest.approx(1.0, abs=1e-12)
    exact = 0.5 * sum(FourierDensity.von_mises(50.0, m).density(theta) for m in (0.05, -0.05))
    np.testing.assert_allclose(values, exact, rtol=0, atol=1e-13)
    turned = Atoms(atoms.angles + 1.0).kernel_density(50.0).density(theta + 1.0)
    np.testing.assert_allclose(turned, values, rtol=0, atol=1e-12)
    atoms.kernel_density(1e4).require_positive()


def test_vector_and_copies_are_exact():
    atoms = Atoms(np.random.default_rng(0).uniform(-9, 9, 100), np.random.default_rng(1).random(100))
    for twin in (Atoms.from_vector(atoms.to_vector()), copy.deepcopy(atoms), pickle.loads(pickle.dumps(atoms))):
        np.testing.assert_array_equal(twin.angles, atoms.angles)
        np.testing.assert_array_equal(twin.weights, atoms.weights)


@pytest.mark.parametrize("beta", [0.5, 5.0, 300.0])
def test_energy_of_a_single_atom_is_the_maximum(beta):
    model = SelfAttention(beta, "peak")
    assert Atoms([2.0]).energy(model) == pytest.approx(1.0 / (2.0 * beta), rel=1e-13, abs=0.0)
    assert Atoms([2.0, 2.1]).energy(model) < Atoms([2.0]).energy(model)
