"""A claim's verdict, as it is stored and read again."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from spectral_mf.validation.findings import Comparison, Finding


@dataclass(frozen=True)
class Verdict:
    """What came of measuring a claim.

    Attributes
    ----------
    claim : str
        The claim's id.
    holds : bool
    sentence : str
        The verdict in words.
    comparisons : sequence of Comparison
    pictures : sequence of mapping
        "name", "alt" and "caption" of each; its files are `figures/{claim}-{name}.svg` and `.png`.
    runs : sequence of str
        Names of the HDF5 files in `runs/`.
    parameters : mapping
    code : str
        Fingerprint of the code that measured it.
    seconds : float
        Wall time.
    finished : str
        When, in UTC.
    error : str
        Traceback, if the check itself broke.
    """

    claim: str
    holds: bool
    sentence: str
    comparisons: Sequence[Comparison]
    parameters: Mapping[str, Any]
    code: str
    seconds: float
    pictures: Sequence[Mapping[str, str]] = ()
    runs: Sequence[str] = ()
    finished: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    error: str = ""

    @property
    def seeds(self) -> dict[str, int | list[int]]:
        """The parameters that are seeds, or lists of them."""
        return {name: value for name, value in self.parameters.items() if name.startswith("seed")}

    @property
    def tightest(self) -> Comparison | None:
        """The comparison that is closest to the edge of what is accepted, or farthest beyond it."""
        return max(self.comparisons, key=lambda comparison: comparison.strain, default=None)

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        plain = asdict(self)
        plain["comparisons"] = [comparison.to_dict() for comparison in self.comparisons]
        plain["seeds"] = self.seeds
        return plain

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Verdict:
        """Make it again from `to_dict`."""
        values = {name: stored[name] for name in cls.__dataclass_fields__}
        values["comparisons"] = [Comparison.from_dict(entry) for entry in stored["comparisons"]]
        return cls(**values)


def verdict_sentence(finding: Finding) -> str:
    """The verdict in words: how many comparisons hold, what does not, and what was seen."""
    outside = [comparison for comparison in finding.comparisons if not comparison.holds]
    number = len(finding.comparisons)
    if not number:
        return f"Fails: nothing was compared. {finding.summary}"
    if not outside:
        counted = "The comparison is" if number == 1 else f"All {number} comparisons are"
        return f"Holds. {counted} within what is accepted. {finding.summary}"
    worst = max(outside, key=lambda comparison: comparison.strain)
    return (
        f"Fails. {len(outside)} of {number} comparisons {'is' if len(outside) == 1 else 'are'} outside what is "
        f"accepted; farthest: {worst.quantity}, measured {worst.measured:.6g}, predicted {worst.predicted:.6g} "
        f"({worst.rule}). {finding.summary}"
    )


def error_sentence(error: BaseException) -> str:
    """The verdict on a claim whose check broke."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"Fails: the check ended with {type(error).__name__} in {last.name}: {error}"
