"""The section [common_noise] of a run file: the fields along which one Brownian path moves all tokens, and the path."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated

from pydantic import PlainValidator, model_validator

from spectral_mf.config_section import Integer, Number, Section
from spectral_mf.config_values import finite_number, rows_of_complex

if TYPE_CHECKING:
    from spectral_mf.brownian_path import BrownianPath
    from spectral_mf.vector_fields import VectorFields

Strength = Annotated[float, PlainValidator(finite_number)]


class CommonNoiseSection(Section):
    """[common_noise]: fields by the constructors of `VectorFields`, together, and what `BrownianPath.draw` needs."""

    rotation: Strength | None = None
    planar: Strength | None = None
    coefficients: Annotated[list[list[complex]], PlainValidator(rows_of_complex)] | None = None
    n_steps: Integer
    t_end: Number | None = None
    seed: Integer | None = None

    @model_validator(mode="after")
    def _some_field(self) -> CommonNoiseSection:
        if self.rotation is None and self.planar is None and self.coefficients is None:
            raise ValueError(
                "the section [common_noise] names no field; give rotation, planar or coefficients, or several of them."
            )
        return self

    def fields(self) -> VectorFields:
        """The fields that are named: the rotation first, then the two of the plane, then those by coefficients."""
        import numpy as np

        from spectral_mf.vector_fields import VectorFields

        named = []
        if self.rotation is not None:
            named.append(VectorFields.rotation(self.rotation))
        if self.planar is not None:
            named.append(VectorFields.planar(self.planar))
        if self.coefficients is not None:
            named.append(VectorFields(np.array(self.coefficients)))
        return VectorFields.together(named)

    def path(self, n_fields: int, t_end: float) -> BrownianPath:
        """The path for so many fields, to the section's own end or else to `t_end`.

        A seed that is not given is drawn; the path's `origin` tells it, so the run can be repeated.
        """
        from spectral_mf.brownian_path import BrownianPath

        seed = secrets.randbits(32) if self.seed is None else self.seed
        return BrownianPath.draw(n_fields, t_end if self.t_end is None else self.t_end, self.n_steps, seed)
