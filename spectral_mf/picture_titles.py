"""What is written above a picture: the model with all its parameters, what moves it beside, times and methods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spectral_mf.model import Model
from spectral_mf.positional_trajectory import PositionalTrajectory
from spectral_mf.trajectory import Trajectory
from spectral_mf.wording import counted

_MOST_HEADS = 3
"""Heads whose matrices are written out."""

_MOST_COEFFICIENTS = 3
"""Coefficients of a pair potential that are written out."""

_KINDS = {"softmax": "SA", "none": "USA", "peak": "USA, time in units of e^-β"}


def title(trajectory: Trajectory) -> str:
    """Model, times and methods of a run; matrices on lines of their own."""
    computed = trajectory.method[1:] if len(trajectory) > 1 else trajectory.method  # no method computed the first row
    methods = " → ".join(dict.fromkeys(str(method) for method in computed))
    state = "" if trajectory.complete else "; partial"
    noise = common_noise(trajectory)
    driven = "" if noise is None else f", common noise σ = {noise:.3g}"
    first, *matrices = _lines(trajectory.model)
    times = f"t = {trajectory.t[0]:g} to {trajectory.t[-1]:g}"
    return "\n".join([f"{first}{driven}, {times} ({methods}{state})", *matrices])


def positional_title(run: PositionalTrajectory) -> str:
    """Model and times of a run with positions; a matrix on a line of its own."""
    model = run.model
    parts = [f"{_KINDS[model.normalization]}, {model.order}, β = {model.beta:g}"]
    given = (("λ", model.decay), ("ω", model.rotary), ("κ", model.diffusion))
    parts += [f"{name} = {value:g}" for name, value in given if value]
    state = "" if run.complete else " (partial)"
    first = f"{', '.join(parts)}, {run.grid.n_nodes} positions, t = {run.t[0]:g} to {run.t[-1]:g}{state}"
    return "\n".join([first, *([f"B = {_matrix(model.query_key)}"] if model.has_matrix else [])])


def model_title(model: Model) -> str:
    """Model and parameters; matrices on lines of their own."""
    return "\n".join(_lines(model))


def common_noise(trajectory: Trajectory) -> float | None:
    """Strength of the noise that all tokens feel: root of the mean over the circle of Σ_j σ_j²; None without it."""
    fields = trajectory.configuration.get("fields")
    if fields is None:
        return None
    squares = np.square(fields["real"]) + np.square(fields["imag"])
    return math.sqrt(2.0 * float(squares.sum()) - float(squares[:, 0].sum()))


def has_linear_theory(trajectory: Trajectory) -> bool:
    """Whether small perturbations of the uniform density grow mode by mode in this run, as growth rates say."""
    return trajectory.model.has_growth_rates and common_noise(trajectory) is None


def _lines(model: Model) -> list[str]:
    parameters = model.to_dict()
    name = _KINDS.get(str(parameters.get("normalization")), str(parameters.get("type")))
    noise = f", κ = {model.diffusion:g}" if model.diffusion > 0.0 else ""
    if "heads" in parameters:
        return _with_heads(name, noise, parameters["heads"])
    if "coefficients" in parameters:
        return [f"{name}, {_potential(parameters['coefficients'])}{noise}"]
    beta = f", β = {parameters['beta']:g}" if "beta" in parameters else ""
    return [f"{name}{beta}{noise}"]


def _with_heads(name: str, noise: str, heads: list[dict[str, Any]]) -> list[str]:
    """β of one head beside the name, of several beside their matrices."""
    if len(heads) == 1:
        return [f"{name}, β = {heads[0]['beta']:g}{noise}", _matrices(heads[0])]
    shown = [
        f"head {number}: β = {head['beta']:g}, {_matrices(head)}"
        for number, head in enumerate(heads[:_MOST_HEADS], start=1)
    ]
    more = len(heads) - len(shown)
    return [f"{name}, {counted(len(heads), 'heads')}{noise}", *shown, *([f"and {more} more"] if more else [])]


def _matrices(head: dict[str, Any]) -> str:
    query_key, value = _matrix(head["query_key"]), _matrix(head["value"])
    return f"B = V = {value}" if query_key == value else f"B = {query_key}, V = {value}"


def _matrix(rows: Any) -> str:
    (a, b), (c, d) = rows
    if b == c == 0.0 and a == d:
        return {1.0: "I", -1.0: "-I"}.get(a, f"{a:.4g} I")
    return f"[[{a:.4g}, {b:.4g}], [{c:.4g}, {d:.4g}]]"


def _potential(coefficients: list[float]) -> str:
    given = [(k, value) for k, value in enumerate(coefficients) if k > 0 and value != 0.0]
    if len(given) > _MOST_COEFFICIENTS:
        return f"W of {len(coefficients) - 1} modes"
    return ", ".join(f"$W_{{{k}}}$ = {value:.4g}" for k, value in given) or "W = 0"
