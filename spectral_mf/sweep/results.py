"""What is kept of a case, and how one case is written as bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

OUTCOMES = ("complete", "stopped", "failed")
"""What becomes of a case: it reaches the last output time, stops before (rows until then are kept), or has no rows."""


@dataclass(frozen=True)
class Variable:
    """A number, or a row of numbers, of every case.

    Attributes
    ----------
    dimensions : tuple of str
        Dimensions behind those of the grid.
    units, long_name : str
    fill : float or int
        Stands where a case has no value; its type is that of the variable.
    """

    dimensions: tuple[str, ...]
    units: str
    long_name: str
    fill: float | int = float("nan")

    @property
    def dtype(self) -> type:
        """Type of the numbers."""
        return np.int32 if isinstance(self.fill, int) else np.float64


VARIABLES: Mapping[str, Variable] = {
    "moment_real": Variable(("time", "mode"), "1", "real part of the moment c_k = int exp(-i k theta) dmu"),
    "moment_imag": Variable(("time", "mode"), "1", "imaginary part of the moment c_k = int exp(-i k theta) dmu"),
    "energy": Variable(("time",), "exp(energy_log_unit)", "interaction energy; nan if the model has none"),
    "n_clusters": Variable(("time",), "1", "number of clusters", -1),
    "energy_log_unit": Variable((), "1", "energies are in units of the exponential of this"),
    "k_max": Variable(
        (),
        "1",
        "mode that grows fastest about the uniform density (the lower one in a tie), if each grows by itself",
        -1,
    ),
    "exit_time": Variable((), "1", "time at which the largest |c_k|, k >= 1, first reaches 0.1"),
    "formation_time": Variable((), "1", "time at which all clusters are narrower than the resolution of clusters"),
    "last_time": Variable((), "1", "last output time that was reached"),
}
"""What is kept of a case beside its outcome and message."""


def bytes_of_case(n_times: int, n_modes: int) -> int:
    """Size of the numbers of one case with all its rows."""
    lengths = {"time": n_times, "mode": n_modes + 1}
    return sum(
        np.dtype(variable.dtype).itemsize * math.prod(lengths[one] for one in variable.dimensions)
        for variable in VARIABLES.values()
    )


@dataclass(frozen=True)
class CaseResult:
    """One finished case.

    Attributes
    ----------
    number : int
        Its number in the plan.
    outcome : str
        One of `OUTCOMES`.
    message : str
        Why it stopped or failed; empty if complete.
    values : mapping
        Arrays by the name of the variable, as far as there are any; rows may end before the last output time.
    """

    number: int
    outcome: str
    message: str
    values: Mapping[str, NDArray[Any]]

    def to_bytes(self) -> bytes:
        """Bytes from which `from_bytes` makes the result again, bit for bit."""
        arrays = [(name, value.dtype.str, value.shape) for name, value in self.values.items()]
        head = {"number": self.number, "outcome": self.outcome, "message": self.message, "arrays": arrays}
        return b"\n".join([json.dumps(head).encode("ascii"), b"".join(a.tobytes() for a in self.values.values())])

    @classmethod
    def from_bytes(cls, content: bytes) -> CaseResult:
        """Make a result again from what `to_bytes` gave."""
        line, _, rest = content.partition(b"\n")
        head = json.loads(line)
        values, start = {}, 0
        for name, kind, shape in head["arrays"]:
            count = math.prod(shape)
            values[name] = np.frombuffer(rest, dtype=kind, count=count, offset=start).reshape(shape)
            start += values[name].nbytes
        return cls(head["number"], head["outcome"], head["message"], values)
