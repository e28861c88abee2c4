"""Moments of many tokens, and Fourier sums at many tokens, without an array of (tokens x modes) or (tokens x tokens).

c_k = sum_j w_j exp(-i k theta_j)    and    f(theta_j) = sum_{|k| <= K} a_k exp(i k theta_j),  a_{-k} = conj(a_k).

Three ways, each the fastest somewhere (`fast_sums` chooses):

- `Recurrences`, exp(i k theta) = exp(i (k-1) theta) exp(i theta) in blocks that fit the cache: few tokens;
- `NonuniformFFT` (finufft): many tokens;
- `SortedCells`, a polynomial a cell: very many tokens in order, which tokens on the circle keep.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from spectral_mf.harmonics import fourier_sum, point_moments

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


class TokenSums(Protocol):
    """Both directions of a non-uniform Fourier transform at the same tokens."""

    def place(self, theta: FloatArray) -> None:
        """Take up the tokens' angles in radians, any real numbers; shape (N,). They are read again by the others."""

    def moments(self, weights: FloatArray) -> ComplexArray:
        """c_0 .. c_K of the tokens with these weights, shape (N,)."""

    def sums(self, coefficients: ComplexArray) -> FloatArray:
        """Values at the tokens of one or two real functions a_0 .. a_K, shape (rows, K + 1); shape (rows, N).

        The result is overwritten by the next call.
        """


class Recurrences:
    """Horner's rule and powers, O(N K): up to some hundred tokens and a few modes."""

    def __init__(self, n_modes: int) -> None:
        self._n_modes = n_modes

    def place(self, theta: FloatArray) -> None:
        """Take up the tokens' angles."""
        self._theta = theta

    def moments(self, weights: FloatArray) -> ComplexArray:
        """c_0 .. c_K."""
        return point_moments(self._theta, weights, self._n_modes)

    def sums(self, coefficients: ComplexArray) -> FloatArray:
        """Values at the tokens."""
        return fourier_sum(coefficients, self._theta)


class NonuniformFFT:
    """finufft's types 1 and 2 in double precision, O(N + K log K).

    Two real functions cost one transform: the second is the imaginary part.

    Parameters
    ----------
    n_modes : int
    n_threads : int
        Threads that finufft uses; 1 makes results the same on every machine.
    """

    TOLERANCE = 1e-14

    def __init__(self, n_modes: int, n_threads: int = 1) -> None:
        import finufft

        self._made_from = (n_modes, n_threads)
        self._n_modes = n_modes
        settings: dict[str, Any] = {"n_trans": 1, "eps": self.TOLERANCE, "nthreads": n_threads}
        size = (2 * n_modes + 1,)  # modes -K .. K in increasing order (modeord = 0)
        self._to_modes = finufft.Plan(1, size, isign=-1, **settings)
        self._to_tokens = finufft.Plan(2, size, isign=1, **settings)

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans are made anew, and want tokens again."""
        return NonuniformFFT, self._made_from

    def place(self, theta: FloatArray) -> None:
        """Take up the tokens' angles."""
        self._n_tokens = theta.size
        self._finite = bool(np.isfinite(theta.sum()))  # finufft must not see angles that are no numbers
        if self._finite:
            self._to_modes.setpts(theta)
            self._to_tokens.setpts(theta)

    def moments(self, weights: FloatArray) -> ComplexArray:
        """c_0 .. c_K."""
        if not self._finite:
            return np.full(self._n_modes + 1, np.nan + 0j)
        both = self._to_modes.execute(weights.astype(np.complex128))
        return np.asarray(both[self._n_modes :], dtype=np.complex128)

    def sums(self, coefficients: ComplexArray) -> FloatArray:
        """Values at the tokens."""
        if not self._finite:
            return np.full((coefficients.shape[0], self._n_tokens), np.nan)
        spectrum = np.zeros(2 * self._n_modes + 1, dtype=np.complex128)
        for row, unit in zip(coefficients, (1.0, 1j), strict=False):
            n = row.size - 1
            spectrum[self._n_modes : self._n_modes + n + 1] += unit * row
            spectrum[self._n_modes - n : self._n_modes] += unit * np.conj(row[:0:-1])
            spectrum[self._n_modes] -= unit * 1j * row[0].imag
        values = self._to_tokens.execute(spectrum)
        return np.stack([values.real, values.imag][: coefficients.shape[0]])


class SortedCells:
    """Taylor polynomials on cells of 1/16 of the shortest wavelength, O(N) with hardly any memory beside the tokens.

    Degree 10 leaves an error of (pi / 16)^11 / 11! = 4e-16 of the coefficients' sum. A cell's tokens lie side by side
    when tokens are in order, so that a cell is one small matrix product. Tokens that are out of order by more than
    rounding are handed to `NonuniformFFT`.
    """

    DEGREE = 10
    CELLS_PER_MODE = 16
    CHUNK = 2048
    """Tokens at once; their powers fit the cache."""

    SLACK = 0.1
    """Distance beyond its cell, in half widths of one, that a token may have: it costs 2e-16 of accuracy."""

    def __init__(self, n_modes: int, n_threads: int = 1) -> None:
        self._n_modes = n_modes
        self._n_threads = n_threads
        self._n_cells = int(fft.next_fast_len(max(64, self.CELLS_PER_MODE * n_modes), real=True))
        self._half_width = math.pi / self._n_cells
        k = np.arange(n_modes + 1)
        degree = np.arange(self.DEGREE + 1)
        factorials = np.array([math.factorial(p) for p in degree], dtype=np.float64)
        taylor = (1j * k * self._half_width) ** degree[:, None] / factorials[:, None]
        self._taylor = taylor * np.exp(1j * k * self._half_width)  # about the centres (j + 1/2) 2 pi / n
        self._powers = np.ones((self.DEGREE + 1, self.CHUNK))
        self._values = np.empty((0, 0))
        self._fallback: NonuniformFFT | None = None
        self._ordered = True

    def place(self, theta: FloatArray) -> None:
        """Take up the tokens' angles, in increasing order except for rounding."""
        self._theta = theta
        self._chunks = self._divide(theta)
        self._ordered = all(self._in_cell(theta[i:j], cell) for cell, i, j in self._chunks)
        if not self._ordered:
            if self._fallback is None:
                self._fallback = NonuniformFFT(self._n_modes, self._n_threads)
            self._fallback.place(theta)

    def moments(self, weights: FloatArray) -> ComplexArray:
        """c_0 .. c_K."""
        if not self._ordered and self._fallback is not None:
            return self._fallback.moments(weights)
        local = np.zeros((self._n_cells, self.DEGREE + 1))  # sums of w s^p over the tokens of a cell
        for cell, i, j in self._chunks:
            local[cell % self._n_cells] += self._raise(self._theta[i:j], cell) @ weights[i:j]
        spectrum = fft.rfft(local, axis=0)[: self._n_modes + 1].T
        return np.asarray((np.conj(self._taylor) * spectrum).sum(axis=0))

    def sums(self, coefficients: ComplexArray) -> FloatArray:
        """Values at the tokens."""
        if not self._ordered and self._fallback is not None:
            return self._fallback.sums(coefficients)
        rows, n = coefficients.shape
        local = fft.irfft(coefficients[:, None] * self._taylor[:, :n], n=self._n_cells, norm="forward")
        tables = np.ascontiguousarray(local.transpose(2, 0, 1))
        if self._values.shape != (rows, self._theta.size):
            self._values = np.empty((rows, self._theta.size))
        for cell, i, j in self._chunks:
            self._values[:, i:j] = tables[cell % self._n_cells] @ self._raise(self._theta[i:j], cell)
        return self._values

    def _divide(self, theta: FloatArray) -> list[tuple[int, int, int]]:
        """Cell number (not reduced), first token and end of each chunk; empty if an end is not a number."""
        width = 2.0 * self._half_width
        if not (np.isfinite(theta[0]) and np.isfinite(theta[-1])):
            return [(0, 0, theta.size)]
        first, last = math.floor(theta[0] / width), math.floor(theta[-1] / width)
        if not 0 <= last - first <= 2 * self._n_cells:
            return [(0, 0, theta.size)]  # not in order; the chunk does not fit its cell
        inner = np.searchsorted(theta, np.arange(first + 1, last + 1) * width).tolist()
        chunks = []
        for cell, (i, j) in enumerate(zip([0, *inner], [*inner, theta.size], strict=True), start=first):
            chunks += [(cell, start, min(start + self.CHUNK, j)) for start in range(i, j, self.CHUNK)]
        return chunks

    def _in_cell(self, theta: FloatArray, cell: int) -> bool:
        slack = self.SLACK * self._half_width
        low = 2.0 * cell * self._half_width - slack
        return bool(theta.min() >= low) and bool(theta.max() <= low + 2.0 * (self._half_width + slack))

    def _raise(self, theta: FloatArray, cell: int) -> FloatArray:
        """Powers 0 .. 10 of the local coordinate, which runs from -1 to 1 through the cell; shape (11, n)."""
        s = self._powers[:, : theta.size]
        np.multiply(theta, 1.0 / self._half_width, out=s[1])
        s[1] -= 2 * cell + 1
        np.multiply(s[1], s[1], out=s[2])
        np.multiply(s[1:3], s[2], out=s[3:5])
        np.multiply(s[1:5], s[4], out=s[5:9])
        np.multiply(s[1:3], s[8], out=s[9:11])
        return s


FEW_TOKENS, FEW_MODES = 500, 32
"""Up to so many of both, recurrences are the fastest; with more modes finufft is, for any number of tokens."""

TOKENS_PER_CELL = 300
"""Tokens for each cell from which polynomials are the fastest (measured: 1e5 tokens at 26 modes)."""


def fast_sums(n_tokens: int, n_modes: int, *, in_order: bool = False, n_threads: int = 1) -> TokenSums:
    """The fastest way for so many tokens and modes.

    Parameters
    ----------
    n_tokens, n_modes : int
    in_order : bool
        Whether the tokens will be in increasing order.
    n_threads : int
        Threads that finufft uses.
    """
    if n_tokens <= FEW_TOKENS and n_modes <= FEW_MODES:
        return Recurrences(n_modes)
    if in_order and n_tokens >= TOKENS_PER_CELL * max(64, SortedCells.CELLS_PER_MODE * n_modes):
        return SortedCells(n_modes, n_threads)
    return NonuniformFFT(n_modes, n_threads)


def token_moments(angles: FloatArray, weights: FloatArray, n_modes: int, *, n_threads: int = 1) -> ComplexArray:
    """Moments c_0 .. c_K of tokens, by the fastest way.

    Parameters
    ----------
    angles, weights : ndarray of float64, shape (N,)
    n_modes : int
        K.
    n_threads : int
        Threads that finufft uses.

    Returns
    -------
    ndarray of complex128, shape (n_modes + 1,)
    """
    in_order = bool((angles[1:] >= angles[:-1]).all())
    sums = fast_sums(angles.size, n_modes, in_order=in_order, n_threads=n_threads)
    sums.place(angles)
    return sums.moments(weights)
