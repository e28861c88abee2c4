"""Velocities of finitely many tokens on the circle, V[μ_N](θ_i), μ_N = Σ_i w_i δ_{θ_i}.

Velocities come from the tokens' moments, in O(N) operations (see `spectral_mf.validation.fast_sums`).

A token sees itself: its softmax denominator, relative to the mean of the denominator over the circle, is at least
w_i e^β / I_0(β), which is at least w_i, and about w_i √(2πβ) for large β. With equal weights that is 1/N or more, and
the rounding error of a velocity made of moments is at most about 1e-16 N. Only tokens of weight below 1e-10 can be out
of sight of moments; these, and all of few tokens (whose motion between clusters may be as slow as e^{-2β}), are moved
by direct sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_mf.model import Model
from spectral_mf.validation.fast_sums import TokenSums, fast_sums

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

FEW = 64
"""Up to this many tokens, direct sums are as quick as moments, and keep the digits of the slowest motions."""

LEAST_MASS_SEEN = 1e-10
"""Where the softmax's denominator is less than this share of its mean, moments do not tell the velocity."""

LEAST_SERIES_MASS = 1e-4
"""Where a denominator is less than this, its series has lost more than four digits."""


class TokenVelocity:
    """Velocity of tokens under their own interaction.

    Parameters
    ----------
    model : Model
    weights : ndarray of float64, shape (N,)
    kernel_modes : int, optional
        Modes through which tokens interact; by default all that the kernel has.
    n_threads : int
        Threads that finufft uses.
    """

    def __init__(
        self, model: Model, weights: FloatArray, *, kernel_modes: int | None = None, n_threads: int = 1
    ) -> None:
        self.model = model
        self.weights = weights
        self.moments: ComplexArray = np.ones(1, dtype=np.complex128)
        n_modes = model.bandwidth if kernel_modes is None else min(kernel_modes, model.bandwidth)
        self._pairs = weights.size <= FEW and kernel_modes is None
        self._sums: TokenSums = fast_sums(weights.size, n_modes, in_order=True, n_threads=n_threads)

    def __call__(self, theta: FloatArray, out: FloatArray) -> None:
        """Write the velocities of tokens at the angles theta into `out`, both of shape (N,); keep their moments."""
        self._sums.place(theta)
        self.moments = self._sums.moments(self.weights)
        if self._pairs:
            out[:] = self.model.pair_velocity(theta, theta, self.weights)
            return
        first, *others = self.model.velocity_series(self.moments)[..., : self.moments.size]
        unseen = self._write_term(first, out)
        for term in others:
            velocity = np.empty_like(out)
            unseen = unseen | self._write_term(term, velocity)
            out += velocity
        if unseen.any():
            out[unseen] = self._velocity_of_few(theta[unseen], theta)

    def _velocity_of_few(self, few: FloatArray, theta: FloatArray) -> FloatArray:
        """Velocities of tokens whose series have lost digits: by the model's own sums, or by direct ones."""
        velocity, mass = self.model.velocity_and_mass(self.moments, few)
        unseen = mass < LEAST_MASS_SEEN
        if unseen.any():
            velocity[unseen] = self.model.pair_velocity(few[unseen], theta, self.weights)
        return velocity

    def _write_term(self, series: ComplexArray, out: FloatArray) -> NDArray[np.bool_]:
        """Write one term of the velocity into `out`; return for which tokens it lost digits, shape (N,) or ()."""
        sums = self._sums.sums(series)
        if sums.shape[0] == 1:
            out[:] = sums[0]
            return np.zeros((), dtype=np.bool_)
        with np.errstate(divide="ignore", invalid="ignore"):
            np.divide(sums[0], sums[1], out=out)
        if sums[1].min() >= LEAST_SERIES_MASS:  # the usual case makes no array of N
            return np.zeros((), dtype=np.bool_)
        return np.asarray(sums[1] < LEAST_SERIES_MASS)

    @property
    def perturbation(self) -> float:
        """Largest |c_k|, k >= 1, of the tokens seen last."""
        return float(np.abs(self.moments[1:]).max())
