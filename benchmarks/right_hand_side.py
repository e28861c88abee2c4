"""One right-hand side of the spectral method against the same formula written with numpy.fft.

dc_k/dt = -i k F_k, F the Fourier coefficients of 2π p V, V = (1/β) d/dθ log ∫ e^{β cos(θ-φ)} dμ(φ).

The numpy side is what one writes first, without waste: coefficients made once, three transforms back, one forth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive

from benchmarks.measure import Comparison, compare
from spectral_mf import FourierDensity, SelfAttention
from spectral_mf.solvers.spectral import SpectralRightHandSide, kept_modes

ComplexArray = NDArray[np.complex128]

BETA = 5.0
SIZES = (128, 256, 512, 1024, 4096)
REQUIRED = {512: 4.0}


class NumpyRightHandSide:
    """The SA right-hand side with numpy.fft."""

    def __init__(self, beta: float, n_points: int) -> None:
        k = np.arange(n_points // 2 + 1)
        self.kernel = ive(k, beta) / ive(0, beta)
        self.drift = 1j * k * self.kernel / beta
        self.drift[-1] = 0.0
        self.derivative = np.where(k <= kept_modes(n_points), -1j * k, 0.0)
        self.n_points = n_points

    def __call__(self, c: ComplexArray) -> ComplexArray:
        """Return -i k F_k for the moments c, shape (M // 2 + 1,)."""
        n = self.n_points
        drift = np.fft.irfft(self.drift * c, n, norm="forward")
        mass = np.fft.irfft(self.kernel * c, n, norm="forward")
        density = np.fft.irfft(c, n, norm="forward")
        result: ComplexArray = self.derivative * np.fft.rfft(density * drift / mass, norm="forward")
        return result


def run() -> Iterator[Comparison]:
    """Yield one comparison for each number of grid points."""
    model = SelfAttention(beta=BETA)
    density = FourierDensity.von_mises(4.0)
    for n_points in SIZES:
        c = density.moments(n_points // 2)[np.newaxis]
        out = np.empty_like(c)
        planned = SpectralRightHandSide(model, n_points)
        plain = NumpyRightHandSide(BETA, n_points)
        planned(c, out)
        yield compare(
            f"right-hand side, SA, {n_points} points",
            ("planned pyFFTW", lambda planned=planned, c=c, out=out: planned(c, out)),
            ("numpy.fft", lambda plain=plain, c=c: plain(c[0])),
            difference=float(np.abs(out - plain(c[0])).max()),
            required=REQUIRED.get(n_points),
        )
