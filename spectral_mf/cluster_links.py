"""Which cluster of one row is which cluster of the next.

Mass on the circle keeps its order. Of all ways to carry the masses of one row to those of the next in order, the one
that moves them least is taken (the plan of the Wasserstein-1 distance); most of a cluster's mass says where it went. Of
a broad one that is seen as several next, none of them much lighter than the others, the nearest goes on with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_mf.atoms import TWO_PI
from spectral_mf.clusters import Clusters

FloatArray = NDArray[np.float64]

HEIR = 0.5
"""A later cluster with this share of what the largest heir takes up may be the one that goes on."""


def carried_mass(before: Clusters, after: Clusters) -> FloatArray:
    """Mass that goes from each cluster to each later one when all is carried in order and as little as possible.

    Parameters
    ----------
    before, after : Clusters
        In order of position, with masses that sum to 1.

    Returns
    -------
    ndarray of float64, shape (clusters before, clusters after)
        Rows sum to the masses before, columns to those after.
    """
    shift = _level_shift(before, after)
    a = np.concatenate([[0.0], np.cumsum(before.masses)])
    b = np.concatenate([[0.0], np.cumsum(after.masses)]) + shift
    carried = np.zeros((before.masses.size, after.masses.size))
    for turn in (-1.0, 0.0, 1.0):
        upper = np.minimum(a[1:, None], b[1:] + turn)
        lower = np.maximum(a[:-1, None], b[:-1] + turn)
        carried += np.maximum(upper - lower, 0.0)
    return carried


def successors(before: Clusters, after: Clusters) -> NDArray[np.int64]:
    """Number of the later cluster that each goes on as; shape (clusters before,).

    The nearest of those that take up the most of its mass, or at least half as much.
    """
    carried = carried_mass(before, after)
    heirs = carried >= HEIR * carried.max(axis=1, keepdims=True)
    turns = np.exp(1j * (before.positions[:, None] - after.positions))
    return np.asarray(np.where(heirs, np.abs(np.angle(turns)), np.inf).argmin(axis=1), dtype=np.int64)


def _level_shift(before: Clusters, after: Clusters) -> float:
    """Median over the circle of the difference of the distribution functions: the optimal shift of levels.

    Rabin, Delon, Gousseau, "Transportation distances on the circle", J. Math. Imaging Vis. 41 (2011), 147-167.
    """
    angles = np.concatenate([before.positions, after.positions])
    order = np.argsort(angles, kind="stable")
    difference = np.cumsum(np.concatenate([before.masses, -after.masses])[order])
    lengths = np.diff(np.append(angles[order], angles[order[0]] + TWO_PI))
    by_level = np.argsort(difference, kind="stable")
    covered = np.cumsum(lengths[by_level])
    return float(difference[by_level[np.searchsorted(covered, 0.5 * TWO_PI)]])
