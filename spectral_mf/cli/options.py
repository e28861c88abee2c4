"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectral_mf.models import MODELS

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress; print the result's path only.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunFile = Annotated[Path, typer.Argument(metavar="FILE", help="HDF5 file of a run.", show_default=False)]

# The model, as text: values are checked with those of the run file, by one set of rules.

_MODEL = "Model"

ModelFile = Annotated[Path | None, typer.Argument(metavar="RUN.toml", help="Run file; options replace what it says.")]
Beta = Annotated[str | None, typer.Option(metavar="NUMBER", help="Inverse temperature, >= 0.", rich_help_panel=_MODEL)]
Normalization = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="softmax (SA, default), none (USA), or peak (USA with time in units of e^-beta).",
        rich_help_panel=_MODEL,
    ),
]
Diffusion = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="Coefficient kappa of the second derivative (default 0).", rich_help_panel=_MODEL
    ),
]
ModelType = Annotated[
    str | None,
    typer.Option("--type", metavar="NAME", help=f"{', '.join(MODELS)} (default the first).", rich_help_panel=_MODEL),
]
Heads = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='Of MultiHeadAttention, as [{"query_key": [[1, 0], [0, 1]], "value": ..., "beta": 2}].',
        rich_help_panel=_MODEL,
    ),
]
Coefficients = Annotated[
    str | None,
    typer.Option(metavar="W_0,W_1,...", help="Fourier coefficients of a PairPotential.", rich_help_panel=_MODEL),
]
Strength = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Of Kuramoto or HegselmannKrause (default 1).", rich_help_panel=_MODEL),
]
Radius = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Of HegselmannKrause, in radians.", rich_help_panel=_MODEL)
]
KeptModes = Annotated[
    str | None,
    typer.Option(
        "--kept-modes", metavar="K", help="Modes kept of HegselmannKrause (default 256).", rich_help_panel=_MODEL
    ),
]
