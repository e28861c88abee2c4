"""What a sweep computes: a run file with a section [grid] that gives several values where a run has one."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spectral_mf
from spectral_mf.arguments import integer_at_least
from spectral_mf.config import RunConfig
from spectral_mf.errors import InputError
from spectral_mf.sweep.axes import NAMED_STATES, TOGETHER, Axis, read_axes

DEFAULT_MODES = 32
"""Largest mode stored unless the section [output] has store_modes."""

_RANDOM = ("uniform_tokens", "white_noise")


@dataclass(frozen=True)
class SweepPlan:
    """A grid of runs that share their output times.

    Attributes
    ----------
    sections : mapping
        The sections of a run file that all cases share.
    axes : tuple of Axis
        What is varied. Cases are numbered along the grid, the last axis fastest.
    folder : Path
        Where relative paths start.
    """

    sections: Mapping[str, Any]
    axes: tuple[Axis, ...]
    folder: Path

    @classmethod
    def from_toml(cls, path: str | Path) -> SweepPlan:
        """Read a sweep file; relative paths in it start from its folder.

        Raises
        ------
        InputError
            If the file cannot be read, or says something that is not allowed (see `from_sections`).
        """
        file = Path(os.path.expanduser(path))
        try:
            return cls.from_sections(tomllib.loads(file.read_text(encoding="utf-8")), folder=file.parent)
        except FileNotFoundError:
            raise InputError(f"sweep file {file} does not exist; check the name.") from None
        except OSError as error:
            raise InputError(f"sweep file {file} cannot be read: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not text"
            raise InputError(f"{file} is not a sweep file in TOML: {reason}.") from None

    @classmethod
    def from_sections(cls, sections: Mapping[str, Any], *, folder: Path | None = None) -> SweepPlan:
        """Check what a sweep file says.

        Names and kinds of all values are checked here. Whether a value is allowed is found out by its case, so that one
        bad value does not stop the others.

        Parameters
        ----------
        sections : mapping
            Those of a run file, `grid` (a mapping from keys to values for each section), `together` (a list of such
            mappings, whose keys change together) and `initials` (an initial state for each name).
        folder : Path, optional
            Where relative paths start; by default the current folder.

        Raises
        ------
        InputError
            If a key is unknown, an axis is empty, the end time is not allowed, or a random state has no seed.
        """
        rest = dict(sections)
        _refuse_unknown(rest)
        grid, states = (_table(rest, name) for name in ("grid", NAMED_STATES))
        together = rest.pop(TOGETHER, [])
        if not isinstance(together, list):
            raise InputError(f"{TOGETHER} = {together!r} is no list of tables; write keys below a line [[{TOGETHER}]].")
        for name in rest:
            _table(rest, name, keep=True)
        for where, table in [("grid", grid), *((TOGETHER, table) for table in together)]:
            for name in ("time", "output"):
                if isinstance(table, Mapping) and name in table:
                    raise InputError(f"{where}.{name} is not allowed: all cases share their rows; put it in [{name}].")
        for name, state in states.items():
            if not isinstance(state, Mapping):
                raise InputError(f"{NAMED_STATES}.{name} = {state!r} is not an initial state; write a table for it.")
        if states and rest.get("initial"):
            raise InputError(f"[initial] and [{NAMED_STATES}] exclude each other; put every state in [{NAMED_STATES}].")
        for key in _table(rest, "output", keep=True):
            if key != "store_modes":
                raise InputError(f"output.{key} has no place in a sweep file; only output.store_modes has.")
        plan = cls(rest, read_axes(grid, together, states), (folder or Path()).absolute())
        plan._check()
        return plan

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def n_cases(self) -> int:
        """Number of cases."""
        return math.prod(self.shape)

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """Output times of all cases; shape (n_times,)."""
        return self._config([0] * len(self.axes)).times()

    @property
    def n_modes(self) -> int:
        """Largest mode stored."""
        asked = self._config([0] * len(self.axes)).output.store_modes
        return DEFAULT_MODES if asked is None else integer_at_least("output.store_modes", asked, 1)

    def case(self, number: int) -> dict[str, Any]:
        """Sections of the run file of one case."""
        return self._sections(np.unravel_index(number, self.shape))

    def describe(self, number: int) -> str:
        """Where on the grid a case lies, in words."""
        place = np.unravel_index(number, self.shape)
        return ", ".join(f"{one.name} = {one.labels[i]}" for one, i in self._at(place))

    @cached_property
    def identity(self) -> str:
        """Everything that determines the results, as JSON; equal for equal sweeps."""
        everything = {
            "spectral_mf": spectral_mf.__version__,
            "sections": self.sections,
            "grid": [_stored(axis) for axis in self.axes],
            "token_files": {str(file): _digest(file) for file in self._token_files()},
        }
        return json.dumps(everything, default=str, sort_keys=True)

    def _token_files(self) -> list[Path]:
        named = [self.sections.get("initial", {}).get("tokens")]
        for axis in (one for first in self.axes for one in (first, *first.tied)):
            if axis.section == "initial" and axis.key in ("tokens", ""):
                named += [value if axis.key else value.get("tokens") for value in axis.values]
        return [self.folder / os.path.expanduser(name) for name in named if isinstance(name, str)]

    def _sections(self, place: Any) -> dict[str, Any]:
        merged = {name: dict(values) for name, values in self.sections.items()}
        for axis, i in self._at(place):
            value = axis.values[i]
            merged[axis.section] = {**merged.get(axis.section, {}), **(value if not axis.key else {axis.key: value})}
        initial = merged.get("initial", {})
        if isinstance(initial.get("tokens"), str):
            initial["tokens"] = str(self.folder / os.path.expanduser(initial["tokens"]))
        return merged

    def _at(self, place: Any) -> list[tuple[Axis, int]]:
        """All that varies, tied keys too, with the number of its value."""
        return [(one, int(i)) for axis, i in zip(self.axes, place, strict=True) for one in (axis, *axis.tied)]

    def _config(self, place: Any) -> RunConfig:
        return RunConfig.from_sections(self._sections(place))

    def _check(self) -> None:
        """Check every value of every axis once, the others at their first: a sum of checks, not a product."""
        self.times  # noqa: B018 - refuses an end time that is not allowed
        self.n_modes  # noqa: B018
        for number, axis in enumerate(self.axes):
            for i in range(len(axis.values)):
                place = [0] * len(self.axes)
                place[number] = i
                config = self._config(place)
                if config.kind != "density":
                    model = config.interaction
                    what = f"model.type = {model.type!r}" if model.has_positions else f"section [{config.kind}]"
                    raise InputError(f"{what} has no place in a sweep file; solve each run by itself.")
                initial = config.initial
                if initial.kind in _RANDOM and initial.seed is None:
                    raise InputError(
                        f"initial.{initial.kind} is random and has no seed, so no case could be repeated; "
                        "give initial.seed in [grid], or seed in [initial]."
                    )


def _refuse_unknown(sections: Mapping[str, Any]) -> None:
    known = [field.alias or name for name, field in RunConfig.model_fields.items()] + ["grid", NAMED_STATES, TOGETHER]
    for name in sections:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean [{near[0]}]?" if near else f"a sweep has {', '.join(f'[{one}]' for one in known)}."
            raise InputError(f"section [{name}] is not known; {hint}")


def _stored(axis: Axis) -> dict[str, Any]:
    """An axis for the plan's identity."""
    stored = {"section": axis.section, "key": axis.key, "values": axis.values, "labels": axis.labels}
    return stored | ({"tied": [_stored(one) for one in axis.tied]} if axis.tied else {})


def _table(sections: dict[str, Any], name: str, *, keep: bool = False) -> Mapping[str, Any]:
    """A section, taken out unless it is to be kept; empty if there is none."""
    table = sections.get(name, {})
    if not isinstance(table, Mapping):
        raise InputError(f"{name} = {table!r} is not a section; write its keys below a line [{name}].")
    if not keep:
        sections.pop(name, None)
    return table


def _digest(file: Path) -> str | None:
    """Fingerprint of a file's content; None if it cannot be read, which its cases will say."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
