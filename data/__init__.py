"""Reference tables that ship with the package: values computed to many digits, against which solvers are checked.

- ``linear_theory``: growth rates on S^{d-1} (d = 2, 3, 8), dominant modes, thresholds.
- ``unstable_manifold``: coefficients of the unstable manifold's series at beta = 5, mode 3.
- ``case_A`` (SA), ``case_B`` (USA): moments and energy of one solution at beta = 5, from the linear phase through the
  collapse to the merging of clusters, with an error estimate a row.
- ``matrices_and_heads``: moments for general query-key and value matrices, a symmetric indefinite one, and two heads.
- ``cluster_outcomes``: which mode is first and how many clusters are seen, for 20,000 random starts at beta = 5 and 7.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["reference", "reference_names"]


def reference_names() -> tuple[str, ...]:
    """Names of the tables that `reference` reads."""
    files = resources.files(__package__).iterdir()
    return tuple(sorted(entry.name.removesuffix(".json") for entry in files if entry.name.endswith(".json")))


def reference(name: str) -> dict[str, Any]:
    """Read a reference table.

    Parameters
    ----------
    name : str
        One of `reference_names()`.

    Returns
    -------
    dict
        The table as it is in its JSON file, a fresh copy.

    Raises
    ------
    ValueError
        If there is no such table.
    """
    if name not in reference_names():
        raise ValueError(f"there is no reference table {name!r}; choose one of {', '.join(reference_names())}.")
    table: dict[str, Any] = json.loads(_text(name))
    return table


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
