"""All pictures of a run by name, for `Trajectory.plot` and `spectral-mf plot`."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from spectral_mf.cluster_plots import plot_characteristics, plot_cluster_tree, plot_energy_staircase
from spectral_mf.errors import InputError
from spectral_mf.plotting import plot_density, plot_energy, plot_growth_rates, plot_moments, plot_overview
from spectral_mf.trajectory import Trajectory

PICTURES: dict[str, Callable[[Trajectory], Figure]] = {
    "overview": plot_overview,
    "density": plot_density,
    "moments": plot_moments,
    "rates": lambda trajectory: plot_growth_rates(trajectory.model),
    "energy": plot_energy,
    "characteristics": plot_characteristics,
    "clusters": plot_cluster_tree,
    "staircase": plot_energy_staircase,
}


def draw(trajectory: Trajectory, picture: str) -> Figure:
    """Make one picture of a run.

    Raises
    ------
    InputError
        If there is no such picture, or it cannot be made from this run.
    """
    if picture not in PICTURES:
        raise InputError(f"there is no picture {picture!r}; choose one of {', '.join(PICTURES)}.")
    return PICTURES[picture](trajectory)
