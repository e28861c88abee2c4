"""One sentence for what is wrong in a run file or among the options: it names the key, and says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails, PydanticCustomError

_MISSING = {
    "model": "the inverse temperature is missing; give --beta, or beta in the section [model] of a run file.",
    "time": "the end time is missing; give --t-end, or t_end in the section [time] of a run file.",
    "common_noise": "the number of the path's steps is missing; give n_steps in the section [common_noise].",
}
"""Sentences for the sections that have a key without which there is no run."""


class Refusal(PydanticCustomError):
    """A rule about several keys that is broken; `explain` makes a sentence of it."""

    @classmethod
    def not_one(cls, given: Sequence[str], allowed: Sequence[str]) -> Refusal:
        """Refuse none, or several, of keys that exclude each other."""
        return cls("not_one", "not exactly one", {"given": list(given), "allowed": list(allowed)})

    @classmethod
    def of_another_model(cls, key: str, model: str, known: Sequence[str], owners: Sequence[str]) -> Refusal:
        """Refuse a parameter that the model does not have, and say which have it."""
        context = {"key": key, "model": model, "known": list(known), "owners": list(owners)}
        return cls("of_another_model", "of another model", context)

    @classmethod
    def missing_parameter(cls, key: str, model: str) -> Refusal:
        """Refuse a model that lacks a parameter."""
        return cls("missing_parameter", "missing", {"key": key, "model": model})

    @classmethod
    def exclusive(cls, given: Sequence[str]) -> Refusal:
        """Refuse several of keys that exclude each other and may all be left out."""
        return cls("exclusive", "exclusive", {"given": list(given)})

    @classmethod
    def of_another_kind(cls, section: str, reason: str) -> Refusal:
        """Refuse a whole section, that does not go with the others; a rule about the whole run file."""
        return cls("of_another_kind", "of another kind", {"section": section, "reason": reason})

    @classmethod
    def out_of_place(cls, key: str, owners: Sequence[str], given: str) -> Refusal:
        """Refuse a key that says nothing about what is given."""
        return cls("out_of_place", "out of place", {"key": key, "owners": list(owners), "given": given})


def option_name(section: str, key: str) -> str:
    """The command line's option for a key of a run file."""
    return "--output" if (section, key) == ("output", "path") else "--" + key.replace("_", "-")


def explain(errors: Sequence[ErrorDetails], schema: type[BaseModel], options: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a sentence for the first of the errors of a validation.

    Parameters
    ----------
    errors : sequence
    schema : class
        The configuration that was being made; its fields are the sections.
    options : mapping of sections
        Values that came from the command line; these are called by the name of their option.
    """
    # A misspelt key is the cause, and the key that is then missing the symptom.
    first = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    value, context = first["input"], first.get("ctx", {})
    place = first["loc"] or (context["section"],)  # a rule about several sections has no place
    section = str(place[0])
    key = str(place[1]) if len(place) > 1 else ""

    def name(key: str) -> str:
        return option_name(section, key) if key in options.get(section, {}) else f"{section}.{key}"

    match first["type"]:
        case "extra_forbidden":
            known = _keys_by_section(schema)
            return _unknown_key(section, key, known) if key else _unknown_section(section, known)
        case "missing":
            return _MISSING[section]
        case "missing_parameter" if context["key"] == "beta":
            return _MISSING["model"]
        case "missing_parameter":
            key = context["key"]
            return f"{context['model']} needs {key}; give {option_name(section, key)}, or {key} in the section [model]."
        case "of_another_model":
            known_keys = ", ".join(context["known"])
            given = f"{name(context['key'])} is no parameter of {context['model']}, which has {known_keys}"
            return f"{given}; leave it out, or give another type: {' or '.join(context['owners'])}."
        case "not_one" if not context["given"]:
            return f"the initial state is missing; give one of {_list(section, context['allowed'])}."
        case "not_one":
            return f"{' and '.join(name(k) for k in context['given'])} exclude each other; give one initial state."
        case "exclusive":
            return f"{' and '.join(name(k) for k in context['given'])} exclude each other; leave out one of them."
        case "of_another_kind":
            return f"section [{section}] {context['reason']}; leave it out."
        case "out_of_place":
            owners = _list(section, context["owners"])
            return f"{name(context['key'])} belongs to {owners}, not to {name(context['given'])}; leave it out."
        case "model_type" | "model_attributes_type":
            return f"{section} = {value!r} is not a section; write its keys below a line [{section}]."
        case "value_error" if not key:
            return str(context["error"])
        case "value_error":
            return f"{name(key)} = {value!r} {context['error']}."
        case _:
            return f"{name(key)} = {value!r} is not allowed: {first['msg'][0].lower()}{first['msg'][1:]}."


def _list(section: str, keys: Sequence[str]) -> str:
    names = [option_name(section, key) for key in keys]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _keys_by_section(schema: type[BaseModel]) -> dict[str, list[str]]:
    keys = {}
    for name, field in schema.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):  # a section that may be left out is one or None
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                keys[field.alias or name] = list(kind.model_fields)
    return keys


def _unknown_section(section: str, known: Mapping[str, list[str]]) -> str:
    for home, keys in known.items():
        if section in keys:
            return f"{section} stands outside a section; put it below a line [{home}]."
    near = difflib.get_close_matches(section, known, n=1)
    if near:
        return f"section [{section}] is not known; did you mean [{near[0]}]?"
    return f"section [{section}] is not known; the sections are {', '.join(f'[{name}]' for name in known)}."


def _unknown_key(section: str, key: str, known: Mapping[str, list[str]]) -> str:
    for home, keys in known.items():
        if key in keys:
            return f"{section}.{key} is not known; {key} belongs in the section [{home}]."
    near = difflib.get_close_matches(key, known[section], n=1)
    if near:
        return f"{section}.{key} is not known; did you mean {near[0]}?"
    return f"{section}.{key} is not known; the keys of [{section}] are {', '.join(known[section])}."
