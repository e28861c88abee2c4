"""Bilinear forms <x, M y> of points x, y of the circle, by the angles between them.

A 2x2 matrix is a turning and scaling part plus a symmetric part without trace,

    M = [[a + p, q - b], [q + b, a - p]],    <x(θ), M x(φ)> = a cos d + b sin d + p cos s + q sin s,

with d = θ - φ and s = θ + φ. Differences of close angles keep their digits in this form, which products of
coordinates do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-15

Matrix = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class PlanarForm:
    """<x, M y> and its derivatives.

    Attributes
    ----------
    a, b : float
        The part of M that commutes with turns: a on the diagonal, b times a quarter turn.
    p, q : float
        The part that is symmetric and has no trace.
    """

    a: float
    b: float
    p: float
    q: float

    @classmethod
    def of(cls, matrix: Matrix) -> PlanarForm:
        """Parts of a matrix."""
        (m11, m12), (m21, m22) = matrix
        return cls(0.5 * (m11 + m22), 0.5 * (m21 - m12), 0.5 * (m11 - m22), 0.5 * (m12 + m21))

    @property
    def commutes_with_turns(self) -> bool:
        """Whether the form depends on the difference of the angles only."""
        return self.p == 0.0 and self.q == 0.0

    @property
    def is_symmetric(self) -> bool:
        """Whether M is symmetric, but for rounding (as of a diagonal matrix that was turned)."""
        return abs(self.b) <= _ROUNDING * self.norm

    @property
    def norm(self) -> float:
        """Largest singular value of M."""
        return float(np.hypot(self.a, self.b) + np.hypot(self.p, self.q))

    def value(self, d: FloatArray, s: FloatArray) -> FloatArray:
        """<x(θ), M x(φ)> by d = θ - φ and s = θ + φ, any shape."""
        return np.asarray(self.a * np.cos(d) + self.b * np.sin(d) + self.p * np.cos(s) + self.q * np.sin(s))

    def slope(self, d: FloatArray, s: FloatArray) -> FloatArray:
        """Derivative by θ, which is <e_θ, M x(φ)>."""
        return np.asarray(-self.a * np.sin(d) + self.b * np.cos(d) - self.p * np.sin(s) + self.q * np.cos(s))

    def source_slope(self, d: FloatArray, s: FloatArray) -> FloatArray:
        """Derivative by φ."""
        return np.asarray(self.a * np.sin(d) - self.b * np.cos(d) - self.p * np.sin(s) + self.q * np.cos(s))

    def mixed_slope(self, d: FloatArray, s: FloatArray) -> FloatArray:
        """Derivative by θ and φ."""
        return np.asarray(self.a * np.cos(d) + self.b * np.sin(d) - self.p * np.cos(s) - self.q * np.sin(s))

    def row(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Components of M^T x(θ), so that <x(θ), M y> is their product with y; two arrays of theta's shape."""
        cos, sin = np.cos(theta), np.sin(theta)
        return (self.a + self.p) * cos + (self.q + self.b) * sin, (self.q - self.b) * cos + (self.a - self.p) * sin

    def tangent_row(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Components of M^T e_θ, e_θ = (-sin, cos)."""
        cos, sin = np.cos(theta), np.sin(theta)
        return (self.q + self.b) * cos - (self.a + self.p) * sin, (self.a - self.p) * cos - (self.q - self.b) * sin
