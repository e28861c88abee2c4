"""Files of runs with positions: HDF5 that is also valid NetCDF-4, with the dimensions time, position, mode, theta."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

import spectral_mf
from spectral_mf.errors import StorageError
from spectral_mf.harmonics import fourier_sum
from spectral_mf.position_grid import PositionGrid
from spectral_mf.positional_trajectory import PositionalTrajectory
from spectral_mf.positions import PositionalAttention
from spectral_mf.storage.image import history_of
from spectral_mf.storage.publishing import checked_place, write_whole

FORMAT = 1
"""Version of the layout; a reader refuses newer ones."""

N_CELLS = 128
_MARK = "spectral_mf_positional_format"


def save_positional(trajectory: PositionalTrajectory, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a trajectory with positions.

    Raises
    ------
    StorageError
        If the file exists, or cannot be written.
    """
    place = checked_place(path, overwrite=overwrite)
    write_positional(trajectory, place)
    return place


def write_positional(trajectory: PositionalTrajectory, place: Path) -> None:
    """Put a whole file in a place that has been looked at, or leave what was there."""
    content = io.BytesIO()
    with h5py.File(content, "w", track_order=True) as file:
        _fill(file, trajectory)
    write_whole(place, content.getvalue())


def has_positions(path: str | Path) -> bool:
    """Whether there is a file that `save_positional` wrote."""
    try:
        with h5py.File(Path(path).expanduser(), "r", locking=False) as file:
            return _MARK in file.attrs
    except OSError:
        return False


def load_positional(path: str | Path) -> PositionalTrajectory:
    """Read what `save_positional` wrote.

    Raises
    ------
    StorageError
        If there is no such file, or it is damaged, of another program, or newer than this version.
    """
    place = Path(path).expanduser()
    try:
        with h5py.File(place, "r", locking=False) as file:
            version = file.attrs.get(_MARK)
            if version is None:
                raise StorageError(f"{place} is not a run with positions; load other runs with Trajectory.load.")
            if int(version) > FORMAT:
                raise StorageError(f"{place} was written by a newer version of spectral_mf; update it.")
            model = json.loads(file.attrs["model"])
            model.pop("type")
            configuration = json.loads(file["configuration"][()])
            return PositionalTrajectory(
                model=PositionalAttention(**model),
                grid=PositionGrid(configuration["n_positions"], configuration["grading"]),
                t=file["time"][()],
                moments=file["moment_real"][()] + 1j * file["moment_imag"][()],
                n_modes=file["n_modes"][()],
                configuration=configuration,
                status=str(file.attrs["status"]),
            )
    except FileNotFoundError:
        raise StorageError(f"{place} does not exist.") from None
    except (OSError, KeyError, ValueError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{place} cannot be read as a run with positions: {error}.") from None


def _fill(file: h5py.File, trajectory: PositionalTrajectory) -> None:
    file.attrs["Conventions"] = "CF-1.11"
    file.attrs["title"] = f"Mean-field self-attention on the circle with positions: {trajectory.model!r}"
    file.attrs["source"] = f"spectral_mf {spectral_mf.__version__}"
    file.attrs["history"] = history_of(trajectory.configuration)
    file.attrs[_MARK] = FORMAT
    file.attrs["model"] = json.dumps(trajectory.model.to_dict())
    file.attrs["status"] = trajectory.status
    moments = trajectory.moments
    k = np.arange(moments.shape[2])
    theta = 2.0 * np.pi * np.arange(N_CELLS) / N_CELLS
    _coordinate(file, "time", trajectory.t, "1", "time")
    _coordinate(file, "position", trajectory.positions, "1", "position s of a token, from 0 to 1")
    _coordinate(file, "mode", k, "1", "Fourier mode k")
    _coordinate(file, "theta", theta, "rad", "angle of the cell's centre")
    file["theta"].attrs["bounds"] = "theta_bounds"
    bnds = file.create_dataset("bnds", data=np.zeros(2, dtype=">f4"))
    bnds.make_scale(f"This is a netCDF dimension but not a netCDF variable.{2:10d}")
    half = np.pi / N_CELLS
    _variable(
        file, "theta_bounds", ("theta", "bnds"), np.stack([theta - half, theta + half], 1), "rad", "ends of the cell"
    )
    _variable(file, "position_weight", ("position",), trajectory.grid.weights, "1", "weight of a mean over positions")
    for name, values in (("real", moments.real), ("imag", moments.imag)):
        long_name = f"{'imaginary' if name == 'imag' else name} part of the moment c_k = int exp(-i k theta) dmu_s"
        _variable(file, f"moment_{name}", ("time", "position", "mode"), values, "1", long_name)
    cells = fourier_sum(moments * (np.sinc(k / N_CELLS) / (2.0 * np.pi)), theta)
    density = _variable(
        file,
        "density",
        ("time", "position", "theta"),
        cells,
        "rad-1",
        "mean over each cell of theta, from the moments stored",
    )
    density.attrs["cell_methods"] = "theta: mean"
    _variable(file, "n_modes", ("time",), trajectory.n_modes, "1", "modes in use by the solver")
    text = json.dumps(dict(trajectory.configuration))
    configuration = file.create_dataset("configuration", data=text, dtype=h5py.string_dtype("utf-8"))
    configuration.attrs["long_name"] = "everything that determines the run, as JSON"


def _coordinate(file: h5py.File, name: str, values: NDArray[Any], units: str, long_name: str) -> None:
    dataset = file.create_dataset(name, data=values)
    dataset.make_scale(name)
    dataset.attrs["units"], dataset.attrs["long_name"] = units, long_name


def _variable(
    file: h5py.File, name: str, dimensions: tuple[str, ...], values: NDArray[Any], units: str, long_name: str
) -> h5py.Dataset:
    dataset = file.create_dataset(name, data=values, compression="gzip", shuffle=True)
    dataset.attrs["units"], dataset.attrs["long_name"] = units, long_name
    for axis, dimension in enumerate(dimensions):
        dataset.dims[axis].attach_scale(file[dimension])
    return dataset
