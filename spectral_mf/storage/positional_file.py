"""The file of a run with positions that is going on: written anew as a whole every now and then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spectral_mf.positional_trajectory import PositionalTrajectory
from spectral_mf.storage.positional import write_positional
from spectral_mf.storage.publishing import Claim, Pace, claim_new
from spectral_mf.storage.uninterrupted import uninterrupted


class PositionalFile:
    """An output file that is readable at any moment; made by `create`.

    Attributes
    ----------
    path : Path
        Where the file is.
    """

    def __init__(self, path: Path, claim: Claim) -> None:
        self.path = path
        self._claim = claim
        self._pace = Pace()

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> PositionalFile:
        """Claim a place for a new run. What is there, if it may be overwritten, stays until the first row.

        Raises
        ------
        StorageError
            If the file exists and may not be overwritten, another run is writing it, or its folder is missing or
            cannot be written to.
        """
        return cls(*claim_new(path, overwrite=overwrite))

    def offer(self, rows: Callable[[], PositionalTrajectory]) -> None:
        """Put all rows on disk if it is time: every half second, or 20 times what that takes if it is longer.

        Raises
        ------
        StorageError
            If that failed. The file that was put there before is intact.
        """
        if self._pace.is_due:
            self._publish(rows())

    @uninterrupted()
    def close(self, rows: PositionalTrajectory) -> None:
        """Put the last state of the run on disk, and let go of the file.

        Raises
        ------
        StorageError
            If that failed. The file that was put there before is intact.
        """
        try:
            self._publish(rows)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file as it is."""
        self._claim.release()

    def _publish(self, rows: PositionalTrajectory) -> None:
        with self._pace.publishing():
            write_positional(rows, self.path)
