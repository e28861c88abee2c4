"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress; print the result's path only.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunFile = Annotated[Path, typer.Argument(metavar="FILE", help="HDF5 file of a run.", show_default=False)]
