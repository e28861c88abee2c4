"""`spectral-mf plot`: a picture of a run."""

from __future__ import annotations

import difflib
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectral_mf.cli.options import RunFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_mf.cli.carrying_out import AnyTrajectory


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
    ORDER = "order"
    MEAN = "mean"


def plot(
    file: RunFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Picture, .png, .svg or .pdf (default: FILE with .png)."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="overview (default), density, moments, rates, energy, characteristics, clusters (tree of mergers) or "
            "staircase (of the energy); with positions overview, density, order, moments or mean; may be given "
            "repeatedly.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw pictures of a run, all or none; an existing picture is replaced."""
    from spectral_mf.errors import InputError
    from spectral_mf.plotting import save_figures

    kinds = list(dict.fromkeys(map(_known, kind or [Kind.OVERVIEW])))
    if output is not None and len(kinds) > 1:
        raise InputError(f"--output {output} names one picture, --kind {len(kinds)} of them; leave out --output.")
    trajectory = _loaded(file)
    places = [output or file.with_suffix(".png" if each is Kind.OVERVIEW else f".{each}.png") for each in kinds]
    save_figures([(draw(trajectory, each), place) for each, place in zip(kinds, places, strict=True)])
    for place in places:
        print(place)


def _known(name: str) -> Kind:
    """The kind of this name, or InputError."""
    from spectral_mf.errors import InputError

    try:
        return Kind(name)
    except ValueError:
        near = difflib.get_close_matches(name, list(Kind), n=1)
        advice = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(Kind)}."
        raise InputError(f"--kind = {name!r} is not known; {advice}") from None


def _loaded(file: Path) -> AnyTrajectory:
    """The run of a file, with or without positions."""
    from spectral_mf.storage import load_run
    from spectral_mf.storage.positional import has_positions, load_positional

    return load_positional(file) if has_positions(file) else load_run(file)


def draw(trajectory: AnyTrajectory, kind: Kind) -> Figure:
    """Make the figure of one kind."""
    return trajectory.plot(kind.value)
