"""Values of a run file or an option, which may be written as text: `1e-8`, `"3:0.01,2:0.003+0.001j"`.

Each function returns the value, or raises ValueError with what the value "is not", to be put behind it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def number(value: Any) -> float:
    """Float from a number or its text."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            pass
    raise ValueError("is not a number")


def finite_number(value: Any) -> float:
    """Float from a number or its text, neither infinite nor NaN."""
    try:
        given = number(value)
    except ValueError:
        given = math.nan
    if not math.isfinite(given):
        raise ValueError("is not a finite number")
    return given


def integer(value: Any) -> int:
    """Integer from a number or its text; 1e4 is one, 0.5 is not."""
    try:
        return int(value) if isinstance(value, str) else _whole(value)
    except ValueError:
        pass
    try:
        return _whole(number(value))
    except (ValueError, OverflowError):
        raise ValueError("is not an integer") from None


def path(value: Any) -> Path:
    """Path from its text."""
    if isinstance(value, Path) or (isinstance(value, str) and value.strip()):
        return Path(value)
    raise ValueError("is not a path")


def switch(value: Any) -> bool:
    """True or false, not as text."""
    if isinstance(value, bool):
        return value
    raise ValueError("is neither true nor false")


def integer_or_word(value: Any) -> int | str:
    """An integer, or a word ("auto", "none")."""
    if isinstance(value, str) and value.isalpha():
        return value
    try:
        return integer(value)
    except ValueError:
        raise ValueError('is neither an integer nor "auto" nor "none"') from None


def kappa_and_mean(value: Any) -> tuple[float, float]:
    """Concentration and mean angle from "4", "4,1.5", 4.0 or [4.0, 1.5]; the mean is 0 unless given."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    if len(parts) in (1, 2):
        try:
            return number(parts[0]), number(parts[-1]) if len(parts) == 2 else 0.0
        except ValueError:
            pass
    raise ValueError("is not a concentration, or a concentration and a mean angle such as 4,1.5")


def centre_and_width(value: Any) -> tuple[float, float]:
    """Centre and width of a window from "0.3,0.05" or [0.3, 0.05]."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, (list, tuple)) and len(parts) == 2:
        try:
            return number(parts[0]), number(parts[1])
        except ValueError:
            pass
    raise ValueError("is not a centre and a width; write them like [0.3, 0.05]")


def row_of_numbers(value: Any) -> list[float]:
    """Row of numbers from "0,0.5,0.1" or a list."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, (list, tuple)) and parts:
        try:
            return [number(part) for part in parts]
        except ValueError:
            pass
    raise ValueError("is not a row of numbers; write it like 0,0.5,0.1")


def rows_of_complex(value: Any) -> list[list[complex]]:
    """Rows of complex numbers, all of one length, from a list of lists such as [[0, "0.5j"], [0, 0.5]]."""
    if isinstance(value, (list, tuple)) and value and all(isinstance(row, (list, tuple)) and row for row in value):
        try:
            rows = [[_complex(entry) for entry in row] for row in value]
        except (ValueError, TypeError):
            rows = []
        if len({len(row) for row in rows}) == 1:
            return rows
    raise ValueError(
        'is not a list of rows of complex numbers, all of one length; write it like [[0, "0.5j"], [0, 0.5]]'
    )


def list_of_heads(value: Any) -> list[Any]:
    """Heads from a list of tables, or from JSON."""
    try:
        given = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        given = None
    given = [given] if isinstance(given, Mapping) else given
    if isinstance(given, (list, tuple)) and all(isinstance(head, Mapping) for head in given):
        return list(given)
    raise ValueError(
        'is not a list of heads; write [{"query_key": [[1, 0], [0, 1]], "value": [[1, 0], [0, 1]], "beta": 2}], or '
        "tables [[model.heads]] in a run file"
    )


def complex_by_mode(value: Any) -> dict[int, complex]:
    """Moments c_k by k, from "3:0.01,2:0.003+0.001j" or a table such as {3 = 0.01, 2 = "0.003+0.001j"}."""
    pairs: list[tuple[Any, ...]] = []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, str) and value.strip():
        pairs = [tuple(pair.split(":")) for pair in value.split(",")]
    if not pairs:
        raise ValueError("names no mode; give moments c_k by k, such as 3:0.01,2:0.003+0.001j")
    modes: dict[int, complex] = {}
    for pair in pairs:
        k, moment = _mode(pair)
        if k in modes:
            raise ValueError(f"gives mode {k} twice")
        modes[k] = moment
    return modes


def _mode(pair: tuple[Any, ...]) -> tuple[int, complex]:
    try:
        k, moment = pair
        return integer(k), _complex(moment)
    except (ValueError, TypeError):
        written = ":".join(str(part) for part in pair)
        raise ValueError(f"has {written!r}, which is not mode:moment; write it like 3:0.01,2:0.003+0.001j") from None


def _complex(value: Any) -> complex:
    if isinstance(value, bool):
        raise ValueError
    return complex(value.replace(" ", "") if isinstance(value, str) else value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise ValueError
    return int(value)
