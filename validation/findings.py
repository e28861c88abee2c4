"""What a check finds: measured values beside predicted ones, each with the range that is accepted, and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from scipy import stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_mf.trajectory import Trajectory


@dataclass(frozen=True)
class Comparison:
    """One measured value beside the predicted one.

    Attributes
    ----------
    quantity : str
    measured, predicted : float
    low, high : float
        Range in which the measured value is accepted; infinite on a side that is open.
    rule : str
        What sets the range, in words.
    """

    quantity: str
    measured: float
    predicted: float
    low: float
    high: float
    rule: str

    def __post_init__(self) -> None:
        for name in ("measured", "predicted", "low", "high"):  # numbers of numpy do not go into JSON
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def holds(self) -> bool:
        """Whether the measured value lies in its range; never if it is not a number."""
        return self.low <= self.measured <= self.high

    @property
    def strain(self) -> float:
        """Distance from the prediction as a share of what is accepted on that side; above 1 outside."""
        if not math.isfinite(self.measured):
            return math.inf
        deviation = self.measured - self.predicted
        room = self.high - self.predicted if deviation > 0.0 else self.predicted - self.low
        if deviation == 0.0 or math.isinf(room):
            return 0.0
        return abs(deviation) / room if room > 0.0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """As it is stored; numbers that JSON does not have become text."""
        return {key: _plain(value) for key, value in asdict(self).items()} | {"holds": self.holds}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Comparison:
        """Make it again from `to_dict`."""
        numbers = {name: float(stored[name]) for name in ("measured", "predicted", "low", "high")}
        return cls(quantity=str(stored["quantity"]), rule=str(stored["rule"]), **numbers)


@dataclass(frozen=True)
class Picture:
    """A figure with what it shows, in words.

    Attributes
    ----------
    name : str
        Part of its file name.
    figure : matplotlib Figure
    alt : str
        For those who cannot see it.
    caption : str
    """

    name: str
    figure: Figure
    alt: str
    caption: str


@dataclass(frozen=True)
class Finding:
    """What a check has measured.

    Attributes
    ----------
    summary : str
        One sentence that is true whether or not the claim holds.
    comparisons : sequence of Comparison
    pictures : sequence of Picture
    runs : mapping from str to Trajectory
        Runs worth keeping as files, by a part of the file's name.
    """

    summary: str
    comparisons: list[Comparison]
    pictures: list[Picture] = field(default_factory=list)
    runs: Mapping[str, Trajectory] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether something was compared, and all of it lies in its range."""
        return bool(self.comparisons) and all(comparison.holds for comparison in self.comparisons)


def within(
    quantity: str, measured: float, predicted: float, *, relative: float = 0.0, absolute: float = 0.0
) -> Comparison:
    """Accept a value near the prediction: to a relative tolerance, or an absolute one."""
    room = max(relative * abs(predicted), absolute)
    rule = f"±{100.0 * relative:.3g}%" if relative else f"±{absolute:.3g}"
    return Comparison(quantity, float(measured), float(predicted), predicted - room, predicted + room, rule)


def at_most(
    quantity: str, measured: float, bound: float, *, predicted: float | None = None, rule: str = ""
) -> Comparison:
    """Accept a value that does not exceed a bound."""
    return Comparison(
        quantity,
        float(measured),
        float(bound if predicted is None else predicted),
        -math.inf,
        float(bound),
        rule or f"≤ {bound:.4g}",
    )


def at_least(
    quantity: str, measured: float, bound: float, *, predicted: float | None = None, rule: str = ""
) -> Comparison:
    """Accept a value that is not below a bound."""
    return Comparison(
        quantity,
        float(measured),
        float(bound if predicted is None else predicted),
        float(bound),
        math.inf,
        rule or f"≥ {bound:.4g}",
    )


def equal(quantity: str, measured: int, predicted: int) -> Comparison:
    """Accept a count that is exactly the predicted one."""
    return Comparison(quantity, float(measured), float(predicted), float(predicted), float(predicted), "exactly")


def standard_errors(quantity: str, measured: float, predicted: float, error: float, number: float) -> Comparison:
    """Accept a mean that is not more than a number of standard errors away from the prediction."""
    room = number * error
    return Comparison(
        quantity,
        float(measured),
        float(predicted),
        predicted - room,
        predicted + room,
        f"±{number:.3g} std. errors of {error:.2g}",
    )


def deviate(false_alarm: float, n_comparisons: int = 1) -> float:
    """Standard errors that n normal deviates all stay within, except with probability `false_alarm`."""
    return float(stats.norm.isf(0.5 * false_alarm / n_comparisons))


def binomial(quantity: str, successes: int, trials: int, probability: float, false_alarm: float) -> Comparison:
    """Accept a share of trials that chance allows; outside only with probability `false_alarm`."""
    low = stats.binom.ppf(0.5 * false_alarm, trials, probability)
    high = stats.binom.isf(0.5 * false_alarm, trials, probability)
    return Comparison(
        quantity,
        successes / trials,
        probability,
        float(low) / trials,
        float(high) / trials,
        f"{float(low) / trials:.3g} to {float(high) / trials:.3g} by chance",
    )


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
