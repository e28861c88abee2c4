"""The stepper against closed forms: order of convergence, embedded errors, damping, no allocation of state."""

import numpy as np
import pytest

from spectral_mf.solvers.dop853 import Dop853, error_norm, worst
from spectral_mf.solvers.step_control import StepController


def logistic(y, out):
    out[:] = y * (1.0 - y)


def logistic_exact(y0, t):
    return y0 * np.exp(t) / (1.0 + y0 * (np.exp(t) - 1.0))


def integrate(n_steps, t_end=2.0, damping=None, rhs=logistic):
    stepper = Dop853(rhs, np.array([0.1, 0.3]), damping)
    for _ in range(n_steps):
        stepper.attempt(t_end / n_steps)
        stepper.accept()
    return stepper.y.copy()


def test_error_falls_with_order_eight():
    exact = logistic_exact(np.array([0.1, 0.3]), 2.0)
    errors = np.array([np.abs(integrate(n) - exact).max() for n in (2, 4, 8)])
    orders = np.log2(errors[:-1] / errors[1:])
    assert orders.min() > 7.6
    assert errors[-1] < 1e-12


def test_embedded_estimates_have_the_orders_that_step_control_assumes():
    sizes = []
    for h in (0.4, 0.2, 0.1):
        stepper = Dop853(logistic, np.array([0.1, 0.3]))
        errors = np.abs(stepper.attempt(h)).max(axis=1)
        sizes.append([*errors, error_norm(stepper.attempt(h), 1.0)])
    orders = np.log2(np.array(sizes[:-1]) / np.array(sizes[1:]))
    assert orders[:, 0] == pytest.approx(6.0, abs=0.5)  # local error of an order-5 method
    assert orders[:, 1] == pytest.approx(4.0, abs=0.5)
    assert orders[:, 2] == pytest.approx(8.0, abs=0.7)


def test_pure_damping_is_exact():
    rates = np.array([3.0, 400.0])
    stepper = Dop853(lambda y, out: out.fill(0.0), np.array([2.0, 1.0]), rates)
    stepper.attempt(0.1)
    stepper.accept()
    np.testing.assert_allclose(stepper.y, np.array([2.0, 1.0]) * np.exp(-0.1 * rates), rtol=1e-14)


def test_damping_converges_with_order_eight_to_the_bernoulli_solution():
    # y' = y^2 - L y  has  y = L / (1 + (L / y0 - 1) e^{L t})
    rates = np.array([0.5, 2.0])
    start = np.array([0.1, 0.3])
    exact = rates / (1.0 + (rates / start - 1.0) * np.exp(2.0 * rates))
    errors = [
        np.abs(integrate(n, damping=rates, rhs=lambda y, out: np.multiply(y, y, out=out)) - exact).max()
        for n in (2, 4, 8)
    ]
    assert np.log2(errors[0] / errors[1]) > 7.0
    assert errors[2] < 1e-13  # rounding


def test_zero_damping_equals_no_damping():
    np.testing.assert_array_equal(integrate(4, damping=np.zeros(2)), integrate(4))


def test_a_rejected_attempt_leaves_the_state():
    stepper = Dop853(logistic, np.array([0.1, 0.3]))
    before, slope = stepper.y.copy(), stepper.slope.copy()
    stepper.attempt(0.5)
    np.testing.assert_array_equal(stepper.y, before)
    np.testing.assert_array_equal(stepper.slope, slope)
    stepper.attempt(0.1)
    stepper.accept()
    other = Dop853(logistic, before)
    other.attempt(0.1)
    other.accept()
    np.testing.assert_array_equal(stepper.y, other.y)


def test_error_norm_of_nothing_and_of_something_on_nothing():
    assert error_norm(np.zeros((2, 3)), 0.0) == 0.0
    assert error_norm(np.full((2, 3), 1e-300), 0.0) == np.inf


def test_controller_rejects_and_shrinks_and_grows():
    control = StepController(1.0)
    assert not control.accepts(100.0, 1.0)
    assert 0.2 <= control.step_size < 0.9
    assert not control.accepts(float("nan"), 1.0)
    assert control.step_size == pytest.approx(0.2)
    assert control.accepts(1e-8, 0.2)
    assert 0.4 < control.step_size <= 1.2


def test_a_step_cut_short_for_output_keeps_the_proposal():
    control = StepController(1.0)
    assert control.accepts(0.5, 0.01)
    assert control.step_size == 1.0


def test_the_worst_of_several_errors_is_never_hidden():
    assert worst([0.5, 2.0, 1.0]) == 2.0
    assert worst([]) == 0.0
    assert worst([0.5, np.inf]) == np.inf
    for errors in ([np.nan, 0.5], [0.5, np.nan], [np.inf, np.nan]):
        assert np.isnan(worst(errors))
