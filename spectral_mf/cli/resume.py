"""`spectral-mf resume`: go on with a run, to its planned end or to a later time."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from spectral_mf.cli.ending import explained
from spectral_mf.cli.options import Quiet, RunFile
from spectral_mf.cli.progress import reporting
from spectral_mf.cli.solve import summary
from spectral_mf.errors import InputError
from spectral_mf.run_kinds import POSITIONS_NOT_RESUMED


def resume(
    file: RunFile,
    t_end: Annotated[
        float | None,
        typer.Option(
            metavar="TIME", help="New end time, after the last row (default: the planned one).", show_default=False
        ),
    ] = None,
    max_modes: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Most modes that the spectral method may use from now on (default: as before).",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was stopped, killed or is to be continued; its file grows in place.

    The rows are bit for bit those of one uninterrupted run. One that stopped because it ran out of modes goes on with
    a larger --max-modes.
    """
    from spectral_mf.solvers import resume as go_on
    from spectral_mf.storage import read_info
    from spectral_mf.storage.positional import has_positions

    if has_positions(file):
        raise InputError(POSITIONS_NOT_RESUMED)
    known = read_info(file)
    reached = float(known.t[-1]) if known.t.size else 0.0
    planned = float(known.info.configuration["times"][-1])
    end = planned if t_end is None else t_end
    shorter = f"the plan, to t = {planned:g}, is shortened to t = {end:g}; a later --t-end lengthens it again"
    began = time.perf_counter()
    with explained(file), reporting(reached, end, heading=shorter if end < planned else "", quiet=quiet) as report:
        trajectory = go_on(file, t_end, max_modes=max_modes, progress=report)
    print(file)
    if not quiet:
        print(summary(trajectory, time.perf_counter() - began))
