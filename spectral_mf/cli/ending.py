"""How a command ends: its exit code, and the one sentence that says why.

0 done; 1 an error of this program; 2 bad input; 3 stopped early, rows kept; 130 Ctrl-C and 143 SIGTERM, rows kept.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer

from spectral_mf.errors import InputError, SpectralMFError, StoppedEarly

BAD_INPUT = 2
STOPPED_EARLY = 3
INTERRUPTED = 130
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM): a run keeps its rows, as after Ctrl-C."""


def end_on_sigterm() -> None:
    """Let SIGTERM unwind the program like Ctrl-C, rather than kill it."""

    def raise_terminated(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, raise_terminated)


def complain(sentence: str) -> None:
    """Say on stderr why there is no result."""
    print(f"Error: {sentence}", file=sys.stderr)


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
        sys.stdout.flush()
    except StoppedEarly as stop:
        print(f"Stopped early: {stop}", file=sys.stderr)
        if output is not None:
            print(_what_is_kept(output, going_on=False), file=sys.stderr)
        raise typer.Exit(STOPPED_EARLY) from None
    except (InputError, SpectralMFError) as error:
        complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt as interrupt:
        terminated = isinstance(interrupt, Terminated)
        kept = "" if output is None else " " + _what_is_kept(output, going_on=True)
        print(f"{'Terminated' if terminated else 'Interrupted'}.{kept}", file=sys.stderr)
        raise typer.Exit(TERMINATED if terminated else INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of stdout has gone, as `head` does: nobody is left to tell, also when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def resume_command(path: Path, t_end: float | None = None) -> str:
    """The command that goes on with a run."""
    later = "" if t_end is None else f" --t-end {t_end:g}"
    return f"spectral-mf resume {shlex.quote(str(path))}{later}"


def _what_is_kept(output: Path, *, going_on: bool) -> str:
    return ""
