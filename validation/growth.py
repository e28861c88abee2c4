"""Growth rates measured on random tokens, against linear theory.

c_k(t) = e^{λ_k t} c_k(0) + terms of second order in the moments, which are N^{-1/2} in size. From R replicates,

    λ_k ≈ ln( Σ_r Re c_k(t) conj c_k(0) / Σ_r |c_k(0)|² ) / t.

The second-order terms c_j c_{k-j} have a random phase against c_k: E[c_j c_{k-j} conj c_k] = N^{-2}, which is N^{-1} of
E|c_k|², as are the terms of third order. The largest of these is each token's attention on itself, which slows SA by a
share of e^β / (I_0 N): 5e-5 at β = 5, N = 1e5. What is left is noise of N^{-1/2} R^{-1/2}, which grows like
e^{(2 λ_max - λ_k) t}: a short time is best, as long as t λ_k is large against rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spectral_mf import theory
from spectral_mf.arguments import integer_at_least, positive_number
from spectral_mf.model import Model
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import replicate, sample_tokens

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

GROWTH_TIME = 0.7
"""Default duration, in units of 1 / λ_max: moments double while they are of the size N^{-1/2}."""


@dataclass(frozen=True)
class MeasuredGrowth:
    """Growth rates with their standard errors.

    Attributes
    ----------
    modes : ndarray of int64, shape (n,)
    rates, standard_errors : ndarray of float64, shape (n,)
        Measured.
    predicted : ndarray of float64, shape (n,)
        By linear theory.
    entropy : int
        Seed of the replicates.
    """

    modes: NDArray[np.int64]
    rates: FloatArray
    standard_errors: FloatArray
    predicted: FloatArray
    entropy: int

    @property
    def deviations(self) -> FloatArray:
        """Measured minus predicted, in standard errors."""
        return np.asarray((self.rates - self.predicted) / self.standard_errors)


def measure_growth(
    model: Model,
    *,
    n_tokens: int,
    replicates: int,
    modes: Sequence[int] = (1, 2, 3, 4, 5, 6),
    duration: float | None = None,
    seed: int | None = None,
    n_jobs: int = 1,
    kernel_modes: int | None = None,
    rtol: float = 1e-7,
) -> MeasuredGrowth:
    """Measure the growth rates of modes on independent uniform tokens.

    Parameters
    ----------
    model : Model
        Unstable, without diffusion.
    n_tokens : int
    replicates : int
        At least 2.
    modes : sequence of int
    duration : float, optional
        Time between the two states that are compared; by default 0.7 / λ_max.
    seed, n_jobs
        As for `replicate`.
    kernel_modes, rtol
        As for `simulate`.

    Raises
    ------
    InputError
        If there are fewer than 2 replicates, or something else is not allowed.
    """
    replicates = integer_at_least("replicates", replicates, 2)  # for a standard error
    wanted = np.array(modes, dtype=np.int64)
    default = GROWTH_TIME / theory.dominant_mode(model).rate
    time = positive_number("duration", default if duration is None else duration)
    work = partial(
        _both_ends, model=model, n_tokens=n_tokens, modes=wanted, time=time, kernel_modes=kernel_modes, rtol=rtol
    )
    done = replicate(work, replicates, seed=seed, n_jobs=n_jobs)
    ends = np.array(done.results)
    rates, errors = growth_rates(ends[:, 0], ends[:, 1], time)
    return MeasuredGrowth(wanted, rates, errors, theory.growth_rate(model, wanted), done.entropy)


def growth_rates(before: ComplexArray, after: ComplexArray, duration: float) -> tuple[FloatArray, FloatArray]:
    """Rates from moments of replicates at two times, and their standard errors by the jackknife.

    Parameters
    ----------
    before, after : ndarray of complex, shape (R, n)
        R >= 2 replicates of n moments.
    duration : float
        Time between.

    Returns
    -------
    rates, standard_errors : ndarray of float64, shape (n,)
    """
    product = (after * np.conj(before)).real
    power = np.abs(before) ** 2
    n = before.shape[0]
    rates = np.log(product.sum(axis=0) / power.sum(axis=0)) / duration
    without = np.log((product.sum(axis=0) - product) / (power.sum(axis=0) - power)) / duration
    errors = np.sqrt((n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    return rates, errors


def _both_ends(
    seed: np.random.SeedSequence,
    *,
    model: Model,
    n_tokens: int,
    modes: NDArray[np.int64],
    time: float,
    kernel_modes: int | None,
    rtol: float,
) -> ComplexArray:
    """Moments of one replicate at its start and its end; shape (2, n)."""
    run = simulate(
        model,
        sample_tokens(n_tokens, seed),
        [0.0, time],
        rtol=rtol,
        kernel_modes=kernel_modes,
        n_modes=int(modes.max()),
        keep_states=False,
    )
    return np.asarray(run.moments[:, modes])
