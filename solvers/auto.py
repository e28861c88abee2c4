"""The best method for each phase: Fourier modes while they resolve the density, then its characteristics.

With diffusion the density stays smooth, and Fourier modes serve throughout. Without, a density ends in points: the flow
map carries it on, with the same tolerance, to any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spectral_mf.errors import InputError, ResolutionExhausted
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model
from spectral_mf.solvers.characteristics import flow_of, march_characteristics
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.positivity import negative_by_error
from spectral_mf.solvers.spectral import march_spectral
from spectral_mf.trajectory import Snapshot, StepState

HAND_OVER_MODES = 768
"""Beyond this many modes the flow map is the cheaper of the two."""


def march_auto(model: Model, start: Snapshot, times: NDArray[np.float64], options: MarchOptions) -> Iterator[Snapshot]:
    """Solve through all phases (see `spectral_mf.solvers.march.March`)."""
    if not isinstance(start.measure, FourierDensity):
        return march_characteristics(model, start, times, options)
    if model.diffusion > 0.0:
        return march_spectral(model, start, times, options)
    return _through_phases(model, start, times, options)


def _through_phases(
    model: Model, start: Snapshot, times: NDArray[np.float64], options: MarchOptions
) -> Iterator[Snapshot]:
    remaining = times
    enough = max(HAND_OVER_MODES, 4 * model.bandwidth)
    limited = replace(options, max_modes=min(options.max_modes, enough * options.fold))
    try:
        for snapshot in march_spectral(model, start, times, limited):
            yield snapshot
            remaining = remaining[1:]
        return
    except ResolutionExhausted as stop:
        state = stop.snapshot or start
    yield from march_characteristics(model, _handed_over(model, state, options), remaining, options)


def _handed_over(model: Model, state: Snapshot, options: MarchOptions) -> Snapshot:
    """The same state as a flow map; it may be negative by what the spectral solver's error explains."""
    assert isinstance(state.measure, FourierDensity)
    negative = negative_by_error(state.measure, options.rtol)
    try:
        flow = flow_of(state.measure, model, options, negative=negative)
    except InputError as refusal:
        raise ResolutionExhausted(
            f"at t = {state.t:.6g} the density is too sharp for Fourier modes, and {refusal}", state.t, state
        ) from None
    return replace(state, measure=flow, step=StepState())
