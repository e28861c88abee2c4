"""`spectral-mf sweep`: many runs over a grid of parameters, into one file."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_mf.cli.ending import STOPPED_EARLY
from spectral_mf.cli.options import Quiet
from spectral_mf.cli.progress import say
from spectral_mf.cli.sweep_progress import duration, reporting_cases
from spectral_mf.wording import counted

if TYPE_CHECKING:
    from spectral_mf.sweep import SweepSummary

_MOST_SENTENCES = 5


def sweep(
    plan: Annotated[
        Path,
        typer.Argument(metavar="PLAN.toml", help="Run file with a section [grid] of values.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="HDF5 file to write (default: the plan's name with .h5)."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of processes (default: one for each core).", show_default=False),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Run on Dask: tcp://HOST:PORT, or local for a cluster of --workers on this machine."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what an interrupted sweep has finished; compute what is missing.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace FILE, or what is left of an earlier sweep.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Solve one run for each point of a grid, and write moments, energies and clusters of all to one file.

    Finished cases are kept at once in FILE.cases; FILE appears when all are finished. A case that fails is recorded
    with its reason and stops no other; the exit code is then 3.
    """
    file = output or Path(plan.with_suffix(".h5").name)
    began = time.perf_counter()
    try:
        done = _carried_out(
            plan, file, workers=workers, scheduler=scheduler, resume=resume, overwrite=overwrite, quiet=quiet
        )
    except KeyboardInterrupt:
        _tell_what_is_kept(plan, file)
        raise
    print(file)
    if not quiet:
        print(f"{summary(done)}, {duration(time.perf_counter() - began)}")
    if done.messages:
        for number, (message, count) in enumerate(done.messages.items()):
            if number == _MOST_SENTENCES:
                say(f"and {len(done.messages) - number} other reasons: see 'spectral-mf info {shlex.quote(str(file))}'")
                break
            say(f"{count} cases: {message}" if count > 1 else f"1 case: {message}")
        raise typer.Exit(STOPPED_EARLY)


def _carried_out(plan: Path, file: Path, *, quiet: bool, **options: Any) -> SweepSummary:
    """Solve what a plan says; lost workers stop it early."""
    from spectral_mf.solvers import solve_sweep
    from spectral_mf.sweep import SweepPlan
    from spectral_mf.sweep.bundles import WorkersLost

    asked = SweepPlan.from_toml(plan)
    try:
        with reporting_cases(quiet=quiet) as report:
            done: SweepSummary = solve_sweep(asked, file, report=report, **options)
            return done
    except WorkersLost as lost:
        say(f"Stopped early: {lost}")
        _tell_what_is_kept(plan, file)
        raise typer.Exit(STOPPED_EARLY) from None


def summary(done: SweepSummary) -> str:
    """How many cases there are and what became of them."""
    words = [counted(done.n_cases, "cases")]
    words += [f"{count} {outcome}" for outcome, count in done.outcomes.items() if count]
    if done.n_finished < done.n_cases:
        words.append(f"{done.n_cases - done.n_finished} to come")
    return ", ".join(words)


def _tell_what_is_kept(plan: Path, file: Path) -> None:
    from spectral_mf.sweep.journal import Journal, journal_of

    path = journal_of(file)
    command = f"spectral-mf sweep {shlex.quote(str(plan))} --output {shlex.quote(str(file))}"
    if path.exists():
        journal = Journal(path)
        journal.close()
        n = len(journal.finished)
        kept = f"{counted(n, 'finished cases')} {'is' if n == 1 else 'are'} kept in {path}"
        say(f"{kept}; '{command} --resume' goes on.")
    elif not file.exists():
        say(f"No case was finished yet, so nothing is kept; '{command}' begins anew.")
