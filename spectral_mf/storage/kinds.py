"""What a file may hold: measures by the name they are stored under, and models (see `spectral_mf.models`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from spectral_mf.errors import StorageError
from spectral_mf.measure import FloatArray, Measure
from spectral_mf.model import Model
from spectral_mf.models import MODELS, make_model

_MEASURES = {
    "fourier": ("spectral_mf.fourier_density", "FourierDensity"),
    "atoms": ("spectral_mf.atoms", "Atoms"),
    "flow_map": ("spectral_mf.flow_map", "FlowMap"),
}


def restore_measure(kind: str, vector: FloatArray) -> Measure:
    """Make a measure again from what `to_vector` gave, bit for bit."""
    if kind not in _MEASURES:
        raise _unknown("state", kind)
    module, attribute = _MEASURES[kind]
    measure: Measure = getattr(import_module(module), attribute).from_vector(vector)
    return measure


def restore_model(parameters: Mapping[str, Any]) -> Model:
    """Make a model again from what `to_dict` gave."""
    name = str(parameters.get("type", ""))
    if name not in MODELS:
        raise _unknown("model", name)
    return make_model(parameters)


def _unknown(what: str, name: str) -> StorageError:
    return StorageError(f"the file holds a {what} of kind {name!r}, which this version does not know; update it.")
