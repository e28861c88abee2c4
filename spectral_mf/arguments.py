"""What comes through the door: each function returns a clean value, or raises InputError with one sentence.

A flag is no number, nor is text that looks like one; complex numbers are not cut to their real parts. Values of numpy's
types are as good as Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.errors import InputError
from spectral_mf.measure import Measure
from spectral_mf.model import Model

FloatArray = NDArray[np.float64]


def real_number(name: str, value: object) -> float:
    """A real scalar as a float; it may be infinite or NaN."""
    scalar = value.item() if isinstance(value, (np.generic, np.ndarray)) and np.ndim(value) == 0 else value
    if isinstance(scalar, bool) or not isinstance(scalar, Real):
        raise InputError(f"{name} = {value!r} is not a real number; give a float.")
    try:
        return float(scalar)
    except OverflowError:
        return math.inf


def finite_number(name: str, value: object) -> float:
    """A finite real number."""
    number = real_number(name, value)
    if not math.isfinite(number):
        raise InputError(f"{name} = {number:g} is not finite; give a finite number.")
    return number


def number_from_to(name: str, value: object, low: float, high: float) -> float:
    """A number from `low` to `high`, both allowed."""
    number = real_number(name, value)
    if not low <= number <= high:
        raise InputError(f"{name} = {number:g} is not allowed; give a number from {low:g} to {high:g}.")
    return number


def number_between(name: str, value: object, low: float, high: float) -> float:
    """A number between `low` and `high`, which are not allowed themselves."""
    number = real_number(name, value)
    if not low < number < high:
        raise InputError(f"{name} = {number:g} is not allowed; give a number between {low:g} and {high:g}.")
    return number


def number_at_least(name: str, value: object, low: float) -> float:
    """A finite number >= `low`."""
    number = real_number(name, value)
    if not (math.isfinite(number) and number >= low):
        raise InputError(f"{name} = {number:g} is not allowed; give a finite number >= {low:g}.")
    return number


def positive_number(name: str, value: object) -> float:
    """A finite number > 0."""
    number = real_number(name, value)
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"{name} = {number:g} is not allowed; give a positive number.")
    return number


def integer_at_least(name: str, value: object, low: int) -> int:
    """An integer >= `low`; 3.0 is none."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise InputError(f"{name} = {value!r} is not allowed; give an integer of at least {low}.")
    return int(value)


def values_at(what: str, function: Callable[[FloatArray], ArrayLike], angles: FloatArray) -> ArrayLike:
    """What a function gives at an array of angles; one that takes a single number is refused with a sentence."""
    try:
        return function(angles)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} takes no array of angles ({error}); give a function of arrays, made of numpy's such as np.cos, or "
            "wrap yours in np.vectorize."
        ) from error


def real_array(values: ArrayLike, message: str) -> FloatArray:
    """A float64 copy of real numbers of any shape; the message is the sentence for all else."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" and array.size:
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(message) from None


def angle_array(theta: ArrayLike) -> FloatArray:
    """Finite angles of any shape, as a float64 copy."""
    angles = real_array(theta, "angles are not real numbers; give radians.")
    if not np.isfinite(angles).all():
        raise InputError(f"angle {angles[~np.isfinite(angles)].flat[0]:g} is not finite; give radians.")
    return angles


def random_generator(seed: int | np.random.SeedSequence) -> np.random.Generator:
    """Numpy's generator for a seed."""
    try:
        if isinstance(seed, bool):
            raise TypeError
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(f"seed = {seed!r} is not allowed; give an integer >= 0.") from None


def check_model(model: object) -> None:
    """Refuse what is no model; a class has a model's attributes, but is none."""
    if getattr(model, "needs_positions", None) is not None:
        raise InputError(
            f"model = {model!r} has a density for each position; use solve_positions, or tokens with them."
        )
    if isinstance(model, type) or not isinstance(model, Model):
        raise InputError(f"model = {model!r} is not a model; give one such as SelfAttention(beta=5.0).")


def check_measure(name: str, measure: object) -> None:
    """Refuse what is no measure."""
    if isinstance(measure, type) or not isinstance(measure, Measure):
        raise InputError(f"{name} = {measure!r} is not a measure; give a FourierDensity or Atoms.")
