"""When a perturbation of the uniform density leaves the linear regime: for given data, and for random tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spectral_mf.arguments import check_measure, check_model, integer_at_least, number_between
from spectral_mf.errors import InputError
from spectral_mf.growth_rates import dominant_mode
from spectral_mf.measure import Measure
from spectral_mf.model import Model
from spectral_mf.unstable_manifold import unstable_manifold

_ORDERS = (64, 48)
"""Orders of the series of |c_m| that are compared, to see that the level lies where it has converged."""

_SERIES_ACCURACY = 1e-6


def linear_exit_time(model: Model, initial: Measure, level: float = 0.1) -> float:
    """Time at which a given perturbation of the uniform density leaves the linear regime.

    Definition: the first t >= 0 at which the linear solution c_k(t) = exp(lambda_k t) c_k(0) has
    max_k |c_k(t)| >= level, over the modes k >= 1 that the kernel sees.

    Parameters
    ----------
    model : Model
    initial : Measure
    level : float
        0 < level < 1. The nonlinear terms are about level^2.

    Returns
    -------
    float
        inf if no mode that is present grows.

    Raises
    ------
    InputError
        If the level is not allowed.
    """
    check_model(model)
    check_measure("initial", initial)
    level = number_between("level", level, 0.0, 1.0)
    k = np.arange(1, model.bandwidth + 1)
    sizes = np.abs(initial.moments(model.bandwidth)[1:])
    if (sizes >= level).any():
        return 0.0
    rates = model.growth_rate(k)
    growing = (rates > 0.0) & (sizes > 0.0)
    if not growing.any():
        return math.inf
    return float(np.min(np.log(level / sizes[growing]) / rates[growing]))


@dataclass(frozen=True)
class ExitTime:
    """Statistics of the time at which |c_m| reaches a level, m the dominant mode, for random initial tokens.

    Attributes
    ----------
    mean, standard_deviation : float
        Of the exit time, in units of time.
    linear_mean : float
        The mean by linear theory alone, without the correction from the unstable manifold.
    mode : int
        m.
    growth_rate : float
        lambda_m. The mean grows by ln(N) / (2 lambda_m).
    """

    mean: float
    standard_deviation: float
    linear_mean: float
    mode: int
    growth_rate: float


def exit_time(model: Model, n_tokens: int, level: float) -> ExitTime:
    """Mean and standard deviation of the time at which |c_m| reaches a level, from N independent uniform tokens.

    At the start N |c_m|^2 has the law Exp(1) (up to O(1/N)), so ln |c_m| has mean -(ln N + gamma)/2, with gamma the
    Euler-Mascheroni constant, and standard deviation pi / (2 sqrt 6). The density then follows the unstable manifold:
    with z the point where |c_m| = level on it,

        mean = (ln z + (ln N + gamma)/2) / lambda_m,   standard deviation = pi / (2 sqrt(6) lambda_m).

    z is slightly larger than the level; to the lowest order (USA) ln z = ln level - ln(1 - level^2)/2. Other modes are
    neglected: the result holds for the runs in which the dominant mode wins.

    Parameters
    ----------
    model : Model
        A `SelfAttention` for which the uniform density is unstable.
    n_tokens : int
        N >= 2.
    level : float
        Value of |c_m|, 0 < level < 1, within reach of the unstable manifold's series: up to 0.43 at
        least, 0.5 or more for beta >= 1.5, without diffusion.

    Returns
    -------
    ExitTime

    Raises
    ------
    InputError
        If an argument is not allowed, the uniform density is stable, or the level is out of the series' reach.
    """
    n_tokens = integer_at_least("n_tokens", n_tokens, 2)
    level = number_between("level", level, 0.0, 1.0)
    dominant = dominant_mode(model)
    if not dominant.unstable:
        raise InputError(
            f"the uniform density is stable (largest rate {dominant.rate:.4g}), so no perturbation leaves it; "
            "lower the diffusion."
        )
    z, check = (unstable_manifold(model, dominant.mode, order).z_of_level(level) for order in _ORDERS)
    if abs(z - check) > _SERIES_ACCURACY * z:
        raise InputError(
            f"level = {level:g} lies where the unstable manifold's series has not converged; give a smaller level."
        )
    start = 0.5 * (math.log(n_tokens) + float(np.euler_gamma))
    return ExitTime(
        mean=(math.log(z) + start) / dominant.rate,
        standard_deviation=math.pi / (2.0 * math.sqrt(6.0)) / dominant.rate,
        linear_mean=(math.log(level) + start) / dominant.rate,
        mode=dominant.mode,
        growth_rate=dominant.rate,
    )
