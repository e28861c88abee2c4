"""A whole solve against JAX and diffrax: Dopri8, float64, compiled.

The density on the grid is the unknown. Warm times leave compilation out; cold ones compile anew, as a script does that
is run once.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import Comparison, Skipped, compare
from benchmarks.problem import (
    T_END,
    ComplexArray,
    Solver,
    error,
    fastest_within,
    initial_density,
    kernels,
    ours_within,
    spectral,
)

SAFE_POINTS = 4096
REQUIRED_WARM, REQUIRED_COLD = 5.0, 40.0


def diffrax_solve(n_points: int, rtol: float) -> Solver:
    """A compiled solve on a fixed grid."""
    import diffrax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    drift, mass = (jnp.asarray(kernel) for kernel in kernels(n_points))
    derivative = -1j * jnp.arange(n_points // 2 + 1).at[-1].set(0)
    start = jnp.asarray(initial_density(n_points))

    def rhs(_: Any, density: Any, __: Any) -> Any:
        c = jnp.fft.rfft(density)
        velocity = jnp.fft.irfft(drift * c, n_points) / jnp.fft.irfft(mass * c, n_points)
        return jnp.fft.irfft(derivative * jnp.fft.rfft(density * velocity), n_points)

    @jax.jit
    def end(density: Any) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rhs),
            diffrax.Dopri8(),
            0.0,
            T_END,
            None,
            density,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=0.01 * rtol),
            max_steps=100_000,
            throw=False,
        )
        return solution.ys[-1]

    def run() -> ComplexArray:
        return np.fft.rfft(np.asarray(end(start).block_until_ready()), norm="forward")

    return run


def diffrax_cold(n_points: int, rtol: float) -> Solver:
    """The same with nothing compiled before."""

    def run() -> ComplexArray:
        import jax

        jax.clear_caches()
        return diffrax_solve(n_points, rtol)()

    return run


def run() -> Iterator[Comparison | Skipped]:
    """Yield comparisons on the safe grid, warm and cold, and at equal error."""
    if find_spec("jax") is None or find_spec("diffrax") is None:
        yield Skipped("whole solve, JAX + diffrax", 'not installed; pip install -e ".[bench]"')
        return
    for rtol in (1e-9, 1e-6):
        ours = spectral(rtol)
        for name, theirs, required in (
            ("warm", diffrax_solve(SAFE_POINTS, rtol), REQUIRED_WARM),
            ("with compilation", diffrax_cold(SAFE_POINTS, rtol), REQUIRED_COLD),
        ):
            yield compare(
                f"whole solve, rtol {rtol:.0e}, diffrax {name}",
                ("spectral", ours),
                (f"{SAFE_POINTS} points", theirs),
                errors=(error(ours()), error(theirs())),
                required=required,
                rounds=5,
            )
    for allowed in (1e-9, 1e-6):
        candidates = []
        for n in (384, 512, 768):
            for rtol in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11):
                solver = diffrax_solve(n, rtol)
                solver()  # compiled before it is timed
                candidates.append((f"{n} points, rtol {rtol:.0e}", solver))
        label, theirs = fastest_within(candidates, allowed)
        our_label, ours = ours_within(allowed)
        yield compare(
            f"equal error {allowed:.0e}, diffrax on its best grid",
            (our_label, ours),
            (label, theirs),
            errors=(error(ours()), error(theirs())),
        )
