"""The axes of a sweep: what is varied, and the values that it takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.arguments import finite_number, integer_at_least, positive_number
from spectral_mf.errors import InputError

NAMED_STATES = "initials"
"""Section with a table for each named initial state."""

_MOST_VALUES = 10_000_000


@dataclass(frozen=True)
class Axis:
    """One direction of the grid.

    Attributes
    ----------
    section, key : str
        Where a run file has the value; the key is empty for named initial states, which fill the whole section.
    values : tuple
        As a run file would have them; for named initial states the tables.
    labels : tuple
        What the file of the sweep calls the values: the values themselves, the names of initial states, or the JSON of
        what is no number.
    """

    section: str
    key: str
    values: tuple[Any, ...]
    labels: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Name of the dimension."""
        return self.key or self.section

    @property
    def coordinate(self) -> NDArray[Any]:
        """Labels as an array: of integers or floats if they are numbers, else of text; shape (n,)."""
        if all(isinstance(label, int) for label in self.labels):
            return np.array(self.labels, dtype=np.int64)
        if all(isinstance(label, (int, float)) for label in self.labels):
            return np.array(self.labels, dtype=np.float64)
        return np.array([str(label) for label in self.labels], dtype=object)


def read_axes(grid: Mapping[str, Any], states: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Make the axes of a section [grid] and of the named initial states.

    Parameters
    ----------
    grid : mapping
        A mapping from keys to values for each section of a run file.
    states : mapping
        A table for each named initial state.

    Raises
    ------
    InputError
        If there is nothing to vary, or an axis is empty, has a value twice, or is not written as one.
    """
    axes = []
    for section, keys in grid.items():
        if not isinstance(keys, Mapping):
            raise InputError(f"grid.{section} names no section; write the key with its section, as in model.beta.")
        axes += [_axis(section, key, asked) for key, asked in keys.items()]
    if states:
        axes.append(Axis("initial", "", tuple(states.values()), tuple(states)))
    if not axes:
        raise InputError("the grid is empty; give values for a key in the section [grid], as in model.beta = [1, 5].")
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1 or name in ("time", "mode"):
            raise InputError(f"two dimensions of the sweep would be called {name}; leave one of them out of [grid].")
    return tuple(axes)


def _axis(section: str, key: str, asked: Any) -> Axis:
    name = f"grid.{section}.{key}"
    if isinstance(asked, Mapping):
        values: Sequence[Any] = _spaced(name, asked)
    elif isinstance(asked, list):
        values = asked
    else:
        raise InputError(f"{name} = {asked!r} is not a row of values; give a list, or start, stop and count.")
    if not values:
        raise InputError(f"{name} is empty: the sweep would have no case; give at least one value.")
    labels = [value if _is_plain(value) else json.dumps(value) for value in values]
    for i, label in enumerate(labels):
        if label in labels[:i]:
            raise InputError(f"{name} has {label} twice; give each value once.")
    return Axis(section, key, tuple(values), tuple(labels))


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def _spaced(name: str, asked: Mapping[str, Any]) -> list[Any]:
    """Values from `start` to `stop`, both among them; integers where all of them are."""
    known = {"start", "stop", "count", "spacing"}
    for key in asked:
        if key not in known:
            raise InputError(f"{name}.{key} is not known; a range has start, stop, count and, if wanted, spacing.")
    for key in ("start", "stop", "count"):
        if key not in asked:
            raise InputError(f"{name}.{key} is missing; give start, stop and count, or a list of values.")
    count = integer_at_least(f"{name}.count", asked["count"], 1)
    if count > _MOST_VALUES:
        raise InputError(f"{name}.count = {count} is too large; give at most {_MOST_VALUES}.")
    ends = [finite_number(f"{name}.{key}", asked[key]) for key in ("start", "stop")]
    spacing = asked.get("spacing", "linear")
    if spacing == "log":
        low, high = (positive_number(f"{name}.{key}", asked[key]) for key in ("start", "stop"))
        return [float(value) for value in np.geomspace(low, high, count)]
    if spacing != "linear":
        raise InputError(f'{name}.spacing = {spacing!r} is not known; choose "linear" or "log".')
    # Exact arithmetic, rounded once: the hundredth step of 0.05 is 5.0, and `sel(beta=5.0)` finds it.
    first, last = (Fraction(Decimal(repr(end))) for end in ends)
    exact = [first + (last - first) * i / max(1, count - 1) for i in range(count)]
    if all(isinstance(asked[key], int) for key in ("start", "stop")) and all(x.denominator == 1 for x in exact):
        return [int(value) for value in exact]
    return [float(value) for value in exact]
