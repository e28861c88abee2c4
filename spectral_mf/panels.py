"""Functions on panels: intervals that each carry the values at Gauss-Legendre nodes.

On a panel a function is its interpolating polynomial. The last of its Legendre coefficients tell how well it is
resolved; a panel is split in two by evaluating the polynomial at the nodes of both halves.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

ORDER = 16
"""Nodes on a panel."""

NODES, WEIGHTS = legendre.leggauss(ORDER)

TO_COEFFICIENTS: FloatArray = np.asarray(np.linalg.inv(legendre.legvander(NODES, ORDER - 1)).T, dtype=np.float64)
"""values @ TO_COEFFICIENTS are the Legendre coefficients; shape (ORDER, ORDER)."""

_HALVES = np.concatenate([0.5 * (NODES - 1.0), 0.5 * (NODES + 1.0)])
TO_HALVES: FloatArray = legendre.legvander(_HALVES, ORDER - 1) @ TO_COEFFICIENTS.T
"""TO_HALVES @ values are the values at the nodes of the left, then of the right half; shape (2 ORDER, ORDER)."""

TO_ENDS: FloatArray = legendre.legvander(np.array([-1.0, 1.0]), ORDER - 1) @ TO_COEFFICIENTS.T
"""TO_ENDS @ values are the values at the two ends; shape (2, ORDER)."""


def nodes_of(edges: FloatArray) -> FloatArray:
    """Nodes of the panels between `edges`, shape (P + 1,); result of shape (P, ORDER)."""
    middle = 0.5 * (edges[1:] + edges[:-1])
    half = 0.5 * np.diff(edges)
    return np.asarray(middle[:, None] + half[:, None] * NODES)


def weights_of(edges: FloatArray) -> FloatArray:
    """Quadrature weights of the panels' nodes; shape (P, ORDER)."""
    return np.asarray(0.5 * np.diff(edges)[:, None] * WEIGHTS)


def tails(values: FloatArray) -> FloatArray:
    """Largest of the last two Legendre coefficients of each panel; shape (P,)."""
    return np.asarray(np.abs(values @ TO_COEFFICIENTS[:, -2:]).max(axis=1))


def split(values: FloatArray, chosen: NDArray[np.bool_]) -> FloatArray:
    """Values (P, ORDER) with the chosen panels replaced by their halves, in order; shape (P + chosen.sum(), ORDER)."""
    halves = (values[chosen] @ TO_HALVES.T).reshape(-1, ORDER)
    copies = np.where(chosen, 2, 1)
    result = np.repeat(values, copies, axis=0)
    result[np.repeat(chosen, copies)] = halves
    return result


def split_edges(edges: FloatArray, chosen: NDArray[np.bool_]) -> FloatArray:
    """Edges with the middles of the chosen panels added; shape (P + 1 + chosen.sum(),)."""
    middles = 0.5 * (edges[1:] + edges[:-1])
    return np.sort(np.concatenate([edges, middles[chosen]]))


def evaluate(coefficients: FloatArray, x: FloatArray) -> FloatArray:
    """Legendre series with coefficients (N, ORDER) at x in [-1, 1], one point for each row; shape (N,)."""
    b1 = np.zeros_like(x)
    b2 = np.zeros_like(x)
    for n in range(coefficients.shape[1] - 1, 0, -1):  # Clenshaw
        b1, b2 = coefficients[:, n] + (2 * n + 1) / (n + 1) * x * b1 - (n + 1) / (n + 2) * b2, b1
    return np.asarray(coefficients[:, 0] + x * b1 - 0.5 * b2)


def derivative(coefficients: FloatArray) -> FloatArray:
    """Legendre coefficients of the derivative with respect to x; shape (N, ORDER - 1)."""
    return np.asarray(legendre.legder(coefficients, axis=1))


def antiderivative(coefficients: FloatArray) -> FloatArray:
    """Legendre coefficients of the integral from -1; shape (N, ORDER + 1)."""
    return np.asarray(legendre.legint(coefficients, axis=1, lbnd=-1.0))
