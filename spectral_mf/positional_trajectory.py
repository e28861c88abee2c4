"""The result of a run with positions: moments at each output time and position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import angle_array
from spectral_mf.harmonics import fourier_sum
from spectral_mf.position_grid import PositionGrid
from spectral_mf.positions import PositionalAttention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True)
class PositionalTrajectory:
    """Moments of the densities at all positions, at the output times of a run.

    Attributes
    ----------
    model : PositionalAttention
    grid : PositionGrid
    t : ndarray of float64, shape (n_times,)
    moments : ndarray of complex128, shape (n_times, S, K + 1)
        c_k(t, s) = int exp(-i k theta) dmu_s at the S nodes of the grid.
    n_modes : ndarray of int64, shape (n_times,)
        Modes in use by the solver.
    configuration : mapping
        Everything that determines the run, as plain JSON values.
    status : str
        "complete", or why the run stopped.
    """

    model: PositionalAttention
    grid: PositionGrid
    t: FloatArray
    moments: ComplexArray
    n_modes: NDArray[np.int64]
    configuration: Mapping[str, Any]
    status: str = "complete"

    @property
    def positions(self) -> FloatArray:
        """Positions s at which the moments are known; shape (S,)."""
        return self.grid.nodes

    @property
    def complete(self) -> bool:
        """Whether the run reached its last output time."""
        return self.status == "complete"

    @property
    def method(self) -> NDArray[np.str_]:
        """Method of each row, as a `Trajectory` has it: the spectral one; shape (n_times,)."""
        return np.full(self.t.size, "spectral")

    def __len__(self) -> int:
        return self.t.size

    def at(self, positions: ArrayLike) -> ComplexArray:
        """Moments at any positions in [0, 1], by the polynomial through the nodes; shape (n_times, n, K + 1)."""
        matrix = self.grid.interpolation(np.atleast_1d(np.asarray(positions)))
        return np.asarray(np.einsum("ps,tsk->tpk", matrix, self.moments))

    def mean_moments(self) -> ComplexArray:
        """Moments of the density of all tokens, whatever their position; shape (n_times, K + 1)."""
        return np.asarray(np.einsum("s,tsk->tk", self.grid.weights, self.moments))

    def density(self, theta: ArrayLike) -> FloatArray:
        """Densities at the given angles, from the stored moments; shape (n_times, S) + theta.shape."""
        return fourier_sum(self.moments / (2.0 * np.pi), angle_array(theta))

    def unresolved(self) -> FloatArray:
        """Largest of the last eighth of the coefficients in s, relative to the largest of all; shape (n_times,).

        Large values say that the positions are too few for the solution: take more nodes, or another grading.
        """
        return np.array([self.grid.tail(moments[:, 1:]) for moments in self.moments])

    def plot(self, picture: str = "overview") -> Figure:
        """Draw a picture: overview, density, order, moments or mean (see `spectral_mf.positional_plots`)."""
        from spectral_mf.positional_plots import draw

        return draw(self, picture)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write an HDF5 file that is also valid NetCDF-4, with the dimension `position`, and return its path."""
        from spectral_mf.storage.positional import save_positional

        return save_positional(self, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> PositionalTrajectory:
        """Read what `save` wrote."""
        from spectral_mf.storage.positional import load_positional

        return load_positional(path)

    def __repr__(self) -> str:
        span = f"t = {self.t[0]:g} .. {self.t[-1]:g}"
        return f"PositionalTrajectory({len(self)} rows, {self.grid.n_nodes} positions, {span}, {self.status})"
