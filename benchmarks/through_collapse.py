"""From a perturbation of 1% through the collapse to t = 100, against the spectral method alone to where it ends.

SA at β = 5. In Fourier space the run has to stop at t = 8, where the density has collapsed onto three points; `auto`
goes on with the flow map, through the merging of clusters, until a handful of atoms is left. The difference is that of
the moments both have at t = 8.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Comparison, compare
from spectral_mf import FourierDensity, SelfAttention, Trajectory, solve
from spectral_mf.solvers.run import Method

MODEL = SelfAttention(beta=5.0)
START = FourierDensity.from_modes({2: 0.003, 3: 0.01, 4: 0.002j})
RTOL = 1e-10
SPECTRAL_END = 8.0


def solved(method: Method, t_end: float) -> Trajectory:
    """Rows at 0, at the end of the spectral method, and at t_end."""
    return solve(MODEL, START, np.unique([0.0, SPECTRAL_END, t_end]), method=method, rtol=RTOL)


def run() -> Iterator[Comparison]:
    """Yield the comparison: how many times the spectral run's time the whole takes is 1 / ratio."""
    for method in ("auto", "characteristics"):
        through, spectral = solved(method, 100.0), solved("spectral", SPECTRAL_END)  # type: ignore[arg-type]
        yield compare(
            f"{method} to t = 100, spectral to t = {SPECTRAL_END:g}",
            (method, lambda method=method: solved(method, 100.0)),
            ("spectral", lambda: solved("spectral", SPECTRAL_END)),
            difference=float(np.abs(through.moments[1] - spectral.moments[1]).max()),
            rounds=5,
        )
