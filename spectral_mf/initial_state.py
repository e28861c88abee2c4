"""From what a run file names to an initial measure, and a record of where it came from."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_mf.atoms import Atoms
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.wording import counted

if TYPE_CHECKING:
    from spectral_mf.config import InitialSection
    from spectral_mf.measure import Measure
    from spectral_mf.model import Model

NOISE_POINTS = 10_000
"""Points that white noise lives on unless said otherwise."""


@dataclass(frozen=True)
class InitialState:
    """An initial measure and where it came from.

    Attributes
    ----------
    measure : Measure
    provenance : dict
        Plain JSON values from which the measure can be made again; `kind` names the sort, `description` says it in
        words.
    """

    measure: Measure
    provenance: dict[str, Any]

    @property
    def description(self) -> str:
        """The origin in a few words."""
        return str(self.provenance["description"])


def prepare(asked: InitialSection, model: Model, *, moves_points: bool = False) -> InitialState:
    """Make the initial measure that a run file's section [initial] asks for.

    Parameters
    ----------
    asked : InitialSection
    model : Model
        Decides how many modes of tokens matter.
    moves_points : bool
        Whether the method carries tokens as they are; they are then smoothed only if the section says so.

    Raises
    ------
    InputError
        If a value is not allowed, a token file cannot be read, or tokens are too few to make a density.
    """
    match asked.kind:
        case "tokens":
            return _from_tokens(asked, model, moves_points)
        case "uniform_tokens":
            return _from_uniform_tokens(asked, model, moves_points)
        case "modes":
            return _from_modes(asked.modes or {})
        case "von_mises":
            kappa, mean = asked.von_mises or (0.0, 0.0)
            where = {"kind": "von_mises", "kappa": kappa, "mean": mean}
            density = FourierDensity.von_mises(kappa, mean)
            return _described(density, where, f"von Mises density, kappa = {kappa:g}, mean {mean:g}")
        case _:
            return _from_noise(asked)


def smooth(tokens: Atoms, model: Model, n_modes: int | None = None) -> FourierDensity:
    """The density with the first moments of the tokens: as many as the kernel sees and the tokens bear.

    Parameters
    ----------
    tokens : Atoms
    model : Model
    n_modes : int, optional
        Number of moments kept. Left out: the kernel's bandwidth, lowered until the density is nowhere negative.

    Raises
    ------
    InputError
        If the density is negative somewhere: for the `n_modes` given, or for all that hold the dominant mode and one
        more.
    """
    if n_modes is not None:
        return tokens.smoothed(n_modes)
    from spectral_mf.theory import dominant_mode

    fewest = dominant_mode(model).modes[-1] + 1 if model.has_growth_rates else 2
    most = max(model.bandwidth, fewest)
    moments = tokens.moments(most)
    for count in range(most, fewest - 1, -1):
        if _is_positive(moments[: count + 1]):
            return FourierDensity(moments[: count + 1])
    make = f"{counted(tokens.n_atoms, 'tokens')} {'makes' if tokens.n_atoms == 1 else 'make'} no density"
    raise InputError(
        f"{make}: with {fewest} modes, the fewest that show the growth of mode {fewest - 1}, it is negative somewhere; "
        'give more tokens, or use method "characteristics", which moves them.'
    )


def _is_positive(moments: NDArray[np.complex128]) -> bool:
    try:
        FourierDensity(moments).require_positive()
    except InputError:
        return False
    return True


def _from_tokens(asked: InitialSection, model: Model, moves_points: bool) -> InitialState:
    path = asked.tokens or Path()
    tokens = Atoms.from_file(path)
    where = {
        "kind": "tokens",
        "file": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "n_tokens": tokens.n_atoms,
    }
    return _density_of(tokens, asked, model, moves_points, where, f"{counted(tokens.n_atoms, 'tokens')} of {path}")


def _from_uniform_tokens(asked: InitialSection, model: Model, moves_points: bool) -> InitialState:
    n_tokens, seed = asked.uniform_tokens or 0, _seed(asked)
    tokens = Atoms.sample_uniform(n_tokens, seed)
    where = {"kind": "uniform_tokens", "n_tokens": n_tokens, "seed": seed}
    return _density_of(tokens, asked, model, moves_points, where, f"{counted(n_tokens, 'uniform tokens')}, seed {seed}")


def _density_of(
    tokens: Atoms, asked: InitialSection, model: Model, moves_points: bool, where: dict[str, Any], description: str
) -> InitialState:
    if moves_points and asked.smooth_modes is None:
        return _described(tokens, where, description)
    density = smooth(tokens, model, asked.smooth_modes)
    where["smooth_modes"] = density.n_modes
    return _described(density, where, f"{description}, smoothed to {counted(density.n_modes, 'modes')}")


def _from_modes(modes: dict[int, complex]) -> InitialState:
    density = FourierDensity.from_modes(modes).require_positive()
    where = {"kind": "modes", "modes": {str(k): [c.real, c.imag] for k, c in modes.items()}}
    terms = ", ".join(f"c_{k} = {_short(c)}" for k, c in sorted(modes.items()))
    return _described(density, where, f"uniform density with {terms}")


def _from_noise(asked: InitialSection) -> InitialState:
    sigma, seed = asked.white_noise or 0.0, _seed(asked)
    n_points = NOISE_POINTS if asked.noise_points is None else asked.noise_points
    density = FourierDensity.white_noise(sigma, n_points, seed)
    where = {"kind": "white_noise", "sigma": sigma, "noise_points": n_points, "seed": seed}
    return _described(density, where, f"uniform density with noise {sigma:g} on {n_points} points, seed {seed}")


def _described(measure: Measure, where: dict[str, Any], description: str) -> InitialState:
    return InitialState(measure, {**where, "description": description})


def _seed(asked: InitialSection) -> int:
    """The seed asked for, or one drawn by chance: it is stored and shown, so the run can be repeated."""
    if asked.seed is None:
        return secrets.randbits(32)
    if asked.seed < 0:
        raise InputError(f"seed = {asked.seed} is not allowed; give an integer >= 0.")
    return asked.seed


def _short(value: complex) -> str:
    return f"{value.real:g}" if value.imag == 0.0 else f"{value:g}"
