"""From the snapshots of a solver to the rows of a trajectory, in memory and in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spectral_mf.errors import StoppedEarly, StorageError
from spectral_mf.trajectory import Row, RunInfo, Snapshot, Trajectory

if TYPE_CHECKING:
    from spectral_mf.storage import RunFile


def record(info: RunInfo, rows: list[Row], snapshots: Iterable[Snapshot], file: RunFile | None) -> Trajectory:
    """Turn snapshots into rows, in memory and in the file; keep them whatever happens.

    Parameters
    ----------
    info : RunInfo
    rows : list of Row
        Those there are already; new ones are added to it.
    snapshots : iterable of Snapshot
    file : RunFile or None
        Closed, or let go of, at the end.

    Raises
    ------
    StoppedEarly
        As the snapshots raise it, with all rows as its `trajectory`.
    StorageError
        If the file cannot be written; its `trajectory` holds all rows.
    """

    def close(complete: bool, status: str) -> Trajectory:
        trajectory = Trajectory(
            RunInfo(info.model, info.configuration, info.n_modes, info.n_cells, complete, status), rows
        )
        if file is not None:
            try:
                file.close(complete=complete, status=status)
            except StorageError as error:
                error.trajectory = trajectory
                raise
        return trajectory

    try:
        for snapshot in snapshots:
            rows.append(Row.from_snapshot(snapshot, info.model, info.n_modes, info.n_cells))
            if file is not None:
                file.append(rows[-1])
    except StoppedEarly as stop:
        if rows:
            stop.trajectory = close(False, f"stopped early: {stop}")
        elif file is not None:
            file.abandon()
        raise
    except StorageError as error:
        error.trajectory = Trajectory(info, rows)
        if file is not None:
            file.abandon()
        raise
    except BaseException as error:
        if rows:
            after = f"after t = {rows[-1].snapshot.t:.6g}"
            failed = f"failed {after}: {type(error).__name__}: {error}"
            close(False, f"interrupted by the user {after}" if isinstance(error, KeyboardInterrupt) else failed)
        elif file is not None:
            file.abandon()
        raise
    return close(True, "complete")
