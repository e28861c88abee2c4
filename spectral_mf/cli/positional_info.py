"""What `spectral-mf info` says of a run with positions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_mf.cli.info import rows_in_words, status_in_words
from spectral_mf.run_kinds import POSITIONS_NOT_RESUMED
from spectral_mf.wording import counted

if TYPE_CHECKING:
    from spectral_mf.positional_trajectory import PositionalTrajectory


def tell_of_positions(file: Path, *, as_json: bool) -> bool:
    """Say what a run with positions is and how it went; False if the file holds none."""
    from spectral_mf.storage import is_claimed
    from spectral_mf.storage.positional import has_positions, load_positional

    being_written = is_claimed(file)  # before it is read: a run that ends in between is not taken for a dead one
    if not has_positions(file):
        return False
    run = load_positional(file)
    if as_json:
        print(json.dumps({**_as_dict(file, run), "being_written": being_written}, indent=2, allow_nan=False))
        return True
    print(f"{file}: {rows_in_words(run.t, run.complete, run.configuration['times'][-1])}")
    for name, value in _entries(run, being_written):
        print(f"  {name:<9} {value}")
    return True


def _entries(run: PositionalTrajectory, being_written: bool | None) -> list[tuple[str, str]]:
    from spectral_mf.storage.image import history_of

    configuration = run.configuration
    computed = run.n_modes[1:] if len(run) > 1 else run.n_modes
    low, high = int(computed.min()), int(computed.max())
    grid = run.grid
    entries = [
        ("model", repr(run.model)),
        ("initial", str(configuration["initial"].get("description", configuration["initial"]))),
        ("positions", f"{counted(grid.n_nodes, 'nodes')}, grading {grid.grading}, {_unresolved(run):.1e} unresolved"),
        ("settings", f"rtol {configuration['rtol']}, max_modes {configuration['max_modes']}"),
        ("stored", f"modes 0 to {run.moments.shape[2] - 1} at each position"),
        ("in use", counted(high, "modes") if low == high else f"{low} to {high} modes"),
        ("written", history_of(configuration)),
    ]
    if not run.complete:
        entries.append(("status", status_in_words(run.status, being_written)))
    going_on = "wait: a process is writing this file" if being_written else POSITIONS_NOT_RESUMED
    return [*entries, ("to go on", going_on)]


def _as_dict(file: Path, run: PositionalTrajectory) -> dict[str, Any]:
    configuration = run.configuration
    return {
        "file": str(file),
        "positions": run.positions.tolist(),
        "grading": run.grid.grading,
        "unresolved": _unresolved(run),
        "complete": run.complete,
        "status": run.status,
        "rows": len(run),
        "planned_rows": len(configuration["times"]),
        "t_first": float(run.t[0]),
        "t_last": float(run.t[-1]),
        "t_planned": float(configuration["times"][-1]),
        "model": run.model.to_dict(),
        "configuration": {key: value for key, value in configuration.items() if key != "times"},
        "in_use": {"modes": [int(run.n_modes.min()), int(run.n_modes.max())]},
        "modes_stored": run.moments.shape[2] - 1,
    }


def _unresolved(run: PositionalTrajectory) -> float:
    """The largest share of the last coefficients in s, of all rows."""
    return float(run.unresolved().max())
