"""Pictures of a run with positions: densities over the position, and the size of moments over position and time.

Every function returns a matplotlib Figure, or draws into the Axes that it is given, as those of `spectral_mf.plotting`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spectral_mf.density_panel import density_panel, edges_between
from spectral_mf.errors import InputError
from spectral_mf.harmonics import fourier_sum
from spectral_mf.picture_axes import DENSITY_MAP, MODE_MAP, STYLE, head, is_log_time, panel, time_axis
from spectral_mf.picture_titles import positional_title
from spectral_mf.positional_trajectory import PositionalTrajectory

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_N_CELLS = 256
_N_ACROSS = 200
_MOST_COLUMNS = 800
_DECADES = 6.0
"""Decades of sizes that colours tell apart: near position 0 some data vanish."""

_LINES = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Positions whose moments are drawn as lines."""


def plot_overview(run: PositionalTrajectory) -> Figure:
    """Four panels: density over the position, the leading moment over time and position, its growth, the mean density.

    Parameters
    ----------
    run : PositionalTrajectory
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(9.0, 6.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(2, 2)
        head(figure, positional_title(run))
        plot_density(run, ax=axes[0, 0])
        plot_order(run, ax=axes[0, 1])
        plot_mean(run, ax=axes[1, 0])
        plot_moments(run, ax=axes[1, 1])
        return figure


def plot_density(run: PositionalTrajectory, *, ax: Axes | None = None) -> Figure:
    """Density at the last time over the position (across) and the angle (up), relative to uniform."""
    with rc_context(STYLE):
        figure, ax = panel(ax, (6.4, 3.6), positional_title(run))
        edges = np.linspace(0.0, 1.0, _N_ACROSS + 1)
        move = run.grid.interpolation(0.5 * (edges[1:] + edges[:-1]))
        relative = _cells(move @ run.moments[-1])
        density_panel(figure, ax, edges, relative)
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel("position s")
        ax.set_title(f"Density at t = {run.t[-1]:g}")
        return figure


def plot_mean(run: PositionalTrajectory, *, ax: Axes | None = None) -> Figure:
    """Density of all tokens, whatever their position, over time (across) and angle (up), relative to uniform."""
    with rc_context(STYLE):
        figure, ax = panel(ax, (6.4, 3.6), positional_title(run))
        shown = _columns(run)
        relative = _cells(run.mean_moments()[shown])
        log_time = is_log_time(run.t)
        density_panel(figure, ax, edges_between(run.t[shown], log_time), relative)
        ax.set_title("Density, mean over positions")
        time_axis(ax, run.t, log_time)
        return figure


def plot_order(run: PositionalTrajectory, *, k: int | None = None, ax: Axes | None = None) -> Figure:
    """Size |c_k| of one moment over time (across) and position (up), on logarithmic colours.

    Parameters
    ----------
    k : int, optional
        Mode; by default the one that is largest at the last time.
    """
    with rc_context(STYLE):
        figure, ax = panel(ax, (6.4, 3.6), positional_title(run))
        k = _mode_shown(run, k)
        edges, shown, log_time = np.linspace(0.0, 1.0, _N_ACROSS + 1), _columns(run), is_log_time(run.t)
        sizes = np.abs(run.grid.interpolation(0.5 * (edges[1:] + edges[:-1])) @ run.moments[shown, :, k].T)
        highest = float(sizes.max())
        ax.set_title(f"Size $|c_{{{k}}}|$ of the moment")
        ax.set_ylabel("position s")
        ax.set_ylim(0.0, 1.0)
        time_axis(ax, run.t, log_time)
        if highest == 0.0:
            _say_all_zero(ax)
            return figure
        lowest = max(float(sizes.min()), 10.0**-_DECADES * highest)
        norm = LogNorm(min(lowest, 0.5 * highest), highest)
        mesh = ax.pcolormesh(
            edges_between(run.t[shown], log_time),
            edges,
            np.maximum(sizes, lowest),
            norm=norm,
            cmap=DENSITY_MAP,
            rasterized=True,
        )
        bar = figure.colorbar(mesh, ax=ax, pad=0.02, extend="min" if float(sizes.min()) < lowest else "neither")
        bar.set_label(f"$|c_{{{k}}}|$")
        return figure


def plot_moments(run: PositionalTrajectory, *, k: int | None = None, ax: Axes | None = None) -> Figure:
    """Size |c_k| of one moment over time at some positions; dashed, the growth of causal data that is known exactly.

    Parameters
    ----------
    k : int, optional
        Mode; by default the one that is largest at the last time.
    """
    with rc_context(STYLE):
        figure, ax = panel(ax, (6.2, 3.8), positional_title(run))
        k = _mode_shown(run, k)
        lines = np.abs(run.grid.interpolation(np.array(_LINES)) @ run.moments[:, :, k].T)
        rate = _causal_rate(run, k)
        colours = colormaps[MODE_MAP](np.linspace(0.0, 0.85, len(_LINES)))
        for s, size, colour in zip(_LINES, lines, colours, strict=True):
            ax.plot(run.t, np.where(size > 0.0, size, np.nan), color=colour, label=f"s = {s:g}")
            if rate is not None and size[0] > 0.0:
                theory = size[0] * np.exp(np.minimum(rate * (run.t - run.t[0]), 700.0))
                ax.plot(run.t, np.where(theory <= 1.0, theory, np.nan), color=colour, linestyle="--", linewidth=0.9)
        positive = lines[lines > 0.0]
        if positive.size:
            ax.set_yscale("log")
            highest = float(positive.max())
            lowest = max(float(positive.min()), 1e-12 * highest)
            room = max(1.3, (highest / lowest) ** 0.3)  # above the lines, for their legend
            ax.set_ylim(0.8 * lowest, room * highest)
            ax.legend(loc="upper left", ncols=3, handlelength=1.2, columnspacing=1.0)
        else:
            _say_all_zero(ax)
        ax.set_ylabel(f"$|c_{{{k}}}|$")
        ax.set_title("Moments" + ("" if rate is None else " (solid) and linear theory (dashed)"))
        time_axis(ax, run.t, is_log_time(run.t))
        return figure


PICTURES: dict[str, Callable[[PositionalTrajectory], Figure]] = {
    "overview": plot_overview,
    "density": plot_density,
    "order": plot_order,
    "moments": plot_moments,
    "mean": plot_mean,
}


def draw(run: PositionalTrajectory, picture: str) -> Figure:
    """Make one picture of a run with positions.

    Raises
    ------
    InputError
        If there is no such picture.
    """
    if picture not in PICTURES:
        raise InputError(f"a run with positions has no picture {picture!r}; choose one of {', '.join(PICTURES)}.")
    return PICTURES[picture](run)


def _cells(moments: ComplexArray) -> FloatArray:
    """Mean densities over cells, relative to uniform, from moments of shape (n, K + 1)."""
    averaged = moments * np.sinc(np.arange(moments.shape[-1]) / _N_CELLS)
    return fourier_sum(averaged, 2.0 * np.pi * np.arange(_N_CELLS) / _N_CELLS)


def _columns(run: PositionalTrajectory) -> NDArray[np.int64]:
    """Rows that are shown, the first and last among them."""
    return np.unique(np.linspace(0, len(run) - 1, min(len(run), _MOST_COLUMNS)).round().astype(np.int64))


def _mode_shown(run: PositionalTrajectory, k: int | None) -> int:
    """The mode asked for, or the one that is largest at the last time."""
    if k is None:
        return int(np.abs(run.moments[-1, :, 1:]).max(axis=0).argmax()) + 1
    if not 1 <= k < run.moments.shape[2]:
        raise InputError(f"mode {k} is not stored; choose from 1 to {run.moments.shape[2] - 1}.")
    return k


def _say_all_zero(ax: Axes) -> None:
    ax.text(0.5, 0.5, "all moments are zero", transform=ax.transAxes, ha="center", color="0.4")


def _causal_rate(run: PositionalTrajectory, k: int) -> float | None:
    """Rate a/(p+1) of causal data ((e^{λs} - 1)/(e^λ - 1))^p without softmax; None for all else."""
    model, profile = run.model, run.configuration["initial"].get("profile", {"kind": "power", "power": 0.0})
    known = run.configuration["initial"].get("kind") is not None
    exact = model.causal and model.normalization != "softmax" and not model.rotary and not model.has_matrix
    if not (known and exact and profile["kind"] == "power"):
        return None
    damping = model.diffusion * k**2
    alone = float(model.attention.growth_rate(k)) + damping
    return alone / (float(profile["power"]) + 1.0) - damping
