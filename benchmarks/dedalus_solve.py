"""A whole solve against Dedalus 3, where it is installed.

The flux is a `GeneralFunction` of the density, by numpy.fft; steps are of one size, as Dedalus' are, and the quickest
of its schemes, grids and numbers of steps that reach the error is taken. Building the solver is not timed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import Comparison, Skipped, compare
from benchmarks.problem import (
    T_END,
    ComplexArray,
    FloatArray,
    Solver,
    error,
    fastest_within,
    initial_density,
    kernels,
    ours_within,
)

REQUIRED = 50.0


def dedalus_solve(scheme: str, n_points: int, n_steps: int) -> Solver:
    """A solve with steps of one size."""
    import dedalus.public as d3

    coordinate = d3.Coordinate("theta")
    distributor = d3.Distributor(coordinate, dtype=np.float64)
    basis = d3.RealFourier(coordinate, size=n_points, bounds=(0.0, 2.0 * np.pi), dealias=1)
    density = distributor.Field(name="density", bases=basis)
    drift, mass = kernels(n_points)

    def flux_on_grid(field: Any) -> FloatArray:
        field.change_scales(1)
        p = field["g"]
        c = np.fft.rfft(p)
        return np.asarray(p * np.fft.irfft(drift * c, n_points) / np.fft.irfft(mass * c, n_points))

    flux = d3.GeneralFunction(distributor, density.domain, (), np.float64, "g", flux_on_grid, args=[density])
    problem = d3.IVP([density])
    problem.add_equation((d3.TimeDerivative(density), -d3.Differentiate(flux, coordinate)))
    start = initial_density(n_points)
    solver = problem.build_solver(getattr(d3, scheme))

    def run() -> ComplexArray:
        solver.timestepper = getattr(d3, scheme)(solver)  # multistep schemes start from scratch
        density.change_scales(1)
        density["g"] = start
        for _ in range(n_steps):
            solver.step(T_END / n_steps)
        density.change_scales(1)
        return np.fft.rfft(density["g"], norm="forward")

    return run


def run() -> Iterator[Comparison | Skipped]:
    """Yield one comparison for each error."""
    if find_spec("dedalus") is None:
        yield Skipped("whole solve, Dedalus 3", "not installed (it needs MPI and FFTW, see its manual)")
        return
    logging.disable(logging.WARNING)
    trials = {
        1e-6: (("SBDF3", (3000, 3400, 4000)), ("RK443", (300, 350, 400)), ("RK222", (1500, 2000))),
        1e-9: (("RK443", (2600, 3000, 3400)),),
    }
    for allowed, schemes in trials.items():
        candidates = (
            (f"{scheme}, {n} points, {n_steps} steps", dedalus_solve(scheme, n, n_steps))
            for scheme, steps in schemes
            for n in (384, 512)
            for n_steps in steps
        )
        label, theirs = fastest_within(candidates, allowed)
        our_label, ours = ours_within(allowed)
        yield compare(
            f"equal error {allowed:.0e}, Dedalus",
            (our_label, ours),
            (label, theirs),
            errors=(error(ours()), error(theirs())),
            required=REQUIRED,
            rounds=9,
        )
