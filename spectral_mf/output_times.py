"""Output times on the decimal grid that the user means."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import finite_number, real_array
from spectral_mf.errors import InputError

DEFAULT_ROWS = 100
"""Intervals of a run whose output interval is not given."""

_MOST_ROWS = 10_000_000


def output_times(t_end: float, interval: float | None = None, *, start: float = 0.0) -> NDArray[np.float64]:
    """Times start, start + interval, ... and t_end, which is always the last.

    Multiples are formed in decimal arithmetic: three intervals of 0.1 are 0.3, so a run that ends there and one that
    goes further have the same times, bit for bit.

    Parameters
    ----------
    t_end : float
        Last time; equal to `start` for the initial row only.
    interval : float, optional
        Time between rows; by default a hundredth of the span.
    start : float
        First time.

    Raises
    ------
    InputError
        If a number is not finite, t_end lies before start, or the interval is not positive.
    """
    t_end, start = finite_number("t_end", t_end), finite_number("start", start)
    interval = None if interval is None else finite_number("interval", interval)
    if t_end < start:
        raise InputError(f"t_end = {t_end:g} lies before the initial time {start:g}; give a later one.")
    if t_end == start:
        return np.array([start], dtype=np.float64)
    if interval is None:
        interval = float((Decimal(repr(float(t_end))) - Decimal(repr(float(start)))) / DEFAULT_ROWS)
    if interval <= 0.0:
        raise InputError(f"the output interval {interval:g} is not positive; give the time between two rows.")
    count = (t_end - start) / interval
    if count > _MOST_ROWS:
        raise InputError(f"an output interval of {interval:g} makes {count:.3g} rows; give a larger one.")
    origin, step = Decimal(repr(float(start))), Decimal(repr(float(interval)))
    inner = math.ceil(count * (1.0 - 1e-12)) if count > 1.0 else 1
    times = [float(origin + step * i) for i in range(inner)]
    return np.array([*times, float(t_end)], dtype=np.float64)


def time_grid(times: float | ArrayLike) -> NDArray[np.float64]:
    """Output times as the solvers take them: an end time (101 equally spaced rows from 0), or the times themselves.

    Parameters
    ----------
    times : float or array_like of float
        The end time, or increasing times of which the first is the initial one.

    Raises
    ------
    InputError
        If they are not finite numbers, there are none, or they do not increase.
    """
    grid = real_array(times, "times are not numbers; give an end time or an increasing array of output times.")
    if grid.ndim == 0:
        return output_times(float(grid))
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all():
        raise InputError("times have to be a non-empty row of finite numbers; give an end time or such an array.")
    wrong = np.flatnonzero(np.diff(grid) <= 0.0)
    if wrong.size:
        i = int(wrong[0])
        raise InputError(f"times are not increasing: {grid[i]:g} is followed by {grid[i + 1]:g}; sort them.")
    return grid


def interval_of(times: NDArray[np.float64]) -> float | None:
    """The interval from which `output_times` makes exactly these times (the last may follow sooner); None if none does.

    Parameters
    ----------
    times : ndarray of float64, shape (n,)
        Increasing.
    """
    if times.size < 2:
        return None
    start, t_end = float(times[0]), float(times[-1])
    for candidate in ((t_end - start) / (times.size - 1), float(times[1] - times[0])):
        rows = (t_end - start) / candidate  # n - 1 whole intervals, or fewer by a part of the last
        if times.size - 2.5 < rows < times.size and np.array_equal(output_times(t_end, candidate, start=start), times):
            return candidate
    return None
