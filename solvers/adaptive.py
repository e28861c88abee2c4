"""Adaptive stepping that the nonlinear methods share: step, judge, refine, accept; output times are hit exactly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spectral_mf.errors import Diverged
from spectral_mf.solvers.dop853 import Dop853
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.step_control import StepController
from spectral_mf.trajectory import StepState

FloatArray = NDArray[np.float64]

SMALLEST_STEP = 1e-300
"""No flow is this fast; steps get here when the state is no longer finite."""


class AdaptiveSolver(ABC):
    """A state that moves by steps of the 8(5,3) method.

    A subclass sets `_stepper`, says how large an error is, whether a trial state is still resolved, and how to resolve
    the last accepted state better.

    Attributes
    ----------
    method : str
        Its name in a snapshot.
    t : float
        Time reached.
    n_steps, n_rejected : int
        Steps accepted, and steps repeated for their error.
    """

    method: ClassVar[str]
    _stepper: Dop853
    _control: StepController

    def __init__(self, t: float, options: MarchOptions) -> None:
        self.t = t
        self.n_steps = 0
        self.n_rejected = 0
        self._options = options
        self._largest_step = np.inf

    @property
    @abstractmethod
    def n_modes(self) -> int:
        """Modes, nodes or atoms in use."""

    @abstractmethod
    def _error(self, errors: FloatArray) -> float:
        """Size of the error estimates of the last attempt; at most 1 is accurate enough."""

    def _will_blur(self, h: float) -> bool:
        """Whether a forecast says that a step of size h ends in a state that is not resolved."""
        return False

    @abstractmethod
    def _is_resolved(self) -> bool:
        """Whether the trial state is resolved as well as the error allows."""

    @abstractmethod
    def _refine(self) -> None:
        """Resolve the last accepted state better."""

    @abstractmethod
    def _accepted(self) -> None:
        """Look at the new state after a step."""

    @property
    def step(self) -> StepState:
        """Where the step-size controller is."""
        return self._control.state()

    def _start_control(self, step: StepState | None, perturbation: float, rate: float) -> None:
        """Take up a controller, or guess the first step from the size of the perturbation and of its rate."""
        if step is not None and np.isfinite(step.step_size):
            self._control = StepController(step.step_size, step.previous_error)
            return
        relative = rate / perturbation if perturbation > 0.0 else 0.0
        guess = 0.5 * self._options.rtol ** (1.0 / 8.0) / relative if relative > 0.0 else np.inf
        self._control = StepController(min(guess, 1e300))

    def advance(self, t_end: float) -> None:
        """Go on until exactly `t_end`."""
        while self.t < t_end:
            self.one_step(t_end)

    def one_step(self, t_end: float) -> None:
        """Take one accepted step, not beyond `t_end`, with as many sizes and resolutions as that needs."""
        while True:
            h, last = self._next_step(t_end)
            if self._will_blur(h):
                self._refine()
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                error = self._error(self._stepper.attempt(h))
            if not self._control.accepts(error, h):
                self.n_rejected += 1
                continue
            if not self._is_resolved():
                self._refine()
                continue
            self._stepper.accept()
            self.t = t_end if last else self.t + h
            self.n_steps += 1
            self._accepted()
            self._options.progress(self.t, self.n_modes, self.method)
            return

    def _next_step(self, t_end: float) -> tuple[float, bool]:
        """Size of the next step, and whether it ends at `t_end`; the last two share what remains."""
        remaining = t_end - self.t
        h = min(self._control.step_size, self._largest_step)
        if h >= remaining * (1.0 - 1e-12):
            return remaining, True
        if not h > max(1e-15 * abs(self.t), SMALLEST_STEP):
            raise Diverged(
                f"at t = {self.t:.6g} the solution is no longer finite or needs steps below rounding ({h:.2g}); "
                "check the initial state, or lower max_modes.",
                self.t,
            )
        return min(h, 0.5 * remaining) if h > 0.5 * remaining else h, False
