"""The section [positions] of a run file: nodes in the position, and how the initial density depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import PlainValidator, model_validator

from spectral_mf.config_errors import Refusal
from spectral_mf.config_section import Integer, Number, Section
from spectral_mf.config_values import centre_and_width

if TYPE_CHECKING:
    from spectral_mf.config import RunConfig
    from spectral_mf.positional_start import Profile
    from spectral_mf.positions import PositionalAttention

PROFILES = ("power", "window")
"""Keys that say how the initial perturbation depends on the position; none for the same at all positions."""


class PositionsSection(Section):
    """[positions]: arguments of `spectral_mf.solve_positions`, and at most one of power and window."""

    n_positions: Integer | None = None
    grading: Integer | None = None
    power: Number | None = None
    window: Annotated[tuple[float, float], PlainValidator(centre_and_width)] | None = None

    @model_validator(mode="after")
    def _one_profile(self) -> PositionsSection:
        given = [key for key in PROFILES if getattr(self, key) is not None]
        if len(given) > 1:
            raise Refusal.exclusive(given)
        return self

    def profile(self, model: PositionalAttention) -> Profile | None:
        """Factor of the initial perturbation at each position; None if it is the same at all.

        Raises
        ------
        InputError
            If a value is not allowed.
        """
        from spectral_mf.positional_start import Power, Window

        if self.power is not None:
            return Power(self.power, model.decay)
        return None if self.window is None else Window(*self.window)


def refuse_foreign_to_positions(config: RunConfig) -> None:
    """Refuse sections that do not go with each other: [positions] and a model without, other noise and a model with.

    Raises
    ------
    Refusal
        Of the first such section.
    """
    model = config.interaction.type
    if not config.interaction.has_positions and "positions" in config.model_fields_set:
        raise Refusal.of_another_kind("positions", f"belongs to the model PositionalAttention, not to {model}")
    if config.interaction.has_positions and config.common_noise is not None:
        raise Refusal.of_another_kind("common_noise", f"does not go with the model {model}")
