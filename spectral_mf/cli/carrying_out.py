"""What carries out a run: the run file chooses, by the kind of run that it describes (`RunConfig.kind`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_mf.cli.progress import Report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectral_mf.config import RunConfig
    from spectral_mf.trajectory import Trajectory


@dataclass(frozen=True)
class PreparedRun:
    """A run whose values have been looked at, before anything is computed.

    Attributes
    ----------
    heading : str
        What is solved, and from where.
    times : ndarray of float64, shape (n_times,)
    go : callable
        Called with what is told of progress, or None; carries the run out.
    """

    heading: str
    times: NDArray[np.float64]
    go: Callable[[Report | None], Trajectory]


def prepare_density(config: RunConfig, file: Path) -> PreparedRun:
    """One density, with its rows going to `file`."""
    from spectral_mf.solvers import solve

    model, times, initial = config.model(), config.times(), config.initial_measure()
    settings: dict[str, Any] = config.solve_options()

    def go(report: Report | None) -> Trajectory:
        return solve(
            model,
            initial.measure,
            times,
            **settings,
            output=file,
            overwrite=config.output.overwrite,
            provenance=initial.provenance,
            progress=report,
        )

    return PreparedRun(f"{model}\nfrom {initial.description}", times, go)


PREPARATIONS: dict[str, Callable[[RunConfig, Path], PreparedRun]] = {"density": prepare_density}
"""By kind of run."""
