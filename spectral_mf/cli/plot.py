"""`spectral-mf plot`: a picture of a run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectral_mf.cli.options import RunFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_mf.trajectory import Trajectory


class Kind(StrEnum):
    """What is shown."""

    OVERVIEW = "overview"
    DENSITY = "density"
    MOMENTS = "moments"
    RATES = "rates"
    ENERGY = "energy"
    CHARACTERISTICS = "characteristics"
    CLUSTERS = "clusters"
    STAIRCASE = "staircase"


def plot(
    file: RunFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Picture, .png, .svg or .pdf (default: FILE with .png)."),
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option(
            metavar="NAME",
            help="overview, density, moments, rates, energy, characteristics, clusters (tree of mergers) or staircase "
            "(of the energy).",
        ),
    ] = Kind.OVERVIEW,
) -> None:
    """Draw a picture of a run; an existing picture is replaced."""
    from spectral_mf.plotting import save_figure
    from spectral_mf.storage import load_run

    trajectory = load_run(file)
    picture = output or file.with_suffix(".png" if kind is Kind.OVERVIEW else f".{kind}.png")
    save_figure(draw(trajectory, kind), picture)
    print(picture)


def draw(trajectory: Trajectory, kind: Kind) -> Figure:
    """Make the figure of one kind."""
    from spectral_mf import pictures

    return pictures.draw(trajectory, kind)
