"""How far a run has come: a bar on a terminal, a few lines in a log. Both go to stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from spectral_mf.carriers import carriers_of
from spectral_mf.wording import counted

Report = Callable[[float, int, str], None]
"""Called with the time reached, the modes (or nodes, or atoms) in use, and the method."""

_REDRAW = 0.1
"""Seconds between two pictures of the bar."""

FIRST_LINE = 10.0
"""Seconds until a log gets its first line; the next come after twice the time, so that a log stays short."""


def say(text: str, *, quiet: bool = False) -> None:
    """Write a line for the reader on stderr; stdout is for results."""
    if not quiet:
        print(text, file=sys.stderr)


@contextmanager
def reporting(start: float, end: float, *, heading: str = "", quiet: bool = False) -> Iterator[Report | None]:
    """Show how a run from `start` to `end` goes on while the context lasts; None if nothing is to be shown.

    The heading is written once the run is past the door: what is refused gets one sentence and no heading.
    """
    if quiet:
        yield None
        return
    display: _Display | None = None

    def begin() -> _Display:
        if heading:
            say(heading)
        return _Bar(start, end) if has_live_screen() else _Lines(end)

    def report(t: float, size: int, method: str) -> None:
        nonlocal display
        if display is None:
            display = begin()
        display.show(t, size, carriers_of(method))

    try:
        yield report
        if display is None:  # a method that takes no steps
            display = begin()
    finally:
        if display is not None:
            display.end()


def has_live_screen() -> bool:
    """Whether stderr is a terminal whose lines can be drawn again, watched by a person."""
    plain = os.environ.get("CI") or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stderr.isatty() and not plain


class _Display(Protocol):
    def show(self, t: float, size: int, carriers: str) -> None:
        """Show the time reached and how many modes, nodes or atoms are in use."""

    def end(self) -> None:
        """Leave the screen as it was."""


class _Bar:
    """A line that is drawn again and again, and taken away in the end."""

    def __init__(self, start: float, end: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._start = start
        self._width = len(f"{end:.3f}")
        self._last = 0.0
        self._progress = Progress(
            TextColumn("t = {task.fields[time]} of {task.fields[end]}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[size]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
            expand=True,
        )
        self._task = self._progress.add_task("", total=end - start, time="", end=f"{end:g}", size="")
        self._progress.start()

    def show(self, t: float, size: int, carriers: str) -> None:
        now = time.monotonic()
        if now - self._last >= _REDRAW:  # steps take microseconds
            self._last = now
            reached = f"{t:{self._width}.3f}"
            self._progress.update(
                self._task,
                completed=t - self._start,
                time=reached,
                size=counted(size, carriers).rjust(len(carriers) + 6),
            )

    def end(self) -> None:
        self._progress.stop()


class _Lines:
    """A line now and then."""

    def __init__(self, end: float) -> None:
        self._end = end
        self._began = time.monotonic()
        self._due = FIRST_LINE

    def show(self, t: float, size: int, carriers: str) -> None:
        elapsed = time.monotonic() - self._began
        if elapsed >= self._due:
            self._due = 2.0 * elapsed
            say(f"t = {t:.6g} of {self._end:g}, {counted(size, carriers)}, {elapsed:.0f} s")

    def end(self) -> None:
        pass
