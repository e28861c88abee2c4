"""The table of claims: what the literature says, where, and what has to be measured for it to hold.

The claims are in `data/claims.toml`, with their parameters in two sizes: quick (all of them in two minutes) and full
(in an hour). What is measured for a claim is a function in `spectral_mf.validation.checks`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any, Literal

from spectral_mf.errors import InputError
from spectral_mf.validation.findings import Finding

Size = Literal["quick", "full"]


class Parameters:
    """Parameters of a claim in one size, as attributes."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"the claim has no parameter {name!r}") from None

    def to_dict(self) -> dict[str, Any]:
        """A copy as a plain mapping."""
        return dict(self._values)


Check = Callable[[Parameters], Finding]


@dataclass(frozen=True)
class Claim:
    """A statement of the literature that can be measured.

    Attributes
    ----------
    id : str
        Its name on the command line and in files.
    title : str
    group : str
        The part of the theory that it belongs to.
    paper, place : str
        Where it is stated.
    statement : str
        What is predicted, with its formula.
    acceptance : str
        What the measured values have to satisfy: a tolerance, or a confidence level.
    check : str
        "module.function" in `spectral_mf.validation.checks`.
    quick, full : mapping
        Parameters in the two sizes.
    """

    id: str
    title: str
    group: str
    paper: str
    place: str
    statement: str
    acceptance: str
    check: str
    quick: Mapping[str, Any]
    full: Mapping[str, Any]

    def parameters(self, size: Size) -> Parameters:
        """Parameters in one size."""
        return Parameters(self.quick if size == "quick" else self.full)

    def measure(self, size: Size) -> Finding:
        """Do what has to be done to see whether the claim holds."""
        module, name = self.check.split(".")
        check: Check = getattr(import_module(f"spectral_mf.validation.checks.{module}"), name)
        return check(self.parameters(size))


@cache
def all_claims() -> tuple[Claim, ...]:
    """Every claim, in the order of the table."""
    table = _table()
    return tuple(_claim(entry) for entry in table["claim"])


@cache
def papers() -> Mapping[str, str]:
    """Authors and titles by the keys that claims cite."""
    return dict(_table()["papers"])


def chosen_claims(names: Sequence[str] = ()) -> tuple[Claim, ...]:
    """Claims by name, in the order of the table; all of them if no name is given.

    Raises
    ------
    InputError
        If there is no claim of a name; the known ones are listed.
    """
    known = {claim.id: claim for claim in all_claims()}
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise InputError(f"there is no claim {name!r}{hint}; choose from {', '.join(known)}.")
    return tuple(claim for claim in known.values() if not names or claim.id in names)


def _table() -> dict[str, Any]:
    text = resources.files("spectral_mf.data").joinpath("claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _claim(entry: Mapping[str, Any]) -> Claim:
    words = ("id", "title", "group", "paper", "place", "statement", "acceptance", "check")
    common = entry.get("parameters", {})
    return Claim(
        **{word: str(entry[word]) for word in words},
        quick={**common, **entry.get("quick", {})},
        full={**common, **entry.get("full", {})},
    )
