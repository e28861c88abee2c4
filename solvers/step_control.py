"""Choice of the step size from the error of the last steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spectral_mf.trajectory import StepState


@dataclass
class StepController:
    """Proportional-integral control for a method whose error falls like h^8.

    Attributes
    ----------
    step_size : float
        Proposal for the next step, before any limit from stability or output times.
    previous_error : float
        Normalised error of the last accepted step.

    References
    ----------
    Hairer, Wanner, Solving Ordinary Differential Equations II, section IV.2 (PI step size control).
    """

    step_size: float
    previous_error: float = 1e-4

    SAFETY: ClassVar[float] = 0.9
    INTEGRAL: ClassVar[float] = 0.04
    PROPORTIONAL: ClassVar[float] = 1.0 / 8.0 - 0.75 * INTEGRAL
    SMALLEST: ClassVar[float] = 0.2
    LARGEST: ClassVar[float] = 6.0

    def accepts(self, error: float, h: float) -> bool:
        """Learn from a step of size h with this normalised error; return whether it is accurate enough.

        A step that was shortened to hit an output time does not shorten the proposal.
        """
        if error <= 1.0:
            factor = self.SAFETY * max(error, 1e-10) ** -self.PROPORTIONAL * self.previous_error**self.INTEGRAL
            proposal = h * min(self.LARGEST, max(self.SMALLEST, factor))
            self.step_size = proposal if h >= self.step_size else max(self.step_size, proposal)
            self.previous_error = max(error, 1e-4)
            return True
        factor = self.SAFETY * error**-self.PROPORTIONAL if error < float("inf") else self.SMALLEST  # nan: smallest
        self.step_size = h * max(self.SMALLEST, min(self.SAFETY, factor))
        return False

    def state(self) -> StepState:
        """Everything needed to go on bit for bit."""
        return StepState(self.step_size, self.previous_error)
