"""Paired timings: two ways of computing the same thing, run alternately in one process."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

Work = Callable[[], object]


@dataclass(frozen=True)
class Comparison:
    """Times of two sides, and how many times the first is faster.

    Attributes
    ----------
    name : str
        What was compared.
    ours, theirs : str
        The two sides.
    ours_seconds, theirs_seconds : float
        Median time of one call.
    ratio : float
        Median over the rounds of theirs / ours. A disturbance hits both halves of a round, or one round only.
    ratio_low, ratio_high : float
        Quartiles of that ratio over the rounds.
    difference : float or None
        Largest difference between the two results, as the benchmark defines it.
    errors : tuple of float or None
        Errors of both results against a reference, where there is one.
    required : float or None
        The ratio that the project promises; None if it promises none.
    note : str
        What follows from the ratio, where that is not plain.
    met : bool
        Whether a promise that is not a ratio is kept.
    """

    name: str
    ours: str
    theirs: str
    ours_seconds: float
    theirs_seconds: float
    ratio: float
    ratio_low: float
    ratio_high: float
    difference: float | None = None
    errors: tuple[float, float] | None = None
    required: float | None = None
    note: str = ""
    met: bool = True

    def noted(self, note: str, *, met: bool) -> Comparison:
        """The same with a note, and whether what it promises is kept."""
        return replace(self, note=note, met=met)

    @property
    def missed(self) -> bool:
        """Whether a promise is broken."""
        return not self.met or (self.required is not None and not self.ratio >= self.required)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Cost:
    """What something costs here, without another side.

    Attributes
    ----------
    name : str
        What was measured, and the varied quantity.
    seconds : float
        Median time of one call.
    detail : str
        Sizes, errors or shares that belong to it.
    """

    name: str
    seconds: float
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Skipped:
    """A comparison that cannot be made here, and why."""

    name: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def cost(name: str, work: Work, *, detail: str = "", rounds: int = 5, seconds_a_round: float = 0.02) -> Cost:
    """Time something by itself (see `compare`)."""
    count = _repeats(work, seconds_a_round)
    return Cost(name, statistics.median(_time(work, count) for _ in range(rounds)), detail)


def compare(
    name: str,
    ours: tuple[str, Work],
    theirs: tuple[str, Work],
    *,
    difference: float | None = None,
    errors: tuple[float, float] | None = None,
    required: float | None = None,
    rounds: int = 15,
    seconds_a_round: float = 0.02,
) -> Comparison:
    """Time both sides in alternating rounds.

    Parameters
    ----------
    name : str
    ours, theirs : (label, callable)
        What is timed, without arguments. Each side is called once before, so that neither pays for its first call.
    difference : float, optional
        Largest difference between the results of the two sides, measured by the caller.
    errors : tuple of float, optional
        Errors of the results of ours and theirs against a reference, measured by the caller.
    required : float, optional
        The ratio that the project promises.
    rounds : int
        Number of pairs of timings.
    seconds_a_round : float
        Each side repeats its call for about this long within a round.
    """
    counts = [_repeats(work, seconds_a_round) for _, work in (ours, theirs)]
    pairs = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i in range(rounds):
            first, second = (0, 1) if i % 2 == 0 else (1, 0)
            times = [0.0, 0.0]
            for side in (first, second):
                times[side] = _time((ours, theirs)[side][1], counts[side])
            pairs.append((times[0], times[1]))
    finally:
        if collecting:
            gc.enable()
    ratios = [b / a for a, b in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return Comparison(
        name=name,
        ours=ours[0],
        theirs=theirs[0],
        ours_seconds=statistics.median(a for a, _ in pairs),
        theirs_seconds=statistics.median(b for _, b in pairs),
        ratio=middle,
        ratio_low=low,
        ratio_high=high,
        difference=difference,
        errors=errors,
        required=required,
    )


def _time(work: Work, count: int) -> float:
    start = perf_counter()
    for _ in range(count):
        work()
    return (perf_counter() - start) / count


def _repeats(work: Work, seconds: float) -> int:
    """How many calls fill the given time."""
    work()
    count = 1
    while (spent := _time(work, count) * count) < 0.2 * seconds:
        count *= 2
    return max(1, round(count * seconds / spent))
