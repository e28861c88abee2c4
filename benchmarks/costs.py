"""What runs cost here, against the tolerance, β, the number of tokens, and the number of densities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.batches import densities
from benchmarks.measure import Cost, cost
from benchmarks.problem import RTOLS, error, spectral
from spectral_mf import Atoms, FourierDensity, SelfAttention, solve, theory
from spectral_mf.solvers.ensemble import solve_ensemble
from spectral_mf.validation.token_velocity import TokenVelocity

BETAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
GROWTH_TIMES = 6.0
"""Runs against beta take a perturbation of 1% in the dominant mode through its collapse."""


def against_tolerance() -> Iterator[Cost]:
    """The benchmarks' problem, to 15 times the uniform density."""
    for rtol in RTOLS[::4]:
        yield cost(
            f"solve to 15 times uniform, rtol {rtol:.0e}", spectral(rtol), detail=f"error {error(spectral(rtol)()):.1e}"
        )


def against_beta() -> Iterator[Cost]:
    """Through the collapse, with the resolution and the number of steps that each beta needs."""
    for beta in BETAS:
        model = SelfAttention(beta=beta)
        mode = theory.dominant_mode(model).modes[0]
        start = FourierDensity.from_modes({mode: 0.01, mode + 1: 0.001})
        t_end = GROWTH_TIMES / float(model.growth_rate(mode))

        def run(model=model, start=start, t_end=t_end):  # type: ignore[no-untyped-def]
            return solve(model, start, [0.0, t_end], rtol=1e-9)

        end = run()
        yield cost(
            f"solve {GROWTH_TIMES:g} growth times, beta {beta:g}",
            run,
            detail=f"mode {mode}, t = {t_end:.3g}, ends by {end.method[-1]} with {end.n_modes[-1]}",
            rounds=3,
        )


def against_tokens() -> Iterator[Cost]:
    """One evaluation of the velocities of N tokens in order, SA, beta = 5."""
    model = SelfAttention(beta=5.0)
    for n_tokens in (10**3, 10**4, 10**5, 10**6, 10**7):
        theta = np.sort(Atoms.sample_uniform(n_tokens, seed=1).angles)
        velocity = TokenVelocity(model, np.full(n_tokens, 1.0 / n_tokens))
        out = np.empty(n_tokens)
        timed = cost(f"velocities of {n_tokens} tokens", lambda v=velocity, x=theta, o=out: v(x, o), rounds=3)
        yield Cost(timed.name, timed.seconds, f"{timed.seconds / n_tokens * 1e9:.3g} ns a token")


def against_densities() -> Iterator[Cost]:
    """Ensembles to t = 4 from noise of 1%, SA, beta = 5, rtol 1e-8."""
    model = SelfAttention(beta=5.0)
    for count in (1, 4, 16, 64, 256, 1024):
        c = densities(count, 64)
        timed = cost(f"solve {count} densities together", lambda c=c: solve_ensemble(model, c, [0.0, 4.0]), rounds=3)
        yield Cost(timed.name, timed.seconds, f"{timed.seconds / count * 1e3:.3g} ms a density")


def run() -> Iterator[Cost]:
    """Yield all tables, one after the other."""
    for table in (against_tolerance, against_beta, against_tokens, against_densities):
        yield from table()
