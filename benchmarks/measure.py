"""Paired timings: two ways of computing the same thing, run alternately in one process."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
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
    difference : float
        Largest difference between the two results, as the benchmark defines it.
    required : float or None
        The ratio that the project promises; None if it promises none.
    """

    name: str
    ours: str
    theirs: str
    ours_seconds: float
    theirs_seconds: float
    ratio: float
    ratio_low: float
    ratio_high: float
    difference: float
    required: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def compare(
    name: str,
    ours: tuple[str, Work],
    theirs: tuple[str, Work],
    *,
    difference: float,
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
    difference : float
        Largest difference between the results of the two sides, measured by the caller.
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
