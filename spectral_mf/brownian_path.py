"""One Brownian path with several components, which moves all tokens, or their density, at once.

A path is known at equally spaced times, and is straight between them. The flow along it, dθ = V dt + Σ_j σ_j(θ) dB_j,
is an ordinary one, and tends to the Stratonovich solution as the times get closer (Wong, Zakai, Ann. Math. Statist. 36
(1965) 1560).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import integer_at_least, positive_number, random_generator, real_array
from spectral_mf.errors import InputError
from spectral_mf.wording import counted

FloatArray = NDArray[np.float64]


class BrownianPath:
    """Brownian motions B_1 .. B_n from time 0 to t_end, by their increments.

    Parameters
    ----------
    increments : array_like of float, shape (n_steps, n_fields)
        Of each motion over each of n_steps equal steps.
    t_end : float
    origin : str
        Where the path comes from, in words, such as "seed 1"; stored with it.

    Attributes
    ----------
    increments : ndarray of float64, shape (n_steps, n_fields)
    times : ndarray of float64, shape (n_steps + 1,)
        0 .. t_end.
    values : ndarray of float64, shape (n_steps + 1, n_fields)
        B at these times; 0 at the first.

    Raises
    ------
    InputError
        If the increments are not rows of finite numbers, or t_end is not positive.
    """

    def __init__(self, increments: ArrayLike, t_end: float, *, origin: str = "") -> None:
        message = "increments are not rows of finite numbers; give one row a step, shape (n_steps, n_fields)."
        given = real_array(increments, message)
        if given.ndim != 2 or given.size == 0 or not np.isfinite(given).all():
            raise InputError(message)
        self.increments: FloatArray = given
        self.t_end = positive_number("t_end", t_end)
        self.origin = str(origin)
        self.times: FloatArray = self.t_end * (np.arange(self.n_steps + 1) / self.n_steps)
        self.values: FloatArray = np.concatenate([np.zeros((1, self.n_fields)), given.cumsum(axis=0)])
        for array in (self.increments, self.times, self.values):
            array.flags.writeable = False

    @classmethod
    def draw(cls, n_fields: int, t_end: float, n_steps: int, seed: int | np.random.SeedSequence) -> BrownianPath:
        """A random path.

        Parameters
        ----------
        n_fields : int
            Number of independent motions.
        t_end : float
        n_steps : int
        seed : int
        """
        shape = (integer_at_least("n_steps", n_steps, 1), integer_at_least("n_fields", n_fields, 1))
        step = positive_number("t_end", t_end) / shape[0]
        return cls(random_generator(seed).standard_normal(shape) * np.sqrt(step), t_end, origin=_origin(seed))

    @classmethod
    def draw_many(cls, n_paths: int, n_fields: int, t_end: float, n_steps: int, seed: int) -> list[BrownianPath]:
        """Independent paths: number r is the same however many are drawn."""
        integer_at_least("n_paths", n_paths, 1)
        random_generator(seed)
        return [cls.draw(n_fields, t_end, n_steps, s) for s in np.random.SeedSequence(seed).spawn(n_paths)]

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return int(self.increments.shape[0])

    @property
    def n_fields(self) -> int:
        """Number of motions."""
        return int(self.increments.shape[1])

    @property
    def description(self) -> str:
        """Components, steps, end and origin in words."""
        steps = f"{counted(self.n_fields, 'fields')}, path of {counted(self.n_steps, 'steps')} to t = {self.t_end:g}"
        return f"{steps}, {self.origin or 'of unknown seed'}"

    @property
    def rates(self) -> FloatArray:
        """dB/dt on each step; shape (n_steps, n_fields)."""
        return self.increments * (self.n_steps / self.t_end)

    def coarsened(self, factor: int) -> BrownianPath:
        """The same path seen at every `factor`-th time only: increments are summed.

        Raises
        ------
        InputError
            If the factor does not divide the number of steps.
        """
        if self.n_steps % integer_at_least("factor", factor, 1):
            raise InputError(f"factor = {factor} does not divide the path's {self.n_steps} steps; give one that does.")
        increments = self.increments.reshape(-1, factor, self.n_fields).sum(axis=1)
        origin = f"{self.origin}, {factor} steps summed to one" if self.origin and factor > 1 else self.origin
        return BrownianPath(increments, self.t_end, origin=origin)

    def at(self, t: ArrayLike) -> FloatArray:
        """B at times from 0 to t_end, straight between the path's own; shape t.shape + (n_fields,).

        Raises
        ------
        InputError
            If a time lies outside.
        """
        times = self.checked(real_array(t, "times are not real numbers; give numbers from 0 to t_end."))
        columns = [np.interp(times, self.times, column) for column in self.values.T]
        return np.stack(columns, axis=-1)

    def checked(self, times: FloatArray) -> FloatArray:
        """The times, if all lie on the path.

        Raises
        ------
        InputError
            If one does not.
        """
        wrong = ~((times >= 0.0) & (times <= self.t_end))
        if wrong.any():
            raise InputError(
                f"time {np.atleast_1d(times)[np.atleast_1d(wrong)][0]:g} lies outside the path, which goes from 0 to "
                f"{self.t_end:g}; give times there, or a longer path."
            )
        return times

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the path can be made again from these, bit for bit."""
        return {"t_end": self.t_end, "increments": self.increments.tolist(), "origin": self.origin}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> BrownianPath:
        """Make it again from `to_dict`."""
        return cls(stored["increments"], stored["t_end"], origin=stored.get("origin", ""))

    def __repr__(self) -> str:
        origin = f", {self.origin}" if self.origin else ""
        return f"BrownianPath({self.n_fields} fields, {self.n_steps} steps to t = {self.t_end:g}{origin})"


def _origin(seed: int | np.random.SeedSequence) -> str:
    """The seed of a path in words; one of `draw_many` has a number too."""
    if not isinstance(seed, np.random.SeedSequence):
        return f"seed {seed}"
    return f"seed {seed.entropy}" + "".join(f", number {number}" for number in seed.spawn_key)


def checked_paths(paths: Sequence[BrownianPath]) -> list[BrownianPath]:
    """The paths, if there are any and all have the same times and the same number of components.

    Raises
    ------
    InputError
        If not.
    """
    together = list(paths)
    if not together:
        raise InputError("no path is given; give at least one, such as BrownianPath.draw_many(16, 2, 1.0, 64, 1).")
    for number, path in enumerate(together):
        if not isinstance(path, BrownianPath):
            raise InputError(f"path number {number} = {path!r} is no path; give BrownianPath, as draw_many makes them.")
        if path.increments.shape != together[0].increments.shape or path.t_end != together[0].t_end:
            raise InputError(
                f"path number {number} is {path!r}, but the first is {together[0]!r}; give paths of one kind."
            )
    return together
