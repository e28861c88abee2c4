"""Trajectories for other programs: NetCDF, CSV, NumPy archives and xarray."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spectral_mf.errors import InputError
from spectral_mf.storage.image import RunImage
from spectral_mf.storage.publishing import checked_place, write_whole
from spectral_mf.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray


def export(trajectory: Trajectory, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a trajectory in another format, chosen by the suffix.

    Parameters
    ----------
    trajectory : Trajectory
    path : path
        `.nc`: NetCDF-4, the layout of a run file. `.csv`: a table with one line for each time: t, energy, mass,
        n_modes, method, then re_c1, im_c1, re_c2, .. `.npz`: a NumPy archive with t, moments, theta, density, energy,
        mass, n_modes, method.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the suffix is not one of these.
    StorageError
        If the file exists, or cannot be written.
    """
    place = Path(path)
    if place.suffix.lower() not in _FORMATS:
        raise InputError(f"{place.name} has no suffix that is known; choose one of {', '.join(_FORMATS)}.")
    place = checked_place(place, overwrite=overwrite)
    write_whole(place, _FORMATS[place.suffix.lower()](trajectory))
    return place


def to_xarray(trajectory: Trajectory) -> xarray.Dataset:
    """The trajectory as an xarray.Dataset: what `xarray.open_dataset` gives for its file.

    Raises
    ------
    InputError
        If xarray or h5netcdf is not installed.
    """
    try:
        import h5netcdf  # noqa: F401
        import xarray
    except ImportError as error:
        raise InputError(
            f"to_xarray needs {error.name}; install it, in the clone by pip install -e '.[xarray]'."
        ) from None
    return xarray.load_dataset(io.BytesIO(_netcdf(trajectory)), engine="h5netcdf")


def _netcdf(trajectory: Trajectory) -> bytes:
    image = RunImage.new(trajectory.info)
    try:
        for row in trajectory.rows:
            image.append(row)
        return image.to_bytes()
    finally:
        image.close()


def _csv(trajectory: Trajectory) -> bytes:
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    modes = range(1, trajectory.moments.shape[1])
    names = [f"{part}_c{k}" for k in modes for part in ("re", "im")]
    table.writerow(["t", "energy", "mass", "n_modes", "method", *names])
    for i in range(len(trajectory)):
        parts = np.ascontiguousarray(trajectory.moments[i, 1:]).view(np.float64)
        head = [trajectory.t[i], trajectory.energy[i], trajectory.mass[i]]
        table.writerow(
            [
                *(repr(float(value)) for value in head),
                int(trajectory.n_modes[i]),
                str(trajectory.method[i]),
                *(repr(float(value)) for value in parts),
            ]
        )
    return text.getvalue().encode("utf-8")


def _npz(trajectory: Trajectory) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        t=trajectory.t,
        moments=trajectory.moments,
        theta=trajectory.theta,
        density=trajectory.cells,
        energy=trajectory.energy,
        mass=trajectory.mass,
        n_modes=trajectory.n_modes,
        method=trajectory.method,
    )
    return buffer.getvalue()


_FORMATS: dict[str, Callable[[Trajectory], bytes]] = {".nc": _netcdf, ".csv": _csv, ".npz": _npz}
