"""Wasserstein-2 distance on the circle between point masses, exact.

W_2(mu, nu)^2 = min_a int_0^1 (X(s) - Y(s + a))^2 ds

with the quantile functions X, Y of the measures unrolled onto the line: X(s + 1) = X(s) + 2 pi. The integral is convex
in the shift a; for point masses it is piecewise linear, so the sign of its slope leads to the best shift.

References
----------
Delon, Salomon and Sobolevski, "Fast transport optimization for Monge costs on the circle", arXiv:0902.3527.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spectral_mf.circular import TWO_PI
from spectral_mf.errors import InputError

if TYPE_CHECKING:
    from spectral_mf.measure import Measure

FloatArray = NDArray[np.float64]

_HALVINGS = 56
"""Of the interval [-1, 1], to below the rounding of levels."""


def w2(a: Measure, b: Measure) -> float:
    """Wasserstein-2 distance on the circle between two sets of atoms, in radians.

    Parameters
    ----------
    a, b : Atoms
        Of any numbers and weights. For a density take its `quantiles(n)`: where it is p, they lie 1 / (n p) apart.

    Returns
    -------
    float
        In [0, pi], never below `w1`. Rounding is that of its square: distances below 1e-7 are not resolved, except
        that a measure is at 0 from itself.

    Raises
    ------
    InputError
        If a measure is not made of atoms.
    """
    one, other = _Quantiles(a), _Quantiles(b)
    low, high = -1.0, 1.0  # beyond, one measure's points all lie on one side of the other's
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if _slope(one, other, middle) < 0.0:
            low = middle
        else:
            high = middle
    # The kink itself may lie between two numbers; each shift gives a bound from above. 0 is exact for equal measures.
    return math.sqrt(min(_cost(one, other, shift) for shift in (low, high, 0.0)))


class _Quantiles:
    """Unrolled quantile function: angle number i is reached at levels from levels[i - 1] to levels[i]."""

    def __init__(self, measure: Measure) -> None:
        from spectral_mf.atoms import Atoms

        if not isinstance(measure, Atoms):
            raise InputError(f"{measure!r} is not made of atoms; give Atoms, such as density.quantiles(10000).")
        order = np.argsort(measure.angles, kind="stable")
        present = order[measure.weights[order] > 0.0]
        self.angles: FloatArray = measure.angles[present]
        mass = np.cumsum(measure.weights[present])
        self.levels: FloatArray = mass / mass[-1]

    def at(self, s: FloatArray) -> FloatArray:
        """Limits from the left at any levels."""
        turn = np.ceil(s) - 1.0  # s in (turn, turn + 1]
        number = np.searchsorted(self.levels, s - turn, side="left")
        return np.asarray(self.angles[np.minimum(number, self.angles.size - 1)] + TWO_PI * turn)


def _cost(x: _Quantiles, y: _Quantiles, shift: float) -> float:
    """Integral of (X(s) - Y(s + shift))^2 over a turn."""
    cuts = np.concatenate([[0.0], x.levels, (y.levels - shift) % 1.0])
    cuts.sort()
    middle = 0.5 * (cuts[:-1] + cuts[1:])
    return float((np.diff(cuts) * (x.at(middle) - y.at(middle + shift)) ** 2).sum())


def _slope(x: _Quantiles, y: _Quantiles, shift: float) -> float:
    """Right derivative of the cost: as the shift grows, Y's jumps move to the left through X."""
    beside = x.at(y.levels - shift)
    after = np.append(y.angles[1:], y.angles[0] + TWO_PI)
    return float(((beside - after) ** 2 - (beside - y.angles) ** 2).sum())
