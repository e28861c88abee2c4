"""One step of the embedded Runge-Kutta method 8(5,3), in place.

dy/dt = f(y) - L y, with an optional diagonal damping L >= 0 that is integrated exactly (integrating factor).

The state and the stages are rows of one matrix, so that each stage is one matrix-vector product and nothing is
allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.solvers import dop853_tableau as tableau

FloatArray = NDArray[np.float64]
RightHandSide = Callable[[Any, Any], None]
"""Called with (y, out): writes f(y) into out."""

View = Callable[[FloatArray], Any]
"""How a right-hand side looks at rows of numbers, shape (..., n): another shape or kind of the same memory."""

_N = tableau.N_STAGES


class Dop853:
    """Steps of a system with n unknowns.

    Parameters
    ----------
    rhs : callable
        Writes f(y) into its second argument. Both are float64 arrays of shape (n,), or what `view` makes of them.
    y : ndarray of float64, shape (n,)
        Initial state; it is copied.
    damping : ndarray of float64, shape (n,), optional
        The diagonal L. Stages that lie earlier than the ones they use by up to 0.084 of a step amplify rounding by
        exp(0.084 L h): keep L h below about 40.
    view : callable, optional
        Makes the arguments of `rhs` from an array of rows of n numbers, without copying; called once.

    Attributes
    ----------
    y : ndarray of float64, shape (n,)
        State after the last accepted step.
    trial : ndarray of float64, shape (n,)
        State proposed by the last `attempt`.
    ends : ndarray of float64, shape (3, n)
        The trial, and the error estimates of order 5 and 3 of the last `attempt`.
    """

    def __init__(
        self, rhs: RightHandSide, y: FloatArray, damping: FloatArray | None = None, view: View | None = None
    ) -> None:
        self._prepare(rhs, y, None if damping is None else _IntegratingFactor(damping), view)
        self._rhs(self._seen[0], self._seen[1])

    def _prepare(self, rhs: RightHandSide, y: FloatArray, factor: _IntegratingFactor | None, view: View | None) -> None:
        n = y.size
        self._rhs = rhs
        rows = np.zeros((_N + 6, n))  # the state, the stages k_1 .. k_12, the ends, where a stage is taken, a slope
        self._stages: list[FloatArray] = list(rows[: _N + 1])
        self._known = [rows[: i + 1] for i in range(_N + 1)]
        self.ends: FloatArray = rows[_N + 1 : _N + 4]
        self.trial: FloatArray
        self.trial, _, _, self._work, self._next_slope = rows[_N + 1 :]
        self._coefficients = np.zeros((_N + 3, _N + 1))
        self._coefficients[: _N + 1, 0] = 1.0
        self._step_weights = self._coefficients[:, 1:]
        self._end_weights = self._coefficients[_N:]
        self._weights = [self._coefficients[i, : i + 1] for i in range(_N)]
        self.y: FloatArray = self._stages[0]
        self.y[:] = y
        self._factor = factor
        self._view = view
        self._seen = list(rows if view is None else view(rows))  # a view a call would cost a fifth

    def __getstate__(self) -> _Stored:
        """All that the next step needs; stages are views of one matrix, which a copy has to have of its own."""
        return self._rhs, self.y.copy(), self.slope.copy(), self._factor, self._view

    def __setstate__(self, state: _Stored) -> None:
        rhs, y, slope, factor, view = state
        self._prepare(rhs, y, factor, view)
        self._stages[1][:] = slope

    @property
    def slope(self) -> FloatArray:
        """f(y) at the state, without damping; shape (n,)."""
        return self._stages[1]

    def attempt(self, h: float) -> FloatArray:
        """Try a step of size h: fills `trial` and returns the error estimates of order 5 and 3, shape (2, n)."""
        np.multiply(_TABLEAU, h, out=self._step_weights)
        weights, known, rhs, factor = self._weights, self._known, self._rhs, self._factor
        *stages, trial, _, _, work, next_slope = self._seen
        if factor is not None:
            factor.prepare(h)
        for i in range(1, _N):
            np.dot(weights[i], known[i], self._work)
            if factor is None:
                rhs(work, stages[i + 1])
            else:
                np.multiply(self._work, factor.decay[i], out=self._work)
                rhs(work, stages[i + 1])
                np.multiply(self._stages[i + 1], factor.growth[i], out=self._stages[i + 1])
        np.dot(self._end_weights, known[_N], out=self.ends)
        if factor is not None:
            np.multiply(self.ends, factor.total, out=self.ends)
        rhs(trial, next_slope)
        return self.ends[1:]

    def accept(self) -> None:
        """Make the trial the state."""
        self.y[:] = self.trial
        self._stages[1][:] = self._next_slope


_TABLEAU = np.vstack([tableau.STAGES, tableau.WEIGHTS, tableau.ERROR_5, tableau.ERROR_3])


class _IntegratingFactor:
    """exp(-L c_i h) at the stages' times, recomputed only when h changes."""

    def __init__(self, damping: FloatArray) -> None:
        self._damping = damping
        self._h = np.nan
        self.decay = np.empty((_N, damping.size))
        self.growth = np.empty((_N, damping.size))
        self.total = np.empty(damping.size)

    def prepare(self, h: float) -> None:
        if h == self._h:
            return
        self._h = h
        exponent = np.outer(tableau.NODES * h, self._damping)
        np.exp(-exponent, out=self.decay)
        np.exp(exponent, out=self.growth)
        np.exp(-h * self._damping, out=self.total)


_Stored = tuple[RightHandSide, FloatArray, FloatArray, _IntegratingFactor | None, View | None]


def error_norm(errors: FloatArray, scale: float) -> float:
    """Combined size of the two error estimates relative to `scale`, as in DOP853; at most 1 for an acceptable step.

    Parameters
    ----------
    errors : ndarray of float64, shape (2, n)
        From `Dop853.attempt`; overwritten.
    scale : float
        Error allowed. Where it is 0, only a zero error is acceptable.

    Returns
    -------
    float
        nan if an error is not a number.
    """
    np.abs(errors, out=errors)
    fifth, third = np.maximum.reduce(errors, axis=-1).tolist()
    return combined_error(fifth, third, scale)


def combined_error(fifth: float, third: float, scale: float) -> float:
    """`error_norm` of the largest error estimates of order 5 and 3."""
    if fifth == 0.0:
        return 0.0
    return fifth / math.hypot(fifth, 0.1 * third) * (fifth / scale) if scale != 0.0 else math.inf


def worst(errors: Iterable[float]) -> float:
    """Largest of the errors of several systems; nan if one is not a number."""
    largest = 0.0
    for error in errors:
        if math.isnan(error):
            return error
        largest = max(largest, error)
    return largest
