"""Many densities together against one at a time: the price of a right-hand side, of a step, and of a whole solve.

Together they share a step and a grid, one call of FFTW transforms all, and one matrix-vector product combines the
stages of all. Blocks are as `solve_ensemble` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Comparison, compare
from spectral_mf import SelfAttention
from spectral_mf.solvers.dop853 import Dop853
from spectral_mf.solvers.ensemble import BLOCK, solve_ensemble
from spectral_mf.solvers.spectral import SpectralRightHandSide

MODEL = SelfAttention(beta=5.0)
REQUIRED = {128: 2.5, 256: 2.0}
T_END = 4.0
STEP = 0.01


def densities(n_densities: int, n_modes: int) -> NDArray[np.complex128]:
    """Moments of densities with white noise of 1% in modes 1 to 8; shape (n_densities, n_modes + 1)."""
    rng = np.random.default_rng(3)
    c = np.zeros((n_densities, n_modes + 1), dtype=np.complex128)
    c[:, 0] = 1.0
    c[:, 1:9] = 0.01 * (rng.standard_normal((n_densities, 8)) + 1j * rng.standard_normal((n_densities, 8)))
    return c


def run() -> Iterator[Comparison]:
    """Yield comparisons of right-hand sides and steps for some numbers of points, and one of whole ensembles."""
    for n_points in (128, 256, 512):
        c = densities(BLOCK, n_points // 2)
        out, alone = np.empty_like(c), np.empty_like(c)
        together, single = SpectralRightHandSide(MODEL, n_points, 1, BLOCK), SpectralRightHandSide(MODEL, n_points)

        def one_by_one(c=c, alone=alone, single=single) -> None:
            for i in range(BLOCK):
                single(c[i : i + 1], alone[i : i + 1])

        together(c, out)
        one_by_one()
        yield compare(
            f"right-hand side, {BLOCK} densities, {n_points} points",
            ("together", lambda c=c, out=out, together=together: together(c, out)),
            ("one by one", one_by_one),
            difference=float(np.abs(out - alone).max()),
            required=REQUIRED.get(n_points),
        )
        rows = [row.view(np.float64) for row in c]
        block = Dop853(together, c.view(np.float64).ravel(), view=together.as_moments)
        steppers = [Dop853(single, row, view=single.as_moments) for row in rows]
        block.attempt(STEP)
        for stepper in steppers:
            stepper.attempt(STEP)
        trials = np.concatenate([stepper.trial for stepper in steppers])
        yield compare(
            f"step 8(5,3), {BLOCK} densities, {n_points} points",
            ("together", lambda block=block: block.attempt(STEP)),
            ("one by one", lambda steppers=steppers: [stepper.attempt(STEP) for stepper in steppers]),
            difference=float(np.abs(block.trial - trials).max()),
            required=REQUIRED.get(n_points),
        )
    c = densities(128, 64)
    times = [0.0, T_END]
    together = solve_ensemble(MODEL, c, times)
    alone = np.concatenate([solve_ensemble(MODEL, row[None], times) for row in c])
    yield compare(
        f"whole solves to t = {T_END:g}, 128 densities",
        ("together", lambda: solve_ensemble(MODEL, c, times)),
        ("one by one", lambda: [solve_ensemble(MODEL, row[None], times) for row in c]),
        difference=float(np.abs(together - alone).max()),
        rounds=7,
    )
