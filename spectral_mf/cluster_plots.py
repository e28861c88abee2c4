"""Pictures of the collapse: characteristics over the density, the tree of clusters, the energy staircase."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spectral_mf.characteristic_lines import characteristic_lines
from spectral_mf.cluster_history import ClusterHistory, ClusterTrack, clusters
from spectral_mf.energy_staircase import EnergyStaircase, energy_staircase
from spectral_mf.errors import InputError
from spectral_mf.picture_axes import DENSITY_MAP, STYLE, angle_axis, head, is_log_time, panel, time_axis
from spectral_mf.picture_titles import title
from spectral_mf.plotting import plot_density
from spectral_mf.trajectory import Trajectory
from spectral_mf.wording import counted

FloatArray = NDArray[np.float64]

TWO_PI = 2.0 * np.pi

_THICKEST = 9.0
"""Width of the line of a cluster that holds all mass, in points."""

_SAME_MASS = 0.02
"""Relative difference of masses that a line shows as one width: rounding of what is found is no change of mass."""

_WIDEST_BAND = 0.25 * np.pi
"""Width in radians from which on no band is drawn, and no line while clusters form: that is hardly a cluster."""

_CLOSEST_LABELS = 0.05
"""Share of the axis that the label of a jump needs."""


def plot_characteristics(trajectory: Trajectory, *, n_lines: int = 48, ax: Axes | None = None) -> Figure:
    """Characteristics X(t; label) over the density: paths of equal shares of the mass, or of the atoms.

    Parameters
    ----------
    n_lines : int
        Number of paths.

    Raises
    ------
    InputError
        If the run has diffusion: then mass does not move along characteristics.
    """
    lines = characteristic_lines(trajectory, n_lines)
    with rc_context(STYLE):
        figure = plot_density(trajectory, ax=ax)
        axes = figure.axes[0] if ax is None else ax
        limits = axes.get_ylim()
        for line in lines:
            for copy in _turns(line, *limits):
                axes.plot(trajectory.t, copy, color="white", linewidth=0.5, alpha=0.7)
        axes.set_ylim(*limits)
        axes.set_title("Characteristics over the density")
        return figure


def plot_cluster_tree(
    trajectory: Trajectory, *, history: ClusterHistory | None = None, ax: Axes | None = None
) -> Figure:
    """Positions of the clusters over time; lines as thick as mass, joined where clusters merge.

    Lines are pale while clusters form, that is, until all are narrower than the resolution; a cluster wider than an
    eighth of a turn has no line yet. The light band about a line is the cluster's width, as far as that is below an
    eighth of a turn.

    Parameters
    ----------
    history : ClusterHistory, optional
        The run's clusters, if they are known already.

    Raises
    ------
    InputError
        If no row has a cluster.
    """
    found = clusters(trajectory) if history is None else history
    if not found.tracks:
        raise InputError("no row of this run has a cluster, so there is no tree; solve to a later time.")
    with rc_context(STYLE):
        figure, ax = panel(ax, (6.4, 3.8), title(trajectory))
        colours = colormaps[DENSITY_MAP](np.linspace(0.05, 0.75, len(found.tracks)))
        formed = found.t[found.first_formed] if found.first_formed < found.t.size else found.t[0]
        for track, colour in zip(found.tracks, colours, strict=True):
            t, angle, mass, width = _path(found, track)
            pale = 0.35 * colour + 0.65
            band = np.where(width < _WIDEST_BAND, width, np.nan)
            for copy in _turns(angle, -_WIDEST_BAND, TWO_PI + _WIDEST_BAND):
                ax.fill_between(t, copy - band, copy + band, color=colour, alpha=0.18, linewidth=0.0)
            for copy in _turns(angle, 0.0, TWO_PI):
                points = np.stack([t, copy], axis=1)
                stretches = _stretches(mass, t[:-1] < formed, _visible(t, copy, width, formed))
                ax.add_collection(
                    LineCollection(
                        [points[start : end + 1] for start, end in stretches],
                        linewidths=[_THICKEST * mass[end - 1 : end + 1].min() for _, end in stretches],
                        colors=[pale if t[start] < formed else colour for start, _ in stretches],
                        capstyle="round",
                        joinstyle="round",
                    )
                )
                if t.size == 1:
                    ax.plot(t, copy, "o", color=colour, markersize=0.6 * _THICKEST * math.sqrt(mass[0]))
            if track.merged_into is None and track.t[-1] == found.t[-1]:
                ax.annotate(
                    f"{track.masses[-1]:.2g}",
                    (track.t[-1], track.positions[-1]),
                    xytext=(7, 0),
                    textcoords="offset points",
                    va="center",
                    color=colour,
                    annotation_clip=False,
                )
        angle_axis(ax)
        _time_axis(ax, found.t, max(float(found.tracks[0].t[0]), 0.0))
        for merger in found.mergers:
            ax.axvline(merger.t, color="0.6", linewidth=0.7, linestyle=":", zorder=0.0)
        ax.set_title(_tree_title(found))
        return figure


def plot_energy_staircase(trajectory: Trajectory, *, staircase: EnergyStaircase | None = None) -> Figure:
    """Energy as a share of a single point's, over time and over the rescaled clock of mergers.

    Parameters
    ----------
    staircase : EnergyStaircase, optional
        The run's staircase, if it is known already.
    """
    steps = energy_staircase(trajectory) if staircase is None else staircase
    colour = colormaps[DENSITY_MAP](0.25)
    with rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, sharey=True)
        head(figure, title(trajectory))
        left.plot(steps.fine.t, steps.fine.share, color=colour)
        left.set_ylim(0.0, min(1.05, 1.5 * float(steps.share.max())))
        left.set_ylabel("energy / that of one point")
        left.set_title("Energy over time")
        _time_axis(left, steps.t, 0.0)
        right.set_title("Energy over the clock of mergers")
        right.set_xlabel("rescaled time τ")
        known = np.isfinite(steps.fine.clock)
        if known.any() and steps.fine.clock[known].max() > 0.0:
            right.plot(steps.fine.clock[known], steps.fine.share[known], color=colour)
        else:
            right.set_xticks([])
            reason = _why_no_clock(trajectory, bool(known.any()))
            right.text(0.5, 0.5, reason, transform=right.transAxes, ha="center", color="0.4")
        _mark_jumps(left, [(jump.t, jump.t) for jump in steps.jumps])
        _mark_jumps(right, [(jump.clock, jump.t) for jump in steps.jumps if not math.isnan(jump.clock)])
        return figure


def _why_no_clock(trajectory: Trajectory, formed: bool) -> str:
    if trajectory.model.diffusion > 0.0:
        return "no clock: with diffusion clusters do not move as points"
    return (
        "the clock stands still: no pair is left to merge"
        if formed
        else "no clock: no row has clusters that are narrow"
    )


def _mark_jumps(ax: Axes, jumps: list[tuple[float, float]]) -> None:
    """Lines at jumps (place on the axis, time) with times from the top down; of those that are close, the first's."""
    low, high = ax.get_xlim()
    log = ax.get_xscale() == "log"
    last = -math.inf
    for place, time in jumps:
        ax.axvline(place, color="0.6", linewidth=0.7, linestyle=":", zorder=0.0)
        share = math.log(place / low) / math.log(high / low) if log else (place - low) / (high - low)
        if share - last < _CLOSEST_LABELS:
            continue
        last = share
        ax.annotate(
            f"t = {time:.4g}",
            (place, 1.0),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-2, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            rotation=90.0,
            fontsize=8.0,
            color="0.3",
        )


def _turns(angle: FloatArray, low: float, high: float) -> Iterator[FloatArray]:
    """Copies of a continuous path, whole turns apart, that pass between two angles: the axes cut them at the seam."""
    first = math.floor((float(angle.min()) - high) / TWO_PI)
    last = math.ceil((float(angle.max()) - low) / TWO_PI)
    for turn in range(first, last + 1):
        copy = angle - TWO_PI * turn
        if copy.max() >= low and copy.min() <= high:
            yield copy


def _path(history: ClusterHistory, track: ClusterTrack) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Times, angles (continuous), masses and widths of a track, through the points where clusters merge into one."""
    t, angle = list(track.t), list(track.positions)
    mass, width = list(track.masses), list(track.widths)
    for merger in reversed(history.mergers):
        if track.number not in (merger.absorbed, merger.into) or merger.t in t:
            continue
        heir = history.tracks[merger.into]
        meeting = heir.positions[np.searchsorted(heir.t, merger.interval[1])]
        at = int(np.searchsorted(t, merger.t))
        t.insert(at, merger.t)
        angle.insert(at, meeting)
        mass.insert(at, mass[min(at, len(mass) - 1)])
        width.insert(at, 0.0)
    return np.array(t), np.unwrap(np.array(angle)), np.array(mass), np.array(width)


def _visible(t: FloatArray, angle: FloatArray, width: FloatArray, formed: float) -> NDArray[np.bool_]:
    """Which of the n - 1 steps of a path are drawn.

    The peak of a broad mass may be here in one row and there in the next, as parts of it become clusters: no path.
    """
    broad = np.maximum(width[:-1], width[1:])
    leaps = np.abs(np.diff(angle)) > 0.5 * broad
    return np.asarray((broad < _WIDEST_BAND) | ((t[:-1] >= formed) & ~leaps))


def _stretches(mass: FloatArray, forming: NDArray[np.bool_], visible: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last points of the stretches of a path that are drawn as one: of one mass, and one shade.

    mass is that of n points; forming and visible, shape (n - 1,), are of the steps between them.
    """
    steps = np.minimum(mass[:-1], mass[1:])
    stretches, end = [], steps.size
    while end > 0:
        alike = (np.abs(steps[:end] - steps[end - 1]) <= _SAME_MASS * steps[end - 1]) & (
            (forming[:end] == forming[end - 1]) & (visible[:end] == visible[end - 1])
        )
        start = int(np.flatnonzero(~alike)[-1]) + 1 if not alike.all() else 0
        if visible[end - 1]:
            stretches.append((start, end))
        end = start
    return stretches[::-1]


def _time_axis(ax: Axes, t: FloatArray, start: float) -> None:
    """Time, from a start on where it is logarithmic: before it there may be decades without a cluster."""
    log_time = is_log_time(t)
    time_axis(ax, t, log_time)
    if log_time:
        ax.set_xlim(max(0.9 * start, float(t[t > 0.0][0])), float(t[-1]))


def _tree_title(history: ClusterHistory) -> str:
    text = f"Clusters (numbers: mass); {counted(len(history.mergers), 'mergers')}"
    times = ", ".join(f"{merger.t:.4g}" for merger in history.mergers[:4])
    more = ", …" if len(history.mergers) > 4 else ""
    return f"{text} at t = {times}{more}" if times else text
