"""How much of a measure lies near few points: the test of whether it has clustered."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.circular import circular_distance
from spectral_mf.measure import Measure

FloatArray = NDArray[np.float64]

CELLS_PER_REACH = 32
"""Cells of a density in the distance eps: the mass near a point is known to a thirtieth of what lies at its edge."""

_NOTHING = 1e-12
"""Mass of an arc that is not worth taking."""


@dataclass(frozen=True)
class Cover:
    """Arcs of length 2 eps that hold the most mass, one after the other.

    Attributes
    ----------
    positions : ndarray of float64, shape (k,)
        Mean angle of the mass in each arc, in [0, 2 pi), in order of falling mass.
    masses : ndarray of float64, shape (k,)
    uncovered : ndarray of float64, shape (k + 1,)
        Mass outside of the first 0, 1, .. k arcs.
    """

    positions: FloatArray
    masses: FloatArray
    uncovered: FloatArray

    def outside(self, k: int) -> float:
        """Mass outside of the first k arcs."""
        return float(self.uncovered[min(k, self.uncovered.size - 1)])


def cover(measure: Measure, reach: float, most: int, least_mass: float = 0.0) -> Cover:
    """Choose the arc of length 2 reach with the most mass, then the next, and so on, at most `most` times.

    Arcs keep their centres 4 reach apart, so that the sides of one wide cluster do not count as clusters: what lies
    beside an arc stays uncovered.

    Parameters
    ----------
    measure : Measure
    reach : float
        eps in radians, from 0 to 1.
    most : int
        Largest number of arcs.
    least_mass : float
        Arcs of less mass are not taken.
    """
    angles, weights = _points(measure, reach)
    masses = weights.copy()
    turns = np.concatenate([angles, angles + TWO_PI])
    past = np.searchsorted(turns, angles + 2.0 * reach, side="right")  # an arc begins at each point
    allowed = np.ones(angles.size, dtype=bool)
    positions: list[float] = []
    covered: list[float] = []
    while len(positions) < most:
        total = np.concatenate([[0.0], np.cumsum(np.tile(masses, 2))])
        inside = np.where(allowed, total[past] - total[: angles.size], 0.0)
        best = int(inside.argmax())
        if inside[best] <= max(least_mass, _NOTHING):
            break
        chosen = np.arange(best, past[best]) % angles.size
        offset = (angles[chosen] - angles[best]) % TWO_PI
        mass = float(masses[chosen].sum())
        positions.append((angles[best] + float(masses[chosen] @ offset) / mass) % TWO_PI)
        covered.append(mass)
        masses[chosen] = 0.0
        allowed &= circular_distance(angles, angles[best]) >= 4.0 * reach
    mass_of = np.array(covered)
    return Cover(np.array(positions), mass_of, np.maximum(0.0, 1.0 - np.concatenate([[0.0], np.cumsum(mass_of)])))


def _points(measure: Measure, reach: float) -> tuple[FloatArray, FloatArray]:
    """The measure as sorted point masses: its own, or those of cells."""
    if isinstance(measure, Atoms):
        order = np.argsort(measure.angles, kind="stable")
        return measure.angles[order], measure.weights[order]
    n = math.ceil(CELLS_PER_REACH * TWO_PI / reach)
    masses = np.maximum(measure.cell_means(n), 0.0)
    return TWO_PI * np.arange(n) / n, masses / masses.sum()
