"""The file of a run that is going on: rows are appended, and published as a whole file every now and then."""

from __future__ import annotations

import tempfile
from pathlib import Path

from spectral_mf.errors import StorageError
from spectral_mf.positional_trajectory import PositionalTrajectory
from spectral_mf.storage.image import RunImage
from spectral_mf.storage.publishing import Claim, Pace, checked_place, claim_new, write_whole
from spectral_mf.storage.reading import check_run_file
from spectral_mf.storage.uninterrupted import uninterrupted
from spectral_mf.trajectory import Row, RunInfo, Trajectory


class RunFile:
    """An output file that is readable at any moment; made by `create` or `extend`.

    Attributes
    ----------
    path : Path
        Where the file is.
    """

    def __init__(self, path: Path, image: RunImage, claim: Claim, info: RunInfo) -> None:
        self.path = path
        self._image = image
        self._claim = claim
        self._info = info
        self._published_rows = 0
        self._pace = Pace()

    @classmethod
    def create(cls, path: str | Path, info: RunInfo, *, overwrite: bool = False) -> RunFile:
        """Claim a place for a new run. What is there, if it may be overwritten, stays until the first row.

        Raises
        ------
        StorageError
            If the file exists and may not be overwritten, another run is writing it, or its folder is missing or
            cannot be written to.
        """
        place, claim = claim_new(path, overwrite=overwrite)
        try:
            return cls(place, RunImage.new(info), claim, info)
        except BaseException:
            claim.release()
            raise

    @classmethod
    def extend(cls, path: str | Path, info: RunInfo) -> RunFile:
        """Take up the file of an earlier run, to add rows to it.

        Raises
        ------
        StorageError
            If it is not a run file, or another run is writing it.
        """
        place = checked_place(path, overwrite=True)
        check_run_file(place)
        claim = Claim(place)
        try:
            image = RunImage.from_file(place)
            image.describe(info)
            return cls(place, image, claim, info)
        except BaseException:
            claim.release()
            raise

    @uninterrupted()
    def append(self, row: Row) -> None:
        """Add a row, and publish if it is time: every half second, or 20 times what publishing takes if that is longer.

        Raises
        ------
        StorageError
            If publishing failed. The file that was published before is intact.
        """
        self._image.append(row)
        if self._pace.is_due:
            self.publish()

    def publish(self) -> None:
        """Put all rows on disk now.

        Raises
        ------
        StorageError
            If that failed. The file that was published before is intact.
        """
        with self._pace.publishing():
            write_whole(self.path, self._image.to_bytes())
            self._published_rows = self._image.n_rows

    @uninterrupted()
    def close(self, *, complete: bool, status: str) -> None:
        """Publish the last state of the run, and let go of the file.

        Raises
        ------
        StorageError
            If publishing failed. The file that was published before is intact.
        """
        info = self._info
        try:
            self._image.describe(RunInfo(info.model, info.configuration, info.n_modes, info.n_cells, complete, status))
            self.publish()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file as it was published last."""
        self._image.close()
        self._claim.release()


def save_run(trajectory: Trajectory, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a trajectory to a new file and return its path.

    Raises
    ------
    StorageError
        If the file exists and may not be overwritten, or cannot be written.
    """
    file = RunFile.create(path, trajectory.info, overwrite=overwrite)
    try:
        for row in trajectory.rows:
            file._image.append(row)
    except BaseException:
        file.abandon()
        raise
    file.close(complete=trajectory.complete, status=trajectory.status)
    return file.path


def rescue(trajectory: Trajectory | PositionalTrajectory, name: str = "rescued") -> Path | None:
    """Save a trajectory whose own file could not be written to the folder for temporary files.

    Returns
    -------
    Path or None
        Where it is; None if there is no place for it there either.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="spectral_mf-"))
        return trajectory.save(folder / f"{Path(name).stem}.h5")
    except (OSError, StorageError):
        return None
