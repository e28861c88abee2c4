"""Reading run files; what is read does not depend on the file afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from spectral_mf.errors import StorageError
from spectral_mf.model import Model
from spectral_mf.storage.image import FORMAT, RESTART
from spectral_mf.storage.kinds import restore_measure, restore_model
from spectral_mf.trajectory import Row, RunInfo, Snapshot, StepState, Trajectory


@dataclass(frozen=True)
class RunSummary:
    """What a run file holds, without its fields.

    Attributes
    ----------
    path : Path
    info : RunInfo
    t : ndarray of float64, shape (n_times,)
    energy : ndarray of float64, shape (n_times,)
    n_modes : ndarray of int64, shape (n_times,)
    method : ndarray of str, shape (n_times,)
    attributes : mapping
        Root attributes of the file.
    """

    path: Path
    info: RunInfo
    t: np.ndarray[Any, np.dtype[np.float64]]
    energy: np.ndarray[Any, np.dtype[np.float64]]
    n_modes: np.ndarray[Any, np.dtype[np.int64]]
    method: np.ndarray[Any, np.dtype[np.str_]]
    attributes: Mapping[str, Any]

    @property
    def model(self) -> Model:
        """The model that was solved."""
        return self.info.model


def check_run_file(path: str | Path) -> None:
    """Raise StorageError unless the file can be read and is a run of a version that is known."""
    with _opened(path):
        pass


def read_info(path: str | Path) -> RunSummary:
    """Read what a run is and how it went, without its fields.

    Raises
    ------
    StorageError
        If the file is missing, damaged, or not a run file.
    """
    with _opened(path) as file:
        return RunSummary(
            path=Path(path),
            info=_info(file),
            t=file["time"][:],
            energy=file["energy"][:],
            n_modes=file["n_modes"][:],
            method=np.array(file["method"].asstr()[:], dtype=np.str_),
            attributes={key: _plain(value) for key, value in file.attrs.items()},
        )


def load_run(path: str | Path) -> Trajectory:
    """Read a whole run.

    Raises
    ------
    StorageError
        If the file is missing, damaged, or not a run file.
    """
    with _opened(path) as file:
        info = _info(file)
        moments = file["moment_real"][:] + 1j * file["moment_imag"][:]
        columns = {
            name: file[name][:]
            for name in ("time", "density", "energy", "energy_rate_residual", "remainder", "mass", "n_modes")
        }
        methods = file["method"].asstr()[:]
        group = file[RESTART]
        state, ends = group["state"][:], group["state_end"][:]
        kinds = group["state_kind"].asstr()[:]
        steps, errors = group["step_size"][:], group["previous_error"][:]
    if columns["time"].size == 0:
        raise StorageError(f"{path} holds no row yet; wait for the run that writes it, or solve again.")
    rows = []
    for i, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        snapshot = Snapshot(
            t=float(columns["time"][i]),
            measure=restore_measure(kinds[i], state[first:last]),
            method=str(methods[i]),
            n_modes=int(columns["n_modes"][i]),
            energy_rate_residual=float(columns["energy_rate_residual"][i]),
            remainder=float(columns["remainder"][i]),
            step=StepState(float(steps[i]), float(errors[i])),
        )
        rows.append(
            Row(snapshot, moments[i], columns["density"][i], float(columns["energy"][i]), float(columns["mass"][i]))
        )
    return Trajectory(info, rows)


@contextmanager
def _opened(path: str | Path) -> Iterator[h5py.File]:
    """Open a run file for reading; what goes wrong while it is open is damage."""
    place = Path(path).expanduser()
    if not place.exists():
        raise StorageError(f"{place} does not exist; check the name.")
    if not place.is_file():
        raise StorageError(f"{place} is not a file; give the HDF5 file of a run.")
    try:
        # Run files are replaced, never changed in place: no lock is needed to read one.
        file = h5py.File(place, "r", locking=False)
    except OSError as error:
        raise StorageError(_reason(place, error)) from error
    with file:
        version = file.attrs.get("spectral_mf_format")
        if "spectral_mf_sweep_format" in file.attrs:
            raise StorageError(f"{place} holds a sweep, not a run; read it with xarray or h5py, or give a run's file.")
        if "spectral_mf_positional_format" in file.attrs:
            raise StorageError(
                f"{place} holds densities with positions, which Trajectory and export do not have; load it with "
                "spectral_mf.PositionalTrajectory.load, or as the NetCDF-4 file that it is."
            )
        if version is None:
            raise StorageError(f"{place} is an HDF5 file of another program; give a file written by spectral_mf.")
        if int(version) > FORMAT:
            raise StorageError(
                f"{place} has file format {version}, newer than {FORMAT}, the newest this version reads; update it."
            )
        try:
            yield file
        except (OSError, KeyError, RuntimeError, json.JSONDecodeError) as error:
            raise StorageError(f"{place} is damaged ({error}); restore it from a copy, or solve again.") from error


def _reason(place: Path, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"{place} cannot be read (no permission); change its permissions."
    if "truncated" in str(error):
        return f"{place} is truncated: its end is missing; restore it from a copy, or solve again."
    if "signature not found" in str(error):
        return f"{place} is not an HDF5 file; give a file written by spectral_mf."
    return f"{place} cannot be opened as HDF5 ({error}); restore it from a copy, or solve again."


def _info(file: h5py.File) -> RunInfo:
    return RunInfo(
        model=restore_model(json.loads(file.attrs["model"])),
        configuration=json.loads(file[RESTART]["configuration"].asstr()[()]),
        n_modes=int(file["mode"].shape[0]) - 1,
        n_cells=int(file["theta"].shape[0]),
        complete=bool(file.attrs["complete"]),
        status=str(file.attrs["status"]),
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
