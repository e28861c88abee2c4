"""Densities that are negative somewhere: refused at the door, unless by no more than a solver's error explains.

Modes do not keep a density positive: what a run of tolerance rtol hands on may be negative by its error.
"""

from __future__ import annotations

from spectral_mf.fourier_density import FourierDensity
from spectral_mf.measure import Measure
from spectral_mf.solvers.spectral import TAIL_SHARE


def negative_by_error(density: FourierDensity, rtol: float) -> float:
    """How far below zero, relative to uniform, a density may be that the spectral solver has reached.

    That is the error of the first moments, and of each moment the tail that is allowed.
    """
    return (10.0 + 2.0 * TAIL_SHARE * density.n_modes) * rtol


def check_positive(initial: Measure, rtol: float) -> None:
    """Refuse a density that is negative beyond what an earlier run of this tolerance explains.

    Raises
    ------
    InputError
        With the angle where the density is most negative.
    """
    if isinstance(initial, FourierDensity):
        initial.require_positive(negative=negative_by_error(initial, rtol))
