"""One velocity evaluation of N tokens against the pairwise sum in numpy.

dθ_i/dt = Σ_j e^{β cos(θ_i-θ_j)} (-sin(θ_i-θ_j)) / Σ_j e^{β cos(θ_i-θ_j)}.

The numpy side is what one writes first, in chunks that fit the cache. A cleverer one takes the cosines and sines of the
differences from a matrix product, and is three times as fast; it has a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Comparison, compare
from spectral_mf import SelfAttention
from spectral_mf.validation.token_velocity import TokenVelocity

FloatArray = NDArray[np.float64]

BETA = 5.0
N_TOKENS = 10_000
CHUNK = 16
REQUIRED = 500.0


def pairwise(theta: FloatArray) -> FloatArray:
    """Velocities by the formula, row by row."""
    velocity = np.empty_like(theta)
    for start in range(0, theta.size, CHUNK):
        difference = theta[start : start + CHUNK, None] - theta
        attention = np.exp(BETA * np.cos(difference))
        velocity[start : start + CHUNK] = -(attention * np.sin(difference)).sum(axis=1) / attention.sum(axis=1)
    return velocity


def pairwise_by_products(theta: FloatArray) -> FloatArray:
    """Velocities with cos(a - b) = cos a cos b + sin a sin b, so that each pair costs one exponential."""
    points = np.stack([np.cos(theta), np.sin(theta)])
    sums = np.empty((theta.size, 3))
    columns = np.vstack([points, np.ones_like(theta)]).T.copy()
    for start in range(0, theta.size, CHUNK):
        attention = points[:, start : start + CHUNK].T @ points
        attention *= BETA
        np.exp(attention, out=attention)
        np.matmul(attention, columns, out=sums[start : start + CHUNK])
    cosine, sine, mass = sums.T
    return np.asarray((points[0] * sine - points[1] * cosine) / mass)


def run() -> Iterator[Comparison]:
    """Yield one comparison for each way of summing over pairs."""
    theta = np.sort(np.random.default_rng(1).uniform(0.0, 2.0 * np.pi, N_TOKENS))
    velocity = TokenVelocity(SelfAttention(beta=BETA), np.full(N_TOKENS, 1.0 / N_TOKENS))
    out = np.empty_like(theta)
    velocity(theta, out)
    for name, work, required in (
        ("pairwise sum, numpy", pairwise, REQUIRED),
        ("pairwise sum, products", pairwise_by_products, None),
    ):
        yield compare(
            f"{N_TOKENS} tokens, SA, {name}",
            ("moments", lambda: velocity(theta, out)),
            (name, lambda work=work: work(theta)),
            difference=float(np.abs(out - work(theta)).max()),
            required=required,
            rounds=5,
        )
