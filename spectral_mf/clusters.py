"""Points that a measure has collapsed onto."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_mf.atoms import TWO_PI

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Clusters:
    """Clusters in order of position.

    Attributes
    ----------
    positions : ndarray of float64, shape (n,)
        Mean angles in radians: of all the mass of a cluster, or of its core (`find_clusters`).
    masses : ndarray of float64, shape (n,)
    widths : ndarray of float64, shape (n,)
        Extent in radians, as the function that found the clusters defines it.
    """

    positions: FloatArray
    masses: FloatArray
    widths: FloatArray


def group_points(angles: FloatArray, masses: FloatArray, *, gap: float, period: float = TWO_PI) -> Clusters:
    """Group points on a circle of length `period`: neighbours closer than `gap` belong together.

    Parameters
    ----------
    angles : ndarray of float64, shape (N,)
        Any real numbers, taken modulo the period.
    masses : ndarray of float64, shape (N,)
        Those of zero are left out.
    gap : float
        Distance in radians.
    period : float

    Returns
    -------
    Clusters
        The masses add up to those given, exactly up to rounding. Widths are distances between the outermost points.
    """
    present = masses > 0.0
    order = np.argsort(angles[present] % period, kind="stable")
    x = (angles[present] % period)[order]
    w = masses[present][order]
    apart = np.append(np.diff(x), x[0] + period - x[-1]) >= gap
    if apart.any():  # begin after a gap, so that no group straddles the end
        first = int(np.flatnonzero(apart)[-1]) + 1
        x = np.concatenate([x[first:], x[:first] + period])
        w = np.roll(w, -first)
        apart = np.roll(apart, -first)
    starts = np.concatenate([[0], np.flatnonzero(apart[:-1]) + 1])
    ends = np.append(starts[1:], x.size)
    total = np.add.reduceat(w, starts)
    anchor = x[starts]
    offset = x - np.repeat(anchor, ends - starts)  # differences, so that nearly equal angles keep their digits
    mean = (anchor + np.add.reduceat(w * offset, starts) / total) % period
    widths = x[ends - 1] - anchor
    by_position = np.argsort(mean)
    return Clusters(mean[by_position], total[by_position], widths[by_position])
