"""From the moments at all nodes to the rows of a trajectory with positions, in memory and in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.errors import StorageError
from spectral_mf.position_grid import PositionGrid
from spectral_mf.positional_trajectory import PositionalTrajectory
from spectral_mf.positions import PositionalAttention
from spectral_mf.storage.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from spectral_mf.storage.positional_file import PositionalFile

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


class PositionalRecord:
    """The rows of a run that is going on; kept whatever happens.

    Parameters
    ----------
    model : PositionalAttention
    grid : PositionGrid
        Of the rows there are; a finer one may take its place.
    t : ndarray of float64, shape (n_times,)
        All output times.
    configuration : mapping
        Everything that determines the run but the grid.
    file : PositionalFile or None
        Let go of at the end.
    """

    def __init__(
        self,
        model: PositionalAttention,
        grid: PositionGrid,
        t: FloatArray,
        configuration: Mapping[str, Any],
        file: PositionalFile | None,
    ) -> None:
        self.grid = grid
        self._model = model
        self._t = t
        self._configuration = configuration
        self._file = file
        self._rows: list[ComplexArray] = []
        self._sizes: list[int] = []

    @uninterrupted()
    def add(self, moments: ComplexArray, n_modes: int) -> None:
        """Add a row: moments of shape (S, K + 1), and the modes in use.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        self._rows.append(moments)
        self._sizes.append(n_modes)
        if self._file is not None:
            self._file.offer(lambda: self.trajectory("running"))

    @uninterrupted()
    def refine(self, finer: PositionGrid) -> None:
        """Take all rows to a finer grid; exactly, as it has the polynomials of the coarser one too."""
        move = self.grid.interpolation(finer.nodes)
        self._rows, self.grid = [move @ row for row in self._rows], finer

    def trajectory(self, status: str) -> PositionalTrajectory:
        """All rows until now."""
        configuration = {"n_positions": self.grid.n_nodes, "grading": self.grid.grading, **self._configuration}
        n_modes = np.array(self._sizes, dtype=np.int64)
        t = self._t[: len(self._rows)]
        return PositionalTrajectory(self._model, self.grid, t, np.array(self._rows), n_modes, configuration, status)

    def end(self, status: str) -> PositionalTrajectory:
        """Write the last state of the run, and return it.

        Raises
        ------
        StorageError
            If the file cannot be written; its `trajectory` holds all rows.
        """
        rows = self.trajectory(status)
        if self._file is not None:
            try:
                self._file.close(rows)
            except StorageError as error:
                error.trajectory = rows
                raise
        return rows

    def end_by(self, error: BaseException) -> None:
        """Keep the rows of a run that an error or Ctrl-C ends."""
        after = f"after t = {self._t[max(len(self._rows) - 1, 0)]:.6g}"
        if isinstance(error, StorageError):
            error.trajectory = self.trajectory("running")
        elif self._rows:
            interrupted = isinstance(error, KeyboardInterrupt)
            what = f"failed {after}: {type(error).__name__}: {error}"
            self.end(f"interrupted by the user {after}" if interrupted else what)
            return
        if self._file is not None:
            self._file.abandon()
