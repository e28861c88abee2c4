"""`spectral-mf linear`: what linear theory says about the uniform density."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_mf.cli.options import (
    Beta,
    Coefficients,
    Diffusion,
    Heads,
    Json,
    KeptModes,
    ModelFile,
    ModelType,
    Normalization,
    Radius,
    Strength,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectral_mf.exit_statistics import ExitTime
    from spectral_mf.model import Model
    from spectral_mf.theory import DominantMode

LEVEL = 0.1
"""|c_k| at which the linear phase counts as over, in the exit time that is shown."""

_MOST_ROWS = 20
"""Rows of the table unless a largest mode is asked for."""


def linear(
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
    dimension: Annotated[int, typer.Option(metavar="D", help="Tokens on the sphere S^(D-1); 2 is the circle.")] = 2,
    modes: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="Show modes 1 to K (default: those about the dominant one).")
    ] = None,
    n_tokens: Annotated[
        int, typer.Option(min=2, metavar="N", help="Number of uniform tokens for which the exit time is given.")
    ] = 10_000,
    as_json: Json = False,
) -> None:
    """Show growth rates lambda_k about the uniform density, the dominant mode, thresholds in beta, and times.

    For the model of the options, or of the section [model] of a run file.
    """
    import numpy as np

    from spectral_mf import theory
    from spectral_mf.config import ModelConfig

    options: dict[str, Any] = {
        "beta": beta,
        "normalization": normalization,
        "diffusion": diffusion,
        "type": type,
        "heads": heads,
        "coefficients": coefficients,
        "strength": strength,
        "radius": radius,
        "kept_modes": kept_modes,
    }
    given = {"model": {key: value for key, value in options.items() if value is not None}}
    given = given if given["model"] else {}
    config = ModelConfig.from_sections(given, given) if run_file is None else ModelConfig.from_toml(run_file, given)
    model = config.model()
    dominant = theory.dominant_mode(model, dimension=dimension)
    last = modes or max(8, dominant.modes[-1] + 3)
    first = 1 if modes or last <= _MOST_ROWS else last - _MOST_ROWS + 1
    k = np.arange(first, last + 1)
    rates = theory.growth_rate(model, k, dimension=dimension)
    thresholds = _thresholds(model, k, dimension)
    exit_time = _exit_time(model, n_tokens) if dimension == 2 and dominant.unstable else None
    if as_json:
        answer = _as_dict(model, dimension, dominant, k, rates, thresholds)
        if exit_time is not None:
            answer["exit_time"] = {"n_tokens": n_tokens, "level": LEVEL, **vars(exit_time)}
        print(json.dumps(answer, indent=2, allow_nan=False))
    else:
        _show(model, dimension, dominant, k, rates, thresholds)
        if exit_time is not None:
            print(_exit_sentence(exit_time, n_tokens))


def _thresholds(model: Model, k: NDArray[np.int64], dimension: int) -> NDArray[np.float64] | None:
    """The beta at which k + 1 overtakes k; None for models that are no family in one beta."""
    from spectral_mf import theory
    from spectral_mf.self_attention import SelfAttention

    return theory.threshold(k, dimension=dimension) if isinstance(model, SelfAttention) else None


def _exit_time(model: Model, n_tokens: int) -> ExitTime | None:
    """Exit time, or None where the level is out of the series' reach, as it is close to stability."""
    from spectral_mf.errors import InputError
    from spectral_mf.theory import exit_time

    try:
        return exit_time(model, n_tokens, LEVEL)
    except InputError:
        return None


def _as_dict(
    model: Model,
    dimension: int,
    dominant: DominantMode,
    k: NDArray[np.int64],
    rates: NDArray[np.float64],
    thresholds: NDArray[np.float64] | None,
) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {"k": mode, "growth_rate": rate, "time_to_grow_tenfold": _tenfold(rate)}
        for mode, rate in zip(k.tolist(), rates.tolist(), strict=True)
    ]
    if thresholds is not None:
        for row, threshold in zip(rows, thresholds.tolist(), strict=True):
            row["overtaken_at_beta"] = threshold
    return {
        "model": model.to_dict(),
        "dimension": dimension,
        "dominant_modes": list(dominant.modes),
        "and_all_above": dominant.and_above,
        "largest_rate": dominant.rate,
        "unstable": dominant.unstable,
        "modes": rows,
    }


def _tenfold(rate: float) -> float | None:
    return math.log(10.0) / rate if rate > 0.0 else None


def _show(
    model: Model,
    dimension: int,
    dominant: DominantMode,
    k: NDArray[np.int64],
    rates: NDArray[np.float64],
    thresholds: NDArray[np.float64] | None,
) -> None:
    from rich.console import Console
    from rich.table import Table

    space = "the circle" if dimension == 2 else f"the sphere S^{dimension - 1}"
    table = Table()
    table.add_column("k", justify="right")
    table.add_column("growth rate", justify="right")
    table.add_column("time to grow tenfold", justify="right")
    if thresholds is not None:
        table.add_column("k+1 overtakes at beta", justify="right")
    for i, (mode, rate) in enumerate(zip(k.tolist(), rates.tolist(), strict=True)):
        tenfold = _tenfold(rate)
        table.add_row(
            str(mode),
            f"{rate:.10g}",
            "-" if tenfold is None else f"{tenfold:.6g}",
            *([] if thresholds is None else [f"{thresholds[i]:.10g}"]),
            style="bold" if mode in dominant.modes else None,
        )
    console = Console(highlight=False)
    console.print(f"{model} about the uniform density on {space}", soft_wrap=True)
    console.print(table)
    if model.diffusion > 0.0 and thresholds is not None:
        console.print("The last column holds without diffusion.")
    if k[0] > 1:
        left_out = f"Modes 1 to {k[0] - 1} are left out; --modes {k[-1]} shows them too."
        console.print(left_out if k[0] > 2 else left_out.replace("Modes 1 to 1 are", "Mode 1 is"), soft_wrap=True)
    console.print(_dominant_sentence(dominant, dimension), soft_wrap=True)


def _dominant_sentence(dominant: DominantMode, dimension: int) -> str:
    if not dominant.unstable:
        *single, last = dominant.modes
        first = "".join(f"mode {mode}, " for mode in single)
        which = f", that of {first}every mode from {last} on" if dominant.and_above else ""
        return f"The uniform density is stable: no mode grows (largest rate {dominant.rate:.6g}{which})."
    if dominant.tie:
        return f"Modes {' and '.join(map(str, dominant.modes))} tie for the largest rate, {dominant.rate:.10g}."
    clusters = (
        f"; {dominant.mode} cluster{'s are' if dominant.mode > 1 else ' is'} likeliest to form"
        if dimension == 2
        else ""
    )
    return f"Dominant mode {dominant.mode}, rate {dominant.rate:.10g}{clusters}."


def _exit_sentence(exit_time: ExitTime, n_tokens: int) -> str:
    return (
        f"From {n_tokens} uniform tokens, |c_{exit_time.mode}| reaches {LEVEL:g} at "
        f"t = {exit_time.mean:.4g} +- {exit_time.standard_deviation:.2g}."
    )
