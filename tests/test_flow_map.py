"""The flow map as a measure: against densities it starts from and against maps with closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import jv

from spectral_mf import FourierDensity, InputError, SelfAttention, panels, solve
from spectral_mf.clusters import group_points
from spectral_mf.flow_map import FlowMap

THETA = np.linspace(0.0, 2 * np.pi, 101)


@pytest.mark.parametrize(
    ("density", "fold"),
    [
        (FourierDensity.uniform(), 1),
        (FourierDensity.von_mises(4.0, 1.0), 1),
        (FourierDensity.von_mises(300.0, 6.2), 1),
        (FourierDensity.from_modes({3: 0.2, 6: 0.1j}), 3),
        (FourierDensity.from_modes({1: 0.5}), 1),  # zero at pi
    ],
)
def test_the_map_that_moves_nothing_is_the_density(density, fold):
    flow = FlowMap.identity(density, fold=fold)
    scale = density.density(THETA).max()
    np.testing.assert_allclose(flow.moments(200), density.moments(200), atol=1e-13)
    np.testing.assert_allclose(flow.density(THETA), density.density(THETA), atol=1e-12 * scale)
    np.testing.assert_allclose(flow.cell_means(512), density.cell_means(512), atol=1e-11 * scale)
    assert flow.cell_means(512).sum() * 2 * np.pi / 512 == pytest.approx(1.0, abs=1e-14)
    assert fold * flow.masses.sum() == pytest.approx(1.0, abs=1e-15)
    model = SelfAttention(5.0)
    assert flow.energy(model) == pytest.approx(density.energy(model), rel=1e-13, abs=0.0)
    assert flow.w1(density) < 2e-7


def moved(a=0.9):
    """Uniform labels moved to X = a + 0.9 sin a."""
    flow = FlowMap.identity(FourierDensity.uniform(), n_modes=64)
    return FlowMap(flow.edges, flow.initial, a * np.sin(flow.labels))


def test_moments_of_a_map_with_closed_form():
    # c_k = (1/2 pi) int exp(-i k (a + s sin a)) da = J_{-k}(k s)
    k = np.arange(65)
    np.testing.assert_allclose(moved().moments(64), jv(-k, 0.9 * k), atol=5e-15)


def test_density_is_initial_density_over_stretching():
    def label(theta):
        return brentq(lambda a: a + 0.9 * np.sin(a) - theta, -1.0, 8.0, xtol=1e-15)

    exact = [1 / (2 * np.pi * (1 + 0.9 * np.cos(label(theta)))) for theta in THETA]
    np.testing.assert_allclose(moved().density(THETA), exact, rtol=1e-11)


def test_distribution_function():
    flow = FlowMap.identity(FourierDensity.von_mises(4.0))
    from scipy.integrate import quad

    for theta in (0.5, 2.0, 6.0):
        mass = quad(lambda x: float(FourierDensity.von_mises(4.0).density(x)), 0.0, theta, epsabs=1e-14)[0]
        assert flow.cdf(theta) == pytest.approx(mass, abs=1e-13)
    assert flow.cdf(2 * np.pi) == pytest.approx(1.0, abs=1e-15)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.lists(st.booleans(), min_size=34, max_size=34), st.floats(0.0, 0.95))
def test_splitting_changes_nothing_and_keeps_each_panels_mass(chosen, a):
    flow = moved(a)
    some = np.array(chosen)[: flow.initial.shape[0]]
    halved = flow.split(some)
    assert halved.initial.shape[0] == flow.initial.shape[0] + some.sum()
    np.testing.assert_allclose(halved.moments(30), flow.moments(30), atol=1e-14)
    np.testing.assert_allclose(halved.positions, halved.labels + a * np.sin(halved.labels), atol=1e-14)
    np.testing.assert_allclose(halved.masses.sum(), flow.masses.sum(), rtol=0, atol=1e-15)


def test_storage_is_bitwise():
    flow = moved()
    again = FlowMap.from_vector(flow.to_vector())
    np.testing.assert_array_equal(again.to_vector(), flow.to_vector())
    assert again.fold == flow.fold


def test_cells_of_points_hold_all_mass():
    flow = FlowMap.identity(FourierDensity.uniform())
    point = FlowMap(flow.edges, flow.initial, 3.0 - flow.labels)
    cells = point.cell_means(512)
    assert cells.sum() * 2 * np.pi / 512 == pytest.approx(1.0, abs=1e-14)
    assert (cells > 0).sum() <= 2
    assert cells.min() >= 0.0


def test_negative_densities_are_refused_with_the_place():
    with pytest.raises(InputError, match=r"negative at theta = 3\.1"):
        FlowMap.identity(FourierDensity.from_modes({1: 0.6}))


def test_panels():
    edges = np.array([0.0, 1.0, 3.0])
    x = panels.nodes_of(edges)
    w = panels.weights_of(edges)
    assert (w * x**5).sum() == pytest.approx(3.0**6 / 6, rel=1e-15, abs=0.0)
    values = np.exp(x)
    assert panels.tails(values)[0] < 1e-14
    np.testing.assert_allclose(values @ panels.TO_ENDS.T, np.exp([[0.0, 1.0], [1.0, 3.0]]), rtol=1e-12)
    coefficients = values @ panels.TO_COEFFICIENTS
    at = np.array([0.3, -0.4])
    np.testing.assert_allclose(panels.evaluate(coefficients, at), np.exp([0.65, 1.6]), rtol=1e-13)
    np.testing.assert_allclose(
        panels.evaluate(panels.derivative(coefficients), at), np.exp([0.65, 1.6]) * [0.5, 1.0], rtol=1e-10
    )
    integral = panels.evaluate(panels.antiderivative(coefficients), at) * [0.5, 1.0]
    np.testing.assert_allclose(integral, np.exp([0.65, 1.6]) - np.exp([0.0, 1.0]), rtol=1e-13)


def test_grouping_across_zero_and_of_unequal_masses():
    angles = np.array([0.1, 2 * np.pi - 0.1, 3.0, 3.1, 5.0])
    masses = np.array([0.25, 0.25, 0.1, 0.3, 0.1])
    found = group_points(angles, masses, gap=0.3)
    assert found.masses == pytest.approx([0.4, 0.1, 0.5]) or found.masses == pytest.approx([0.5, 0.4, 0.1])
    near_zero = found.masses.argmax()
    assert min(found.positions[near_zero], 2 * np.pi - found.positions[near_zero]) == pytest.approx(0.0, abs=1e-14)
    assert found.widths[near_zero] == pytest.approx(0.2)
    assert 3.075 in [pytest.approx(p, abs=1e-14) for p in found.positions]
    one = group_points(angles, masses, gap=7.0)
    assert one.masses == pytest.approx([1.0])
    nothing = group_points(np.array([1.0, 2.0]), np.array([1.0, 0.0]), gap=0.1)
    assert nothing.positions == pytest.approx([1.0])


def test_halving_a_panel_that_resolves_nothing_keeps_its_mass():
    # the interpolating polynomial of a spike dips below zero, and what is cut there may not change the mass
    initial = np.zeros((4, 16))
    initial[1, 3] = initial[2, 11] = 1.0
    flow = FlowMap(np.linspace(0.0, 2.0 * np.pi, 5), initial, np.zeros_like(initial))
    halved = flow.split(np.array([False, True, True, False]))
    assert halved.initial.min() >= 0.0
    before, after = flow.masses.sum(axis=1), halved.masses.sum(axis=1)
    np.testing.assert_allclose(after[1:5].reshape(2, 2).sum(axis=1), before[1:3], rtol=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf, [0.0, -np.inf]])
@pytest.mark.parametrize("method", ["spectral", "characteristics"])
def test_a_density_at_no_angle_is_refused(method, bad):
    run = solve(SelfAttention(1.0), FourierDensity.from_modes({1: 0.1}), [0.0, 0.1], method=method)
    with pytest.raises(InputError, match="is not finite; give radians"):
        run.density(bad)
