"""Rotational symmetry of a measure, and how much of it a model keeps.

A measure has a fold: the largest m for which turning by 2 pi / m changes nothing. A model whose equation such a turn
does not change keeps it.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.measure import Measure

Symmetry = int | Literal["auto", "none"]

_SAME_PLACE = 1e-13
"""Atoms this close (radians) to where the symmetry wants them are there, but for rounding."""


def fold_of(measure: Measure, symmetry: Symmetry, turns: int = 0) -> int:
    """Return the m to be kept exactly in a run.

    Parameters
    ----------
    measure : Measure
        Initial state.
    symmetry : int, "auto" or "none"
        "auto" finds the largest m: the greatest common divisor of the modes that are not exactly zero, or for atoms
        the largest m that maps equal weights onto each other. "none" keeps none. A number is checked.
    turns : int
        The model's own symmetry (see `Model.turns`); 0 if it keeps any.

    Raises
    ------
    InputError
        If the measure lacks the symmetry asked for (the message names the mode that breaks it), or the model does.
    """
    if symmetry == "none":
        return 1
    if symmetry == "auto":
        return math.gcd(largest_fold(measure), turns)
    if isinstance(symmetry, bool) or not isinstance(symmetry, (int, np.integer)) or symmetry < 1:
        raise InputError(f'symmetry = {symmetry!r} is not allowed; give "auto", "none" or an integer >= 1.')
    if turns % symmetry != 0:
        kept = "keeps no symmetry" if turns == 1 else f"keeps symmetries of order {turns} only"
        raise InputError(f'symmetry = {symmetry} is not kept by the model, which {kept}; use symmetry = "auto".')
    if largest_fold(measure) % symmetry != 0 and not _is_uniform(measure):
        raise InputError(
            f"symmetry = {symmetry} asks for data on multiples of {symmetry}, but mode {_offending(measure, symmetry)} "
            'is not zero; use symmetry = "auto" or remove that mode.'
        )
    return int(symmetry)


def largest_fold(measure: Measure) -> int:
    """Largest m with exact 2 pi / m periodicity; 1 for the uniform density, which has every symmetry."""
    if isinstance(measure, FourierDensity):
        return max(1, math.gcd(*(int(k) for k in _active(measure))))
    if isinstance(measure, Atoms):
        return _largest_atom_fold(measure)
    return int(getattr(measure, "fold", 1))


def _active(density: FourierDensity) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.flatnonzero(density.moments(density.n_modes)[1:]) + 1


def _is_uniform(measure: Measure) -> bool:
    return isinstance(measure, FourierDensity) and _active(measure).size == 0


def _offending(measure: Measure, fold: int) -> int:
    """First mode that is not a multiple of `fold` and not zero."""
    n = measure.n_modes if isinstance(measure, FourierDensity) else 64
    sizes = np.abs(measure.moments(n))
    sizes[::fold] = 0.0
    broken = np.flatnonzero(sizes > (0.0 if isinstance(measure, FourierDensity) else _SAME_PLACE))
    return int(broken[0]) if broken.size else 1


def _largest_atom_fold(atoms: Atoms) -> int:
    """Largest m for which sorted atoms repeat, with their weights, after a turn by 2 pi / m."""
    order = np.argsort(atoms.angles)
    angles, weights = atoms.angles[order], atoms.weights[order]
    n = angles.size
    for m in (m for m in range(n, 1, -1) if n % m == 0):
        shift = n // m
        step = (np.roll(angles, -shift) - angles - TWO_PI / m + np.pi) % TWO_PI - np.pi
        same_weight = np.abs(np.roll(weights, -shift) - weights) <= 1e-14 * weights.max()
        if np.abs(step).max() < _SAME_PLACE and same_weight.all():
            return m
    return 1
