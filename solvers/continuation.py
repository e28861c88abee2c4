"""Branches of stationary densities in a parameter of the model, by pseudo-arclength continuation.

A branch is a curve (c, λ) of zeros of the rates, λ being the diffusion or β. Each step goes along the tangent and comes
back by Newton's method in the hyperplane across it, so folds are nothing special. Folds (where the tangent's λ
component changes sign) and branch points (where the determinant of the bordered derivative does) are located on the
branch by bisection and secants to rounding.

References
----------
Keller, in: Applications of Bifurcation Theory (1977), 359-384; Govaerts, Numerical Methods for Bifurcations of
Dynamical Equilibria (2000), chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from spectral_mf.arguments import integer_at_least, number_from_to, positive_number
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.solvers.linearised import EvenEquation, parameter_derivative
from spectral_mf.solvers.stationary import NotFound, StationaryState, is_resolved, lengthened, require_noise

FloatArray = NDArray[np.float64]
Parameter = Literal["diffusion", "beta"]

SMALLEST_STEP = 1e-7
MOST_ITERATIONS = 12
QUICK_ITERATIONS = 4
"""Newton's method was quick with so many iterations, and the next step may be longer."""

LEAST_COSINE = 0.98
"""Tangents of neighbouring points may differ by this much; else the step is halved."""


@dataclass(frozen=True)
class Point:
    """A point of a branch: λ, the state there, and the unit tangent (dc, dλ) with its orientation along the branch."""

    value: float
    state: StationaryState
    tangent: FloatArray
    determinant: tuple[float, float]
    """Sign and logarithm of the bordered derivative's determinant."""


@dataclass(frozen=True)
class SpecialPoint:
    """A fold or a branch point.

    Attributes
    ----------
    kind : {"fold", "branch"}
    value : float
        The parameter there.
    state : StationaryState
    direction : ndarray of float64, shape (n + 1,)
        Of the branch itself at a fold; out of it, along the other branch, at a branch point.
    """

    kind: str
    value: float
    state: StationaryState
    direction: FloatArray


@dataclass(frozen=True)
class Branch:
    """Points in the order of the arclength, and the special points between them."""

    parameter: str
    points: list[Point] = field(default_factory=list)
    special: list[SpecialPoint] = field(default_factory=list)

    @property
    def values(self) -> FloatArray:
        """The parameter at each point; shape (n_points,)."""
        return np.array([point.value for point in self.points])

    @property
    def order_parameter(self) -> FloatArray:
        """c_m at each point; shape (n_points,)."""
        return np.array([point.state.order_parameter for point in self.points])

    @property
    def stable(self) -> NDArray[np.bool_]:
        """Whether no small perturbation of any period grows; shape (n_points,)."""
        return np.array([point.state.is_stable for point in self.points])

    def of_kind(self, kind: str) -> list[SpecialPoint]:
        """Special points of a kind."""
        return [point for point in self.special if point.kind == kind]


def continue_branch(
    start: StationaryState | SpecialPoint,
    parameter: Parameter,
    limits: tuple[float, float],
    *,
    increasing: bool = True,
    step: float = 0.02,
    largest_step: float = 0.1,
    max_points: int = 400,
) -> Branch:
    """Follow the branch through a stationary density until the parameter leaves its limits.

    Parameters
    ----------
    start : StationaryState or SpecialPoint
        A point of the branch; from a `SpecialPoint` of kind "branch" the other branch is followed.
    parameter : {"diffusion", "beta"}
        What varies.
    limits : tuple of float
        Range of the parameter; from `SpecialPoint`s also c_m -> 0 ends nothing.
    increasing : bool
        Whether the parameter grows at first; from a branch point, whether c_m does.
    step, largest_step : float
        First and largest step in arclength, the parameter being measured in units of its value at the start (or 1,
        if that is smaller).
    max_points : int
        Number of points after which to stop.

    Raises
    ------
    InputError
        If something given is not allowed.
    NotFound
        If the branch is lost: no step, however small, arrives.
    """
    state = start.state if isinstance(start, SpecialPoint) else start
    if not isinstance(state, StationaryState):
        raise InputError(
            f"start is of type {type(start).__name__}, no stationary state; give that of stationary_state."
        )
    if parameter not in ("diffusion", "beta") or not hasattr(state.model, parameter):
        raise InputError(f"parameter = {parameter!r} does not vary on branches; give diffusion or beta.")
    low, high = float(min(limits)), float(max(limits))
    value = number_from_to(f"the start's {parameter}", getattr(state.model, parameter), low, high)
    if parameter == "diffusion":
        positive_number("the lower limit of diffusion", low)
    require_noise(state.model)
    walk = _Walk(state.model, parameter, state.fold, max(1.0, abs(value)) if parameter == "beta" else abs(value))
    ds, longest = positive_number("step", step), positive_number("largest_step", largest_step)
    if isinstance(start, SpecialPoint) and start.kind == "branch":
        point = Point(value, state, start.direction * (1.0 if increasing == (start.direction[0] > 0) else -1.0), (1, 0))
    else:
        point = walk.first(state, value, increasing)
    branch = Branch(parameter, [point])
    for _ in range(integer_at_least("max_points", max_points, 1)):
        following, ds = walk.step(point, min(ds, longest))
        if len(branch.points) > 1 or not isinstance(start, SpecialPoint):
            branch.special.extend(walk.special_between(point, following))
        point = following
        branch.points.append(point)
        if not low <= point.value <= high:
            break
    return branch


class _Walk:
    """Steps along a branch. Unknowns are y = (c, λ / unit)."""

    def __init__(self, model: Model, parameter: str, fold: int, unit: float) -> None:
        self._make: Callable[[float], Model] = partial(_varied, model, parameter)
        self._fold = fold
        self._unit = unit

    def _derivative(self, c: FloatArray, value: float) -> tuple[FloatArray, FloatArray]:
        """Rates over k², shape (n,), and their derivative by y, shape (n, n + 1)."""
        equation = EvenEquation(self._make(value), c.size, self._fold)
        by_value = parameter_derivative(self._make, value, equation, c) * self._unit
        whole = np.column_stack([equation.even_jacobian(c), by_value]) / equation.k[:, None] ** 2
        return equation.rates(c) / equation.k**2, whole

    def first(self, state: StationaryState, value: float, increasing: bool) -> Point:
        """The start, with its tangent."""
        border = np.zeros(state.moments.size + 1)
        border[-1] = 1.0 if increasing else -1.0
        return self._point(state.moments, value, border)

    def _point(self, c: FloatArray, value: float, before: FloatArray) -> Point:
        _, whole = self._derivative(c, value)
        bordered = np.vstack([whole, before])
        tangent = np.linalg.solve(bordered, np.append(np.zeros(c.size), 1.0))
        tangent /= np.linalg.norm(tangent)
        model = self._make(value)
        # High modes only decay, each at rate κ k²: in units of -κ the determinant does not know how many there are.
        sign, log = np.linalg.slogdet(np.vstack([whole / -model.diffusion, tangent]))
        return Point(value, StationaryState(model, c, self._fold), tangent, (float(sign), float(log)))

    def corrected(self, point: Point, ds: float) -> tuple[Point, int]:
        """The point of the branch at distance ds along a point's tangent, and the iterations that it took."""
        c, tangent = point.state.moments, point.tangent
        while True:
            n = c.size
            start = np.append(point.state.moments, np.zeros(n - point.state.moments.size))
            direction = np.concatenate([tangent[:-1], np.zeros(n + 1 - tangent.size), tangent[-1:]])
            y = np.append(start, point.value / self._unit) + ds * direction
            y, iterations = self._newton(y, direction)
            if is_resolved(y[:-1]):
                return self._point(y[:-1], float(y[-1]) * self._unit, direction), iterations
            c = lengthened(c, self._fold)

    def _newton(self, y: FloatArray, direction: FloatArray) -> tuple[FloatArray, int]:
        for iteration in range(MOST_ITERATIONS):
            rates, whole = self._derivative(y[:-1], float(y[-1]) * self._unit)
            change = np.linalg.solve(np.vstack([whole, direction]), np.append(rates, 0.0))
            y = y - change
            size = float(np.abs(change).max())
            if not size < 0.3:
                break
            if size < 1e-12:
                return y, iteration + 1
        raise NotFound("the branch is lost; take smaller steps.")

    def step(self, point: Point, ds: float) -> tuple[Point, float]:
        """The next point, and a proposal for the step after it."""
        while ds > SMALLEST_STEP:
            try:
                following, iterations = self.corrected(point, ds)
            except (NotFound, InputError, np.linalg.LinAlgError):
                ds *= 0.5
                continue
            n = point.tangent.size - 1
            cosine = float(point.tangent[:-1] @ following.tangent[:n] + point.tangent[-1] * following.tangent[-1])
            if cosine < LEAST_COSINE:
                ds *= 0.5
                continue
            return following, ds * (1.4 if iterations <= QUICK_ITERATIONS else 0.8)
        raise NotFound(f"the branch is lost at {point.value:g}: no step arrives; look at its last point.")

    def special_between(self, point: Point, following: Point) -> list[SpecialPoint]:
        """Folds and branch points between neighbouring points."""
        n = point.tangent.size - 1
        shift = following.state.moments[:n] - point.state.moments
        length = float(point.tangent[:-1] @ shift + point.tangent[-1] * (following.value - point.value) / self._unit)
        found = []
        if point.tangent[-1] * following.tangent[-1] < 0.0:
            place = self._root(point, length, lambda at: float(at.tangent[-1]))
            found.append(SpecialPoint("fold", place.value, place.state, place.tangent))
        if point.determinant[0] * following.determinant[0] < 0.0:
            scale = max(point.determinant[1], following.determinant[1])
            place = self._root(point, length, lambda at: at.determinant[0] * float(np.exp(at.determinant[1] - scale)))
            found.append(SpecialPoint("branch", place.value, place.state, self._other_direction(place)))
        return found

    def _root(self, point: Point, length: float, test: Callable[[Point], float]) -> Point:
        def at(ds: float) -> float:
            return test(point if ds == 0.0 else self.corrected(point, ds)[0])

        root: Any = brentq(at, 0.0, length, xtol=1e-13, rtol=1e-14)
        return self.corrected(point, float(root))[0]

    def _other_direction(self, place: Point) -> FloatArray:
        """Null vector of the derivative at a branch point across the branch, where λ stands still to first order."""
        _, whole = self._derivative(place.state.moments, place.value)
        _, _, rows = np.linalg.svd(np.vstack([whole, place.tangent]))
        return np.asarray(rows[-1])


def _varied(model: Any, parameter: str, value: float) -> Model:
    changed: Model = replace(model, **{parameter: value})
    return changed
