"""Velocities of `MultiHeadAttention` on a grid: a dense matrix times the moments.

The kernels differ from angle to angle, so there is no convolution to be done by transforms: (points) x (modes) numbers
a term, each row in units of its own I_0(r), which keeps all digits where B sees one direction much less than another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.convolution_fields import MASS_FLOOR
from spectral_mf.fft import RealTransform

if TYPE_CHECKING:
    from spectral_mf.multi_head_attention import MultiHeadAttention

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


def paired(multipliers: ComplexArray, k: NDArray[np.int64]) -> FloatArray:
    """Real rows whose product with (Re c_k, Im c_k) is the sum of a_k c_k over k of both signs, a_{-k} = conj(a_k).

    Parameters
    ----------
    multipliers : ndarray of complex128, shape (..., n)
        a_k.
    k : ndarray of int64, shape (n,)
        Modes, >= 0.

    Returns
    -------
    ndarray of float64, shape (..., 2 n)
    """
    both = np.where(k == 0, 1.0, 2.0) * np.conj(multipliers)
    return np.ascontiguousarray(both).view(np.float64)


class HeadFields:
    """Velocities and densities of `MultiHeadAttention` on a grid (see `spectral_mf.model.GridFields`)."""

    def __init__(self, model: MultiHeadAttention, n_points: int, fold: int, n_densities: int) -> None:
        self._model = model
        self._made_from = (model, n_points, fold, n_densities)
        self._theta: FloatArray = 2.0 * np.pi / (fold * n_points) * np.arange(n_points, dtype=np.float64)
        k = fold * np.arange(n_points // 2 + 1)
        k = k[k <= model.bandwidth]
        rows = paired(model.terms(self._theta, k), k)
        self._shape = rows.shape[:-2]
        self._matrix = np.ascontiguousarray(rows.reshape(-1, rows.shape[-1]))
        self._transform = RealTransform(n_points, n_densities)
        self._spectrum = self._transform.spectrum
        self._seen = self._spectrum.view(np.float64)[:, : 2 * k.size]
        self._terms = np.empty((n_densities, self._matrix.shape[0]))
        self.density = self._transform.grid
        self.velocity = np.zeros((n_densities, n_points))
        self._quotient = np.empty_like(self.velocity)

    def evaluate(self, moments: ComplexArray) -> None:
        """Fill `velocity` and `density` from the moments c_{fold j}."""
        self._spectrum[...] = moments
        np.matmul(self._seen, self._matrix.T, out=self._terms)
        self._transform.backward()
        terms = self._terms.reshape(self._terms.shape[0], *self._shape, -1)
        if self._shape[1] == 1:
            self.velocity[...] = terms[:, 0, 0]
            return
        self.velocity[...] = 0.0
        for h in range(self._shape[0]):
            np.maximum(terms[:, h, 1], MASS_FLOOR, out=terms[:, h, 1])
            np.divide(terms[:, h, 0], terms[:, h, 1], out=self._quotient)
            self.velocity += self._quotient

    def dissipation(self) -> FloatArray:
        """Integral of V^2 dmu, or V^2 Z dmu with softmax: the rates at which the energies grow; nan without one."""
        if not self._model.has_energy:
            return np.full(self.velocity.shape[0], np.nan)
        rate = self.velocity**2 * self.density
        if self._shape[1] == 2:
            mass = self._terms.reshape(self.velocity.shape[0], *self._shape, -1)[:, 0, 1]
            rate *= mass * self._model.mean_kernel(self._theta)
        return np.asarray(rate.mean(axis=-1))

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans and views into their arrays are made anew, not copied."""
        return HeadFields, self._made_from
