"""Models by name, as files store them (`to_dict`) and run files ask for them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spectral_mf.errors import InputError

if TYPE_CHECKING:
    from spectral_mf.model import Model
    from spectral_mf.positions import PositionalAttention

MODELS = {
    "SelfAttention": ("spectral_mf.self_attention", "SelfAttention"),
    "MultiHeadAttention": ("spectral_mf.multi_head_attention", "MultiHeadAttention"),
    "PairPotential": ("spectral_mf.pair_potential", "PairPotential"),
    "Kuramoto": ("spectral_mf.pair_potential", "PairPotential.kuramoto"),
    "HegselmannKrause": ("spectral_mf.pair_potential", "PairPotential.hegselmann_krause"),
}
"""Module, and class or constructor in it; the last two make a `PairPotential`, and are stored as one."""

POSITIONAL = {"PositionalAttention": ("spectral_mf.positions", "PositionalAttention")}
"""Likewise, models with a density at each position, which are no `Model`: they have solvers and files of their own."""


def parameters_of(name: str) -> tuple[list[str], list[str]]:
    """Names of all parameters of a model, and of those that it needs.

    Raises
    ------
    InputError
        If there is no model of that name.
    """
    signature = inspect.signature(_maker(name)).parameters.values()
    return [p.name for p in signature], [p.name for p in signature if p.default is inspect.Parameter.empty]


def make_model(parameters: Mapping[str, Any]) -> Model:
    """Make a model from its parameters; `type` names it.

    Raises
    ------
    InputError
        If there is no such model, it has positions, or a parameter is unknown, missing, or not allowed.
    """
    name = str(parameters.get("type", ""))
    if name in POSITIONAL:
        raise InputError(
            f"model type = {name!r} has positions, which only 'spectral-mf solve' and spectral_mf.solve_positions "
            "take; use one of these, or a model without positions."
        )
    model: Model = _made(parameters)
    return model


def make_positional_model(parameters: Mapping[str, Any]) -> PositionalAttention:
    """Make a model with positions from its parameters, as `make_model` does one without."""
    model: PositionalAttention = _made(parameters)
    return model


def owners_of(parameter: str) -> list[str]:
    """Names of the models that have a parameter."""
    return [name for name in (*MODELS, *POSITIONAL) if parameter in parameters_of(name)[0]]


def _made(parameters: Mapping[str, Any]) -> Any:
    arguments = dict(parameters)
    name = str(arguments.pop("type", ""))
    known, needed = parameters_of(name)
    unknown = [key for key in arguments if key not in known]
    missing = [key for key in needed if key not in arguments]
    if unknown:
        raise InputError(f"{name} has no {unknown[0]}; its parameters are {', '.join(known)}.")
    if missing:
        raise InputError(f"{name} needs {missing[0]}; give it.")
    return _maker(name)(**arguments)


def _maker(name: str) -> Callable[..., Any]:
    known = MODELS | POSITIONAL
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}."
        raise InputError(f"model type = {name!r} is unknown; {hint}")
    module, path = known[name]
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    maker: Callable[..., Any] = found
    return maker
