"""Pictures of a run: density in space and time, moments against linear theory, growth rates, energy.

Every function returns a matplotlib Figure, or draws into the Axes that it is given. No display is needed, and the
user's backend and settings stay as they are.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spectral_mf.density_panel import density_panel, edges_between
from spectral_mf.errors import InputError
from spectral_mf.growth_rates import dominant_mode
from spectral_mf.model import Model
from spectral_mf.picture_axes import (
    DENSITY_MAP,
    MODE_MAP,
    STYLE,
    angle_across,
    head,
    is_log_time,
    panel,
    time_axis,
)
from spectral_mf.picture_titles import has_linear_theory, model_title, title
from spectral_mf.storage.publishing import checked_place, write_whole
from spectral_mf.trajectory import Trajectory

FloatArray = NDArray[np.float64]

SUFFIXES = (".png", ".svg", ".pdf")

_MOST_COLUMNS = 1500
"""Rows of a trajectory beyond which neighbours share a column of the picture."""

_LEAST_SHOWN = 1e-3
"""Density relative to uniform below which its curve is cut off: between clusters it falls by hundreds of decades."""


def plot_overview(trajectory: Trajectory) -> Figure:
    """Four panels: density, moments, growth rates, energy; the last density where there are no growth rates.

    Parameters
    ----------
    trajectory : Trajectory

    Returns
    -------
    Figure
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(9.0, 6.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(2, 2)
        head(figure, title(trajectory))
        plot_density(trajectory, ax=axes[0, 0])
        plot_moments(trajectory, ax=axes[0, 1])
        if has_linear_theory(trajectory):
            plot_growth_rates(trajectory.model, ax=axes[1, 0])
        else:
            plot_last_density(trajectory, ax=axes[1, 0])
        plot_energy(trajectory, ax=axes[1, 1])
        return figure


def plot_density(trajectory: Trajectory, *, ax: Axes | None = None) -> Figure:
    """Density over time (across) and angle (up), relative to uniform, on logarithmic colours.

    The colours span at most from 1/30 to 30 times uniform: ripples of the linear phase and clusters both show. A pixel
    that shows several cells has the colour of the largest, so that a cluster one cell wide is never lost.
    """
    with rc_context(STYLE):
        figure, ax = panel(ax, (6.4, 3.6), title(trajectory))
        t, cells = _thinned(trajectory)
        relative = cells * 2.0 * np.pi
        log_time = is_log_time(trajectory.t)
        density_panel(figure, ax, edges_between(t, log_time), relative)
        ax.set_title("Density")
        time_axis(ax, trajectory.t, log_time)
        if float(np.ptp(relative)) < 1e-9:
            ax.text(0.5, 0.5, "uniform at all times", transform=ax.transAxes, ha="center", color="white")
        return figure


def plot_moments(trajectory: Trajectory, *, modes: Sequence[int] | None = None, ax: Axes | None = None) -> Figure:
    """Size |c_k| of the moments over time, with linear theory |c_k(0)| exp(lambda_k t) dashed if the model has it.

    Parameters
    ----------
    modes : sequence of int, optional
        Modes drawn; by default the six that grow fastest by linear theory, as far as they are not zero. The lowest six
        of these where there is no such theory.
    """
    with rc_context(STYLE):
        figure, ax = panel(ax, (6.2, 3.8), title(trajectory))
        sizes = np.abs(trajectory.moments)
        chosen = _telling_modes(trajectory) if modes is None else list(modes)
        if not chosen:
            ax.text(0.5, 0.5, "all moments are zero", transform=ax.transAxes, ha="center", color="0.4")
        colours = colormaps[MODE_MAP](np.linspace(0.0, 0.85, max(len(chosen), 1)))
        t = trajectory.t
        linear = False
        for k, colour in zip(chosen, colours, strict=False):
            if not 1 <= k < sizes.shape[1]:
                raise InputError(f"mode {k} is not stored; choose from 1 to {sizes.shape[1] - 1}.")
            ax.plot(t, np.where(sizes[:, k] > 0.0, sizes[:, k], np.nan), color=colour, label=f"k = {k}")
            linear = _linear_line(ax, trajectory, k, colour) or linear
        ax.set_yscale("log")
        positive = sizes[:, chosen][sizes[:, chosen] > 0.0] if chosen else np.array([])
        low = max(float(positive.min()), 1e-12 * float(positive.max())) if positive.size else 1e-3
        ax.set_ylim(0.5 * low, 1.6 if not positive.size or positive.max() > 0.05 else 10.0 * positive.max())
        ax.set_ylabel("$|c_k|$")
        ax.set_title("Moments (solid) and linear theory (dashed)" if linear else "Moments")
        time_axis(ax, t, is_log_time(t))
        if chosen:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1.4)  # beside the curves, not on them
        return figure


def plot_growth_rates(model: Model, *, n_modes: int | None = None, ax: Axes | None = None) -> Figure:
    """Growth rates lambda_k of small perturbations, with the dominant mode marked.

    Parameters
    ----------
    n_modes : int, optional
        Modes drawn; by default a little more than twice the dominant one.
    """
    with rc_context(STYLE):
        figure, ax = panel(ax, (5.4, 3.4), model_title(model))
        if not model.has_growth_rates:
            return _without_growth_rates(figure, ax)
        dominant = dominant_mode(model)
        k = np.arange(1, (n_modes or max(8, round(2.6 * dominant.modes[-1]))) + 1)
        rates = model.growth_rate(k)
        top = np.isin(k, dominant.modes)
        grey, accent = "0.45", colormaps[DENSITY_MAP](0.25)
        for chosen, colour in ((~top, grey), (top, accent)):
            if chosen.any():
                ax.vlines(k[chosen], 0.0, rates[chosen], color=colour, linewidth=1.6)
                ax.plot(k[chosen], rates[chosen], "o", color=colour, markersize=4.5)
        ax.axhline(0.0, color="0.2", linewidth=0.8)
        names = " and ".join(str(mode) for mode in dominant.modes)
        note = f"k = {names}, $\\lambda$ = {dominant.rate:.4g}" + ("" if dominant.unstable else " (stable)")
        span = float(rates.max() - min(rates.min(), 0.0)) or 1.0
        ax.set_ylim(min(float(rates.min()), 0.0) - 0.06 * span, float(rates.max()) + 0.2 * span)
        ax.annotate(
            note,
            (dominant.modes[-1], dominant.rate),
            xytext=(6, 6),
            textcoords="offset points",
            color=accent,
        )
        ax.set_xlabel("mode k")
        ax.set_ylabel("growth rate $\\lambda_k$ (1 / time)")
        ax.set_title("Linear growth rates")
        if k.size <= 16:
            ax.set_xticks(k)
        return figure


def _without_growth_rates(figure: Figure, ax: Axes) -> Figure:
    """A panel that says why it is empty."""
    note = "the uniform density is not stationary"
    ax.text(0.5, 0.5, note, transform=ax.transAxes, ha="center", color="0.4")
    ax.set_title("Linear growth rates")
    ax.set_axis_off()
    return figure


def plot_last_density(trajectory: Trajectory, *, ax: Axes | None = None) -> Figure:
    """Density at the last time over the angle, relative to uniform, on a logarithmic axis; the first density grey."""
    with rc_context(STYLE):
        figure, ax = panel(ax, (5.4, 3.4), title(trajectory))
        half = np.pi / trajectory.theta.size
        edges = np.append(trajectory.theta - half, [2.0 * np.pi - half, 2.0 * np.pi + half])
        first, last = (np.maximum(2.0 * np.pi * trajectory.cells[i], _LEAST_SHOWN) for i in (0, -1))
        for relative, colour, width in ((first, "0.65", 1.0), (last, colormaps[DENSITY_MAP](0.25), 1.5)):
            around = np.append(relative, relative[0])  # the cell about 0 at either end
            ax.stairs(around, edges, baseline=None, color=colour, linewidth=width)
        ax.set_yscale("log")
        low, high = min(first.min(), last.min()), max(first.max(), last.max())
        ax.set_ylim(min(0.7 * low, 0.5), max(1.6 * high, 2.0))
        ax.set_ylabel("density / uniform")
        ax.set_title(f"Density at t = {trajectory.t[-1]:g} (grey: at t = {trajectory.t[0]:g})")
        angle_across(ax)
        return figure


def plot_energy(trajectory: Trajectory, *, ax: Axes | None = None) -> Figure:
    """Interaction energy over time, from the uniform density's to that of a single point.

    The energy itself, where a single point's depends on its place or is no larger; none where there is none.
    """
    with rc_context(STYLE):
        figure, ax = panel(ax, (5.4, 3.4), title(trajectory))
        model = trajectory.model
        one = np.ones(model.bandwidth + 1, dtype=np.complex128)
        uniform = float(model.energy(np.eye(1, one.size, dtype=np.complex128)[0]))
        single = float(model.energy(one))
        if model.turns != 0 or not single > uniform:
            return _plain_energy(figure, ax, trajectory)
        share = (trajectory.energy - uniform) / (single - uniform)
        t = trajectory.t
        visible = share > 0.0
        ax.plot(t, np.where(visible, share, np.nan), color=colormaps[DENSITY_MAP](0.25))
        ax.set_yscale("log")
        low = float(share[visible].min()) if visible.any() else 1e-3
        ax.set_ylim(max(0.5 * low, 1e-16), 2.0)
        ax.axhline(1.0, color="0.5", linewidth=0.8, linestyle=":")
        ax.text(0.01, 1.05, "one point", transform=ax.get_yaxis_transform(), color="0.4", fontsize=8.0, va="bottom")
        if not visible.any():
            ax.text(0.5, 0.5, "uniform at all times", transform=ax.transAxes, ha="center", color="0.4")
        ax.set_ylabel("share of one point's")
        ax.set_title("Energy above the uniform density's")
        time_axis(ax, t, is_log_time(t))
        return figure


def _plain_energy(figure: Figure, ax: Axes, trajectory: Trajectory) -> Figure:
    """The energy itself."""
    ax.set_title("Energy")
    if np.isnan(trajectory.energy).all():
        ax.text(0.5, 0.5, "the flow climbs no energy", transform=ax.transAxes, ha="center", color="0.4")
        ax.set_axis_off()
        return figure
    ax.plot(trajectory.t, trajectory.energy, color=colormaps[DENSITY_MAP](0.25))
    unit = trajectory.model.energy_log_unit
    ax.set_ylabel("interaction energy" + (f" / $e^{{{unit:g}}}$" if unit else ""))
    time_axis(ax, trajectory.t, is_log_time(trajectory.t))
    return figure


def save_figure(figure: Figure, path: str | Path, *, overwrite: bool = True) -> Path:
    """Write a figure to .png, .svg or .pdf, whole or not at all, and return its path.

    Raises
    ------
    InputError
        If the suffix is not one of these.
    StorageError
        If the file exists and may not be overwritten, or cannot be written.
    """
    return save_figures([(figure, path)], overwrite=overwrite)[0]


def save_figures(figures: Sequence[tuple[Figure, str | Path]], *, overwrite: bool = True) -> list[Path]:
    """Write figures to their paths, as `save_figure` does; if one cannot be drawn or has no place, none is written."""
    places = []
    for _, path in figures:
        if Path(path).suffix.lower() not in SUFFIXES:
            raise InputError(f"{Path(path).name} has no suffix that is known; choose one of {', '.join(SUFFIXES)}.")
        places.append(checked_place(path, overwrite=overwrite))
    contents = [_written(figure, place.suffix.lower()[1:]) for (figure, _), place in zip(figures, places, strict=True)]
    for place, content in zip(places, contents, strict=True):
        write_whole(place, content)
    return places


def _written(figure: Figure, kind: str) -> bytes:
    """A figure as the content of a file."""
    buffer = io.BytesIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format=kind)
    return buffer.getvalue()


def _linear_line(ax: Axes, trajectory: Trajectory, k: int, colour: Any) -> bool:
    """|c_k(0)| exp(lambda_k t), as far as it stays below 1; whether there is such a line."""
    start = abs(trajectory.moments[0, k])
    if start == 0.0 or not has_linear_theory(trajectory):
        return False
    t = np.linspace(trajectory.t[0], trajectory.t[-1], 400)
    if is_log_time(trajectory.t):
        t = np.unique(np.concatenate([t, np.geomspace(max(trajectory.t[1], 1e-300), trajectory.t[-1], 400)]))
    exponent = math.log(start) + float(trajectory.model.growth_rate(k)) * (t - trajectory.t[0])
    line = np.exp(np.where(exponent <= 0.0, exponent, np.nan))
    ax.plot(t, line, color=colour, linestyle=(0, (4, 2.5)), linewidth=0.9)
    return True


def _telling_modes(trajectory: Trajectory) -> list[int]:
    """Of the stored modes that are ever visible, the six that grow fastest; the lowest six without such rates."""
    largest = np.nan_to_num(np.abs(trajectory.moments[:, 1:])).max(axis=0)
    visible = np.flatnonzero(largest > 1e-13 * largest.max(initial=0.0)) + 1
    if has_linear_theory(trajectory):
        visible = visible[np.argsort(-trajectory.model.growth_rate(visible), kind="stable")]
    return sorted(int(k) for k in visible[:6])


def _thinned(trajectory: Trajectory) -> tuple[FloatArray, FloatArray]:
    """Times and cells of at most _MOST_COLUMNS rows, the first and last among them, each the largest of those around.

    Largest, so that what lives for one row is not lost.
    """
    n = len(trajectory)
    if n <= _MOST_COLUMNS:
        return trajectory.t, trajectory.cells
    chosen = np.unique(np.linspace(0, n - 1, _MOST_COLUMNS).round().astype(np.int64))
    starts = np.append(0, (chosen[1:] + chosen[:-1] + 1) // 2)
    return trajectory.t[chosen], np.maximum.reduceat(trajectory.cells, starts, axis=0)
