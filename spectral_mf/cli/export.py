"""`spectral-mf export`: a run in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectral_mf.cli.options import RunFile


def export(
    file: RunFile,
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="File to write: .nc, .csv or .npz.", show_default=False)
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
) -> None:
    """Write a run as NetCDF (.nc), a table (.csv) or numpy arrays (.npz)."""
    from spectral_mf.storage import export as write
    from spectral_mf.storage import load_run

    write(load_run(file), output, overwrite=overwrite)
    print(output)
