"""The file of a finished sweep: HDF5 that is valid NetCDF-4, with a dimension for each axis of the grid.

It holds no time of day: two sweeps of one plan, one of them killed and resumed, are equal byte for byte.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

import spectral_mf
from spectral_mf.errors import StorageError
from spectral_mf.storage.publishing import cannot_write
from spectral_mf.sweep.journal import Journal
from spectral_mf.sweep.plan import SweepPlan
from spectral_mf.sweep.results import OUTCOMES, VARIABLES, CaseResult, Variable

FORMAT = 1
"""Version of the file format (root attribute spectral_mf_sweep_format)."""

FORMAT_ATTRIBUTE = "spectral_mf_sweep_format"

_TEXT = h5py.string_dtype("utf-8")
_CHUNK_BYTES = 2**20


def write_sweep(place: Path, plan: SweepPlan, journal: Journal) -> None:
    """Put the results of all cases in one file: beside its place, then renamed over it.

    Raises
    ------
    StorageError
        If it cannot be written; nothing is damaged then.
    """
    beside = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        with h5py.File(beside, "w", track_order=True, locking=False) as file:
            _write(file, plan, journal)
        with beside.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(beside, place)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise cannot_write(place, error) from error


def _write(file: h5py.File, plan: SweepPlan, journal: Journal) -> None:
    file.attrs["Conventions"] = "CF-1.11"
    file.attrs["title"] = f"Sweep over {', '.join(axis.name for axis in plan.axes)}: {plan.n_cases} cases"
    file.attrs["source"] = f"spectral_mf {spectral_mf.__version__}"
    file.attrs[FORMAT_ATTRIBUTE] = FORMAT
    scales = {axis.name: _scale(file, axis.name, axis.coordinate, f"{axis.section} {axis.key}") for axis in plan.axes}
    scales["time"] = _scale(file, "time", plan.times, "time")
    scales["mode"] = _scale(file, "mode", np.arange(plan.n_modes + 1), "Fourier mode k")
    for axis in plan.axes:
        for tied in axis.tied:
            values = tied.coordinate
            along = file.create_dataset(tied.name, data=values, dtype=_TEXT if values.dtype == object else values.dtype)
            _describe(along, "1", f"{tied.section} {tied.key}", [scales[axis.name]])
    grid = tuple(axis.name for axis in plan.axes)
    lengths = {name: scale.shape[0] for name, scale in scales.items()}
    piece = _cases_a_piece(plan)
    datasets = {}
    for name, variable in VARIABLES.items():
        dimensions = (*grid, *variable.dimensions)
        shape = tuple(lengths[dimension] for dimension in dimensions)
        chunks = (*(1 for _ in grid[:-1]), piece, *shape[len(grid) :])
        datasets[name] = file.create_dataset(name, shape, variable.dtype, chunks=chunks, fillvalue=variable.fill)
        datasets[name].attrs["_FillValue"] = np.array([variable.fill], dtype=variable.dtype)
        _describe(datasets[name], variable.units, variable.long_name, [scales[one] for one in dimensions])
    for name, long_name in (("outcome", f"what became of the case: {', '.join(OUTCOMES)}"), ("message", "why")):
        datasets[name] = file.create_dataset(name, plan.shape, _TEXT)
        _describe(datasets[name], "1", long_name, [scales[one] for one in grid])
    inner = plan.shape[-1]
    for first in range(0, plan.n_cases, inner):
        place = np.unravel_index(first, plan.shape)[:-1]
        for start in range(0, inner, piece):
            results = [journal.read(first + i) for i in range(start, min(start + piece, inner))]
            here = (*(int(i) for i in place), slice(start, start + len(results)))
            for name, variable in VARIABLES.items():
                shape = (len(results), *(lengths[dimension] for dimension in variable.dimensions))
                datasets[name][here] = _together(results, name, variable, shape)
            datasets["outcome"][here] = [result.outcome for result in results]
            datasets["message"][here] = [result.message for result in results]
    plan_text = file.create_dataset("plan", data=plan.identity, dtype=_TEXT)
    _describe(plan_text, "1", "everything that determines the sweep, as JSON", [])


def _cases_a_piece(plan: SweepPlan) -> int:
    """Cases that are written at once, and share a chunk: neighbours along the last axis, about a megabyte."""
    row = 8 * len(plan.times) * (plan.n_modes + 1)
    return max(1, min(plan.shape[-1], _CHUNK_BYTES // row))


def _together(results: list[CaseResult], name: str, variable: Variable, shape: tuple[int, ...]) -> NDArray[Any]:
    """Values of several cases as one array, with the fill value where a case has none."""
    block: NDArray[Any] = np.full(shape, variable.fill, dtype=variable.dtype)
    for i, result in enumerate(results):
        value = result.values.get(name)
        if value is None:
            continue
        if value.ndim:
            block[i, : value.shape[0]] = value
        else:
            block[i] = value
    return block


def _scale(file: h5py.File, name: str, values: Any, long_name: str) -> h5py.Dataset:
    dataset = file.create_dataset(name, data=values, dtype=_TEXT if values.dtype == object else values.dtype)
    dataset.make_scale(name)
    dataset.attrs["units"] = "1"
    dataset.attrs["long_name"] = long_name.strip()
    return dataset


def _describe(dataset: h5py.Dataset, units: str, long_name: str, scales: list[h5py.Dataset]) -> None:
    dataset.attrs["units"] = units
    dataset.attrs["long_name"] = long_name
    for axis, scale in enumerate(scales):
        dataset.dims[axis].attach_scale(scale)


@dataclass(frozen=True)
class SweepSummary:
    """What a sweep has come to.

    Attributes
    ----------
    path : Path
        The file, or where it will be.
    axes : mapping
        First and last label and number of values by the name of the axis.
    n_cases : int
    outcomes : mapping
        Number of cases by outcome; they sum to less than `n_cases` while the sweep goes on.
    messages : mapping
        Number of cases by the sentence that says why they stopped or failed.
    """

    path: Path
    axes: dict[str, tuple[Any, Any, int]]
    n_cases: int
    outcomes: dict[str, int]
    messages: dict[str, int]

    @property
    def n_finished(self) -> int:
        """Number of finished cases."""
        return sum(self.outcomes.values())


def is_sweep(path: str | Path) -> bool:
    """Whether a file holds a finished sweep."""
    try:
        with h5py.File(path, "r", locking=False) as file:
            return FORMAT_ATTRIBUTE in file.attrs
    except OSError:
        return False


def read_sweep(path: str | Path) -> SweepSummary:
    """Read what a finished sweep is and how it went.

    Raises
    ------
    StorageError
        If the file cannot be read or holds no sweep.
    """
    if not is_sweep(path):
        raise StorageError(f"{path} holds no sweep, or cannot be read; give the file of a finished sweep.")
    with h5py.File(path, "r", locking=False) as file:
        outcomes = file["outcome"].asstr()[...].ravel().tolist()
        messages = file["message"].asstr()[...].ravel().tolist()
        names = [scale.keys()[0] for scale in file["outcome"].dims]
        axes = {}
        for name in names:
            values = file[name].asstr()[:] if file[name].dtype == object else file[name][:]
            axes[name] = (values[0], values[-1], len(values))
    return SweepSummary(Path(path), axes, math.prod(n for _, _, n in axes.values()), *_counted(outcomes, messages))


def read_unfinished(path: str | Path, journal: Journal) -> SweepSummary:
    """What a sweep into the file `path` has come to until now."""
    grid = json.loads(journal.identity)["grid"]
    axes = {
        axis["key"] or axis["section"]: (*(axis["labels"][i] for i in (0, -1)), len(axis["labels"])) for axis in grid
    }
    results = [journal.read(number) for number in sorted(journal.finished)]
    counted = _counted([result.outcome for result in results], [result.message for result in results])
    return SweepSummary(Path(path), axes, math.prod(n for _, _, n in axes.values()), *counted)


def stored_plan(path: str | Path) -> str:
    """Identity of the plan of a finished sweep (see `SweepPlan.identity`)."""
    with h5py.File(path, "r", locking=False) as file:
        return str(file["plan"].asstr()[()])


def _counted(outcomes: list[str], messages: list[str]) -> tuple[dict[str, int], dict[str, int]]:
    by_outcome = {name: outcomes.count(name) for name in OUTCOMES}
    by_message: dict[str, int] = {}
    for message in messages:
        if message:
            by_message[message] = by_message.get(message, 0) + 1
    return by_outcome, dict(sorted(by_message.items(), key=lambda item: -item[1]))
