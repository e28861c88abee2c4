"""Clusters and coarsening of a solution: what there is, what merges when, and the energy's staircase.

from spectral_mf import diagnostics

history = diagnostics.clusters(trajectory)
staircase = diagnostics.energy_staircase(trajectory, history=history)
"""

from __future__ import annotations

from spectral_mf.cluster_history import ClusterHistory, ClusterTrack, Lifetime, Merger, clusters
from spectral_mf.clusters import Clusters
from spectral_mf.density_peaks import default_resolution, find_clusters
from spectral_mf.energy_staircase import EnergyJump, EnergyStaircase, StaircaseCurve, energy_staircase

__all__ = [
    "ClusterHistory",
    "ClusterTrack",
    "Clusters",
    "EnergyJump",
    "EnergyStaircase",
    "Lifetime",
    "Merger",
    "StaircaseCurve",
    "clusters",
    "default_resolution",
    "energy_staircase",
    "find_clusters",
]
