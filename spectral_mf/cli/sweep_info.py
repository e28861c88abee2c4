"""What `spectral-mf info` says of a sweep, finished or not."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from spectral_mf.cli.sweep import summary


def tell_of_sweep(file: Path, *, as_json: bool) -> bool:
    """Say what a sweep holds; False if the file is none, nor will be."""
    from spectral_mf.storage import is_claimed
    from spectral_mf.sweep import is_sweep, read_sweep
    from spectral_mf.sweep.journal import Journal, journal_of
    from spectral_mf.sweep.sweep_file import read_unfinished

    being_written = is_claimed(file)  # before it is read: a sweep that ends in between is not taken for a dead one
    if is_sweep(file):
        known = read_sweep(file)
    elif not file.exists() and journal_of(file).exists():
        journal = Journal(journal_of(file))
        known = read_unfinished(file, journal)
        journal.close()
    else:
        return False
    complete = known.n_finished == known.n_cases
    if as_json:
        axes = {name: {"first": _plain(a), "last": _plain(b), "count": n} for name, (a, b, n) in known.axes.items()}
        answer = {"file": str(file), "sweep": True, "complete": complete, "being_written": being_written}
        answer |= {"cases": known.n_cases, "axes": axes}
        print(json.dumps({**answer, "outcomes": known.outcomes, "messages": known.messages}, indent=2, allow_nan=False))
        return True
    print(f"{file}: {'sweep' if complete else 'unfinished sweep'}, {summary(known)}")
    for name, (first, last, count) in known.axes.items():
        print(f"  {name:<9} {count} values, {first} to {last}" if count > 1 else f"  {name:<9} {first}")
    for message, count in known.messages.items():
        print(f"  {count} x {message}")
    if not complete:
        print(f"  status    {_status(being_written)}")
        going_on = f"spectral-mf sweep PLAN.toml --output {shlex.quote(str(file))} --resume"
        print(f"  to go on  {'wait: a process is writing this sweep' if being_written else going_on}")
    else:
        print(f'  to read   xarray.open_dataset("{file}", engine="h5netcdf")')
    return True


def _status(being_written: bool | None) -> str:
    """Whether a sweep that is not finished goes on."""
    match being_written:
        case True:
            return "running"
        case False:
            return "stopped before its end, as by Ctrl-C, a kill or a power cut: no process is writing this sweep"
        case _:
            return "not ended; if no process is writing this sweep, it was stopped"


def _plain(value: Any) -> Any:
    """The value for JSON, which has no NaN."""
    plain = value.item() if hasattr(value, "item") else value
    return None if plain != plain else plain
