"""`spectral-mf solve`: from tokens, or a perturbed uniform density, to a density field in an HDF5 file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_mf.carriers import carriers_in_use
from spectral_mf.cli.carrying_out import PREPARATIONS
from spectral_mf.cli.ending import explained
from spectral_mf.cli.options import (
    Beta,
    Coefficients,
    Diffusion,
    Heads,
    KeptModes,
    ModelFile,
    ModelType,
    Normalization,
    Quiet,
    Radius,
    Strength,
)
from spectral_mf.cli.progress import reporting
from spectral_mf.wording import counted

if TYPE_CHECKING:
    from spectral_mf.cli.carrying_out import AnyTrajectory
    from spectral_mf.config import RunConfig

DEFAULT_OUTPUT = "run.h5"

_TIME, _SOLVER, _OUTPUT = "Time", "Solver", "Output"
_INITIAL = "Initial state: one of the first five"

# Values are taken as text and checked with those of the run file, by one set of rules.


def solve(
    run_file: ModelFile = None,
    beta: Beta = None,
    normalization: Normalization = None,
    diffusion: Diffusion = None,
    type: ModelType = None,
    heads: Heads = None,
    coefficients: Coefficients = None,
    strength: Strength = None,
    radius: Radius = None,
    kept_modes: KeptModes = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Tokens: angles (N) or planar vectors (N, 2), in .npy, .npz, .csv, .txt or .h5.",
            rich_help_panel=_INITIAL,
        ),
    ] = None,
    uniform_tokens: Annotated[
        str | None,
        typer.Option(metavar="N", help="N independent tokens from the uniform density.", rich_help_panel=_INITIAL),
    ] = None,
    modes: Annotated[
        str | None,
        typer.Option(
            metavar="K:C,...",
            help="Uniform density plus moments c_k, such as 3:0.01,2:0.003+0.001j.",
            rich_help_panel=_INITIAL,
        ),
    ] = None,
    von_mises: Annotated[
        str | None,
        typer.Option(
            metavar="KAPPA,MEAN", help="Von Mises density; the mean angle may be left out.", rich_help_panel=_INITIAL
        ),
    ] = None,
    white_noise: Annotated[
        str | None,
        typer.Option(
            metavar="SIGMA",
            help="Uniform density with noise of relative size SIGMA at each of --noise-points.",
            rich_help_panel=_INITIAL,
        ),
    ] = None,
    smooth_modes: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Moments kept of tokens (default: all that the kernel sees, fewer if the density were negative).",
            rich_help_panel=_INITIAL,
        ),
    ] = None,
    noise_points: Annotated[
        str | None,
        typer.Option(metavar="N", help="Points that the noise lives on (default 10000).", rich_help_panel=_INITIAL),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Seed of random tokens or noise (default: drawn and shown).", rich_help_panel=_INITIAL
        ),
    ] = None,
    t_end: Annotated[str | None, typer.Option(metavar="TIME", help="Last output time.", rich_help_panel=_TIME)] = None,
    dt: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Time between stored rows (default: a hundredth of t-end).", rich_help_panel=_TIME
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="auto (default), characteristics, linear, quasilinear or spectral.",
            rich_help_panel=_SOLVER,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="J",
            help="Highest order of the method quasilinear (default 64 of the series, 8 of the expansion).",
            rich_help_panel=_SOLVER,
        ),
    ] = None,
    rtol: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Error allowed a step, relative to the perturbation (default 1e-10).",
            rich_help_panel=_SOLVER,
        ),
    ] = None,
    max_modes: Annotated[
        str | None,
        typer.Option(
            metavar="K", help="Most modes that the spectral method may use (default 16384).", rich_help_panel=_SOLVER
        ),
    ] = None,
    symmetry: Annotated[
        str | None,
        typer.Option(
            metavar="M", help="M-fold symmetry kept exactly: auto (default), none or M.", rich_help_panel=_SOLVER
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=f"HDF5 file to write (default {DEFAULT_OUTPUT}, or the run file's name with .h5).",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists.", rich_help_panel=_OUTPUT)
    ] = False,
    store_modes: Annotated[
        str | None,
        typer.Option(
            metavar="K", help="Moments in a row (default 64, or all that the kernel sees).", rich_help_panel=_OUTPUT
        ),
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option(metavar="N", help="Cells of the stored density (default 512).", rich_help_panel=_OUTPUT),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Solve the equation, and write moments, density and energy at each output time to an HDF5 file.

    What is left out of both the options and the run file has the default of the Python function solve(). Rows are
    written as they are computed: Ctrl-C, or a run that cannot go on, keeps them.
    """
    from spectral_mf.config import RunConfig

    options: dict[str, dict[str, Any]] = {
        "model": {
            "beta": beta,
            "normalization": normalization,
            "diffusion": diffusion,
            "type": type,
            "heads": heads,
            "coefficients": coefficients,
            "strength": strength,
            "radius": radius,
            "kept_modes": kept_modes,
        },
        "initial": {
            "tokens": tokens,
            "uniform_tokens": uniform_tokens,
            "modes": modes,
            "von_mises": von_mises,
            "white_noise": white_noise,
            "smooth_modes": smooth_modes,
            "noise_points": noise_points,
            "seed": seed,
        },
        "time": {"t_end": t_end, "dt": dt},
        "solver": {"method": method, "order": order, "rtol": rtol, "max_modes": max_modes, "symmetry": symmetry},
        "output": {"path": output, "overwrite": overwrite or None, "store_modes": store_modes, "cells": cells},
    }
    given = {name: {k: v for k, v in keys.items() if v is not None} for name, keys in options.items()}
    given = {name: keys for name, keys in given.items() if keys}
    if run_file is None:
        config, default = RunConfig.from_sections(given, given), Path(DEFAULT_OUTPUT)
    else:
        config, default = RunConfig.from_toml(run_file, given), Path(run_file.with_suffix(".h5").name)
    file = config.output.path or default
    began = time.perf_counter()
    trajectory = solve_config(config, file, quiet=quiet)
    print(file)
    if not quiet:
        print(summary(trajectory, time.perf_counter() - began))


def solve_config(config: RunConfig, file: Path, *, quiet: bool) -> AnyTrajectory:
    """Carry out a run with its rows going to `file`, and show how it goes on."""
    from spectral_mf.errors import StorageError

    if file.is_file() and not config.output.overwrite:
        raise StorageError(f"{file} exists; choose another --output, or add --overwrite.")
    run = PREPARATIONS[config.kind](config, file)
    first, last = float(run.times[0]), float(run.times[-1])
    with explained(file), reporting(first, last, heading=run.heading, quiet=quiet) as report:
        return run.go(progress=report)


def summary(trajectory: AnyTrajectory, seconds: float) -> str:
    """One line on what a run has computed."""
    methods = list(dict.fromkeys(str(name) for name in trajectory.method[1:]))
    computed = slice(1, None) if len(trajectory) > 1 else slice(None)  # no method computed the initial state
    in_use = carriers_in_use(trajectory.method[computed], trajectory.n_modes[computed])
    most = ", ".join(counted(largest, kind) for kind, (_, largest) in in_use.items())
    rows = counted(len(trajectory), "rows")
    return (
        f"{rows}, t = {trajectory.t[0]:g} to {trajectory.t[-1]:g}, {' then '.join(methods)}, "
        f"at most {most}, {seconds:.1f} s"
    )
