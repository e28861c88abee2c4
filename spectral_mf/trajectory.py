"""The result of a run: one row for each output time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.errors import InputError
from spectral_mf.measure import Measure
from spectral_mf.model import Model
from spectral_mf.wording import counted

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True)
class StepState:
    """What a step-size controller needs, beside the measure, to go on bit for bit.

    Attributes
    ----------
    step_size : float
        Proposal for the next step; nan if the method takes no steps.
    previous_error : float
        Normalised error of the last accepted step; nan likewise.
    """

    step_size: float = float("nan")
    previous_error: float = float("nan")


@dataclass(frozen=True)
class Snapshot:
    """What a solver hands over at an output time.

    Attributes
    ----------
    t : float
    measure : Measure
        The state at the solver's own resolution.
    method : str
        "linear", "quasilinear", "spectral", "characteristics" or "atoms".
    n_modes : int
        Modes (or nodes, or atoms) in use.
    energy_rate_residual : float
        dE/dt of the discrete solution minus the dissipation integral; nan where the method does not know it.
    remainder : float
        Size of the moments that a truncated expansion leaves out: a bound for the series, the largest of the next order
        for the expansion; nan for methods that truncate nothing.
    step : StepState
    """

    t: float
    measure: Measure
    method: str
    n_modes: int
    energy_rate_residual: float = float("nan")
    remainder: float = float("nan")
    step: StepState = StepState()


@dataclass(frozen=True)
class Row:
    """A snapshot with all that is stored of it.

    Attributes
    ----------
    moments : ndarray of complex128, shape (K + 1,)
    cells : ndarray of float64, shape (n_theta,)
        Mean density over the cells centred at 2 pi j / n_theta.
    energy : float
        In units of exp(model.energy_log_unit).
    mass : float
        Total mass as carried by the solver, never rescaled.
    """

    snapshot: Snapshot
    moments: ComplexArray
    cells: FloatArray
    energy: float
    mass: float

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, model: Model, n_modes: int, n_cells: int) -> Row:
        """Compute what is stored of a snapshot."""
        measure = snapshot.measure
        moments = measure.moments(max(n_modes, model.bandwidth))
        return cls(
            snapshot=snapshot,
            moments=moments[: n_modes + 1],
            cells=nonnegative_cells(measure.cell_means(n_cells)),
            energy=float(model.energy(moments)),
            mass=float(moments[0].real),
        )


def nonnegative_cells(cells: FloatArray) -> FloatArray:
    """Set cells that are negative by rounding to zero, and take what that adds from the others, in proportion.

    A density that is negative beyond 1e-6 of its mass is returned as it is: that is an error to be seen.
    """
    negative = -cells[cells < 0.0].sum()
    total = cells.sum()
    if negative == 0.0 or negative > 1e-6 * total:
        return cells
    clipped = np.maximum(cells, 0.0)
    return np.asarray(clipped * (total / clipped.sum()))


@dataclass(frozen=True)
class RunInfo:
    """What a run is, beside its rows: enough to repeat it or go on with it.

    Attributes
    ----------
    model : Model
    configuration : mapping
        Everything that determines the run, as plain JSON values: method, rtol, max_modes, symmetry, output times
        ("times": list of float), and where the initial state came from ("initial": mapping). See `solve`.
    n_modes : int
        Largest mode K stored.
    n_cells : int
        Number of theta cells stored.
    complete : bool
        Whether the last output time was reached.
    status : str
        "complete", "running", or why the run stopped.
    """

    model: Model
    configuration: Mapping[str, Any]
    n_modes: int
    n_cells: int
    complete: bool = False
    status: str = "running"


class Trajectory:
    """Moments, energy and density of a solution at its output times.

    Attributes
    ----------
    t : ndarray of float64, shape (n_times,)
    moments : ndarray of complex128, shape (n_times, K + 1)
        c_k(t) = int exp(-i k theta) dmu_t.
    energy : ndarray of float64, shape (n_times,)
        In units of exp(model.energy_log_unit).
    energy_rate_residual, remainder, mass : ndarray of float64, shape (n_times,)
        See `Snapshot` and `Row`.
    n_modes : ndarray of int64, shape (n_times,)
        Modes (or nodes) that the solver was using.
    method : ndarray of str, shape (n_times,)
        Method in use at each time.
    cells : ndarray of float64, shape (n_times, n_theta)
        Mean density over the cells centred at `theta`.
    theta : ndarray of float64, shape (n_theta,)
    model : Model
    configuration : mapping
    complete : bool
    status : str
    """

    def __init__(self, info: RunInfo, rows: Sequence[Row]) -> None:
        if not rows:
            raise InputError("a trajectory has at least one row, the initial state; none was given.")
        self.info = info
        self.rows: tuple[Row, ...] = tuple(rows)
        self.t: FloatArray = np.array([row.snapshot.t for row in rows])
        self.moments: ComplexArray = np.array([row.moments for row in rows])
        self.cells: FloatArray = np.array([row.cells for row in rows])
        self.energy: FloatArray = np.array([row.energy for row in rows])
        self.mass: FloatArray = np.array([row.mass for row in rows])
        self.energy_rate_residual: FloatArray = np.array([row.snapshot.energy_rate_residual for row in rows])
        self.remainder: FloatArray = np.array([row.snapshot.remainder for row in rows])
        self.n_modes: NDArray[np.int64] = np.array([row.snapshot.n_modes for row in rows], dtype=np.int64)
        self.method: NDArray[np.str_] = np.array([row.snapshot.method for row in rows])

    @property
    def model(self) -> Model:
        """The model that was solved."""
        return self.info.model

    @property
    def configuration(self) -> Mapping[str, Any]:
        """Everything that determines the run."""
        return self.info.configuration

    @property
    def complete(self) -> bool:
        """Whether the last output time was reached."""
        return self.info.complete

    @property
    def status(self) -> str:
        """How the run ended: "complete", or why it stopped."""
        return self.info.status

    @property
    def theta(self) -> FloatArray:
        """Centres of the cells, 2 pi j / n_theta; shape (n_theta,)."""
        return 2.0 * np.pi * np.arange(self.info.n_cells) / self.info.n_cells

    def __len__(self) -> int:
        return len(self.rows)

    def measure(self, i: int) -> Measure:
        """The solution at output time number i, at the solver's own resolution."""
        return self.rows[i].snapshot.measure

    def density(self, theta: ArrayLike) -> FloatArray:
        """Density at the given angles at all times; shape (n_times,) + theta.shape."""
        return np.array([self.measure(i).density(theta) for i in range(len(self))])

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the trajectory to an HDF5 file (see `spectral_mf.storage`) and return its path."""
        from spectral_mf.storage import save_run

        return save_run(self, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Read a trajectory from an HDF5 file, also one whose run was killed or is still going on."""
        from spectral_mf.storage import load_run

        return load_run(path)

    def to_xarray(self) -> xarray.Dataset:
        """The trajectory as an xarray.Dataset with the names and attributes of the file (needs xarray)."""
        from spectral_mf.storage import to_xarray

        return to_xarray(self)

    def plot(self, picture: str = "overview") -> Figure:
        """A picture of the run.

        Parameters
        ----------
        picture : str
            "overview" (density, moments against linear theory, growth rates, energy) or another of
            `spectral_mf.pictures.PICTURES`.
        """
        from spectral_mf.pictures import draw

        return draw(self, picture)

    def __repr__(self) -> str:
        return f"Trajectory({counted(len(self), 'rows')}, t = {self.t[0]:g} .. {self.t[-1]:g}, {self.status})"
