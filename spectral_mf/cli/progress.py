"""How far a run has come: a bar on a terminal, a few lines in a log. Both go to stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[float, int], None]
"""Called with the time reached and the modes in use."""

_REDRAW = 0.1
"""Seconds between two pictures of the bar."""

_FIRST_LINE = 10.0
"""Seconds until a log gets its first line; the next come after twice the time, so that a log stays short."""


def say(text: str, *, quiet: bool = False) -> None:
    """Write a line for the reader on stderr; stdout is for results."""
    if not quiet:
        print(text, file=sys.stderr)


@contextmanager
def reporting(start: float, end: float, *, quiet: bool = False) -> Iterator[Report | None]:
    """Show how a run from `start` to `end` goes on while the context lasts; None if nothing is to be shown."""
    if quiet:
        yield None
    elif _has_live_screen():
        with _bar(start, end) as report:
            yield report
    else:
        yield _lines(end)


def _has_live_screen() -> bool:
    """Whether stderr is a terminal whose lines can be drawn again, watched by a person."""
    plain = os.environ.get("CI") or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stderr.isatty() and not plain


@contextmanager
def _bar(start: float, end: float) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("t = {task.fields[time]} of {task.fields[end]}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[modes]} modes"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, expand=True) as progress:
        width = len(f"{end:.3f}")
        task = progress.add_task("", total=end - start, time=f"{start:{width}.3f}", end=f"{end:g}", modes="    -")
        last = 0.0

        def report(t: float, n_modes: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _REDRAW:  # steps take microseconds
                last = now
                progress.update(task, completed=t - start, time=f"{t:{width}.3f}", modes=f"{n_modes:5d}")

        yield report


def _lines(end: float) -> Report:
    began = time.monotonic()
    due = _FIRST_LINE

    def report(t: float, n_modes: int) -> None:
        nonlocal due
        elapsed = time.monotonic() - began
        if elapsed >= due:
            due = 2.0 * elapsed
            say(f"t = {t:.6g} of {end:g}, {n_modes} modes, {elapsed:.0f} s")

    return report
