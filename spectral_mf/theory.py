"""What is known of the equation without solving it: linear stability, the unstable manifold, exit times.

- `growth_rate`, `dominant_mode`, `threshold`: linear theory about the uniform measure, on spheres of any dimension.
- `spectrum`: linear stability of any density, under any model.
- `unstable_manifold`: the quasi-linear phase as a power series.
- `linear_exit_time`, `exit_time`: when the linear phase ends, for given data and for random tokens.
"""

from __future__ import annotations

from spectral_mf.exit_statistics import ExitTime, exit_time, linear_exit_time
from spectral_mf.growth_rates import DominantMode, dominant_mode, growth_rate, threshold
from spectral_mf.spectrum import Spectrum, spectrum
from spectral_mf.unstable_manifold import UnstableManifold, unstable_manifold

__all__ = [
    "DominantMode",
    "ExitTime",
    "Spectrum",
    "UnstableManifold",
    "dominant_mode",
    "exit_time",
    "growth_rate",
    "linear_exit_time",
    "spectrum",
    "threshold",
    "unstable_manifold",
]
