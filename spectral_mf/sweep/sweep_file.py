"""The file of a finished sweep: HDF5 that is valid NetCDF-4, with a dimension for each axis of the grid.

It holds no time of day: two sweeps of one plan, one of them killed and resumed, are equal byte for byte.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
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
            _describe(_labels(file, tied.name, tied.coordinate), "1", f"{tied.section} {tied.key}", [scales[axis.name]])
    grid = tuple(axis.name for axis in plan.axes)
    lengths = {name: scale.shape[0] for name, scale in scales.items()}
    most_rows = max(1, _CHUNK_BYTES // (8 * (plan.n_modes + 1)))
    datasets = {}
    for name, variable in VARIABLES.items():
        dimensions = (*grid, *variable.dimensions)
        shape = tuple(lengths[dimension] for dimension in dimensions)
        inner = (min(lengths[one], most_rows if one == "time" else lengths[one]) for one in variable.dimensions)
        chunks = (*_block_shape(plan), *inner)
        datasets[name] = file.create_dataset(name, shape, variable.dtype, chunks=chunks, fillvalue=variable.fill)
        datasets[name].attrs["_FillValue"] = np.array([variable.fill], dtype=variable.dtype)
        _describe(datasets[name], variable.units, variable.long_name, [scales[one] for one in dimensions])
    for name, long_name in (("outcome", f"what became of the case: {', '.join(OUTCOMES)}"), ("message", "why")):
        datasets[name] = file.create_dataset(name, plan.shape, _TEXT)
        _describe(datasets[name], "1", long_name, [scales[one] for one in grid])
    for here, numbers in _blocks(plan):
        results = [journal.read(int(number)) for number in numbers.ravel()]
        for name, variable in VARIABLES.items():
            tail = tuple(lengths[dimension] for dimension in variable.dimensions)
            together = _together(results, name, variable, (len(results), *tail))
            datasets[name][here] = together.reshape(*numbers.shape, *tail)
        for name in ("outcome", "message"):
            texts = np.array([_storable(getattr(result, name)) for result in results], dtype=object)
            datasets[name][here] = texts.reshape(numbers.shape)
    plan_text = file.create_dataset("plan", data=plan.identity, dtype=_TEXT)
    _describe(plan_text, "1", "everything that determines the sweep, as JSON", [])


def _block_shape(plan: SweepPlan) -> tuple[int, ...]:
    """Cases that are written at once, and share a chunk: neighbours on the grid, about a megabyte."""
    room = _CHUNK_BYTES // (8 * len(plan.times) * (plan.n_modes + 1))
    lengths: list[int] = []
    for length in reversed(plan.shape):
        lengths.append(max(1, min(length, room)))
        room //= length
    return tuple(reversed(lengths))


def _blocks(plan: SweepPlan) -> Iterator[tuple[tuple[slice, ...], NDArray[np.int64]]]:
    """Where each block lies on the grid, and the numbers of its cases as an array of its shape."""
    block = _block_shape(plan)
    for corner in np.ndindex(*(-(-length // side) for length, side in zip(plan.shape, block, strict=True))):
        sides = zip(corner, block, plan.shape, strict=True)
        here = tuple(slice(i * side, min((i + 1) * side, length)) for i, side, length in sides)
        places = np.ix_(*(np.arange(one.start, one.stop) for one in here))
        yield here, np.ravel_multi_index(places, plan.shape).astype(np.int64)


def _storable(text: str) -> str:
    """The text without what HDF5 cannot hold: null characters, and bytes of file names that are no UTF-8."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")


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


def _labels(file: h5py.File, name: str, values: NDArray[Any]) -> h5py.Dataset:
    if values.dtype == object:
        return file.create_dataset(name, data=[_storable(text) for text in values], dtype=_TEXT)
    return file.create_dataset(name, data=values)


def _scale(file: h5py.File, name: str, values: Any, long_name: str) -> h5py.Dataset:
    dataset = _labels(file, name, values)
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


def stored_results(path: str | Path, plan: SweepPlan) -> Iterator[list[CaseResult]]:
    """Results of all cases of a finished sweep, block by block; rows that a case has not are fill values."""
    with h5py.File(path, "r", locking=False) as file:
        for here, numbers in _blocks(plan):
            texts = [file[name].asstr()[here].ravel().tolist() for name in ("outcome", "message")]
            values = {
                name: file[name][here].reshape(numbers.size, *file[name].shape[numbers.ndim :]) for name in VARIABLES
            }
            yield [
                CaseResult(number, outcome, message, {name: value[i] for name, value in values.items()})
                for i, (number, outcome, message) in enumerate(zip(numbers.ravel().tolist(), *texts, strict=True))
            ]


def _counted(outcomes: list[str], messages: list[str]) -> tuple[dict[str, int], dict[str, int]]:
    by_outcome = {name: outcomes.count(name) for name in OUTCOMES}
    by_message: dict[str, int] = {}
    for message in messages:
        if message:
            by_message[message] = by_message.get(message, 0) + 1
    return by_outcome, dict(sorted(by_message.items(), key=lambda item: -item[1]))
