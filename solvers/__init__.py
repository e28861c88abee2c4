"""What moves a measure in time. Every method yields a `Snapshot` at each output time.

With noise, `stationary_state` finds densities that nothing moves, and `continue_branch` follows them in a parameter.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "solve": "spectral_mf.solvers.run",
    "resume": "spectral_mf.solvers.run",
    "solve_ensemble": "spectral_mf.solvers.ensemble",
    "solve_sweep": "spectral_mf.solvers.sweep",
    "solve_positions": "spectral_mf.solvers.positional",
    "solve_common_noise": "spectral_mf.solvers.common_noise",
    "solve_common_noise_ensemble": "spectral_mf.solvers.common_noise_ensemble",
    "stationary_state": "spectral_mf.solvers.stationary",
    "continue_branch": "spectral_mf.solvers.continuation",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'spectral_mf.solvers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
