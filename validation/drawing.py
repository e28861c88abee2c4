"""Figures of the report, in the style of `spectral_mf.plotting`, small enough to be read on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from spectral_mf.picture_axes import MODE_MAP, STYLE

WIDTH, HEIGHT = 4.4, 3.1
"""Inches of one panel: at 360 CSS pixels its labels are still ten pixels high."""

THEORY: dict[str, Any] = {"color": "0.35", "linewidth": 1.1, "linestyle": (0, (4, 2.5))}
"""How lines of theory look."""


@contextmanager
def panel(*, rows: int = 1, height: float = HEIGHT) -> Iterator[tuple[Figure, Any]]:
    """A figure of one column of panels to draw into; yields the figure, and its Axes or an array of them."""
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, figure.subplots(rows, 1)


def colours(number: int) -> list[Any]:
    """Distinct colours, dark to light, for lines that are in an order."""
    return list(colormaps[MODE_MAP](np.linspace(0.0, 0.78, max(number, 1))))


def accent() -> Any:
    """The colour of what was measured."""
    return colormaps[MODE_MAP](0.25)


def legend(ax: Axes, **options: Any) -> None:
    """A legend that does not hide what is behind it."""
    ax.legend(frameon=True, framealpha=0.85, edgecolor="none", handlelength=1.6, **options)
