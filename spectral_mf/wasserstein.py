"""Wasserstein-1 distance on the circle, exact for point masses and to rounding for densities.

W_1(mu, nu) = min_c int_0^{2 pi} |F_mu(theta) - F_nu(theta) - c| d theta

with the distribution functions F from any origin; the best c is a median of their difference. The difference is cut
into pieces on which it is smooth and monotone, so that the set where it is below c, and all integrals, are exact.

References
----------
Cabrelli and Molter, "The Kantorovich metric for probability measures on the circle", J. Comput. Appl. Math. 57 (1995).
Delon, Salomon and Sobolevski, "Fast transport optimization for Monge costs on the circle", arXiv:0902.3527.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spectral_mf.distribution import TWO_PI, Distributed, Distribution
from spectral_mf.errors import InputError
from spectral_mf.local_polynomials import LocalPolynomials, bisect, newton

if TYPE_CHECKING:
    from spectral_mf.measure import Measure

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def w1(a: Measure, b: Measure) -> float:
    """Wasserstein-1 distance on the circle between two measures of mass 1, in radians.

    Parameters
    ----------
    a, b : Measure
        Any two; each has to have `distribution()` (see `spectral_mf.distribution.Distribution`).

    Returns
    -------
    float
        In [0, pi / 2] radians if one of them is uniform, in [0, pi] in general.

    Raises
    ------
    InputError
        If a measure cannot tell its distribution function.
    """
    return _difference(_distribution(a), _distribution(b)).monotone().distance_to_median()


def _distribution(measure: Measure) -> Distribution:
    if not isinstance(measure, Distributed):
        raise InputError(f"{measure!r} has no distribution function; give a measure such as FourierDensity or Atoms.")
    return measure.distribution()


def _difference(a: Distribution, b: Distribution) -> _Pieces:
    """Cut F_a - F_b at the nodes of both polylines and at the edges of the cells of the oscillating part."""
    n_modes = max(a.moments.size, b.moments.size)
    series = np.zeros(n_modes, dtype=np.complex128)
    series[: a.moments.size] += a.series
    series[: b.moments.size] -= b.series
    cells = LocalPolynomials(series)
    edges = np.arange(cells.n_cells + 1) * (TWO_PI / cells.n_cells)
    edges[-1] = TWO_PI
    cuts = np.unique(np.concatenate([edges, a.nodes[0], b.nodes[0]]))
    cuts = cuts[(cuts >= 0.0) & (cuts <= TWO_PI)]
    left, right = cuts[:-1], cuts[1:]
    cell, _ = cells.locate(0.5 * (left + right))
    s_left, s_right = cells.local(cell, left), cells.local(cell, right)
    return _Pieces(
        cells,
        cell,
        s_left,
        s_right,
        a.polyline_after(left) - b.polyline_after(left),
        a.polyline_before(right) - b.polyline_before(right),
        (s_right - s_left) * cells.half_width,  # rounded as the oscillating part is, so that a flat piece stays flat
    )


@dataclass(frozen=True)
class _Pieces:
    """A function in pieces: a polynomial of the cell plus a straight line; u in [0, 1] runs along a piece.

    `s_left`, `s_right` are the local coordinates of a piece's ends in its cell, `y_left`, `y_right` the line's values.
    """

    cells: LocalPolynomials
    cell: IntArray
    s_left: FloatArray
    s_right: FloatArray
    y_left: FloatArray
    y_right: FloatArray
    length: FloatArray

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> _Pieces:
        return _Pieces(self.cells, *(getattr(self, f.name)[which] for f in fields(self)[1:]))

    def split(self, which: NDArray[np.intp], u: FloatArray) -> _Pieces:
        """Cut the pieces numbered `which` at u; order does not matter."""
        if which.size == 0:
            return self
        kept = np.ones(self.length.size, dtype=bool)
        kept[which] = False
        old, cut = self.take(kept), self.take(which)
        s, y = cut._s(u), cut._y(u)
        parts = (
            (old.cell, cut.cell, cut.cell),
            (old.s_left, cut.s_left, s),
            (old.s_right, s, cut.s_right),
            (old.y_left, cut.y_left, y),
            (old.y_right, y, cut.y_right),
            (old.length, cut.length * u, cut.length * (1.0 - u)),
        )
        return _Pieces(self.cells, *(np.concatenate(part) for part in parts))  # type: ignore[arg-type]

    def _s(self, u: FloatArray | float) -> FloatArray:
        return self.s_left + (self.s_right - self.s_left) * u

    def _y(self, u: FloatArray | float) -> FloatArray:
        return self.y_left + (self.y_right - self.y_left) * u

    def value(self, u: FloatArray | float) -> FloatArray:
        return self.cells.value(self.cell, self._s(u)) + self._y(u)

    def slope(self, u: FloatArray | float) -> FloatArray:
        return self.cells.slope(self.cell, self._s(u)) * (self.s_right - self.s_left) + (self.y_right - self.y_left)

    def curvature(self, u: FloatArray | float) -> FloatArray:
        return self.cells.curvature(self.cell, self._s(u)) * (self.s_right - self.s_left) ** 2

    def integral(self) -> FloatArray:
        oscillating = self.cells.integral(self.cell, self.s_right) - self.cells.integral(self.cell, self.s_left)
        return oscillating + 0.5 * self.length * (self.y_left + self.y_right)

    def monotone(self) -> _Pieces:
        """Cut where the slope vanishes; first where it is extremal, to find roots that come in pairs."""
        pieces = self
        for derivative in (_Pieces.curvature, _Pieces.slope):
            turning = np.flatnonzero(derivative(pieces, 0.0) * derivative(pieces, 1.0) < 0.0)
            if turning.size:
                chosen = pieces.take(turning)
                zero, one = np.zeros(turning.size), np.ones(turning.size)
                pieces = pieces.split(turning, bisect(lambda u, d=derivative, p=chosen: d(p, u), zero, one))  # type: ignore[misc]
        return pieces

    def crossing(self, level: float) -> FloatArray:
        """Where each of these pieces, all monotone and across the level, meets it."""
        sign = np.sign(self.value(1.0) - level)

        def excess(number: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
            part = self.take(number)
            return sign[number] * (part.value(u) - level), sign[number] * part.slope(u)

        return newton(excess, np.zeros(sign.size), np.ones(sign.size))

    def distance_to_median(self) -> float:
        """Integral of the distance to the best level; the pieces are monotone.

        The integral is convex in the level, and an error of the level counts only squared: Newton's method from a
        level that is exact for flat pieces and close for the others is done in two or three steps.
        """
        left, middle, right = self.value(0.0), self.value(0.5), self.value(1.0)
        level = _median(np.concatenate([left, middle]), np.concatenate([middle, right]), np.tile(self.length, 2))
        best = math.inf
        while True:  # ends as soon as a step does not help
            crossed = np.flatnonzero((left - level) * (right - level) < 0.0)
            part = self.take(crossed)
            u = part.crossing(level)
            pieces = self.split(crossed, u)
            above = pieces.integral() - level * pieces.length
            distance = float(np.abs(above).sum())
            slope = np.abs(part.slope(u))
            steepness = np.divide(slope, part.length, out=np.full_like(slope, np.inf), where=part.length > 0.0)
            if not (distance < best * (1.0 - 1e-15) and crossed.size and steepness.all()):
                return min(distance, best)
            best = distance
            excess = 0.5 * (pieces.length[above < 0.0].sum() - pieces.length[above > 0.0].sum())
            level -= float(excess / (1.0 / steepness).sum())


def _median(one: FloatArray, other: FloatArray, length: FloatArray) -> float:
    """Level below which straight pieces, from one value to the other, have half of their total length."""
    bottom, top = np.minimum(one, other), np.maximum(one, other)
    low, high = float(bottom.min()), float(top.max())
    half, below = 0.5 * length.sum(), 0.0  # below: length of the pieces that are left out because they lie below
    while True:
        level = 0.5 * (low + high)
        if not low < level < high:
            return level
        rise = np.maximum(top - bottom, np.finfo(np.float64).tiny)
        share = np.where(top <= level, 1.0, np.clip((level - bottom) / rise, 0.0, 1.0))
        if below + (share * length).sum() < half:
            low = level
            below += length[top <= low].sum()
            kept = top > low
        else:
            high = level
            kept = bottom < high
        bottom, top, length = bottom[kept], top[kept], length[kept]
