"""Times at which a quantity that is known at output times passes a level, interpolated in its logarithm."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

FloatArray = NDArray[np.float64]


def first_rise(t: FloatArray, values: FloatArray, level: float) -> float | None:
    """First time at which a quantity >= 0 reaches a level from below.

    Between rows its logarithm is taken as a straight line, which is exact for exponential growth; where it is zero in
    the row before, the quantity itself is.

    Parameters
    ----------
    t : ndarray of float64, shape (n,)
        Increasing.
    values : ndarray of float64, shape (n,)
        Not negative; may be infinite.
    level : float
        Positive.

    Returns
    -------
    float or None
        None if no row has reached the level; the first time if the first row has.
    """
    reached = values >= level
    if not reached.any():
        return None
    row = int(reached.argmax())
    return float(t[0]) if row == 0 else between(t[row - 1], t[row], values[row - 1], values[row], level)


def first_fall(t: FloatArray, values: FloatArray, level: float) -> float | None:
    """First time at which a quantity >= 0 falls to a level; otherwise as `first_rise`."""
    reached = values <= level
    if not reached.any():
        return None
    row = int(reached.argmax())
    return float(t[0]) if row == 0 else between(t[row - 1], t[row], values[row - 1], values[row], level)


def between(t0: float, t1: float, before: float, after: float, level: float) -> float:
    """Time from t0 to t1 at which a quantity that goes from `before` to `after` is at a level between the two."""
    if math.isinf(before) or math.isinf(after):
        share = 0.0 if math.isinf(after) else 1.0  # as early, or as late, as the finite end allows
    elif before > 0.0 and after > 0.0:
        share = math.log(level / before) / math.log(after / before)
    else:
        share = (level - before) / (after - before)
    return float(t0 + share * (t1 - t0))


def smooth_rise(t: FloatArray, values: FloatArray, level: float) -> float | None:
    """As `first_rise`, with a cubic spline through the logarithms of the values, all positive."""
    reached = values >= level
    if not reached.any():
        return None
    row = int(reached.argmax())
    if row == 0:
        return float(t[0])
    roots = CubicSpline(t, np.log(values)).solve(math.log(level), extrapolate=False)
    inside = roots[(roots >= t[row - 1]) & (roots <= t[row])]
    return float(inside[0]) if inside.size else between(t[row - 1], t[row], values[row - 1], values[row], level)
