"""How a command ends: its exit code, and the one sentence that says why.

0 done; 1 a claim that fails (`validate`), or an error of this program; 2 bad input; 3 stopped early, rows kept; 4
stdout could not be written; 130 Ctrl-C and 143 SIGTERM, rows kept.
"""

from __future__ import annotations

import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from spectral_mf.errors import SpectralMFError, StoppedEarly, StorageError
from spectral_mf.run_kinds import why_not_resumed
from spectral_mf.wording import counted

if TYPE_CHECKING:
    from spectral_mf.positional_trajectory import PositionalTrajectory
    from spectral_mf.trajectory import RunInfo, Trajectory

BAD_INPUT = 2
STOPPED_EARLY = 3
STDOUT_LOST = 4
INTERRUPTED = 130
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM): a run keeps its rows, as after Ctrl-C."""


def end_on_sigterm() -> None:
    """Let SIGTERM unwind the program like Ctrl-C, rather than kill it."""

    def raise_terminated(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, raise_terminated)


_ADVICE = re.compile(
    r"\b(use|or|to|raise|lower) (method|normalization|symmetry|diffusion|max_modes|rtol)\b"
    r"""(?: = ["']?([\w.]+)["']?| ["'](\w+)["'])?"""
)
_OTHER_NAMES = (
    ("n_modes = ", "store_modes = "),
    ("n_cells = ", "cells = "),
    ("pass overwrite=True", "add --overwrite"),
    ("pass resume=True", "add --resume"),
)
"""What the Python functions and the command line call by different names."""


def in_options(sentence: str) -> str:
    """A sentence of the library with its advice in options: `use method = "spectral"` is `use --method spectral`."""

    def option(found: re.Match[str]) -> str:
        verb, name, *values = found.groups()
        return " ".join([verb, "--" + name.replace("_", "-"), *filter(None, values)])

    for python, option_name in _OTHER_NAMES:
        sentence = sentence.replace(python, option_name)
    return _ADVICE.sub(option, sentence)


def complain(sentence: str) -> None:
    """Say on stderr why there is no result."""
    print(f"Error: {in_options(sentence)}", file=sys.stderr)


@contextmanager
def explained(output: Path | None = None) -> Iterator[None]:
    """Turn what is raised inside into a sentence on stderr and an exit code.

    Parameters
    ----------
    output : path, optional
        File that rows go to, named where they were kept.
    """
    try:
        yield
    except StoppedEarly as stop:
        print(f"Stopped early: {in_options(str(stop))}", file=sys.stderr)
        if output is not None:
            kept = _kept_in(output) if stop.trajectory is None else _kept_of(stop.trajectory, output)
            print(kept, end="\n" if kept else "", file=sys.stderr)
        raise typer.Exit(STOPPED_EARLY) from None
    except SpectralMFError as error:
        complain(str(error))
        if isinstance(error, StorageError) and error.trajectory is not None:
            _rescue(error.trajectory)
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt as interrupt:
        terminated = isinstance(interrupt, Terminated)
        kept = "" if output is None else _kept_in(output)
        print(f"{'Terminated' if terminated else 'Interrupted'}. {kept}".rstrip(), file=sys.stderr)
        raise typer.Exit(TERMINATED if terminated else INTERRUPTED) from None


def way_on(path: Path, info: RunInfo) -> str | None:
    """The command that goes on with a run; None if none gets it any further."""
    if why_not_resumed(info.configuration, complete=info.complete) is not None:
        return None
    command = f"spectral-mf resume {shlex.quote(str(path))}"
    if info.complete:
        return f"{command} --t-end TIME"
    if not info.status.startswith("stopped early"):
        return command
    if info.configuration.get("method") in ("spectral", "common noise") and "raise max_modes" in info.status:
        return f"{command} --max-modes {2 * int(info.configuration['max_modes'])}"
    return None


def _kept_of(rows: Trajectory, output: Path) -> str:
    """What is kept of a run, and how to go on."""
    return _kept_rows(len(rows), rows.t[-1], output, way_on(output, rows.info))


def _kept_in(output: Path) -> str:
    """What a run that did not reach its end left in its file; nothing if it had not begun one."""
    from spectral_mf.storage import read_info
    from spectral_mf.storage.positional import has_positions, load_positional

    try:
        if has_positions(output):
            rows = load_positional(output)
            return "" if rows.complete else _kept_rows(len(rows), rows.t[-1], output, None)
        known = read_info(output)
    except StorageError:
        return ""
    if known.info.complete or known.t.size == 0:
        return ""
    return _kept_rows(known.t.size, known.t[-1], output, way_on(output, known.info))


def _kept_rows(number: int, last: float, output: Path, command: str | None) -> str:
    kept = f"{counted(number, 'rows')} to t = {last:g} {'is' if number == 1 else 'are'} kept in {output}"
    return f"{kept}." if command is None else f"{kept}; '{command}' goes on."


def _rescue(trajectory: Trajectory | PositionalTrajectory) -> None:
    """Save elsewhere what a full disk or a lost folder would lose, and say where."""
    from spectral_mf.storage import rescue

    place = rescue(trajectory)
    if place is not None:
        print(f"What was computed until then ({counted(len(trajectory), 'rows')}) is in {place}.", file=sys.stderr)
