"""Dobrushin's bound W_1(μ_t, ν_t) <= e^{2Ct} W_1(μ_0, ν_0), its constant, and tokens that make its exponential sharp.

Move an optimal coupling γ of μ_0 and ν_0 with both flows, D = ∫ d(X_t, Y_t) dγ >= W_1(μ_t, ν_t), D_0 = W_1(μ_0, ν_0).
The arc between a pair grows by at most |V[μ](X) - V[ν](Y)|, so that D' <= (L_1 + L_2) D, where

- |∂_θ V[μ](θ)| <= L_1 for every μ, and
- ∫ |V[μ](y) - V[ν](y)| dν(y) <= L_2 D.

With 2C = L_1 + L_2 the bound follows. Linear rates are far smaller: a bound for all pairs is no rate of any pair.

**USA** (Bruno, Pasqualotto, Agazzi, arXiv:2410.23228, theorem A.1): V = h' * μ with h = e^{β cos θ}/β, so
L_1 = L_2 = C = max |h''|, h'' = e^{β cos θ} (β sin² θ - cos θ). The maximum is e^β, at θ = 0: with u = cos θ and
s = β (1 - u), e^{-β} h'' = e^{-s} (s (1 + u) - u) is at least -1; for u >= 0 it is at most 2 s e^{-s} <= 2/e, and for
u < 0 at most e^{-s} max(s, 1) <= 1, as (1 + u) + |u| = 1.

**SA**: V(θ) = -E[sin(θ - φ)] over the attention's own probability measure, of density e^{β cos(θ-φ)}/Z(θ) by μ(dφ).

- V' = -E[cos(θ - φ)] + β Var[sin(θ - φ)], hence -1 <= V' <= max_u (β (1 - u²) - u), which gives L_1 = β + 1/(4β) for
  β >= 1/2 and L_1 = 1 below.
- V[ν](y) - V[μ](y) = (1/Z_ν(y)) ∫ g_y d(ν - μ) with g_y(w) = (-sin(y-w) - V[μ](y)) e^{β cos(y-w)}, since ∫ g_y dμ = 0.
  As |V| <= 1, |g_y'(w)| <= G(y-w) = e^{β cos a} (|cos a| + β |sin a| (1 + |sin a|)) at a = y - w. Along the coupling,
  ∫ |V[μ] - V[ν]|(y) dν(y) <= D sup_w ∫ G(y-w)/Z_ν(y) dν(y). Cut the circle in n arcs of length δ = 2π/n that begin at
  w. For y in an arc J, Z_ν(y) >= ν(J) e^{β cos δ}; so the integral over J is at most max_{a in J} G e^{-β cos δ},
  whatever ν is. L_2 is the sum over arcs, for the best n: it grows like √β. (Z_ν >= e^{-β} alone, which is n = 1, would
  give L_2 = e^{2β} (1 + 2β).)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.atoms import Atoms
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.self_attention import SelfAttention
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import sample_tokens

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-9
"""Relative error of a distance between tokens that were moved with an rtol of 1e-11."""

_RTOL = 1e-11


def dobrushin_constant(model: Model) -> float:
    """C of the bound e^{2Ct}: max |h''| = e^β for USA (1 in its "peak" units), (L_1 + L_2) / 2 for SA.

    Parameters
    ----------
    model : Model
        A `SelfAttention`.

    Returns
    -------
    float
        In inverse units of time.

    Raises
    ------
    InputError
        If the model is another one.
    """
    attention = _attention(model)
    if attention.normalization == "softmax":
        return 0.5 * (velocity_slope_bound(attention.beta) + measure_slope_bound(attention.beta))
    return 1.0 if attention.normalization == "peak" else math.exp(attention.beta)


def velocity_slope_bound(beta: float) -> float:
    """L_1 of SA: the largest |∂_θ V[μ]| that any measure can make, at most."""
    return beta + 0.25 / beta if beta > 0.5 else 1.0


def measure_slope_bound(beta: float) -> float:
    """L_2 of SA: how much the velocity depends on the measure, at most, in the mean over one of the two."""
    best = math.exp(min(2.0 * beta, 700.0)) * (1.0 + 2.0 * beta)
    for n in range(2, max(8, int(8.0 * math.sqrt(beta + 1.0))) + 1, 2):
        best = min(best, _sum_over_arcs(beta, n))
    return best


def _sum_over_arcs(beta: float, n: int) -> float:
    """Sum over n arcs (n even) of a bound of G e^{-β cos δ} on each: factor by factor, each monotone on an arc."""
    delta = 2.0 * math.pi / n
    left = delta * np.arange(n // 2)  # the other half of the circle is its mirror image
    right = left + delta
    sine = np.where((left < math.pi / 2) & (right > math.pi / 2), 1.0, np.maximum(np.sin(left), np.sin(right)))
    cosine = np.maximum(np.abs(np.cos(left)), np.abs(np.cos(right)))
    exponent = np.minimum(beta * (np.cos(left) - math.cos(delta)), 700.0)
    return float(2.0 * (np.exp(exponent) * (cosine + beta * sine * (1.0 + sine))).sum())


@dataclass(frozen=True)
class DobrushinCheck:
    """Two sets of tokens under one flow.

    Attributes
    ----------
    t : ndarray of float64, shape (n_times,)
    distances : ndarray of float64, shape (n_times,)
        W_1(μ_t, ν_t), in radians.
    constant : float
        C.
    """

    t: FloatArray
    distances: FloatArray
    constant: float

    @property
    def log_bounds(self) -> FloatArray:
        """Logarithm of the bound, 2 C t + ln W_1(μ_0, ν_0); shape (n_times,). The bound itself may overflow."""
        return np.asarray(2.0 * self.constant * (self.t - self.t[0]) + math.log(self.distances[0]))

    @property
    def holds(self) -> bool:
        """Whether the distance is within the bound at every time."""
        return bool((self.distances <= np.exp(np.minimum(self.log_bounds, 700.0)) * (1.0 + _ROUNDING)).all())

    @property
    def rates(self) -> FloatArray:
        """Mean growth rate of the distance since the start, ln(W_1(t) / W_1(0)) / t; shape (n_times - 1,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.distances[1:] / self.distances[0]) / (self.t[1:] - self.t[0]))

    @property
    def tightness(self) -> float:
        """Largest mean growth rate over 2 C: 1 if the bound were reached."""
        return float(self.rates.max() / (2.0 * self.constant))


def check_bound(model: Model, one: Atoms, other: Atoms, times: float | ArrayLike) -> DobrushinCheck:
    """Move two sets of tokens, each under its own interaction, and measure their distance.

    Parameters
    ----------
    model : Model
        A `SelfAttention` without diffusion.
    one, other : Atoms
        Different measures, of any numbers of tokens and weights.
    times : float or array_like of float
        As for `solve`.

    Raises
    ------
    InputError
        If the two are the same measure, or something else is not allowed.
    """
    constant = dobrushin_constant(model)
    grid = time_grid(times)
    if one.w1(other) == 0.0:
        raise InputError(
            "the two sets of tokens are the same measure, whose distance stays 0; give two different ones."
        )
    runs = [simulate(model, tokens, grid, rtol=_RTOL, keep_states=True) for tokens in (one, other)]
    distances = np.array([runs[0].measure(i).w1(runs[1].measure(i)) for i in range(grid.size)])
    return DobrushinCheck(runs[0].t, distances, constant)


def random_pair(n_tokens: int, seed: int, *, distance: float | None = None) -> tuple[Atoms, Atoms]:
    """Random tokens with random weights, and others: independent ones, or the same ones each moved a little.

    Parameters
    ----------
    n_tokens : int
        N >= 1 of each.
    seed : int
    distance : float, optional
        Standard deviation in radians by which each token is moved; if left out, the two are independent.
    """
    streams = np.random.SeedSequence(seed).spawn(3)
    angles = sample_tokens(n_tokens, streams[0]).angles
    rng = np.random.default_rng(streams[1])
    weights = rng.exponential(size=n_tokens)
    if distance is None:
        return Atoms(angles, weights), Atoms(sample_tokens(n_tokens, streams[2]).angles, rng.exponential(size=n_tokens))
    return Atoms(angles, weights), Atoms(angles + distance * rng.standard_normal(n_tokens), weights)


def two_tokens(gap: float) -> tuple[Atoms, Atoms]:
    """The example that makes an exponential necessary: tokens at gap and π - gap, and the antipodal pair 0 and π.

    The antipodal pair is stationary and unstable. W_1 between the two is `gap` at the start and grows like
    e^{`antipodal_rate` t} while it is small: no bound that grows more slowly than an exponential holds for all pairs.

    Parameters
    ----------
    gap : float
        In radians, from 0 to π/2, without the ends.

    Returns
    -------
    pair, antipodal : Atoms
    """
    if not 0.0 < gap < math.pi / 2:
        raise InputError(f"gap = {gap!r} is not allowed; give an angle between 0 and π/2.")
    return Atoms([gap, math.pi - gap]), Atoms([0.0, math.pi])


def antipodal_rate(model: Model) -> float:
    """Rate at which two nearly antipodal tokens leave that position: 2/(e^{2β} + 1) for SA, e^{-β} for USA.

    ω = θ_2 - θ_1 obeys dω/dt = -2 sin ω e^{β cos ω} / (e^β + e^{β cos ω}) for SA and -sin ω e^{β cos ω} for USA; both
    are linearised at ω = π. (In print, at β = 1, SA stands with 2/e².)

    Raises
    ------
    InputError
        If the model is not a `SelfAttention`.
    """
    attention = _attention(model)
    if attention.normalization == "softmax":
        return 2.0 * math.exp(-2.0 * attention.beta) / (1.0 + math.exp(-2.0 * attention.beta))
    return math.exp(-attention.beta if attention.normalization == "none" else -2.0 * attention.beta)


def _attention(model: Model) -> SelfAttention:
    if not isinstance(model, SelfAttention):
        raise InputError(f"Dobrushin's constant is known for SelfAttention, not for {type(model).__name__}; give one.")
    return model
