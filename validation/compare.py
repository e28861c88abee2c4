"""Tokens beside the mean-field density that starts from the first modes of the very same tokens.

The two share c_1 .. c_K of the start. With K at least the kernel's bandwidth they have the same velocity then, to
rounding, and what parts them is what the flow makes of the modes beyond K: the tokens' moments c_k with k > K are
N^{-1/2} in size, the density's are zero. So their moments stay closer than two samples of N tokens are, the W1 distance
starts at the fine scatter of the tokens within a wavelength 2π/K, and both differences fall as N grows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.atoms import Atoms
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.solvers import solve
from spectral_mf.trajectory import Trajectory
from spectral_mf.validation.fluctuations import check_tokens
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import replicate, sample_tokens

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PairedRun:
    """Tokens and density at the same times.

    Attributes
    ----------
    tokens, density : Trajectory
    n_tokens : int
    n_modes : int
        Modes K of the sample that the density starts from.
    """

    tokens: Trajectory
    density: Trajectory
    n_tokens: int
    n_modes: int

    @property
    def t(self) -> FloatArray:
        """Output times; shape (n_times,)."""
        return self.tokens.t

    def moment_differences(self, largest_mode: int = 6) -> FloatArray:
        """|c_k(density) - c_k(tokens)| for k = 1 .. largest_mode; shape (n_times, largest_mode)."""
        stored = min(self.tokens.moments.shape[1], self.density.moments.shape[1]) - 1
        if not 1 <= largest_mode <= stored:
            raise InputError(f"largest_mode = {largest_mode} is not allowed; the runs store modes 1 to {stored}.")
        k = slice(1, largest_mode + 1)
        return np.abs(self.density.moments[:, k] - self.tokens.moments[:, k])

    def largest_difference(self, largest_mode: int = 6) -> float:
        """Largest `moment_differences` of all times and modes."""
        return float(self.moment_differences(largest_mode).max())

    def w1(self, rows: ArrayLike | None = None) -> FloatArray:
        """W1 distances on the circle, in radians, in all rows or those given; shape (n_rows,)."""
        chosen = range(len(self.tokens)) if rows is None else np.asarray(rows, dtype=np.int64).tolist()
        return np.array([self.tokens.measure(i).w1(self.density.measure(i)) for i in chosen])

    def energy_differences(self) -> FloatArray:
        """Energy of the density minus that of the tokens, in units of exp(model.energy_log_unit); shape (n_times,).

        At the start it is zero to rounding for K >= bandwidth: the energy, too, knows only the modes of the kernel. The
        tokens' energy contains that of each token with itself, e^β / (2 β N), as does that of the density, because it
        has the tokens' moments.
        """
        return self.density.energy - self.tokens.energy


def paired_run(
    model: Model,
    tokens: Atoms,
    times: float | ArrayLike,
    *,
    n_modes: int | None = None,
    rtol: float = 1e-8,
    stored_modes: int | None = None,
    keep_states: bool | None = None,
) -> PairedRun:
    """Move tokens, and the density that has their first modes.

    Parameters
    ----------
    model : Model
        Without diffusion.
    tokens : Atoms
    times : float or array_like of float
        As for `solve`.
    n_modes : int, optional
        Modes K of the tokens that the density starts from; by default the kernel's bandwidth.
    rtol : float
        Of both solvers.
    stored_modes : int, optional
        Modes kept in a row; by default 64, or the bandwidth if larger.
    keep_states : bool, optional
        As for `simulate`.

    Returns
    -------
    PairedRun

    Raises
    ------
    InputError
        If the density with these modes is negative somewhere: too few tokens for so many modes; or something else that
        is given is not allowed.

    Warns
    -----
    UserWarning
        If the density starts from fewer modes than the kernel sees.
    """
    kept = model.bandwidth if n_modes is None else n_modes
    start = _start(model, tokens, kept)
    grid = time_grid(times)
    run = simulate(model, tokens, grid, rtol=rtol, n_modes=stored_modes, keep_states=keep_states)
    density = solve(model, start, grid, rtol=rtol, n_modes=stored_modes)
    return PairedRun(run, density, tokens.n_atoms, kept)


def _start(model: Model, tokens: Atoms, n_modes: int) -> FourierDensity:
    if not isinstance(tokens, Atoms):
        raise InputError(f"tokens = {tokens!r} are not tokens; give Atoms, such as sample_tokens(100000, seed).")
    if 1 <= n_modes < model.bandwidth:
        warnings.warn(
            f"n_modes = {n_modes} leaves out modes of the tokens that the kernel sees; it needs {model.bandwidth}.",
            stacklevel=3,
        )
    try:
        return tokens.smoothed(n_modes)
    except InputError as error:
        if n_modes < 1:
            raise
        raise InputError(
            f"{tokens.n_atoms} tokens make no positive density of {n_modes} modes; use more tokens than about "
            f"{60 * n_modes}, or a smaller n_modes."
        ) from error


@dataclass(frozen=True)
class PairedDifferences:
    """Largest differences of moments between density and tokens, by number of tokens.

    Attributes
    ----------
    n_tokens : ndarray of int64, shape (n,)
    largest : ndarray of float64, shape (n, replicates)
        Over all times and the modes 1 .. largest_mode.
    entropies : tuple of int
        Seeds that give the same again.
    """

    n_tokens: NDArray[np.int64]
    largest: FloatArray
    entropies: tuple[int, ...]

    @property
    def slope(self) -> float:
        """Least-squares slope of the mean of ln(largest) in ln N: negative, if the two come together."""
        return float(np.polyfit(np.log(self.n_tokens), np.log(self.largest).mean(axis=1), 1)[0])


def paired_differences(
    model: Model,
    token_counts: Sequence[int],
    times: float | ArrayLike,
    *,
    replicates: int,
    largest_mode: int = 6,
    n_modes: int | None = None,
    rtol: float = 1e-8,
    seed: int = 0,
    n_jobs: int = 1,
) -> PairedDifferences:
    """Paired runs of independent uniform tokens at several N.

    Parameters
    ----------
    token_counts : sequence of int
        Numbers N >= 1 of tokens, increasing.
    replicates : int
        At each N, >= 1.
    largest_mode : int
        Moments up to this one are compared.
    n_modes, rtol
        As for `paired_run`.
    seed, n_jobs
        As for `replicate`; every N has its own streams.

    Raises
    ------
    InputError
        If there are no tokens or replicates, or as for `paired_run`.
    """
    for n in token_counts:
        check_tokens(n)
    if not token_counts:
        raise InputError("token_counts is empty; give at least one number of tokens.")
    work = partial(_largest, model=model, times=time_grid(times), largest_mode=largest_mode, n_modes=n_modes, rtol=rtol)
    seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(len(token_counts), np.uint64)]
    runs = [
        replicate(partial(work, n_tokens=n), replicates, seed=s, n_jobs=n_jobs)
        for n, s in zip(token_counts, seeds, strict=True)
    ]
    for n, run in zip(token_counts, runs, strict=True):
        if run.failures:
            number, reason = next(iter(run.failures.items()))
            raise InputError(f"replicate {number} of {n} tokens failed ({reason}); use more tokens or fewer modes.")
    largest = np.array([run.results for run in runs], dtype=np.float64)
    return PairedDifferences(np.array(token_counts, dtype=np.int64), largest, tuple(seeds))


def _largest(
    seed: np.random.SeedSequence,
    *,
    model: Model,
    n_tokens: int,
    times: FloatArray,
    largest_mode: int,
    n_modes: int | None,
    rtol: float,
) -> float:
    """Largest difference of one replicate."""
    tokens = sample_tokens(n_tokens, seed)
    run = paired_run(model, tokens, times, n_modes=n_modes, rtol=rtol, stored_modes=largest_mode, keep_states=False)
    return run.largest_difference(largest_mode)
