"""Tokens on the circle with positions: dθ_i/dt = Σ_j a_ij e^{β cos(θ_i - θ_j + ω (s_i - s_j))} (-sin(θ_i - θ_j)).

a_ij = e^{-λ |s_i - s_j|}, for s_j ≤ s_i only if causal, divided by its sum over j, or for the softmax by the sum of
the whole attention. Sums are running sums of moments over tokens in the order of their positions: O(N K) operations and
O(N) numbers, never N x N.

With a query-key matrix B, the score is β ⟨x_i, B x_j⟩ in place of β times the cosine, without phases. With
β Bᵀx = r (cos ψ, sin ψ) and e^{r cos x} = Σ_k I_k(r) e^{ikx}, every sum over j is one of w_j e^{-ikα_j}, α = θ + ω s,
with w = 1 (the softmax's denominator) or w = cos θ_j, sin θ_j. A token's own term in the drift is zero and is left out,
so that the first token of a causal system stays where it is, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

from spectral_mf import bessel
from spectral_mf.arguments import angle_array, number_from_to
from spectral_mf.errors import InputError
from spectral_mf.output_times import time_grid
from spectral_mf.position_grid import sorted_positions
from spectral_mf.positions import PositionalAttention
from spectral_mf.solvers.adaptive import AdaptiveSolver
from spectral_mf.solvers.dop853 import Dop853, error_norm
from spectral_mf.solvers.march import MarchOptions

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

KNOWN_MASS = 1e-2
"""Share of the mean attention that a Fourier sum still knows to 13 digits."""


class RunningSums:
    """Sums over tokens j of e^{-decay |s_i - s_j|} z_j, for each token i.

    Parameters
    ----------
    positions : ndarray of float64, shape (N,)
        In increasing order; tokens may share a position, and see each other then.
    decay : float
    causal : bool
        Whether s_j <= s_i only.
    """

    def __init__(self, positions: FloatArray, decay: float, causal: bool) -> None:
        self._last = np.searchsorted(positions, positions, side="right") - 1
        middle = 0.5 if decay else 0.0  # growing and falling weights of about the same size
        self._growing = np.exp(decay * (positions - middle))
        self._causal = causal
        self._distinct = bool((np.diff(positions) > 0.0).all())

    def others(self, z: NDArray[np.inexact]) -> NDArray[np.inexact]:
        """The sums without the token itself; shape (..., N)."""
        grown = z * self._growing
        before = np.cumsum(grown, axis=-1)
        if self._distinct:
            seen = np.zeros_like(before)
            np.divide(before[..., :-1], self._growing[1:], out=seen[..., 1:])
        else:
            seen = (before[..., self._last] - grown) / self._growing
        if self._causal:
            return np.asarray(seen)
        fallen = z / self._growing
        total = np.cumsum(fallen[..., ::-1], axis=-1)[..., ::-1]
        after = np.concatenate([total, np.zeros_like(total[..., :1])], axis=-1)[..., self._last + 1]
        return np.asarray(seen + after * self._growing)


class PositionalTokenVelocity:
    """Velocity of tokens with positions.

    Parameters
    ----------
    model : PositionalAttention
    positions : ndarray of float64, shape (N,)
        In increasing order.
    """

    def __init__(self, model: PositionalAttention, positions: FloatArray) -> None:
        self._score = model.score
        self._unit = None if model.normalization == "softmax" else model.score.norm * (model.normalization == "peak")
        self._sums = RunningSums(positions, model.decay, model.causal)
        self._order = bessel.bandwidth(model.score.norm)
        self._turn: ComplexArray = np.exp(1j * model.rotary * positions)
        self._seen: FloatArray = 1.0 + self._sums.others(np.ones_like(positions)).real
        self._pairs = PairSums(model, positions)

    def __call__(self, theta: FloatArray, out: FloatArray) -> None:
        """Write the velocities of tokens at the angles theta into `out`, both of shape (N,)."""
        cosine, sine = np.cos(theta), np.sin(theta)
        key = (cosine - 1j * sine) * np.conj(self._turn)  # e^{-i (theta + omega s)}
        x, y = self._score.row(theta)
        width = np.hypot(x, y)
        query = np.where(width > 0.0, (x + 1j * y) / np.where(width > 0.0, width, 1.0), 1.0) * self._turn
        weights = np.stack([cosine, sine, np.ones_like(theta)] if self._unit is None else [cosine, sine])
        sums = self._kernel_sums(weights, key, query, width)
        np.subtract(cosine * sums[1], sine * sums[0], out=out)
        if self._unit is not None:
            out *= ive(0, width) * np.exp(width - self._unit) / self._seen
            return
        own = np.exp(self._score.value(np.zeros_like(theta), 2.0 * theta) - width) / ive(0, width)
        mass = sums[2] + own
        few = mass < KNOWN_MASS * self._seen
        out /= np.where(few, 1.0, mass)
        if few.any():
            rows = np.flatnonzero(few)
            out[rows] = self._pairs(theta, rows)

    def _kernel_sums(
        self, weights: FloatArray, key: ComplexArray, query: ComplexArray, width: FloatArray
    ) -> FloatArray:
        """Sums over the other tokens of weights times e^{r cos(phi - psi)} / I_0(r), by Horner's rule in the modes.

        I_k / I_{k-1} = r / (2 k + r I_{k+1} / I_k) on the way down, r the width and psi the angle of the query.
        """
        power = key**self._order
        back = np.conj(key)
        ratio = np.zeros_like(width)
        above = np.zeros(weights.shape, dtype=np.complex128)
        for k in range(self._order, 0, -1):
            ratio = width / (2.0 * k + width * ratio)
            above = (ratio * query) * (self._sums.others(weights * power) + above)
            power = power * back
        return np.asarray(self._sums.others(weights) + 2.0 * above.real)


class PairSums:
    """Softmax velocities as sums over pairs, in log-sum-exp form: O(N) for a token.

    Fourier sums know the softmax's denominator to rounding of I_0(r). With the identity a token sees itself best; with
    another matrix it may see all tokens, itself among them, so badly that no digit is left.
    """

    def __init__(self, model: PositionalAttention, positions: FloatArray) -> None:
        self._model = model
        self._positions = positions

    def __call__(self, theta: FloatArray, rows: NDArray[np.int64]) -> FloatArray:
        """Velocities of the tokens of the given numbers; shape (M,)."""
        model, out = self._model, np.empty(rows.size)
        chunk = max(1, 2**20 // theta.size)
        for start in range(0, rows.size, chunk):
            part = rows[start : start + chunk]
            distance = self._positions[part, None] - self._positions
            d, s = theta[part, None] - theta, theta[part, None] + theta
            exponent = model.score.value(d, s) - model.decay * np.abs(distance)
            if model.causal:
                exponent[distance < 0.0] = -np.inf
            attention = np.exp(exponent - exponent.max(axis=1, keepdims=True))
            out[start : start + chunk] = -(attention * np.sin(d)).sum(axis=1) / attention.sum(axis=1)
        return out


class PositionalTokenSolver(AdaptiveSolver):
    """Tokens with positions, moved by steps of the 8(5,3) method; `rtol` bounds the error of an angle in a step."""

    method: ClassVar[str] = "particles"

    def __init__(
        self, model: PositionalAttention, t: float, angles: FloatArray, positions: FloatArray, options: MarchOptions
    ) -> None:
        super().__init__(t, options)
        self._stepper = Dop853(PositionalTokenVelocity(model, positions), angles)
        self._start_control(None, 1.0, float(np.abs(self._stepper.slope).max()))

    @property
    def angles(self) -> FloatArray:
        """Angles now; shape (N,)."""
        return self._stepper.y

    @property
    def n_modes(self) -> int:
        """Number of tokens."""
        return self._stepper.y.size

    def _error(self, errors: FloatArray) -> float:
        return error_norm(errors, self._options.rtol)

    def _is_resolved(self) -> bool:
        return True

    def _refine(self) -> None:
        """Tokens need no resolution."""

    def _accepted(self) -> None:
        """Nothing to look at."""


@dataclass(frozen=True)
class PositionalTokens:
    """Tokens with positions at the output times of a run.

    Attributes
    ----------
    model : PositionalAttention
    positions : ndarray of float64, shape (N,)
    t : ndarray of float64, shape (n_times,)
    angles : ndarray of float64, shape (n_times, N)
        In radians, not reduced: they tell how far tokens went.
    """

    model: PositionalAttention
    positions: FloatArray
    t: FloatArray
    angles: FloatArray


def move_tokens_with_positions(
    model: PositionalAttention,
    angles: ArrayLike,
    times: float | ArrayLike,
    *,
    positions: ArrayLike | None = None,
    rtol: float = 1e-10,
) -> PositionalTokens:
    """Move tokens of equal weight that have positions.

    Parameters
    ----------
    model : PositionalAttention
        Without diffusion.
    angles : array_like of float, shape (N,)
        In radians, in the order of the positions.
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time.
    positions : array_like of float, shape (N,), optional
        In [0, 1], increasing; tokens may share one. May be left out only where the model does not depend on them.
    rtol : float
        Error allowed in an angle, in radians, a step; 1e-15 to 1e-2.

    Raises
    ------
    InputError
        If something given is not allowed. Nothing has been computed then.
    """
    if not isinstance(model, PositionalAttention):
        raise InputError(f"model = {model!r} has no positions; give a PositionalAttention, or use Monte Carlo tokens.")
    if model.diffusion > 0.0:
        raise InputError(
            f"diffusion = {model.diffusion:g} moves tokens at random; give a model without, or solve for densities."
        )
    theta = angle_array(angles)
    if theta.ndim != 1 or theta.size == 0 or not np.isfinite(theta).all():
        raise InputError(f"angles of shape {theta.shape} are not tokens; give one row of finite angles.")
    if positions is None:
        if model.needs_positions:
            what = _what_needs_positions(model)
            raise InputError(f"{what} needs the tokens' positions; give positions = numbers from 0 to 1, one a token.")
        s = np.zeros_like(theta)
    else:
        s = sorted_positions(positions, theta.size)
    grid = time_grid(times)
    options = MarchOptions(rtol=number_from_to("rtol", rtol, 1e-15, 1e-2))
    solver = PositionalTokenSolver(model, float(grid[0]), theta, s, options)
    rows = np.empty((grid.size, theta.size))
    for row, t in zip(rows, grid, strict=True):
        solver.advance(float(t))
        row[:] = solver.angles
    return PositionalTokens(model, s, grid, rows)


def strong_renyi_centres(angles: ArrayLike, distance: float) -> NDArray[np.int64]:
    """Tokens that are farther than a distance from all that come before them; the first is one.

    Parameters
    ----------
    angles : array_like of float, shape (N,)
        In the order of positions.
    distance : float
        On the circle, in radians.

    References
    ----------
    arXiv:2411.04990, section 5: at distance 4 beta^{-1/2} they stay fixed for long.
    """
    theta = angle_array(angles)
    alone = [
        i
        for i in range(theta.size)
        if (np.abs(np.remainder(theta[:i] - theta[i] + np.pi, 2.0 * np.pi) - np.pi) > distance).all()
    ]
    return np.array(alone, dtype=np.int64)


def _what_needs_positions(model: PositionalAttention) -> str:
    if model.rotary:
        return f"rotary = {model.rotary:g}"
    return f"decay = {model.decay:g}" if model.decay else "order = 'causal'"
