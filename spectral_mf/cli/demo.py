"""`spectral-mf demo`: a real run, from random tokens to three clusters, with its file and its picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from spectral_mf.cli.options import Quiet
from spectral_mf.cli.plot import Kind, draw
from spectral_mf.cli.progress import say
from spectral_mf.cli.solve import solve_config

RUN: dict[str, dict[str, Any]] = {
    "model": {"beta": 5.0},
    "initial": {"uniform_tokens": 10_000, "seed": 0},
    "time": {"t_end": 8.0, "dt": 0.05},
}
"""What is solved, as a run file would say it."""


def demo(
    output_dir: Annotated[
        Path, typer.Option("--output-dir", metavar="DIR", help="Folder for demo.h5 and demo.png; made if needed.")
    ] = Path("spectral-mf-demo"),
    quiet: Quiet = False,
) -> None:
    """Solve an example (beta = 5, 10,000 random tokens, to three clusters) and draw it, in some seconds.

    demo.h5 and demo.png in the folder are written anew each time.
    """
    from spectral_mf.config import RunConfig
    from spectral_mf.errors import StorageError
    from spectral_mf.plotting import save_figure

    began = time.perf_counter()
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"folder {output_dir} cannot be made: {error.strerror}; give another --output-dir."
        ) from None
    file, picture = output_dir / "demo.h5", output_dir / "demo.png"
    config = RunConfig.from_sections({**RUN, "output": {"path": file, "overwrite": True}})
    trajectory = solve_config(config, file, quiet=quiet)
    solved = time.perf_counter() - began
    say(f"solved in {solved:.1f} s; drawing", quiet=quiet)
    save_figure(draw(trajectory, Kind.OVERVIEW), picture)
    print(file)
    print(picture)
    if not quiet:
        print(f"{len(trajectory)} rows to t = {trajectory.t[-1]:g} in {time.perf_counter() - began:.1f} s")
        print(f"Next: spectral-mf info {file}")
