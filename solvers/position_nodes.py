"""How many nodes in the position a run needs: as many as it takes for the last coefficients in s to be negligible.

The densities at the start tell the grading: s^{5/2} is a polynomial in √s, and no short one in s. On the way more
nodes of the same grading are taken when the tail grows; polynomials on fewer nodes are polynomials on more, so nothing
is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_mf.arguments import integer_at_least
from spectral_mf.errors import InputError, StoppedEarly
from spectral_mf.position_grid import MOST_NODES, PositionGrid

ComplexArray = NDArray[np.complex128]

SIZES = (32, 64, 128, 256)
GRADINGS = (1, 2, 3, 4)

TAIL_SHARE = 0.1
"""The tail in s may reach this share of the error allowed a step."""

TAIL_FLOOR = 1e-12
"""Smallest tail, relative to the perturbation, that is told from rounding."""


@dataclass(frozen=True)
class NodeChoice:
    """Which grids in s are allowed, and what tail.

    Attributes
    ----------
    n_positions : int or None
        A number of nodes to be kept, whatever the tail; None for as many as needed.
    grading : int or None
        None for the grading that needs the fewest nodes, or 1 if the number of nodes is given.
    rtol : float
        Error allowed a step.
    """

    n_positions: int | None
    grading: int | None
    rtol: float

    def first(self, moments: Callable[[PositionGrid], ComplexArray]) -> tuple[PositionGrid, ComplexArray]:
        """The first grid that resolves the start, and the moments c_0 .. c_K there, shape (S, K + 1).

        Raises
        ------
        InputError
            If no grid does.
        """
        if self.n_positions is not None:
            wanted = integer_at_least("n_positions", self.n_positions, 1)
            if wanted > MOST_NODES:
                raise InputError(f"n_positions = {wanted} is too many; give at most {MOST_NODES}.")
            grid = PositionGrid(wanted, 1 if self.grading is None else self.grading)
            return grid, moments(grid)
        least = np.inf
        for size in SIZES:
            for grading in GRADINGS if self.grading is None else (self.grading,):
                grid = PositionGrid(size, grading)
                start = moments(grid)
                tail = grid.tail(start[:, 1:])
                if tail <= self._allowed:
                    return grid, start
                least = min(least, tail)
        raise InputError(
            f"the initial densities depend so sharply on the position that {SIZES[-1]} nodes leave {least:.1e} of them "
            "unresolved; make them smoother in s, or give n_positions to go on with that many nodes."
        )

    def finer(self, grid: PositionGrid, moments: ComplexArray, t: float) -> PositionGrid | None:
        """The next larger grid if moments (S, K + 1) need it; None if they do not.

        Raises
        ------
        StoppedEarly
            If there is none.
        """
        if self.n_positions is not None:
            return None
        tail = grid.tail(moments[:, 1:])
        if tail <= self._allowed:
            return None
        for size in SIZES:
            if size > grid.n_nodes:
                return PositionGrid(size, grid.grading)
        raise StoppedEarly(
            f"at t = {t:.6g} the densities depend so sharply on the position that {SIZES[-1]} nodes leave {tail:.1e} "
            "of them unresolved; end the run earlier, or give n_positions to go on with that many nodes.",
            t,
        )

    @property
    def _allowed(self) -> float:
        return max(TAIL_SHARE * self.rtol, TAIL_FLOOR)
