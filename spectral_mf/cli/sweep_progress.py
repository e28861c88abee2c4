"""How far a sweep has come: a bar on a terminal, a few lines in a log. Both go to stderr."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spectral_mf.cli.progress import FIRST_LINE, has_live_screen, say
from spectral_mf.wording import counted

if TYPE_CHECKING:
    from spectral_mf.sweep import SweepProgress
    from spectral_mf.sweep.carry_out import Report


@contextmanager
def reporting_cases(*, quiet: bool) -> Iterator[Report | None]:
    """Show how a sweep goes on while the context lasts; None if nothing is to be shown."""
    if quiet:
        yield None
    elif has_live_screen():
        with _bar() as report:
            yield report
    else:
        yield _Lines()


def opening(progress: SweepProgress) -> str:
    """What a sweep begins with: how many cases there are to compute, and where."""
    to_come = counted(progress.total - progress.finished, "cases")
    kept = f", {progress.finished} finished before" if progress.finished else ""
    workers = counted(progress.workers, "workers")
    return f"{to_come} on {workers}{kept}; the time that they take is estimated when the first are finished."


def sentence(progress: SweepProgress) -> str:
    """How far a sweep has come, in a line: cases, failures, rate and time left."""
    words = [f"{progress.finished} of {progress.total} cases"]
    if progress.failed:
        words.append(f"{progress.failed} failed")
    if progress.rate > 0.0:
        words += [f"{progress.rate:.3g} a second", f"{duration(progress.seconds_left)} left"]
    return ", ".join(words)


def duration(seconds: float) -> str:
    """A time in the two largest units that matter: 42 s, 3 min 20 s, 5 h 7 min."""
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(
        BarColumn(bar_width=None),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        expand=True,
    ) as progress:
        task = progress.add_task("", total=None)

        def report(now: SweepProgress) -> None:
            if progress.tasks[task].total is None:
                progress.console.print(opening(now), highlight=False)
            progress.update(task, completed=now.finished, total=now.total, description=sentence(now))

        yield report


class _Lines:
    """A line at the beginning, one when the first bundles have told how long it takes, and then now and then."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._due = FIRST_LINE

    def __call__(self, now: SweepProgress) -> None:
        if self._began is None:
            self._began = time.monotonic()
            say(opening(now))
            return
        elapsed = time.monotonic() - self._began
        if elapsed >= self._due and now.finished < now.total:
            self._due = 2.0 * elapsed
            say(sentence(now))
