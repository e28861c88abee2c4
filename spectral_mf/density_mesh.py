"""A density drawn so that no spike is lost, however few pixels the picture has.

A cluster that has collapsed is one cell wide. Where a pixel shows several cells, a mesh shows one of them and drops the
others, and with them clusters. Here a pixel shows the largest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

_LEAST_HEIGHT = 2.0
"""Pixels up that a spike has at least: wherever it falls between the pixels, and at the frame, one of them is whole."""


class DensityMesh(QuadMesh):
    """A mesh of cells over time (across) and angle (up, once round) whose maxima are kept at every size.

    Parameters
    ----------
    x_edges : array_like of float, shape (n_times + 1,)
    y_edges : array_like of float, shape (n_angles + 1,)
        Equally spaced; the last is the first, one turn on.
    values : array_like of float, shape (n_angles, n_times)
    **options
        As for matplotlib's collections: norm, cmap, rasterized, ...
    """

    def __init__(self, x_edges: ArrayLike, y_edges: ArrayLike, values: ArrayLike, **options: Any) -> None:
        corners = np.stack(np.meshgrid(np.asarray(x_edges), np.asarray(y_edges)), axis=-1)
        super().__init__(corners, antialiased=False, **options)
        self.set_array(np.asarray(values, dtype=np.float64))

    def update_scalarmappable(self) -> None:
        """Colours for the size at which the mesh is being drawn."""
        cells = self.get_array()
        if cells is None or not isinstance(self.axes, Axes):
            super().update_scalarmappable()
            return
        corners = np.asarray(self.get_coordinates())
        pixels = self.axes.transData.transform
        across, up = pixels(corners[0])[:, 0], pixels(corners[:, 0])[:, 1]
        self.set_array(_largest_across(_largest_up(np.asarray(cells), abs(float(up[1] - up[0]))), across))
        try:
            super().update_scalarmappable()
        finally:
            self.set_array(cells)


def _largest_up(cells: FloatArray, height: float) -> FloatArray:
    """The largest of as many neighbours, once round the circle, as are high enough together; height in pixels."""
    reach = math.ceil(0.5 * (_LEAST_HEIGHT / height - 1.0)) if 0.0 < height < _LEAST_HEIGHT else 0
    result = cells
    for step in range(1, min(reach, cells.shape[0] // 2) + 1):
        result = np.maximum(result, np.maximum(np.roll(cells, step, axis=0), np.roll(cells, -step, axis=0)))
    return np.asarray(result)


def _largest_across(cells: FloatArray, edges: FloatArray) -> FloatArray:
    """In columns narrower than a pixel, the largest of all within half a pixel of their middle; edges in pixels."""
    if cells.shape[1] < 2 or np.diff(edges).min() >= 1.0:
        return cells
    middle = 0.5 * (edges[1:] + edges[:-1])
    first = np.clip(np.searchsorted(edges, middle - 0.5, side="right") - 1, 0, middle.size - 1)
    last = np.clip(np.searchsorted(edges, middle + 0.5, side="left"), 1, middle.size)
    return np.stack([cells[:, a:b].max(axis=1) for a, b in zip(first, last, strict=True)], axis=1)
