"""What moves a measure in time. Every method yields a `Snapshot` at each output time."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "solve": "spectral_mf.solvers.run",
    "resume": "spectral_mf.solvers.run",
    "solve_sweep": "spectral_mf.solvers.sweep",
}

__all__ = ["resume", "solve", "solve_sweep"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'spectral_mf.solvers' has no attribute {name!r}")
