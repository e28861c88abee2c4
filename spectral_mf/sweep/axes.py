"""The axes of a sweep: what is varied, and the values that it takes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.arguments import finite_number, integer_at_least, positive_number
from spectral_mf.errors import InputError
from spectral_mf.wording import counted

NAMED_STATES = "initials"
"""Section with a table for each named initial state."""

TOGETHER = "together"
"""Tables of keys that change together: one axis each."""

MOST_CASES = 1_000_000
"""Largest number of cases: the process that keeps the results has an entry of its index for each."""


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
    tied : tuple of Axis
        Keys that change together with this one: they have as many values, and make no dimension of their own.
    """

    section: str
    key: str
    values: tuple[Any, ...]
    labels: tuple[Any, ...]
    tied: tuple[Axis, ...] = ()

    @property
    def name(self) -> str:
        """Name of the dimension."""
        return self.key or self.section

    @property
    def coordinate(self) -> NDArray[Any]:
        """Labels as an array: of integers or floats if they are numbers, else of text; shape (n,)."""
        if all(isinstance(label, int) and abs(label) < 2**63 for label in self.labels):
            return np.array(self.labels, dtype=np.int64)
        if all(isinstance(label, (int, float)) for label in self.labels):
            return np.array(self.labels, dtype=np.float64)
        return np.array([str(label) for label in self.labels], dtype=object)


def read_axes(grid: Mapping[str, Any], together: Sequence[Any], states: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Make the axes of a section [grid], of the tables [[together]] and of the named initial states, in this order.

    Parameters
    ----------
    grid : mapping
        A mapping from keys to values for each section of a run file.
    together : sequence of mappings
        Tables like `grid`, whose keys change together: the first one makes the axis, the others are tied to it.
    states : mapping
        A table for each named initial state.

    Raises
    ------
    InputError
        If there is nothing to vary, or an axis is empty, has a value twice, or is not written as one; or if keys that
        change together are fewer than two, or have unequal numbers of values.
    """
    axes = [_axis("grid", section, key, asked) for section, key, asked in _keys("grid", grid)]
    axes += [_tied(table) for table in together]
    if states:
        axes.append(Axis("initial", "", tuple(states.values()), tuple(states)))
    if not axes:
        raise InputError("the grid is empty; give values for a key in the section [grid], as in model.beta = [1, 5].")
    names = [one.name for axis in axes for one in (axis, *axis.tied)]
    for name in names:
        if names.count(name) > 1 or name in ("time", "mode"):
            raise InputError(f"two dimensions of the sweep would be called {name}; leave one of them out.")
    n_cases = math.prod(len(axis.values) for axis in axes)
    if n_cases > MOST_CASES:
        raise InputError(
            f"the grid has {n_cases} cases ({' x '.join(f'{len(axis.values)} of {axis.name}' for axis in axes)}); a "
            f"sweep has at most {MOST_CASES}: split it along an axis into several."
        )
    return tuple(axes)


def _keys(where: str, table: Any) -> list[tuple[str, str, Any]]:
    """Section, key and values of all keys of a table."""
    if not isinstance(table, Mapping):
        raise InputError(f"{where} = {table!r} is no table of keys; write them below a line [[{where}]].")
    for section, keys in table.items():
        if not isinstance(keys, Mapping):
            raise InputError(f"{where}.{section} names no section; write the key with its section, as in model.beta.")
    return [(section, key, asked) for section, keys in table.items() for key, asked in keys.items()]


def _tied(table: Any) -> Axis:
    """One axis of keys that change together."""
    keys = _keys(TOGETHER, table)
    if len(keys) < 2:
        raise InputError(f"a table [[{TOGETHER}]] has fewer than two keys; a key that changes alone belongs in [grid].")
    first, *rest = (_axis(TOGETHER, *key, distinct=i == 0) for i, key in enumerate(keys))
    for other in rest:
        if len(other.values) != len(first.values):
            raise InputError(
                f"{TOGETHER}.{other.section}.{other.key} has {counted(len(other.values), 'values')} and "
                f"{TOGETHER}.{first.section}.{first.key} {len(first.values)}; they change together, so give as many."
            )
    return replace(first, tied=tuple(rest))


def _axis(where: str, section: str, key: str, asked: Any, *, distinct: bool = True) -> Axis:
    name = f"{where}.{section}.{key}"
    if isinstance(asked, Mapping):
        values: Sequence[Any] = _spaced(name, asked)
    elif isinstance(asked, (list, tuple, range)):
        values = list(asked)
    elif isinstance(asked, np.ndarray) and asked.ndim == 1:
        values = asked.tolist()
    else:
        raise InputError(f"{name} = {asked!r} is not a row of values; give a list, or start, stop and count.")
    if not values:
        raise InputError(f"{name} is empty: the sweep would have no case; give at least one value.")
    labels = [value if _is_plain(value) else json.dumps(value, default=str) for value in values]
    seen = set()
    for label in labels:
        if distinct and label in seen:
            raise InputError(f"{name} has {label} twice; give each value once.")
        seen.add(label)
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
    if count > MOST_CASES:
        raise InputError(f"{name}.count = {count} is too large: a sweep has at most {MOST_CASES} cases; split it.")
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
