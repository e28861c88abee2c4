"""The mean-field limit of transformer self-attention on the circle, solved in Fourier space.

∂ₜμ + ∂_θ(μ V[μ]) = κ ∂²_θ μ

Names are loaded when first used, so that importing the package is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Atoms": "spectral_mf.atoms",
    "AttentionHead": "spectral_mf.attention_head",
    "BrownianPath": "spectral_mf.brownian_path",
    "FourierDensity": "spectral_mf.fourier_density",
    "MultiHeadAttention": "spectral_mf.multi_head_attention",
    "PairPotential": "spectral_mf.pair_potential",
    "SelfAttention": "spectral_mf.self_attention",
    "PositionalAttention": "spectral_mf.positions",
    "PositionalTrajectory": "spectral_mf.positional_trajectory",
    "Trajectory": "spectral_mf.trajectory",
    "VectorFields": "spectral_mf.vector_fields",
    "SpectralMFError": "spectral_mf.errors",
    "InputError": "spectral_mf.errors",
    "StorageError": "spectral_mf.errors",
    "StoppedEarly": "spectral_mf.errors",
    "ResolutionExhausted": "spectral_mf.errors",
    "Diverged": "spectral_mf.errors",
    "solve": "spectral_mf.solvers",
    "resume": "spectral_mf.solvers",
    "solve_positions": "spectral_mf.solvers.positional",
    "solve_common_noise": "spectral_mf.solvers.common_noise",
}
_MODULES = ("data", "diagnostics", "plotting", "solvers", "storage", "sweep", "theory", "validation")

__all__ = [*_HOME, "__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"spectral_mf.{name}")
    else:
        raise AttributeError(f"module 'spectral_mf' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
