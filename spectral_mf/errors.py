"""What can go wrong, by what the caller can do about it.

`InputError` is raised at the door, before anything is computed: the call has to be changed. `StoppedEarly` is raised
by a run that could not go on; it carries everything computed until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectral_mf.positional_trajectory import PositionalTrajectory
    from spectral_mf.trajectory import Snapshot, Trajectory


class SpectralMFError(Exception):
    """Base class of every error that this package raises on purpose."""


class InputError(SpectralMFError, ValueError):
    """What was given is not allowed; the message names it, what is allowed and what to do."""


class StorageError(InputError):
    """A file cannot be read or written: missing, damaged, of another program, in use, in the way, or no space left.

    Attributes
    ----------
    trajectory : Trajectory, PositionalTrajectory or None
        What had been computed when writing failed; None if nothing was lost.
    """

    def __init__(self, message: str, trajectory: Trajectory | PositionalTrajectory | None = None) -> None:
        super().__init__(message)
        self.trajectory = trajectory


class StoppedEarly(SpectralMFError, RuntimeError):
    """A run ended before its last output time.

    Attributes
    ----------
    time : float
        The last time that was reached with the accuracy asked for.
    snapshot : Snapshot or None
        The state at that time, from which another method can go on.
    trajectory : Trajectory or None
        All rows computed until then; they are in the output file too, if there is one.
    """

    def __init__(self, message: str, time: float, snapshot: Snapshot | None = None) -> None:
        super().__init__(message)
        self.time = time
        self.snapshot = snapshot
        self.trajectory: Trajectory | None = None


class ResolutionExhausted(StoppedEarly):
    """The density has become too sharp for the largest number of modes allowed."""


class Diverged(StoppedEarly):
    """The state is no longer finite, or the step size fell to round-off."""
