"""What all pictures share: style, a panel to draw into with its heading, the axes of time and angle."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

STYLE: Any = {  # matplotlib types settings by name, which a dict of ours cannot match
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "savefig.dpi": 180,
    "figure.dpi": 100,
}
DENSITY_MAP = "viridis"
MODE_MAP = "viridis"

_LETTERS = 13.0
"""Letters of a heading in an inch."""

_LOG_TIME_DECADES = 3.0
"""Time is shown on a logarithmic axis when the rows after the first span more decades than this."""


def panel(ax: Axes | None, size: tuple[float, float], heading: str = "") -> tuple[Figure, Axes]:
    """The figure and axes to draw into; new ones, under a heading, if none are given."""
    if ax is not None:
        figure = ax.get_figure(root=True)
        assert figure is not None
        return figure, ax
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    head(figure, heading)
    return figure, figure.subplots()


def head(figure: Figure, heading: str) -> None:
    """Write a heading above all panels, in as many lines as it needs."""
    if heading:
        longest = round(_LETTERS * figure.get_figwidth())
        lines = [part for line in heading.split("\n") for part in textwrap.wrap(line, longest)]
        figure.suptitle("\n".join(lines), fontsize=10.5, x=0.01, ha="left")


def is_log_time(t: FloatArray) -> bool:
    """Whether these times ask for a logarithmic axis."""
    later = t[t > 0.0]
    return later.size > 2 and math.log10(float(later[-1] / later[0])) > _LOG_TIME_DECADES


def angle_axis(ax: Axes, low: float = 0.0, high: float = 2.0 * np.pi) -> None:
    """Angles go up, in radians."""
    ax.set_ylim(low, high)
    ax.set_yticks(np.pi * np.array([0.0, 0.5, 1.0, 1.5]), ["0", "π/2", "π", "3π/2"])
    ax.set_ylabel("angle θ (rad)")


def angle_across(ax: Axes) -> None:
    """Angles go across, in radians."""
    ax.set_xlim(0.0, 2.0 * np.pi)
    ax.set_xticks(np.pi * np.array([0.0, 0.5, 1.0, 1.5, 2.0]), ["0", "π/2", "π", "3π/2", "2π"])
    ax.set_xlabel("angle θ (rad)")


def time_axis(ax: Axes, t: FloatArray, log_time: bool) -> None:
    """Time goes across."""
    ax.set_xlabel("time t")
    if log_time:
        ax.set_xscale("log")
        ax.set_xlim(float(t[t > 0.0][0]), float(t[-1]))
    elif t.size > 1:
        ax.set_xlim(float(t[0]), float(t[-1]))
