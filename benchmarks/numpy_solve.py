"""A whole solve against numpy.fft and scipy's `solve_ivp`.

Written as one writes it after reading the two manuals: moments as unknowns, 8th-order Runge-Kutta (DOP853) with
adaptive steps, coefficients made once. Its grid has to be chosen beforehand. 4096 points is what is safe without
knowing the solution; a row of its own takes the grid and the tolerance that are found to be the quickest by trying them
against the known result, which nobody has at the time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.measure import Comparison, compare
from benchmarks.problem import (
    MODES,
    T_END,
    ComplexArray,
    FloatArray,
    Solver,
    error,
    fastest_within,
    kernels,
    ours_within,
    spectral,
)

SAFE_POINTS = 4096
REQUIRED = {1e-9: 30.0, 1e-6: 60.0}
"""Ratio promised against the safe grid, by tolerance."""


def numpy_solve(n_points: int, rtol: float, *, kept: float = 1.0) -> Solver:
    """numpy.fft and solve_ivp on a fixed grid; `kept` is the share of modes that is carried."""
    k = np.arange(n_points // 2 + 1)
    drift, mass = kernels(n_points)
    derivative = np.where((k <= kept * (n_points // 2)) & (k < n_points // 2), -1j * k, 0.0)
    start = np.zeros(k.size, dtype=np.complex128)
    start[0] = 1.0
    for mode, value in MODES.items():
        start[mode] = value

    def rhs(_: float, y: FloatArray) -> FloatArray:
        c = y.view(np.complex128)
        density = np.fft.irfft(c, n_points, norm="forward")
        velocity = np.fft.irfft(drift * c, n_points, norm="forward") / np.fft.irfft(mass * c, n_points, norm="forward")
        flux: ComplexArray = derivative * np.fft.rfft(density * velocity, norm="forward")
        return flux.view(np.float64)

    def run() -> ComplexArray:
        solution = solve_ivp(rhs, (0.0, T_END), start.view(np.float64), method="DOP853", rtol=rtol, atol=0.01 * rtol)
        return np.asarray(solution.y[:, -1].copy().view(np.complex128))

    return run


def run() -> Iterator[Comparison]:
    """Yield a comparison on the safe grid for each tolerance, and one at equal error for each error."""
    for rtol, required in REQUIRED.items():
        ours, theirs = spectral(rtol), numpy_solve(SAFE_POINTS, rtol)
        yield compare(
            f"whole solve, rtol {rtol:.0e}, numpy + solve_ivp",
            ("spectral", ours),
            (f"{SAFE_POINTS} points", theirs),
            errors=(error(ours()), error(theirs())),
            required=required,
            rounds=7,
        )
    for allowed in REQUIRED:
        candidates = (
            (f"{n} points, {kept:.2f} kept, rtol {rtol:.0e}", numpy_solve(n, rtol, kept=kept))
            for n in (384, 512, 768, 1024)
            for kept in (1.0, 2.0 / 3.0)
            for rtol in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
        )
        label, theirs = fastest_within(candidates, allowed)
        our_label, ours = ours_within(allowed)
        yield compare(
            f"equal error {allowed:.0e}, numpy on its best grid",
            (our_label, ours),
            (label, theirs),
            errors=(error(ours()), error(theirs())),
        )
