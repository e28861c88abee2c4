"""What all pictures share: style, a panel to draw into, the axes of time and angle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spectral_mf.model import Model
from spectral_mf.trajectory import Trajectory

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
    """Write a heading above all panels."""
    if heading:
        figure.suptitle(heading, fontsize=10.5, x=0.01, ha="left")


def title(trajectory: Trajectory) -> str:
    """Model, times and methods of a run in one line."""
    computed = trajectory.method[1:] if len(trajectory) > 1 else trajectory.method  # no method computed the first row
    methods = " → ".join(dict.fromkeys(str(method) for method in computed))
    state = "" if trajectory.complete else "; partial"
    times = f"t = {trajectory.t[0]:g} to {trajectory.t[-1]:g}"
    return f"{model_title(trajectory.model)}, {times} ({methods}{state})"


def model_title(model: Model) -> str:
    """Model and parameters in one line."""
    parameters = model.to_dict()
    kinds = {"softmax": "SA", "none": "USA", "peak": "USA, time in units of e^-β"}
    name = kinds.get(str(parameters.get("normalization")), str(parameters.get("type")))
    beta = f", β = {parameters['beta']:g}" if "beta" in parameters else ""
    noise = f", κ = {model.diffusion:g}" if model.diffusion > 0.0 else ""
    return f"{name}{beta}{noise}"


def is_log_time(t: FloatArray) -> bool:
    """Whether these times ask for a logarithmic axis."""
    later = t[t > 0.0]
    return later.size > 2 and math.log10(float(later[-1] / later[0])) > _LOG_TIME_DECADES


def angle_axis(ax: Axes, low: float = 0.0, high: float = 2.0 * np.pi) -> None:
    """Angles go up, in radians."""
    ax.set_ylim(low, high)
    ax.set_yticks(np.pi * np.array([0.0, 0.5, 1.0, 1.5]), ["0", "π/2", "π", "3π/2"])
    ax.set_ylabel("angle θ (rad)")


def time_axis(ax: Axes, t: FloatArray, log_time: bool) -> None:
    """Time goes across."""
    ax.set_xlabel("time t")
    if log_time:
        ax.set_xscale("log")
        ax.set_xlim(float(t[t > 0.0][0]), float(t[-1]))
    elif t.size > 1:
        ax.set_xlim(float(t[0]), float(t[-1]))
