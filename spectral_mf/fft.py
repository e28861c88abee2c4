"""Real Fourier transforms on planned, aligned, preallocated arrays.

FFTW plans are made once, by estimate (as fast as measured plans at these sizes, and the same bits in every process),
on one thread. Where pyFFTW cannot be imported, scipy.fft serves behind the same two calls.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.arguments import integer_at_least
from spectral_mf.errors import InputError

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Transform = Callable[[], object]


_FOR_DASK = "dask.array.fft"
"""What pyFFTW imports for an interface that is not used here, and half a second of every start with it."""

_held_back = _FOR_DASK not in sys.modules
if _held_back:
    sys.modules[_FOR_DASK] = None  # type: ignore[assignment]  # an import of it says that it is not there
try:
    import pyfftw
except (ImportError, OSError) as _error:  # a broken binary raises OSError
    pyfftw = None
    warnings.warn(
        f"pyFFTW cannot be imported ({_error}); scipy.fft is used instead: same numbers, several times slower.",
        RuntimeWarning,
        stacklevel=2,
    )
finally:
    if _held_back:
        del sys.modules[_FOR_DASK]

_PLANNER = threading.Lock()
"""FFTW's planner is not thread safe; executing plans is."""


def backend() -> str:
    """Name of the library that transforms: "pyfftw" or "scipy"."""
    return "scipy" if pyfftw is None else "pyfftw"


class RealTransform:
    """Transforms between `n_series` real functions on a periodic grid and their Fourier coefficients.

    Parameters
    ----------
    n_points : int
        Number M of grid points, even.
    n_series : int
        Number of functions transformed together.

    Attributes
    ----------
    spectrum : ndarray of complex128, shape (n_series, M // 2 + 1)
        Coefficients a_0 .. a_{M/2}, written by the caller before `backward`, which destroys them.
    grid : ndarray of float64, shape (n_series, M)
        Values at theta_j = 2 pi j / M.
    """

    def __init__(self, n_points: int, n_series: int = 1) -> None:
        if integer_at_least("n_points", n_points, 2) % 2:
            raise InputError(f"n_points = {n_points} is not allowed; give an even number.")
        integer_at_least("n_series", n_series, 1)
        self.n_points = n_points
        self.n_series = n_series
        zeros = np.zeros if pyfftw is None else pyfftw.zeros_aligned
        self.spectrum: ComplexArray = zeros((n_series, n_points // 2 + 1), dtype=np.complex128)
        self.grid: FloatArray = zeros((n_series, n_points), dtype=np.float64)

    @cached_property
    def backward(self) -> Transform:
        """grid[s, j] = sum_k a_k exp(i k theta_j) over both signs of k, from spectrum[s]; destroys the spectrum."""
        if pyfftw is None:
            return self._scipy_backward
        return _plan(self.spectrum, self.grid, "FFTW_BACKWARD")

    @cached_property
    def forward(self) -> Transform:
        """spectrum[s, k] = sum_j grid[s, j] exp(-i k theta_j), not divided by M; destroys the grid."""
        if pyfftw is None:
            return self._scipy_forward
        return _plan(self.grid, self.spectrum, "FFTW_FORWARD")

    def _scipy_backward(self) -> None:
        from scipy import fft

        self.grid[...] = fft.irfft(self.spectrum, n=self.n_points, axis=1, norm="forward")

    def _scipy_forward(self) -> None:
        from scipy import fft

        self.spectrum[...] = fft.rfft(self.grid, axis=1)

    def __reduce__(self) -> tuple[Any, ...]:
        return RealTransform, (self.n_points, self.n_series)


def _plan(source: NDArray[Any], target: NDArray[Any], direction: str) -> Transform:
    """A planned transform along the last axis; planning by estimate touches neither array."""
    flags = ("FFTW_ESTIMATE", "FFTW_DESTROY_INPUT")
    with _PLANNER:
        plan = pyfftw.FFTW(source, target, axes=(1,), direction=direction, flags=flags, threads=1)
    execute: Transform = plan.execute
    return execute
