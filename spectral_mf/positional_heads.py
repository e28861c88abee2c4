"""Positions with a query-key matrix: V_s(θ) = ⟨e_θ, ∫ G(s, s') ∫ e^{β ⟨x, B y⟩} y dμ_{s'}(φ) ds'⟩.

The score does not know the positions, so a position sees one density, the mean of those before it: its moments are
averaged over positions first, and the head's kernels do the rest.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.errors import InputError
from spectral_mf.fft import RealTransform
from spectral_mf.head_fields import HeadFields
from spectral_mf.multi_head_attention import MultiHeadAttention
from spectral_mf.position_grid import PositionGrid
from spectral_mf.positions import PositionalAttention, PositionalSystem, SystemOnNodes

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


class PositionalHeadSystem(SystemOnNodes):
    """A positional model with a query-key matrix on the nodes of a grid (see `PositionalSystem`).

    Parameters
    ----------
    model : PositionalAttention
    grid : PositionGrid
    """

    @cached_property
    def turning(self) -> FloatArray:
        """Rotation that is kept apart: none; shape (S,)."""
        return np.zeros(self.grid.n_nodes)

    @cached_property
    def means(self) -> FloatArray:
        """What a position sees of functions at all nodes; shape (S, S)."""
        model = self.model
        means = self.grid.averages(causal=model.causal, decay=model.decay, frequencies=[0.0])[0]
        return np.ascontiguousarray(means.real)

    def linear_operator(self, k: int) -> ComplexArray:
        """Refuse: the uniform density need not be stationary, and modes do not grow each by itself.

        Raises
        ------
        InputError
        """
        raise InputError(
            "with a query_key, modes of a perturbed uniform density do not grow each by itself; solve the model "
            "nonlinearly, with solve_positions."
        )

    def grid_fields(self, n_points: int, fold: int = 1, n_densities: int = 1) -> PositionalHeadFields:
        """Make an evaluator of velocities and densities at all nodes, on `n_points` points of 2 pi / fold."""
        if n_densities != self.grid.n_nodes:
            raise InputError(f"{n_densities} densities for {self.grid.n_nodes} positions; give one for each.")
        return PositionalHeadFields(self, n_points, fold)


class PositionalHeadFields(HeadFields):
    """Velocities and densities on a grid, a row for each node (see `spectral_mf.model.GridFields`)."""

    def __init__(self, system: PositionalHeadSystem, n_points: int, fold: int) -> None:
        head = system.model.attention
        assert isinstance(head, MultiHeadAttention)
        n_nodes = system.grid.n_nodes
        super().__init__(head, n_points, fold, n_nodes)
        self._system_and_grid = (system, n_points, fold)
        self._means = system.means
        self._seen_moments = np.zeros((n_nodes, n_points // 2 + 1), dtype=np.complex128)
        self._softmax = head.normalization == "softmax"
        self._own = RealTransform(n_points, n_nodes)
        self.density = self._own.grid

    def evaluate(self, moments: ComplexArray) -> None:
        """Fill `velocity` and `density` from the moments c_{fold j} at all nodes."""
        own = np.ascontiguousarray(moments)
        np.matmul(self._means, own.view(np.float64), out=self._seen_moments.view(np.float64))
        super().evaluate(self._seen_moments)
        self._own.spectrum[...] = moments
        self._own.backward()

    @property
    def mass(self) -> FloatArray | None:
        """The softmax's denominator at each node and point, relative to the uniform density's; None without it."""
        return self._terms.reshape(*self.velocity.shape[:1], 2, -1)[:, 1] if self._softmax else None

    def dissipation(self) -> FloatArray:
        """Mean squared speed at each node; this is no gradient flow of an energy."""
        return np.asarray((self.velocity**2 * self.density).mean(axis=-1))

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans and views into their arrays are made anew, not copied."""
        return PositionalHeadFields, self._system_and_grid


AnyPositionalSystem = PositionalSystem | PositionalHeadSystem


def positional_system(model: PositionalAttention, grid: PositionGrid) -> AnyPositionalSystem:
    """The model on the nodes of a grid: by transforms where the score depends on differences of angles only."""
    return PositionalHeadSystem(model, grid) if model.has_matrix else PositionalSystem(model, grid)
