"""A trigonometric polynomial as one ordinary polynomial a cell: values, roots and integrals at many points cheaply.

A Fourier sum of K modes costs K operations a point. On cells of 1/16 of the shortest wavelength its Taylor polynomial
of degree 10 has an error of (pi / 16)^11 / 11! = 4e-16 of the coefficients' sum, and costs 10 operations a point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import fft

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
IntArray = NDArray[np.int64]

_DEGREE = 10
_CELLS_PER_MODE = 16
_FEWEST_CELLS = 64


class LocalPolynomials:
    """sum_{|k| <= K} a_k exp(i k theta), with a_{-k} = conj(a_k), as a polynomial on each of n equal cells.

    Parameters
    ----------
    coefficients : ndarray of complex, shape (K + 1,)
        a_0 .. a_K.

    Attributes
    ----------
    n_cells : int
        Cell j is [j, j + 1] times 2 pi / n_cells.
    half_width : float
        Half of a cell's width; the local coordinate s of an angle in a cell runs from -1 to 1.
    """

    def __init__(self, coefficients: ComplexArray) -> None:
        k = np.arange(coefficients.size)
        self.n_cells = int(fft.next_fast_len(max(_FEWEST_CELLS, _CELLS_PER_MODE * int(k[-1])), real=True))
        self.half_width = np.pi / self.n_cells
        term = coefficients * np.exp(1j * k * self.half_width)  # about the centres (j + 1/2) 2 pi / n
        rows = []
        for degree in range(_DEGREE + 1 if coefficients.any() else 3):
            rows.append(fft.irfft(term, n=self.n_cells, norm="forward"))
            term = term * (1j * k * self.half_width / (degree + 1))
        self._value = np.array(rows)
        powers = np.arange(len(rows), dtype=np.float64)[:, None]
        self._slope = self._value[1:] * powers[1:]
        self._curvature = self._slope[1:] * powers[1:-1]
        self._integral = np.concatenate([np.zeros_like(self._value[:1]), self._value / (powers + 1)])

    def locate(self, theta: FloatArray) -> tuple[IntArray, FloatArray]:
        """Cell and local coordinate of angles in [0, 2 pi]."""
        cell = np.clip((theta * (0.5 / self.half_width)).astype(np.int64), 0, self.n_cells - 1)
        return cell, self.local(cell, theta)

    def local(self, cell: IntArray, theta: FloatArray) -> FloatArray:
        """Local coordinate of angles in given cells."""
        return np.asarray(theta / self.half_width - (2.0 * cell + 1.0))

    def value(self, cell: IntArray, s: FloatArray) -> FloatArray:
        """Values at local coordinates."""
        return _horner(self._value, cell, s)

    def slope(self, cell: IntArray, s: FloatArray) -> FloatArray:
        """Derivative by the local coordinate."""
        return _horner(self._slope, cell, s)

    def curvature(self, cell: IntArray, s: FloatArray) -> FloatArray:
        """Second derivative by the local coordinate."""
        return _horner(self._curvature, cell, s)

    def integral(self, cell: IntArray, s: FloatArray) -> FloatArray:
        """Integral over the angle from the cell's centre."""
        return self.half_width * _horner(self._integral, cell, s)

    def minimum(self) -> tuple[float, float]:
        """Angle and value of the smallest minimum."""
        cell = np.arange(self.n_cells)
        left = np.full(self.n_cells, -1.0)
        s, values = left, self.value(cell, left)
        # A minimum between the cell's ends: it falls at the left one and rises at the right one.
        inside = np.flatnonzero((self.slope(cell, left) < 0.0) & (self.slope(cell, -left) > 0.0))
        if inside.size:
            lowest = bisect(lambda x: self.slope(inside, x), left[inside], -left[inside])
            cell = np.concatenate([cell, inside])
            s = np.concatenate([s, lowest])
            values = np.concatenate([values, self.value(inside, lowest)])
        best = int(values.argmin())
        return float((2 * cell[best] + 1 + s[best]) * self.half_width), float(values[best])


def bisect(function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Points where a function changes sign, one between each low and high, to 2^-40 of the distance."""
    sign = np.sign(function(low))
    for _ in range(40):
        middle = 0.5 * (low + high)
        same = np.sign(function(middle)) == sign
        low = np.where(same, middle, low)
        high = np.where(same, high, middle)
    return 0.5 * (low + high)


def newton(
    function: Callable[[IntArray, FloatArray], tuple[FloatArray, FloatArray]], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Zeros of increasing functions, one between each low and high, by Newton's method kept between closing ends.

    Parameters
    ----------
    function : callable
        Values and derivatives of the functions with the given numbers, at one point each.
    low, high : ndarray of float64, shape (n,)
        Ends, of order 1, between which the zeros lie.
    """
    x, low, high = 0.5 * (low + high), low.copy(), high.copy()
    moving = np.arange(x.size)
    for _ in range(60):
        here = x[moving]
        value, slope = function(moving, here)
        low[moving] = np.where(value < 0.0, here, low[moving])
        high[moving] = np.where(value < 0.0, high[moving], here)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            guess = here - value / slope
        inside = (guess > low[moving]) & (guess < high[moving])
        x[moving] = np.where(inside, guess, 0.5 * (low[moving] + high[moving]))
        moving = moving[np.abs(x[moving] - here) > 1e-13]
        if moving.size == 0:
            break
    return x


def _horner(rows: FloatArray, cell: IntArray, s: FloatArray) -> FloatArray:
    total = rows[-1, cell]
    for row in rows[-2::-1]:
        total = total * s + row[cell]
    return np.asarray(total)
