"""Initial densities at positions: one density whose perturbation is multiplied by a function of the position."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_mf.arguments import number_at_least, number_from_to
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.initial_state import prepare
from spectral_mf.position_grid import checked_positions
from spectral_mf.positions import MAX_DECAY, PositionalAttention

if TYPE_CHECKING:
    from spectral_mf.config import InitialSection
    from spectral_mf.config_positions import PositionsSection

MAX_POWER = 100.0
"""Beyond this the last position alone is perturbed, more sharply than nodes can tell."""

NARROWEST = 0.005
"""Narrower windows than 256 nodes resolve; still narrower ones would fall between the nodes and not be seen at all."""


@dataclass(frozen=True)
class Power:
    """((e^{λs} - 1)/(e^λ - 1))^p, which is 1 at the last position, and s^p without decay.

    In a causal system without softmax such data grow as e^{a t/(p+1)}, a the rate without positions
    (arXiv:2605.09213).

    Parameters
    ----------
    power : float
        p, 0 to 100.
    decay : float
        λ, that of the model.

    Raises
    ------
    InputError
        If one of them is not allowed.
    """

    power: float
    decay: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", number_from_to("power", self.power, 0.0, MAX_POWER))
        object.__setattr__(self, "decay", number_from_to("decay", self.decay, 0.0, MAX_DECAY))

    def __call__(self, s: float) -> float:
        """Factor at position s."""
        share = math.expm1(self.decay * s) / math.expm1(self.decay) if self.decay > 0.0 else s
        return math.pow(share, self.power)

    def __str__(self) -> str:
        base = f"((e^({self.decay:g} s) - 1)/(e^{self.decay:g} - 1))" if self.decay > 0.0 else "s"
        return f"{base}^{self.power:g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"kind": "power", "power": self.power, "decay": self.decay}


@dataclass(frozen=True)
class Window:
    """e^{-(s - centre)²/(2 width²)}: positions about one of them.

    Parameters
    ----------
    centre : float
        A position, from 0 to 1.
    width : float
        At least 0.005.

    Raises
    ------
    InputError
        If one of them is not allowed.
    """

    centre: float
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", float(checked_positions([self.centre])[0]))
        object.__setattr__(self, "width", number_at_least("width", self.width, NARROWEST))

    def __call__(self, s: float) -> float:
        """Factor at position s."""
        return math.exp(-0.5 * ((s - self.centre) / self.width) ** 2)

    def __str__(self) -> str:
        return f"a window about s = {self.centre:g} of width {self.width:g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"kind": "window", "centre": self.centre, "width": self.width}


Profile = Power | Window
"""A factor from 0 to 1 at each position: where the density is nowhere negative, its share of it is neither."""


@dataclass(frozen=True)
class PositionalState:
    """Initial densities at positions and where they came from.

    Attributes
    ----------
    densities : FourierDensity or PositionalStart
        The same at all positions, or one for each.
    provenance : dict
        Plain JSON values, as those of `spectral_mf.initial_state.InitialState`; `profile` is the dependence on the
        position.
    """

    densities: FourierDensity | PositionalStart
    provenance: dict[str, Any]

    @property
    def description(self) -> str:
        """The origin in a few words."""
        return str(self.provenance["description"])


def prepare_at_positions(
    asked: InitialSection, positions: PositionsSection, model: PositionalAttention
) -> PositionalState:
    """Make the initial densities that the sections [initial] and [positions] of a run file ask for.

    Raises
    ------
    InputError
        As `spectral_mf.initial_state.prepare`, or if the dependence on the position is not allowed.
    """
    initial = prepare(asked, model.attention)
    assert isinstance(initial.measure, FourierDensity)  # no method moves points
    profile = positions.profile(model)
    if profile is None:
        description = f"{initial.description}, at all positions"
        return PositionalState(initial.measure, {**initial.provenance, "description": description})
    origin = {"profile": profile.to_dict(), "description": f"{initial.description}, each c_k times {profile}"}
    return PositionalState(PositionalStart(initial.measure, profile), {**initial.provenance, **origin})


@dataclass(frozen=True)
class PositionalStart:
    """The density at each position s: moments c_k f(s), k ≥ 1, of a density with moments c_k.

    Parameters
    ----------
    density : FourierDensity
    profile : callable
        f, from a position to a factor, such as `Power` or `Window`.
    """

    density: FourierDensity
    profile: Callable[[float], float]

    def __call__(self, s: float) -> FourierDensity:
        """The density at position s."""
        moments = np.array(self.density.moments(self.density.n_modes)) * self.profile(s)
        moments[0] = 1.0
        return FourierDensity(moments)
