"""What every method that moves a measure has in common: it marches from a snapshot through the output times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spectral_mf.model import Model
from spectral_mf.trajectory import Snapshot

Progress = Callable[[float, int, str], None]
"""Called after each accepted step with the time reached, the modes (or nodes, or atoms) in use, and the method."""


def no_progress(time: float, n_modes: int, method: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class MarchOptions:
    """Choices that every method understands.

    Attributes
    ----------
    rtol : float
        Error allowed a step, relative to the size of the perturbation (the largest |c_k|, k >= 1).
    max_modes : int
        Largest number of modes that the spectral method may use.
    fold : int
        The solution is kept exactly 2 pi / fold periodic: only modes that are multiples of `fold` are carried.
    progress : callable
    """

    rtol: float = 1e-10
    max_modes: int = 16384
    fold: int = 1
    progress: Progress = no_progress


class March(Protocol):
    """A method: carries a snapshot to each output time in turn."""

    def __call__(
        self, model: Model, start: Snapshot, times: NDArray[np.float64], options: MarchOptions
    ) -> Iterator[Snapshot]:
        """Yield a snapshot at each of `times` (increasing, all after start.t).

        What is wrong with the arguments is raised by the call itself, before the first snapshot is asked for, so that
        no file is begun for a run that cannot start.

        Raises
        ------
        InputError
            At once, if the method cannot start from this.
        StoppedEarly
            With the last accurate state as its `snapshot`, when the method cannot go on.
        """
