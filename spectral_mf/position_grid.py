"""Nodes in the position s of a token, and integrals over positions of what is known at the nodes.

Between the nodes a function of s is the polynomial through its values. Integrals against exponential kernels, also
from 0 to a node, are those of that polynomial, exactly to rounding: no small parameter is needed where the kernel is
steep, and none where the causal average (1/s) int_0^s is singular.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import integer_at_least, real_array
from spectral_mf.errors import InputError

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_FARTHEST = 40.0
"""e^{-40} is less than rounding of 1: farther away in units of 1/decay, a kernel sees nothing."""

MOST_NODES = 1024
_LARGEST_GRADING = 8


@dataclass(frozen=True)
class PositionGrid:
    """Gauss-Legendre nodes on [0, 1], in s itself or in a power of it.

    Parameters
    ----------
    n_nodes : int
        Number S of nodes, 1 to 1024.
    grading : int
        g: nodes are s = x^g with Gauss-Legendre nodes x, and functions are polynomials in x = s^{1/g}. 1 converges
        faster than any power for functions that are smooth in s; 2 does so for half-integer powers s^{1/2}, s^{3/2},
        .., for which 1 converges like a power of 1/S.

    Raises
    ------
    InputError
        If a parameter is not allowed.
    """

    n_nodes: int
    grading: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_nodes", integer_at_least("n_nodes", self.n_nodes, 1))
        object.__setattr__(self, "grading", integer_at_least("grading", self.grading, 1))
        if self.n_nodes > MOST_NODES or self.grading > _LARGEST_GRADING:
            raise InputError(
                f"n_nodes = {self.n_nodes} with grading = {self.grading} is too many; give at most {MOST_NODES} nodes "
                f"and grading {_LARGEST_GRADING}."
            )

    @cached_property
    def _gauss(self) -> tuple[FloatArray, FloatArray]:
        """Nodes x in (0, 1), and their weights."""
        return _gauss_on_unit(self.n_nodes)

    @cached_property
    def nodes(self) -> FloatArray:
        """Positions s_j, increasing; shape (S,)."""
        return np.asarray(self._gauss[0] ** self.grading)

    @cached_property
    def weights(self) -> FloatArray:
        """Weights of an integral over [0, 1] in s; shape (S,)."""
        x, weights = self._gauss
        return np.asarray(weights * self.grading * x ** (self.grading - 1))

    def legendre(self, values: ArrayLike) -> NDArray[np.inexact]:
        """Coefficients of P_n(2 x - 1), n < S, of functions given at the nodes along the first axis; same shape."""
        f = np.asarray(values)
        return np.asarray(np.tensordot(self._to_coefficients, f, axes=1))

    def tail(self, values: ArrayLike) -> float:
        """Largest of the last eighth of the coefficients of functions given at the nodes, relative to the largest.

        Large values say that the nodes are too few, or that the grading does not go with the functions.
        """
        size = np.abs(self.legendre(values)).reshape(self.n_nodes, -1).max(axis=1, initial=0.0)
        largest = float(size.max())
        return float(size[-max(1, self.n_nodes // 8) :].max()) / largest if largest > 0.0 else 0.0

    def interpolation(self, positions: ArrayLike) -> FloatArray:
        """Matrix from values at the nodes to values at positions in [0, 1]; shape (n_positions, S)."""
        s = checked_positions(positions)
        return self._basis(np.asarray(s ** (1.0 / self.grading)))

    @cached_property
    def _to_coefficients(self) -> FloatArray:
        return np.asarray(np.linalg.inv(legvander(2.0 * self._gauss[0] - 1.0, self.n_nodes - 1)))

    def _basis(self, x: FloatArray) -> FloatArray:
        """Polynomials that are 1 at one node and 0 at the others, at points x; shape (n, S)."""
        return np.asarray(legvander(2.0 * x - 1.0, self.n_nodes - 1) @ self._to_coefficients)

    def averages(self, *, causal: bool, decay: float, frequencies: ArrayLike) -> ComplexArray:
        """Matrices of the means int G(s, s') e^{i f (s - s')} u(s') ds' at the nodes s.

        G(s, s') is e^{-decay |s - s'|}, for s' <= s only if causal, divided by its integral over s'.

        Parameters
        ----------
        causal : bool
        decay : float
            >= 0, in units of 1 / (length of [0, 1]).
        frequencies : array_like of float, shape (F,)
            f.

        Returns
        -------
        ndarray of complex128, shape (F, S, S)
        """
        f = np.asarray(frequencies, dtype=np.float64)
        fastest = float(np.abs(f).max(initial=0.0))
        t, weights = _gauss_on_unit(self.n_nodes // 2 + self.grading + int(_FARTHEST) + math.ceil(0.6 * fastest))
        reach = _FARTHEST / decay if decay > 0.0 else math.inf
        out = np.empty((f.size, self.n_nodes, self.n_nodes), dtype=np.complex128)
        for i, s in enumerate(self.nodes):
            ends = [(max(0.0, s - reach), s)]
            if not causal:
                ends.append((s, min(1.0, s + reach)))
            x, share = [], []
            for low, high in ends:
                first, last = low ** (1.0 / self.grading), high ** (1.0 / self.grading)
                x.append(first + (last - first) * t)
                share.append((last - first) * weights * self.grading * x[-1] ** (self.grading - 1))
            points = np.concatenate(x)
            distance = s - points**self.grading
            kernel = np.concatenate(share) * np.exp(-decay * np.abs(distance))
            kernel /= kernel.sum()
            out[:, i] = (kernel * np.exp(1j * f[:, None] * distance)) @ self._basis(points)
        return out


def checked_positions(positions: ArrayLike) -> FloatArray:
    """Positions in [0, 1] as a float64 copy, in any order.

    Raises
    ------
    InputError
        If they are not real numbers from 0 to 1.
    """
    s = real_array(positions, "positions are not real numbers; give numbers from 0 to 1.")
    outside = ~((s >= 0.0) & (s <= 1.0))
    if outside.any():
        raise InputError(
            f"position {s[outside].flat[0]:g} is not allowed; positions are numbers from 0 to 1: divide indices by "
            "their largest."
        )
    return s


def sorted_positions(positions: ArrayLike, n_tokens: int) -> FloatArray:
    """Positions of tokens, one each, in increasing order; tokens may share a position.

    Raises
    ------
    InputError
        If they are not numbers from 0 to 1, not as many as tokens, or not in order.
    """
    s = checked_positions(positions)
    if s.shape != (n_tokens,):
        raise InputError(f"positions have shape {s.shape} for {n_tokens} tokens; give one position a token.")
    falls = np.flatnonzero(np.diff(s) < 0.0)
    if falls.size:
        i = int(falls[0])
        raise InputError(
            f"positions are not sorted: {s[i + 1]:g} comes after {s[i]:g}; order the tokens by position first."
        )
    return s


def _gauss_on_unit(n: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, _ = leggauss(n)  # its weights are known to 1e-11 only at hundreds of nodes
    weights = 2.0 * (1.0 - x**2) / (n * legvander(x, n - 1)[:, -1]) ** 2
    return np.asarray(0.5 * (x + 1.0)), np.asarray(weights / weights.sum())
