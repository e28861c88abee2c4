"""A whole solve against the published scheme: first-order Lax-Friedrichs on 10,000 points, time steps of 0.02 dx.

USA at β = 5 to T = 0.5 from uniform with white noise of 1%, as in Bruno, Pasqualotto, Agazzi, arXiv:2410.23228, and its
notebook. Their velocity is a sum over all points; here it is a Fourier transform, which is much faster. Both sides
start from the first 40 modes of the noise. The scheme diffuses with dx²/(2 dt) = 25 dx = 0.0157.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import iv

from benchmarks.measure import Comparison, compare
from spectral_mf import FourierDensity, SelfAttention, solve

MODEL = SelfAttention(beta=5.0, normalization="none")
N_POINTS = 10_000
T_END = 0.5
COMPARED = 12
REQUIRED = 1000.0


def lax_friedrichs(start: FourierDensity) -> np.ndarray:
    """Moments c_0 .. c_12 at the end."""
    theta = 2.0 * np.pi * np.arange(N_POINTS) / N_POINTS
    dx = 2.0 * np.pi / N_POINTS
    k = np.arange(N_POINTS // 2 + 1)
    drift = 1j * k * iv(k, MODEL.beta) / MODEL.beta
    n_steps = round(T_END / (0.02 * dx))
    ratio = T_END / n_steps / (2.0 * dx)
    density = start.density(theta)
    for _ in range(n_steps):
        flux = density * np.fft.irfft(drift * (dx * np.fft.rfft(density)), N_POINTS, norm="forward")
        neighbours = np.roll(density, 1) + np.roll(density, -1)
        density = 0.5 * neighbours - ratio * (np.roll(flux, -1) - np.roll(flux, 1))
    moments: np.ndarray = dx * np.fft.rfft(density)[: COMPARED + 1]
    return moments


def run() -> Iterator[Comparison]:
    """Yield the comparison."""
    start = FourierDensity(FourierDensity.white_noise(0.01, N_POINTS, seed=0).moments(40))

    def ours() -> np.ndarray:
        return np.asarray(solve(MODEL, start, [0.0, T_END], rtol=1e-6).moments[-1, : COMPARED + 1])

    exact = solve(MODEL, start, [0.0, T_END], method="characteristics", rtol=1e-13).moments[-1, : COMPARED + 1]
    theirs = lax_friedrichs(start)
    yield compare(
        "whole solve, USA, Lax-Friedrichs as published",
        ("auto, rtol 1e-6", ours),
        (f"{N_POINTS} points", lambda: lax_friedrichs(start)),
        errors=(float(np.abs(ours() - exact).max()), float(np.abs(theirs - exact).max())),
        required=REQUIRED,
        rounds=3,
    )
