"""`spectral-mf info`: what a file of a run holds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from spectral_mf.carriers import carriers_in_use
from spectral_mf.cli.ending import way_on
from spectral_mf.cli.options import Json, RunFile
from spectral_mf.run_kinds import COMMON_NOISE, why_not_resumed
from spectral_mf.wording import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectral_mf.storage import RunSummary

_SETTINGS = ("rtol", "max_modes", "step", "layer_step", "symmetry")


def info(file: RunFile, as_json: Json = False) -> None:
    """Say what was solved, from where, how far, with what, and how to go on; also of a sweep."""
    from spectral_mf.cli.positional_info import tell_of_positions
    from spectral_mf.cli.sweep_info import tell_of_sweep

    if tell_of_sweep(file, as_json=as_json) or tell_of_positions(file, as_json=as_json):
        return
    from spectral_mf.storage import is_claimed, read_info

    being_written = is_claimed(file)  # before the file is read: a run that ends in between is not taken for a dead one
    known = read_info(file)
    if as_json:
        answer = _as_dict(known)
        answer["being_written"] = being_written
        print(json.dumps(answer, indent=2, allow_nan=False))
        return
    print(f"{file}: {rows_in_words(known.t, known.info.complete, _planned_end(known))}")
    for name, value in _entries(known, being_written):
        print(f"  {name:<9} {value}")


def rows_in_words(t: NDArray[np.float64], complete: bool, planned_end: float) -> str:
    """Number and times of the rows of a run."""
    rows = counted(t.size, "rows")
    if t.size:
        rows += f", t = {t[0]:g} to {t[-1]:g}"
    return f"complete, {rows}" if complete else f"partial, {rows} of {planned_end:g} planned"


def _entries(known: RunSummary, being_written: bool | None) -> list[tuple[str, str]]:
    configuration = known.info.configuration
    entries = [
        ("model", repr(known.model)),
        ("initial", str(configuration["initial"].get("description", configuration["initial"]))),
        ("method", ", ".join(f"{name} to t = {until:g}" for name, until in _methods(known))),
        *_common_noise(configuration),
        (
            "settings",
            ", ".join(f"{key} {configuration[key]}" for key in _SETTINGS if configuration.get(key) is not None),
        ),
        ("stored", f"modes 0 to {known.info.n_modes}, density on {known.info.n_cells} cells"),
    ]
    if known.t.size:
        unit = known.attributes.get("energy_log_unit", 0.0)
        entries += [
            ("in use", ", ".join(_range(low, high, kind) for kind, (low, high) in _in_use(known).items())),
            ("energy", f"{known.energy[0]:.10g} to {known.energy[-1]:.10g}" + (f" e^{unit:g}" if unit else "")),
        ]
    history = str(known.attributes.get("history", known.attributes.get("source", "")))
    entries.append(("written", "; ".join(history.splitlines())))
    if not known.info.complete:
        entries.append(("status", status_in_words(known.info.status, being_written)))
    return [*entries, ("to go on", _going_on(known, being_written))]


def _common_noise(configuration: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The fields and the path of a run that common noise moves."""
    if configuration.get("method") not in COMMON_NOISE:
        return []
    from spectral_mf.brownian_path import BrownianPath

    return [("noise", f"common to all tokens, {BrownianPath.from_dict(configuration['path']).description}")]


def _range(low: int, high: int, kind: str) -> str:
    return counted(high, kind) if low == high else f"{low} to {high} {kind}"


def status_in_words(status: str, being_written: bool | None) -> str:
    """Why a run has not reached its end. A file that says `running` may be that of a run that was killed."""
    if status != "running":
        return status
    match being_written:
        case True:
            return "running"
        case False:
            return "stopped without ending, as after a kill or a power cut: no process is writing this file"
        case _:
            return "not ended; if no process is writing this file, it was killed"


def _going_on(known: RunSummary, being_written: bool | None) -> str:
    if being_written:
        return "wait: a process is writing this file"
    refusal = why_not_resumed(known.info.configuration, complete=known.info.complete)
    if refusal is not None:
        return refusal
    return way_on(known.path, known.info) or "see status: the same run would stop again"


def _planned_end(known: RunSummary) -> float:
    return float(known.info.configuration["times"][-1])


def _methods(known: RunSummary) -> list[tuple[str, float]]:
    """Methods in the order of use, each with the last time that it gave."""
    rows = list(zip(known.method.tolist(), known.t.tolist(), strict=True))
    rows = rows[1:] or rows  # the first row is the initial state, which no method computed
    return [(name, max(t for _, t in group)) for name, group in groupby(rows, key=lambda row: row[0])]


def _in_use(known: RunSummary) -> dict[str, tuple[int, int]]:
    """Least and most modes, nodes or atoms of the rows that a method computed."""
    rows = slice(1, None) if known.t.size > 1 else slice(None)
    return carriers_in_use(known.method[rows].tolist(), known.n_modes[rows].tolist())


def _as_dict(known: RunSummary) -> dict[str, Any]:
    configuration = known.info.configuration
    energies = [value if math.isfinite(value) else None for value in known.energy.tolist()]
    return {
        "file": str(known.path),
        "complete": known.info.complete,
        "status": known.info.status,
        "rows": int(known.t.size),
        "planned_rows": len(configuration["times"]),
        "t_first": float(known.t[0]) if known.t.size else None,
        "t_last": float(known.t[-1]) if known.t.size else None,
        "t_planned": _planned_end(known),
        "model": known.model.to_dict(),
        "configuration": {key: value for key, value in configuration.items() if key != "times"},
        "methods": [{"method": name, "t_last": until} for name, until in _methods(known)],
        "in_use": {kind: list(ends) for kind, ends in _in_use(known).items()},
        "modes_stored": known.info.n_modes,
        "cells": known.info.n_cells,
        "energy": [energies[0], energies[-1]] if energies else None,
        "energy_log_unit": float(known.attributes.get("energy_log_unit", 0.0)),
        "source": known.attributes.get("source"),
        "history": known.attributes.get("history"),
    }
