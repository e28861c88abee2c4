"""A density over an axis across and the angle up, relative to uniform: its mesh, colours and colour bar."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spectral_mf.density_mesh import DensityMesh
from spectral_mf.picture_axes import DENSITY_MAP, angle_axis

FloatArray = NDArray[np.float64]


def density_panel(figure: Figure, ax: Axes, edges_across: FloatArray, relative: FloatArray) -> None:
    """Draw densities on logarithmic colours, from 1/30 to 30 times uniform at most, and their colour bar.

    Arrows at the ends of the bar say that values go beyond.

    Parameters
    ----------
    figure, ax : Figure, Axes
    edges_across : ndarray of float64, shape (n + 1,)
    relative : ndarray of float64, shape (n, n_cells)
        Mean densities, relative to uniform, of cells centred at 2 pi j / n_cells.
    """
    for side in ("left", "bottom"):  # a line on the lowest cells would hide a cluster at angle 0
        ax.spines[side].set_position(("outward", 2.0))
    n_cells = relative.shape[1]
    edges = 2.0 * np.pi * (np.arange(n_cells + 1) - 0.5) / n_cells
    norm = _norm(relative)
    shown = np.maximum(relative, norm.vmin if norm.vmin is not None else 0.0).T
    mesh = DensityMesh(edges_across, edges, shown, norm=norm, cmap=DENSITY_MAP, rasterized=True)
    ax.add_collection(mesh)
    ax.autoscale_view()
    angle_axis(ax, edges[0], edges[-1])
    bar = figure.colorbar(mesh, ax=ax, pad=0.02, extend=_extend(relative, norm))
    bar.set_label("density / uniform")
    _plain_ticks(bar.ax, norm)


def _norm(relative: FloatArray) -> LogNorm:
    finite = relative[np.isfinite(relative)]
    high = min(30.0, float(finite.max(initial=1.0)))
    low = max(1.0 / 30.0, float(finite.min(initial=1.0)))
    if high - low < 1e-9:
        low, high = 0.9, 1.1
    return LogNorm(low, high)


def _extend(relative: FloatArray, norm: LogNorm) -> str:
    below = bool((relative < 0.999 * (norm.vmin or 0.0)).any())
    above = bool((relative > 1.001 * (norm.vmax or np.inf)).any())
    return {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[below, above]


def _plain_ticks(ax: Axes, norm: LogNorm) -> None:
    """Tick labels such as 0.1, 1, 10 instead of powers of ten, and enough of them."""
    low, high = norm.vmin or 0.1, norm.vmax or 10.0
    if high / low < 1.3:
        ax.set_yticks([1.0], ["1"])
        ax.set_yticks([], minor=True)
        return
    candidates = [m * 10.0**e for e in range(-3, 4) for m in (1.0, 2.0, 5.0)]
    if high / low < 4.0:
        candidates = [float(f"{value:.2g}") for value in np.geomspace(low, high, 5)[1:-1]]
    elif high / low > 50.0:
        candidates = [m * 10.0**e for e in range(-3, 4) for m in (1.0, 3.0)]
    ticks = sorted({value for value in candidates if low <= value <= high})
    ax.set_yticks(ticks, [f"{value:g}" for value in ticks])
    ax.set_yticks([], minor=True)


def edges_between(t: FloatArray, log_time: bool) -> FloatArray:
    """Edges of the picture's columns: midway between the times."""
    if t.size == 1:
        return np.array([t[0], t[0] + 1.0])
    if log_time:
        logs = np.log(np.where(t > 0.0, t, 0.1 * t[t > 0.0].min()))
        return np.exp(edges_between(logs, False))
    middle = 0.5 * (t[1:] + t[:-1])
    return np.concatenate([[t[0]], middle, [t[-1]]])
