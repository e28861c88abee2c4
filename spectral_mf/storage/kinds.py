"""What a file may hold: measures and models by the name they are stored under."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from spectral_mf.errors import StorageError
from spectral_mf.measure import FloatArray, Measure
from spectral_mf.model import Model

_MEASURES = {
    "fourier": ("spectral_mf.fourier_density", "FourierDensity"),
    "atoms": ("spectral_mf.atoms", "Atoms"),
    "flow_map": ("spectral_mf.flow_map", "FlowMap"),
}
_MODELS = {
    "SelfAttention": ("spectral_mf.self_attention", "SelfAttention"),
    "MultiHeadAttention": ("spectral_mf.multi_head_attention", "MultiHeadAttention"),
}


def restore_measure(kind: str, vector: FloatArray) -> Measure:
    """Make a measure again from what `to_vector` gave, bit for bit."""
    measure: Measure = _named(_MEASURES, kind, "state").from_vector(vector)
    return measure


def restore_model(parameters: Mapping[str, Any]) -> Model:
    """Make a model again from what `to_dict` gave."""
    arguments = dict(parameters)
    model: Model = _named(_MODELS, str(arguments.pop("type", "")), "model")(**arguments)
    return model


def _named(table: Mapping[str, tuple[str, str]], name: str, what: str) -> Any:
    if name not in table:
        raise StorageError(f"the file holds a {what} of kind {name!r}, which this version does not know; update it.")
    module, attribute = table[name]
    return getattr(import_module(module), attribute)
