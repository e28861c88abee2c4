"""Measures made of finitely many point masses: tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, integer_at_least, random_generator, real_array
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.harmonics import point_moments

if TYPE_CHECKING:
    from spectral_mf.distribution import Distribution
    from spectral_mf.measure import Measure
    from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

TWO_PI = 2.0 * np.pi


class Atoms:
    """Point masses at angles, with weights that sum to 1.

    Parameters
    ----------
    angles : array_like of float, shape (N,)
        Angles in radians; any real number, taken modulo 2 pi.
    weights : array_like of float, shape (N,), optional
        Non-negative; they are divided by their sum. Equal if left out.

    Raises
    ------
    InputError
        If there are no angles, an angle is not finite, or a weight is negative or all are zero.
    """

    kind: ClassVar[str] = "atoms"

    def __init__(self, angles: ArrayLike, weights: ArrayLike | None = None) -> None:
        theta = real_array(angles, "angles are not real numbers; give an array of angles in radians.")
        if theta.ndim != 1 or theta.size == 0:
            raise InputError(f"angles have shape {theta.shape}; give at least one angle, shape (N,).")
        if not np.isfinite(theta).all():
            j = int(np.flatnonzero(~np.isfinite(theta))[0])
            raise InputError(f"angle number {j} is {theta[j]}; every angle has to be a finite number of radians.")
        theta %= TWO_PI
        theta[theta >= TWO_PI] = 0.0  # -1e-17 % 2 pi rounds up to 2 pi
        self.angles: FloatArray = theta
        self.weights: FloatArray = _unit_weights(weights, theta.size)
        self.angles.flags.writeable = False
        self.weights.flags.writeable = False

    @property
    def n_atoms(self) -> int:
        """Number of point masses N."""
        return self.angles.size

    @classmethod
    def sample_uniform(cls, n_tokens: int, seed: int) -> Atoms:
        """Independent tokens from the uniform density.

        Parameters
        ----------
        n_tokens : int
            Number N >= 1 of tokens.
        seed : int
            Seed of the random numbers.
        """
        n_tokens = integer_at_least("n_tokens", n_tokens, 1)
        return cls(random_generator(seed).uniform(0.0, TWO_PI, n_tokens))

    @classmethod
    def from_file(cls, path: str | Path) -> Atoms:
        """Read tokens from .npy, .npz, .csv, .txt or .h5 (see `spectral_mf.token_files`)."""
        from spectral_mf.token_files import read_tokens

        return cls(*read_tokens(path))

    def moments(self, n_modes: int) -> ComplexArray:
        """Moments c_0 .. c_n; shape (n_modes + 1,)."""
        c = point_moments(self.angles, self.weights, integer_at_least("n_modes", n_modes, 0))
        c[0] = 1.0
        return c

    def density(self, theta: ArrayLike) -> FloatArray:
        """Refuse: point masses have no density; use `cell_means` or `smoothed`."""
        raise InputError("point masses have no density; use cell_means(n) or smoothed(n_modes).density(theta).")

    def cell_means(self, n_cells: int) -> FloatArray:
        """Mass of each cell centred at 2 pi j / n_cells, divided by its width; shape (n_cells,)."""
        integer_at_least("n_cells", n_cells, 1)
        cell = np.floor(self.angles * (n_cells / TWO_PI) + 0.5).astype(np.int64) % n_cells
        mass = np.bincount(cell, weights=self.weights, minlength=n_cells)
        return np.asarray(mass * (n_cells / TWO_PI), dtype=np.float64)

    def smoothed(self, n_modes: int) -> FourierDensity:
        """The density that has the same first `n_modes` moments, and none beyond.

        Raises
        ------
        InputError
            If that is negative somewhere: too few tokens for so many modes. `kernel_density` is always positive.
        """
        return FourierDensity(self.moments(integer_at_least("n_modes", n_modes, 1))).require_positive()

    def kernel_density(self, kappa: float) -> FourierDensity:
        """The atoms with a von Mises density of concentration kappa in place of each: positive for any sample.

        Parameters
        ----------
        kappa : float
            Concentration, >= 0 and at most 1e6; the width is about 1 / sqrt(kappa) radians.
        """
        kernel = FourierDensity.von_mises(kappa)
        n = kernel.n_modes
        return FourierDensity(self.moments(n) * kernel.moments(n))

    def energy(self, model: Model) -> float:
        """Interaction energy under a model, in units of exp(model.energy_log_unit)."""
        check_model(model)
        return float(model.energy(self.moments(model.bandwidth)))

    def w1(self, other: Measure) -> float:
        """Wasserstein-1 distance on the circle (geodesic), in radians."""
        from spectral_mf.wasserstein import w1

        return w1(self, other)

    def w2(self, other: Atoms) -> float:
        """Wasserstein-2 distance on the circle (geodesic) from other atoms, in radians."""
        from spectral_mf.wasserstein2 import w2

        return w2(self, other)

    def distribution(self) -> Distribution:
        """Distribution function on [0, 2 pi]: one jump for each atom."""
        from spectral_mf.distribution import Distribution

        order = np.argsort(self.angles, kind="stable")
        mass = np.cumsum(self.weights[order])
        steps = np.concatenate([[0.0, 0.0], np.repeat(mass / mass[-1], 2)])
        angles = np.concatenate([[0.0], np.repeat(self.angles[order], 2), [TWO_PI]])
        return Distribution(angles, steps, np.ones(1, dtype=np.complex128))

    def to_vector(self) -> FloatArray:
        """Angles followed by weights, shape (2 N,)."""
        return np.concatenate([self.angles, self.weights])

    @classmethod
    def from_vector(cls, vector: ArrayLike) -> Atoms:
        """Make the atoms again from `to_vector`, bit for bit."""
        angles, weights = np.split(np.asarray(vector, dtype=np.float64), 2)
        atoms = cls(angles)
        atoms.weights = weights.copy()
        atoms.weights.flags.writeable = False
        return atoms

    def __repr__(self) -> str:
        return f"Atoms({self.n_atoms})"


def _unit_weights(weights: ArrayLike | None, n: int) -> FloatArray:
    if weights is None:
        return np.full(n, 1.0 / n)
    w = real_array(weights, "weights are not real numbers; give one number >= 0 for each angle.")
    if w.shape != (n,):
        raise InputError(f"weights have shape {w.shape} for {n} angles; give one weight for each angle.")
    if not np.isfinite(w).all() or w.min() < 0.0:
        j = int(np.flatnonzero(~(np.isfinite(w) & (w >= 0.0)))[0])
        raise InputError(f"weight number {j} is {w[j]}; weights have to be finite and >= 0.")
    if not w.max() > 0.0:
        raise InputError("the weights sum to 0; at least one has to be positive.")
    if not 1e-290 < w.max() < 1e290:
        w /= w.max()  # the sum could overflow, or its inverse
    return np.asarray(w / w.sum())
