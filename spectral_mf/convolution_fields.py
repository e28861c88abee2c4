"""Velocities on a grid for models whose kernels depend on the difference of angles only: one product a mode.

V = Σ_k v_k c_k e^{ikθ}, divided by Σ_k z_k c_k e^{ikθ} for the softmax: multipliers of the moments, then transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spectral_mf.fft import RealTransform

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

MASS_FLOOR = 1e-13
"""A Fourier sum knows the softmax's denominator to 1e-16 of its mean; below the floor there is no mass to move."""

_SURELY_ABOVE = 1e-6
"""Where the kernel of the denominator is larger everywhere, no density gets it near the floor."""


@runtime_checkable
class ConvolutionModel(Protocol):
    """A model of one kernel of the difference of angles: what `ConvolutionFields` needs of it."""

    @property
    def bandwidth(self) -> int:
        """Largest mode of the kernels."""

    @property
    def kernels(self) -> ComplexArray:
        """Multipliers of the moments, shape (1 or 2, bandwidth + 1).

        Imaginary ones in the velocity's numerator and, for the softmax, real ones in its denominator relative to the
        mean.
        """

    @property
    def mean_kernel(self) -> float:
        """Mean of the softmax's kernel in units of exp(energy_log_unit)."""


class ConvolutionFields:
    """Velocities and densities on a grid (see `spectral_mf.model.GridFields`), each density under a model of its own.

    Parameters
    ----------
    models : sequence of ConvolutionModel
        One for each density; all with a denominator, or all without.
    n_points : int
        Number M of grid points on one period 2 pi / fold.
    fold : int
    """

    def __init__(self, models: Sequence[ConvolutionModel], n_points: int, fold: int) -> None:
        self._made_from = (models, n_points, fold)
        self._mean_kernels = np.array([model.mean_kernel for model in models])
        n_densities = len(models)
        n_kernels = models[0].kernels.shape[0]
        n_modes = n_points // 2 + 1
        # Operands of one shape take numpy's quick path: 15 to 25% of a right-hand side against broadcasting.
        kernels = np.zeros((n_kernels, n_densities, n_modes), dtype=np.complex128)
        for i, model in enumerate(models):
            seen = model.kernels[:, : model.bandwidth + 1 : fold][:, :n_modes]
            kernels[:, i, : seen.shape[1]] = seen
        kernels[0, :, -1] = 0.0  # the Nyquist mode of an odd derivative
        n_series = n_kernels + 1
        transform = RealTransform(n_points, n_series * n_densities)
        grid = transform.grid.reshape(n_series, n_densities, n_points)
        spectrum = transform.spectrum.reshape(n_series, n_densities, n_modes)
        self._backward = transform.backward
        self._transform = transform
        self.velocity = grid[0]
        self.density = grid[1]
        self._drift_kernel, self._drift_modes, self._density_modes = kernels[0], spectrum[0], spectrum[1]
        self._mass: FloatArray | None = None
        self._floor: FloatArray | None = None
        if n_kernels == 2:
            self._mass_kernel, self._mass_modes, self._mass = kernels[1], spectrum[2], grid[2]
            self._mass_modes[...] = self._mass_kernel
            self._backward()
            if not self._mass.min() > _SURELY_ABOVE:
                self._floor = np.full_like(self.velocity, MASS_FLOOR)

    def evaluate(self, moments: ComplexArray) -> None:
        """Fill `velocity` and `density` from the moments c_{fold j}."""
        np.multiply(self._drift_kernel, moments, self._drift_modes)  # `out=` by name would take a fifth longer
        self._density_modes[...] = moments
        if self._mass is None:
            self._backward()
            return
        np.multiply(self._mass_kernel, moments, self._mass_modes)
        self._backward()
        if self._floor is not None:
            np.maximum(self._mass, self._floor, out=self._mass)
        np.divide(self.velocity, self._mass, self.velocity)

    def dissipation(self) -> FloatArray:
        """Integral of V^2 dmu (USA), V^2 Z dmu (SA): the rates at which the energies grow; shape (n_densities,)."""
        rate = self.velocity**2 * self.density
        if self._mass is not None:
            rate = rate * self._mass * self._mean_kernels[:, None]
        return np.asarray(rate.mean(axis=-1))

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans and views into their arrays are made anew, not copied."""
        return ConvolutionFields, self._made_from
