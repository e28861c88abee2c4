"""What is known of the equation without solving it: linear stability, the unstable manifold, exit times.

- `growth_rate`, `dominant_mode`, `threshold`: linear theory about the uniform measure, on spheres of any dimension.
- `spectrum`: linear stability of any density, under any model.
- `unstable_manifold`: the quasi-linear phase as a power series.
- `linear_exit_time`, `exit_time`: when the linear phase ends, for given data and for random tokens.
- `critical_noise`, `stabilising_noise`, `selection_noise`, `cubic_coefficient`, `tricritical_beta`: the noise that the
  uniform density needs, and how it gives way with less.
- `free_energy`, `free_energy_rate`, `dissipation`, `entropy`: what falls with noise.
"""

from __future__ import annotations

from spectral_mf.critical_noise import (
    critical_noise,
    cubic_coefficient,
    selection_noise,
    stabilising_noise,
    tricritical_beta,
)
from spectral_mf.exit_statistics import ExitTime, exit_time, linear_exit_time
from spectral_mf.free_energy import dissipation, entropy, free_energy, free_energy_rate
from spectral_mf.growth_rates import DominantMode, dominant_mode, growth_rate, threshold
from spectral_mf.spectrum import Spectrum, spectrum
from spectral_mf.unstable_manifold import UnstableManifold, unstable_manifold

__all__ = [
    "DominantMode",
    "ExitTime",
    "Spectrum",
    "UnstableManifold",
    "critical_noise",
    "cubic_coefficient",
    "dissipation",
    "dominant_mode",
    "entropy",
    "exit_time",
    "free_energy",
    "free_energy_rate",
    "growth_rate",
    "linear_exit_time",
    "selection_noise",
    "spectrum",
    "stabilising_noise",
    "threshold",
    "tricritical_beta",
    "unstable_manifold",
]
