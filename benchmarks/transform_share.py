"""Where the time of a right-hand side goes: inside FFTW, and outside it (products, the quotient, calls from Python).

Three transforms back in one call, one forth. Outside: at small sizes mostly calls, at large sizes passes over memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Comparison, compare
from spectral_mf import FourierDensity, SelfAttention
from spectral_mf.fft import RealTransform
from spectral_mf.solvers.spectral import SpectralRightHandSide

MODEL = SelfAttention(beta=5.0)
SIZES = tuple(2**p for p in range(6, 15))
ALLOWED = 0.6
"""Largest share outside FFTW that is promised, from 4096 points on."""


def run() -> Iterator[Comparison]:
    """Yield one comparison for each size: the transforms alone against the whole; the share outside is 1 - 1/ratio."""
    for n_points in SIZES:
        c = FourierDensity.von_mises(4.0).moments(n_points // 2)[np.newaxis]
        out = np.empty_like(c)
        whole = SpectralRightHandSide(MODEL, n_points)
        back, forth = RealTransform(n_points, 3), RealTransform(n_points)
        backward, forward = back.backward, forth.forward

        def transforms(backward=backward, forward=forward) -> None:
            backward()
            forward()

        result = compare(
            f"right-hand side, {n_points} points: FFTW alone",
            ("four transforms", transforms),
            ("whole", lambda whole=whole, c=c, out=out: whole(c, out)),
        )
        share = 1.0 - 1.0 / result.ratio
        promised = f" (at most {ALLOWED:.0%})" if n_points >= 4096 else ""
        yield result.noted(f"{share:.0%} outside FFTW{promised}", met=n_points < 4096 or share <= ALLOWED)
