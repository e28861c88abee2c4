"""What a run is told to do: the sections of a run file, checked, with errors that name the key.

A run file is TOML. Its sections are those of `RunConfig`; its keys have the names of the command line's options. Types
and names are checked here; whether a value is allowed is for the model, the measure and the solver to say, so that
there is one rule for each, wherever it comes from.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import ConfigDict, Field, PlainValidator, ValidationError, model_validator

from spectral_mf.config_common_noise import CommonNoiseSection
from spectral_mf.config_errors import Refusal, explain
from spectral_mf.config_positions import PositionsSection, refuse_foreign_to_positions
from spectral_mf.config_section import FilePath, Integer, Number, Section
from spectral_mf.config_values import (
    complex_by_mode,
    integer_or_word,
    kappa_and_mean,
    list_of_heads,
    row_of_numbers,
    switch,
)
from spectral_mf.errors import InputError
from spectral_mf.models import POSITIONAL, make_model, make_positional_model, owners_of, parameters_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectral_mf.initial_state import InitialState
    from spectral_mf.model import Model
    from spectral_mf.positional_start import PositionalState
    from spectral_mf.positions import PositionalAttention

Sections = Mapping[str, Mapping[str, Any]]

INITIAL_STATES = ("tokens", "uniform_tokens", "modes", "von_mises", "white_noise")
"""Keys that name an initial state; a run has exactly one."""

_COMPANIONS = {
    "smooth_modes": ("tokens", "uniform_tokens"),
    "noise_points": ("white_noise",),
    "seed": ("uniform_tokens", "white_noise"),
}
"""Keys that say more about an initial state, and the states that they belong to."""


SECTIONS_OF_KINDS = ("common_noise",)
"""Sections that make a run one of another kind, which has the section's name."""


class ModelSection(Section):
    """[model]: the model that `type` names, and its parameters (see `spectral_mf.models`)."""

    beta: Number | None = None
    normalization: str | None = None
    diffusion: Number | None = None
    type: str = "SelfAttention"
    heads: Annotated[list[Any], PlainValidator(list_of_heads)] | None = None
    coefficients: Annotated[list[float], PlainValidator(row_of_numbers)] | None = None
    strength: Number | None = None
    radius: Number | None = None
    kept_modes: Integer | None = None
    order: str | None = None
    decay: Number | None = None
    rotary: Number | None = None
    query_key: Any = None  # the model says what is wrong with a matrix

    @property
    def parameters(self) -> dict[str, Any]:
        """What is given, as `make_model` takes it."""
        return self.model_dump(exclude_none=True)

    @property
    def has_positions(self) -> bool:
        """Whether there is a density for each position."""
        return self.type in POSITIONAL

    @model_validator(mode="after")
    def _of_one_model(self) -> ModelSection:
        known, needed = parameters_of(self.type)
        for key in self.parameters:
            if key not in known and key != "type":
                raise Refusal.of_another_model(key, self.type, known, owners_of(key))
        for key in needed:
            if getattr(self, key) is None:
                raise Refusal.missing_parameter(key, self.type)
        return self


class InitialSection(Section):
    """[initial]: exactly one of tokens, uniform_tokens, modes, von_mises, white_noise, and what belongs to it."""

    tokens: FilePath | None = None
    uniform_tokens: Integer | None = None
    smooth_modes: Integer | None = None
    modes: Annotated[dict[int, complex], PlainValidator(complex_by_mode)] | None = None
    von_mises: Annotated[tuple[float, float], PlainValidator(kappa_and_mean)] | None = None
    white_noise: Number | None = None
    noise_points: Integer | None = None
    seed: Integer | None = None

    @property
    def kind(self) -> str:
        """The key that names the initial state."""
        return next(key for key in INITIAL_STATES if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _one_state(self) -> InitialSection:
        given = [key for key in INITIAL_STATES if getattr(self, key) is not None]
        if len(given) != 1:
            raise Refusal.not_one(given, INITIAL_STATES)
        for key, states in _COMPANIONS.items():
            if getattr(self, key) is not None and given[0] not in states:
                raise Refusal.out_of_place(key, states, given[0])
        return self


class TimeSection(Section):
    """[time]: rows at 0, dt, 2 dt, ... and t_end."""

    t_end: Number
    dt: Number | None = None


class SolverSection(Section):
    """[solver]: see `spectral_mf.solve`, whose defaults hold for what is left out."""

    method: str | None = None
    order: Integer | None = None
    rtol: Number | None = None
    max_modes: Integer | None = None
    symmetry: Annotated[int | str, PlainValidator(integer_or_word)] | None = None


class OutputSection(Section):
    """[output]: the HDF5 file, and what a row of it holds."""

    path: FilePath | None = None
    overwrite: Annotated[bool, PlainValidator(switch)] = False
    store_modes: Integer | None = None
    cells: Integer | None = None


class ModelConfig(Section):
    """The model of a run; other sections of a run file are not looked at.

    Attributes
    ----------
    interaction : ModelSection
        The section [model].
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    interaction: ModelSection = Field(alias="model")

    @classmethod
    def from_toml(cls, path: str | Path, options: Sections | None = None) -> Self:
        """Read a run file; relative paths in it start from its folder.

        Parameters
        ----------
        path : path
        options : mapping of sections, optional
            Values that replace those of the file, as the command line's options do. An initial state of another kind
            replaces the file's whole section [initial].

        Raises
        ------
        InputError
            If the file cannot be read, a key is unknown, missing or given twice, or a value is of the wrong kind.
        """
        file = Path(os.path.expanduser(path))
        return cls.from_sections(_read(file), options, folder=file.parent)

    @classmethod
    def from_sections(
        cls, sections: Mapping[str, Any], options: Sections | None = None, *, folder: Path | None = None
    ) -> Self:
        """Check what a run file says, after options have replaced some of it (see `from_toml`)."""
        merged = dict(sections)
        for name, values in (options or {}).items():
            section = merged.get(name, {})
            if not isinstance(section, Mapping):
                continue  # refused below, as what the file says
            if name == "initial" and _another_state(section, values):
                section = {}
            merged[name] = {**section, **values}
        for name, key in (("initial", "tokens"), ("output", "path")):
            section = merged.get(name)
            if isinstance(section, Mapping) and isinstance(section.get(key), str) and section[key].strip():
                start = Path() if folder is None or key in (options or {}).get(name, {}) else folder
                merged[name] = {**section, key: start / os.path.expanduser(section[key])}
        try:
            return cls.model_validate(merged)
        except ValidationError as error:
            raise InputError(explain(error.errors(include_url=False), cls, options or {})) from None

    def model(self) -> Model:
        """The model of the run."""
        return make_model(self.interaction.parameters)


class RunConfig(ModelConfig):
    """A run: model, initial state, output times, solver, output.

    Attributes
    ----------
    interaction : ModelSection
        The section [model].
    initial : InitialSection
    time : TimeSection
    solver : SolverSection
    output : OutputSection
    common_noise : CommonNoiseSection or None
        What moves all tokens at once.
    positions : PositionsSection
        Of a model with positions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    initial: InitialSection = Field(default={}, validate_default=True)
    time: TimeSection
    solver: SolverSection = SolverSection()
    output: OutputSection = OutputSection()
    common_noise: CommonNoiseSection | None = None
    positions: PositionsSection = PositionsSection()

    @model_validator(mode="after")
    def _positions_and_the_rest(self) -> RunConfig:
        refuse_foreign_to_positions(self)
        return self

    @property
    def kind(self) -> str:
        """What kind of run it is, which says what carries it out (see `spectral_mf.cli.carrying_out`)."""
        if self.interaction.has_positions:
            return "positions"
        return next((name for name in SECTIONS_OF_KINDS if getattr(self, name) is not None), "density")

    def initial_measure(self) -> InitialState:
        """The initial measure, with a record of where it came from."""
        from spectral_mf.initial_state import prepare

        return prepare(self.initial, self.model(), moves_points=self.solver.method in _METHODS_FOR_POINTS)

    def positional_model(self) -> PositionalAttention:
        """The model of a run with positions."""
        return make_positional_model(self.interaction.parameters)

    def positional_start(self) -> PositionalState:
        """The initial densities of a run with positions, with a record of where they came from."""
        from spectral_mf.positional_start import prepare_at_positions

        return prepare_at_positions(self.initial, self.positions, self.positional_model())

    def times(self) -> NDArray[np.float64]:
        """Output times, the first being 0; InputError if an end time or interval is not allowed."""
        from spectral_mf.output_times import output_times

        if not self.time.t_end > 0.0:
            raise InputError(f"t_end = {self.time.t_end:g} is not allowed; give an end time > 0.")
        return output_times(self.time.t_end, self.time.dt)

    def solve_options(self) -> dict[str, Any]:
        """Keyword arguments of `spectral_mf.solve` that are given; its defaults hold for the rest."""
        named = self.solver.model_dump()
        named |= {"n_modes": self.output.store_modes, "n_cells": self.output.cells}
        named |= self.positions.model_dump(include={"n_positions", "grading"})
        return {key: value for key, value in named.items() if value is not None}


_METHODS_FOR_POINTS = ("characteristics",)
"""Methods that carry tokens as they are."""


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"run file {file} does not exist.") from None
    except OSError as error:
        raise InputError(f"run file {file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not text"
        raise InputError(f"{file} is not a run file in TOML: {reason}.") from None


def _another_state(section: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether options name an initial state that is not the one of the file."""
    asked = [key for key in INITIAL_STATES if key in options]
    return bool(asked) and not any(key in section for key in asked)
