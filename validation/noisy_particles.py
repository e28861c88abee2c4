"""Finitely many tokens with noise, dθ_i = V[μ_N](θ_i) dt + √(2κ) dB_i, by a scheme of weak order 2.

Each step of length h draws one increment ΔB_i for each token and moves it by Heun's rule,

    θ* = θ + h V(θ) + √(2κ) ΔB,    θ ← θ + (h/2) (V(θ) + V*(θ*)) + √(2κ) ΔB,

where V* is the velocity made by the moved tokens. The noise does not depend on the state, so the rule is of weak order
2 (Kloeden, Platen, Numerical Solution of Stochastic Differential Equations (1992), section 15.1, which it is a special
case of): expectations are wrong by O(h²), at two velocities a step.

The increments of step n come from the seed and n alone, in the tokens' own order: a run to a later time repeats a
shorter one bit for bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, integer_at_least, positive_number, random_generator
from spectral_mf.atoms import Atoms
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.run_kinds import moment_now
from spectral_mf.trajectory import Row, RunInfo, Snapshot, Trajectory
from spectral_mf.validation.token_velocity import TokenVelocity

FloatArray = NDArray[np.float64]


class Increments:
    """Independent normal increments of variance h for each token, step by step.

    Parameters
    ----------
    seed : int
    n_tokens : int
    """

    def __init__(self, seed: int, n_tokens: int) -> None:
        random_generator(seed)
        self._seed, self._n_tokens = seed, n_tokens

    def __call__(self, step: int, h: float) -> FloatArray:
        """ΔB of the step with this number; shape (n_tokens,)."""
        stream = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(step,)))
        return np.asarray(stream.standard_normal(self._n_tokens) * math.sqrt(h))


class HeunStep:
    """One step for all tokens.

    Parameters
    ----------
    model : Model
    weights : ndarray of float64, shape (N,)
    n_threads : int
        Threads that finufft uses.
    """

    def __init__(self, model: Model, weights: FloatArray, *, n_threads: int = 1) -> None:
        self._velocity = TokenVelocity(model, weights, n_threads=n_threads)
        self._noise = math.sqrt(2.0 * model.diffusion)
        self._first, self._second = np.empty(weights.size), np.empty(weights.size)

    def __call__(self, theta: FloatArray, h: float, increment: FloatArray) -> FloatArray:
        """Angles after a step of length h with these ΔB."""
        kick = self._noise * increment
        self._velocity(theta, self._first)
        self._velocity(theta + h * self._first + kick, self._second)
        return np.asarray(theta + 0.5 * h * (self._first + self._second) + kick)


def simulate_noisy(
    model: Model,
    tokens: Atoms,
    times: float | ArrayLike,
    *,
    step: float,
    seed: int,
    n_modes: int | None = None,
    n_cells: int = 512,
    n_threads: int = 1,
    provenance: Mapping[str, Any] | None = None,
) -> Trajectory:
    """Move N tokens on the circle with independent noise.

    Parameters
    ----------
    model : Model
        Its diffusion κ gives tokens the noise √(2κ) dB; 0 is allowed.
    tokens : Atoms
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time.
    step : float
        Largest step h; the time between two rows is divided into equal steps of at most that.
    seed : int
        Seed of the noise.
    n_modes : int, optional
        Modes stored in a row; by default 64, or the kernel's bandwidth if larger.
    n_cells : int
        Cells on which the density is stored.
    n_threads : int
        Threads that finufft uses.
    provenance : mapping, optional
        Where the tokens came from; stored with the run as plain JSON.

    Returns
    -------
    Trajectory
        Of method "noisy particles".

    Raises
    ------
    InputError
        If something given is not allowed.
    """
    if not isinstance(tokens, Atoms):
        raise InputError(f"tokens = {tokens!r} are not tokens; give Atoms, such as sample_tokens(1000, seed).")
    check_model(model)
    grid, step = time_grid(times), positive_number("step", step)
    increments = Increments(seed, tokens.n_atoms)
    info = RunInfo(
        model=model,
        configuration={
            "method": "noisy particles",
            "step": step,
            "seed": seed,
            "times": grid.tolist(),
            "symmetry": 1,
            "initial": dict(provenance or {"description": repr(tokens)}),
            "started": moment_now(),
        },
        n_modes=max(64, model.bandwidth) if n_modes is None else integer_at_least("n_modes", n_modes, 1),
        n_cells=integer_at_least("n_cells", n_cells, 4),
        complete=True,
        status="complete",
    )
    move = HeunStep(model, tokens.weights, n_threads=n_threads)
    rows = [
        Row.from_snapshot(snapshot, model, info.n_modes, info.n_cells)
        for snapshot in _march(move, tokens, grid, step, increments)
    ]
    return Trajectory(info, rows)


def _march(move: HeunStep, tokens: Atoms, grid: FloatArray, step: float, increments: Increments) -> Iterator[Snapshot]:
    theta, done = tokens.angles.copy(), 0
    yield Snapshot(float(grid[0]), tokens, "noisy particles", tokens.n_atoms)
    for start, end in itertools.pairwise(grid):
        n_steps = max(1, math.ceil((end - start) / step * (1.0 - 1e-12)))
        h = float(end - start) / n_steps
        for _ in range(n_steps):
            theta = move(theta, h, increments(done, h))
            done += 1
        state = Atoms.from_vector(np.concatenate([theta, tokens.weights]))
        yield Snapshot(float(end), state, "noisy particles", tokens.n_atoms)
