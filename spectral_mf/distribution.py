"""Distribution functions on the circle: what the Wasserstein distance and quantiles are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.errors import InputError
from spectral_mf.local_polynomials import LocalPolynomials, newton

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
IntArray = NDArray[np.int64]

TWO_PI = 2.0 * np.pi


@dataclass(frozen=True)
class Distribution:
    """F(theta) = polyline(theta) + (1 / 2 pi) sum_{0 < |k| <= K} c_k exp(i k theta) / (i k), up to a constant.

    The polyline carries the mass: a jump is a point mass, a slope a density constant between two nodes. The sum is the
    oscillating part of a smooth density. A uniform density is one straight line, atoms are jumps, a push-forward is the
    polyline through its quantile nodes.

    Parameters
    ----------
    angles : ndarray of float64, shape (n,)
        Nodes of the polyline, not decreasing; the first in [0, 2 pi), the last exactly 2 pi further. Equal angles make
        a jump.
    cumulative : ndarray of float64, shape (n,)
        Mass up to each node: not decreasing, from 0 to 1.
    moments : ndarray of complex128, shape (K + 1,)
        c_0 .. c_K of the oscillating part; c_0 is not used.
    """

    angles: FloatArray
    cumulative: FloatArray
    moments: ComplexArray

    @cached_property
    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """The polyline, continued so that it covers [0, 2 pi]."""
        if self.angles[0] <= 0.0:
            return self.angles, self.cumulative
        return (
            np.concatenate([self.angles - TWO_PI, self.angles]),
            np.concatenate([self.cumulative - 1.0, self.cumulative]),
        )

    def polyline_after(self, theta: FloatArray) -> FloatArray:
        """Limits of the polyline from the right, at angles in [0, 2 pi)."""
        return self._polyline(theta, np.searchsorted(self.nodes[0], theta, side="right"))

    def polyline_before(self, theta: FloatArray) -> FloatArray:
        """Limits of the polyline from the left, at angles in (0, 2 pi]."""
        return self._polyline(theta, np.searchsorted(self.nodes[0], theta, side="left"))

    def _polyline(self, theta: FloatArray, upper: NDArray[np.intp]) -> FloatArray:
        angles, mass = self.nodes
        lower = upper - 1
        share = (theta - angles[lower]) / (angles[upper] - angles[lower])
        return np.asarray(mass[lower] + share * (mass[upper] - mass[lower]))

    @property
    def series(self) -> ComplexArray:
        """Fourier coefficients of the oscillating part of F."""
        k = np.arange(self.moments.size)
        coefficients = np.zeros(self.moments.size, dtype=np.complex128)
        coefficients[1:] = self.moments[1:] / (TWO_PI * 1j * k[1:])
        return coefficients


@runtime_checkable
class Distributed(Protocol):
    """A measure that can tell its distribution function."""

    def distribution(self) -> Distribution:
        """Distribution function, up to a constant."""


def smooth_quantiles(moments: ComplexArray, levels: ArrayLike) -> FloatArray:
    """Angles theta at which a density with moments c_0 .. c_K has mass `levels` on [0, theta].

    Parameters
    ----------
    moments : ndarray of complex128, shape (K + 1,)
        Of a density >= 0; where it is negative by rounding, its distribution function is taken as flat.
    levels : array_like of float, shape (N,)
        In [0, 1].

    Returns
    -------
    ndarray of float64, shape (N,)
        In [0, 2 pi], to rounding where the density is not.
    """
    wanted = np.asarray(levels, dtype=np.float64)
    if wanted.size and not (wanted.min() >= 0.0 and wanted.max() <= 1.0):
        raise InputError("levels of a distribution function have to be numbers from 0 to 1.")
    cells = LocalPolynomials(Distribution(np.empty(0), np.empty(0), moments).series)
    number = np.arange(cells.n_cells)
    start = float(cells.value(number[:1], np.array([-1.0]))[0])
    edges = cells.value(number, np.ones(cells.n_cells)) - start + (number + 1.0) / cells.n_cells
    cell = np.minimum(np.searchsorted(np.maximum.accumulate(edges), wanted), cells.n_cells - 1)

    rise = 0.5 / cells.n_cells  # of the uniform part, by the local coordinate s
    base = (cell + 0.5) / cells.n_cells - start - wanted

    def excess(number: IntArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        chosen = cell[number]
        return cells.value(chosen, s) + base[number] + rise * s, cells.slope(chosen, s) + rise

    s = newton(excess, np.full(wanted.size, -1.0), np.full(wanted.size, 1.0))
    return np.asarray((2 * cell + 1 + s) * cells.half_width)
