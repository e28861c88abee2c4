"""Velocities of a million tokens against finufft's bare transforms, and against what memory and arithmetic allow.

The transforms are one of type 1 (tokens to modes) and one of type 2 with two vectors (modes to the numerator and the
denominator at the tokens), at the accuracy that moments have here (1e-14). The floor is what a method of this kind has
to do: read every angle twice (moments, then velocities), raise it to the powers that a polynomial of degree 10 needs,
and write one velocity; measured as numpy does these passes on blocks that fit the cache. That is 16 bytes read, 8
written and about 70 operations a token.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive

from benchmarks.measure import Comparison, compare
from spectral_mf import SelfAttention
from spectral_mf.validation.token_velocity import TokenVelocity

MODEL = SelfAttention(beta=5.0)
N_TOKENS = 1_000_000
REQUIRED = 1.0 / 1.3
TOLERANCE = 1e-14
BLOCK = 2048


def bare_transforms(theta: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.complex128]:
    """Type 1 and two vectors of type 2 at the kernel's modes; the numerator and the denominator."""
    import finufft

    n_modes = MODEL.bandwidth
    k = np.arange(-n_modes, n_modes + 1)
    mass = ive(k, MODEL.beta) / ive(0, MODEL.beta)
    kernels = np.stack([1j * k * mass / MODEL.beta, mass])
    to_modes = finufft.Plan(1, (2 * n_modes + 1,), isign=-1, eps=TOLERANCE, nthreads=1)
    to_tokens = finufft.Plan(2, (2 * n_modes + 1,), n_trans=2, isign=1, eps=TOLERANCE, nthreads=1)
    to_modes.setpts(theta)
    c = to_modes.execute(weights.astype(np.complex128))
    to_tokens.setpts(theta)
    return np.asarray(to_tokens.execute(kernels * c))


def floor(theta: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Two passes over the tokens with the powers of a local coordinate, one product each, and one result."""
    powers = np.ones((11, BLOCK))
    table = np.full((2, 11), 0.1)
    for _ in range(2):
        for start in range(0, theta.size, BLOCK):
            block = theta[start : start + BLOCK]
            s = powers[:, : block.size]
            s[1] = block
            np.multiply(s[1], s[1], out=s[2])
            np.multiply(s[1:3], s[2], out=s[3:5])
            np.multiply(s[1:5], s[4], out=s[5:9])
            np.multiply(s[1:3], s[8], out=s[9:11])
            out[start : start + BLOCK] = (table @ s)[0]


def run() -> Iterator[Comparison]:
    """Yield the comparison with finufft, and the one with the floor (a ratio below 1: how near ours is to it)."""
    theta = np.sort(np.random.default_rng(1).uniform(0.0, 2.0 * np.pi, N_TOKENS))
    weights = np.full(N_TOKENS, 1.0 / N_TOKENS)
    velocity = TokenVelocity(MODEL, weights)
    out, scratch = np.empty(N_TOKENS), np.empty(N_TOKENS)
    velocity(theta, out)
    numerator, mass = bare_transforms(theta, weights)
    for name, work, required, difference in (
        (
            "finufft, bare",
            lambda: bare_transforms(theta, weights),
            REQUIRED,
            np.abs(out - (numerator / mass).real).max(),
        ),
        ("two passes in cache", lambda: floor(theta, scratch), None, 0.0),
    ):
        yield compare(
            f"{N_TOKENS} tokens, SA, {name}",
            ("moments", lambda: velocity(theta, out)),
            (name, work),
            difference=float(difference),
            required=required,
            rounds=7,
        )
