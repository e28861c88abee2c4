"""The best method for each phase: Fourier modes while they resolve the density, then its characteristics.

With diffusion the density stays smooth, and Fourier modes serve throughout. Without, a density ends in points: the flow
map carries it on, with the same tolerance, to any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spectral_mf.errors import ResolutionExhausted
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model
from spectral_mf.solvers.characteristics import march_characteristics
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.spectral import march_spectral
from spectral_mf.trajectory import Snapshot

HAND_OVER_MODES = 768
"""Beyond this many modes the flow map is the cheaper of the two."""


def march_auto(model: Model, start: Snapshot, times: NDArray[np.float64], options: MarchOptions) -> Iterator[Snapshot]:
    """Solve through all phases (see `spectral_mf.solvers.march.March`)."""
    remaining = times
    state = start
    if isinstance(start.measure, FourierDensity):
        if model.diffusion > 0.0:
            yield from march_spectral(model, start, times, options)
            return
        limited = replace(options, max_modes=min(options.max_modes, HAND_OVER_MODES * options.fold))
        try:
            for snapshot in march_spectral(model, start, times, limited):
                yield snapshot
                remaining = remaining[1:]
            return
        except ResolutionExhausted as stop:
            state = stop.snapshot or start
    yield from march_characteristics(model, state, remaining, options)
