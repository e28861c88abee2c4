"""What carries out a run: the run file chooses, by the kind of run that it describes (`RunConfig.kind`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_mf.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectral_mf.config import RunConfig
    from spectral_mf.positional_trajectory import PositionalTrajectory
    from spectral_mf.trajectory import Trajectory

    AnyTrajectory = Trajectory | PositionalTrajectory


@dataclass(frozen=True)
class PreparedRun:
    """A run whose values have been looked at, before anything is computed.

    Attributes
    ----------
    heading : str
        What is solved, and from where.
    times : ndarray of float64, shape (n_times,)
    go : callable
        Carries the run out; called with `progress=`, what is told of it, or None.
    """

    heading: str
    times: NDArray[np.float64]
    go: Callable[..., AnyTrajectory]


def prepare_density(config: RunConfig, file: Path) -> PreparedRun:
    """One density, with its rows going to `file`."""
    from spectral_mf.solvers import solve

    model, times, initial = config.model(), config.times(), config.initial_measure()
    settings: dict[str, Any] = config.solve_options()

    go = partial(solve, model, initial.measure, times, **settings, **_written(config, file, initial.provenance))
    return PreparedRun(f"{model}\nfrom {initial.description}", times, go)


def prepare_common_noise(config: RunConfig, file: Path) -> PreparedRun:
    """One density that one Brownian path moves, with its rows going to `file`; tokens become a density."""
    from spectral_mf.fourier_density import FourierDensity
    from spectral_mf.initial_state import prepare
    from spectral_mf.solvers.common_noise import solve_common_noise

    assert config.common_noise is not None
    model, times, settings = config.model(), config.times(), config.solve_options()
    _refuse_other_options(settings, solve_common_noise, "a run with common noise")
    initial = prepare(config.initial, model)
    density = initial.measure
    assert isinstance(density, FourierDensity)
    fields = config.common_noise.fields()
    path = config.common_noise.path(fields.n_fields, float(times[-1]))

    written = _written(config, file, initial.provenance)
    go = partial(solve_common_noise, model, density, fields, path, times, **settings, **written)
    heading = f"{model}\nfrom {initial.description}\nwith noise common to all tokens: {path.description}"
    return PreparedRun(heading, times, go)


def prepare_positions(config: RunConfig, file: Path) -> PreparedRun:
    """A density for each position, with its rows going to `file`."""
    from spectral_mf.solvers.positional import solve_positions

    model, times, settings = config.positional_model(), config.times(), config.solve_options()
    _refuse_other_options(settings, solve_positions, "a run with positions")
    initial = config.positional_start()

    written = _written(config, file, initial.provenance)
    go = partial(solve_positions, model, initial.densities, times, **settings, **written)
    return PreparedRun(f"{model}\nfrom {initial.description}", times, go)


def _written(config: RunConfig, file: Path, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of every solver that say where rows go, and what is told of their origin."""
    return {"output": file, "overwrite": config.output.overwrite, "provenance": provenance}


def _refuse_other_options(settings: dict[str, Any], solver: Callable[..., Any], what: str) -> None:
    """Refuse what `solve` takes and this solver does not."""
    known = inspect.signature(solver).parameters
    for key, value in settings.items():
        if key not in known:
            raise InputError(f"{key} = {value!r} says nothing about {what}; leave it out.")


PREPARATIONS: dict[str, Callable[[RunConfig, Path], PreparedRun]] = {
    "density": prepare_density,
    "common_noise": prepare_common_noise,
    "positions": prepare_positions,
}
"""By kind of run."""
