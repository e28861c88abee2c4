"""A run file as bytes in memory: rows are appended, and its image can be taken at any moment.

HDF5 never touches the disk here. What is written to disk is a whole, valid file or nothing (see
`spectral_mf.storage.publishing`), so neither a kill nor a full disk can damage one.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy

import spectral_mf
from spectral_mf import fft
from spectral_mf.trajectory import Row, RunInfo

FORMAT = 1
"""Version of the file format; a reader refuses newer ones."""

RESTART = "restart"
"""Group with the solver's own state at each row."""

_CHUNK_BYTES = 2**18
_LARGEST_ATTRIBUTE = 2**15
_MOST_RESUMPTIONS = 300
_TEXT = h5py.string_dtype("utf-8")


@dataclass(frozen=True)
class _Variable:
    """A variable with one entry, or one row of entries, for each output time."""

    dimensions: tuple[str, ...]
    units: str
    long_name: str
    dtype: Any = np.float64
    extra: tuple[tuple[str, str], ...] = ()


VARIABLES = {
    "moment_real": _Variable(("time", "mode"), "1", "real part of the moment c_k = int exp(-i k theta) dmu"),
    "moment_imag": _Variable(("time", "mode"), "1", "imaginary part of the moment c_k = int exp(-i k theta) dmu"),
    "density": _Variable(
        ("time", "theta"),
        "rad-1",
        "mean density over each cell of theta",
        extra=(
            ("cell_methods", "theta: mean"),
            ("comment", "rounding below zero is set to zero and taken from the other cells in proportion"),
        ),
    ),
    "energy": _Variable(("time",), "exp(energy_log_unit)", "interaction energy; nan if the model has none"),
    "energy_rate_residual": _Variable(
        ("time",), "exp(energy_log_unit)", "dE/dt of the discrete solution minus the dissipation integral"
    ),
    "remainder": _Variable(("time",), "1", "size of the moments that a truncated expansion leaves out"),
    "mass": _Variable(("time",), "1", "total mass as carried by the solver, never rescaled"),
    "n_modes": _Variable(("time",), "1", "modes, nodes or atoms in use by the solver", np.int64),
    "method": _Variable(("time",), "1", "method in use", _TEXT),
}


class RunImage:
    """An open run file in memory.

    Parameters
    ----------
    file : h5py.File
        As made by `new` or `from_file`.
    """

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._pending: list[Row] = []
        self.n_rows = int(file["time"].shape[0])

    @classmethod
    def new(cls, info: RunInfo) -> RunImage:
        """Begin an empty file for a run."""
        file = h5py.File("run.h5", "w", driver="core", backing_store=False, track_order=True)
        _write_coordinates(file, info)
        for name, variable in VARIABLES.items():
            _write_variable(file, name, variable)
        group = file.create_group(RESTART, track_order=True)
        _growing(group, "state", np.float64, "float64 values of all rows' states, one after the other")
        _growing(group, "state_end", np.int64, "where each row's state ends in `state`")
        _growing(group, "state_kind", _TEXT, "representation of each row's state")
        _growing(group, "step_size", np.float64, "next step size proposed at each row")
        _growing(group, "previous_error", np.float64, "normalised error of the step before each row")
        image = cls(file)
        image.describe(info)
        return image

    @classmethod
    def from_file(cls, path: Path) -> RunImage:
        """Take up a file that was written before; the file itself stays as it is."""
        return cls(h5py.File(path, "r+", driver="core", backing_store=False, locking=False))

    def describe(self, info: RunInfo) -> None:
        """Write what the run is, and how it stands, into the root attributes."""
        attributes = self._file.attrs
        configuration = dict(info.configuration)
        values: dict[str, Any] = {
            "Conventions": "CF-1.11",
            "title": f"Mean-field self-attention on the circle: {info.model!r}",
            "history": history_of(configuration),
            "source": f"spectral_mf {spectral_mf.__version__}",
            "spectral_mf_format": FORMAT,
            "status": info.status,
            "complete": int(info.complete),
            "model": json.dumps(info.model.to_dict()),
            "energy_log_unit": info.model.energy_log_unit,
            "library_versions": json.dumps(_library_versions()),
        }
        if isinstance(configuration.get("seed"), int):
            values["seed"] = (
                np.int64(configuration["seed"]) if abs(configuration["seed"]) < 2**63 else str(configuration["seed"])
            )
        short = json.dumps({key: value for key, value in configuration.items() if key != "times"})
        values["configuration"] = (
            short if len(short) < _LARGEST_ATTRIBUTE else "in full in the variable restart/configuration"
        )
        for name, value in values.items():
            attributes[name] = value
        group = self._file[RESTART]
        if "configuration" in group:
            del group["configuration"]
        text = group.create_dataset("configuration", data=json.dumps(configuration), dtype=_TEXT)
        text.attrs["long_name"] = "everything that determines the run, as JSON"

    def append(self, row: Row) -> None:
        """Add one row."""
        self._pending.append(row)
        self.n_rows += 1

    def to_bytes(self) -> bytes:
        """The file as it would be on disk."""
        self._write_pending()
        self._file.flush()
        image: bytes = self._file.id.get_file_image()
        return image

    def _write_pending(self) -> None:
        """Write the rows that wait, all at once: one call for each variable instead of one for each number."""
        rows, self._pending = self._pending, []
        if not rows:
            return
        snapshots = [row.snapshot for row in rows]
        states = [snapshot.measure.to_vector() for snapshot in snapshots]
        group = self._file[RESTART]
        ends = group["state"].shape[0] + np.cumsum([state.size for state in states])
        moments = np.array([row.moments for row in rows])
        for name, values in {
            "time": [snapshot.t for snapshot in snapshots],
            "moment_real": moments.real,
            "moment_imag": moments.imag,
            "density": np.array([row.cells for row in rows]),
            "energy": [row.energy for row in rows],
            "energy_rate_residual": [snapshot.energy_rate_residual for snapshot in snapshots],
            "remainder": [snapshot.remainder for snapshot in snapshots],
            "mass": [row.mass for row in rows],
            "n_modes": [snapshot.n_modes for snapshot in snapshots],
            "method": [snapshot.method for snapshot in snapshots],
        }.items():
            _extend(self._file[name], values)
        for name, values in {
            "state": np.concatenate(states),
            "state_end": ends,
            "state_kind": [snapshot.measure.kind for snapshot in snapshots],
            "step_size": [snapshot.step.step_size for snapshot in snapshots],
            "previous_error": [snapshot.step.previous_error for snapshot in snapshots],
        }.items():
            _extend(group[name], values)

    def close(self) -> None:
        """Give the memory back."""
        self._file.close()


def _write_coordinates(file: h5py.File, info: RunInfo) -> None:
    n = info.n_cells
    theta = 2.0 * np.pi * np.arange(n) / n
    time = file.create_dataset(
        "time", (0,), np.float64, maxshape=(None,), chunks=(1024,), compression="gzip", shuffle=True
    )
    _scale(time, "time", units="1", long_name="time", axis="T")
    mode = file.create_dataset("mode", data=np.arange(info.n_modes + 1, dtype=np.int64))
    _scale(mode, "mode", units="1", long_name="Fourier mode k")
    angle = file.create_dataset("theta", data=theta)
    _scale(angle, "theta", units="rad", long_name="angle of the cell's centre", bounds="theta_bounds", axis="X")
    bnds = file.create_dataset("bnds", data=np.zeros(2, dtype=">f4"))
    bnds.make_scale(f"This is a netCDF dimension but not a netCDF variable.{2:10d}")
    half = np.pi / n
    bounds = file.create_dataset("theta_bounds", data=np.stack([theta - half, theta + half], axis=1))
    bounds.attrs["long_name"] = "ends of the cell"
    bounds.attrs["units"] = "rad"
    bounds.dims[0].attach_scale(angle)
    bounds.dims[1].attach_scale(bnds)


def _scale(dataset: h5py.Dataset, name: str, **attributes: str) -> None:
    dataset.make_scale(name)
    for key, value in attributes.items():
        dataset.attrs[key] = value


def _write_variable(file: h5py.File, name: str, variable: _Variable) -> None:
    width = tuple(file[dimension].shape[0] for dimension in variable.dimensions[1:])
    row_bytes = 8 * int(np.prod(width, dtype=np.int64))
    rows = max(1, min(1024, _CHUNK_BYTES // row_bytes))
    dataset = file.create_dataset(
        name,
        (0, *width),
        variable.dtype,
        maxshape=(None, *width),
        chunks=(rows, *width),
        compression="gzip",
        shuffle=True,
    )
    dataset.attrs["units"] = variable.units
    dataset.attrs["long_name"] = variable.long_name
    for key, value in variable.extra:
        dataset.attrs[key] = value
    for axis, dimension in enumerate(variable.dimensions):
        dataset.dims[axis].attach_scale(file[dimension])


def _growing(group: h5py.Group, name: str, dtype: Any, long_name: str) -> None:
    size = _CHUNK_BYTES // 8 if name == "state" else 1024
    dataset = group.create_dataset(
        name, (0,), dtype, maxshape=(None,), chunks=(size,), compression="gzip", shuffle=True
    )
    dataset.attrs["long_name"] = long_name


def _extend(dataset: h5py.Dataset, values: Any) -> None:
    n = dataset.shape[0]
    dataset.resize(n + len(values), axis=0)
    dataset[n:] = values


def history_of(configuration: Mapping[str, Any]) -> str:
    """A line for the start of the run and for each time that it was taken up again, as the CF conventions want it.

    The oldest resumptions are left out where the attribute would become too large for HDF5.
    """
    lines = [f"{configuration.get('started', '')} spectral_mf run started".strip()]
    for resumption in configuration.get("resumed", [])[-_MOST_RESUMPTIONS:]:
        line = f"{resumption['at']} spectral_mf run resumed at t = {resumption['t']:.6g}"
        if "max_modes" in resumption:
            line += ", max_modes {from} to {to}".format(**resumption["max_modes"])
        lines.append(line)
    return "\n".join(lines)


def _library_versions() -> dict[str, str]:
    versions = {
        "python": platform.python_version(),
        "spectral_mf": spectral_mf.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "h5py": h5py.__version__,
        "hdf5": h5py.version.hdf5_version,
        "fft": fft.backend(),
    }
    if fft.backend() == "pyfftw":
        versions["pyfftw"] = version("pyfftw")
    return versions
