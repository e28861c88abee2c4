"""What all sections of a run file have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainValidator

from spectral_mf.config_values import integer, number, path

Number = Annotated[float, PlainValidator(number)]
Integer = Annotated[int, PlainValidator(integer)]
FilePath = Annotated[Path, PlainValidator(path)]


class Section(BaseModel):
    """A section of a run file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
