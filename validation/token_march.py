"""Finitely many tokens on the circle in time, dθ_i/dt = V[μ_N](θ_i): by adaptive steps, or in layers.

Tokens keep their order on the circle, so they are sorted once and stay side by side with their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spectral_mf.arguments import positive_number
from spectral_mf.atoms import Atoms
from spectral_mf.errors import InputError, StoppedEarly
from spectral_mf.model import Model
from spectral_mf.solvers.adaptive import AdaptiveSolver
from spectral_mf.solvers.dop853 import Dop853, error_norm
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Snapshot, StepState
from spectral_mf.validation.token_velocity import TokenVelocity

FloatArray = NDArray[np.float64]


class TokenSolver(AdaptiveSolver):
    """Tokens that move by steps of the 8(5,3) method.

    Memory: 18 rows of N numbers for the method and about 7 for the tokens; 2 GB at N = 1e7.

    Parameters
    ----------
    model : Model
    t : float
        Initial time.
    tokens : Atoms
    options : MarchOptions
        `rtol` bounds the largest error of an angle in a step, relative to the largest |c_k|, k >= 1: growth rates are
        as accurate when the tokens are nearly uniform.
    step : StepState, optional
    kernel_modes, n_threads
        As for `TokenVelocity`.
    """

    method: ClassVar[str] = "particles"

    def __init__(
        self,
        model: Model,
        t: float,
        tokens: Atoms,
        options: MarchOptions,
        step: StepState | None = None,
        *,
        kernel_modes: int | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__(t, options)
        self._order = np.argsort(tokens.angles, kind="stable")
        self._velocity = TokenVelocity(
            model, tokens.weights[self._order], kernel_modes=kernel_modes, n_threads=n_threads
        )
        self._stepper = Dop853(self._velocity, tokens.angles[self._order])
        self._start_control(step, self._velocity.perturbation, float(np.abs(self._stepper.slope).max()))

    @property
    def n_modes(self) -> int:
        """Number of tokens."""
        return self._order.size

    def _error(self, errors: FloatArray) -> float:
        return error_norm(errors, self._options.rtol * self._velocity.perturbation)

    def _is_resolved(self) -> bool:
        return True

    def _refine(self) -> None:
        """Tokens need no resolution."""

    def _accepted(self) -> None:
        """Nothing to look at."""

    def snapshot(self) -> Snapshot:
        """The state as it is stored, tokens in their first order; the solver goes on from exactly that."""
        tokens = _reordered(self._stepper.y, self._velocity.weights, self._order)
        self._order = np.argsort(tokens.angles, kind="stable")
        self._velocity.weights = tokens.weights[self._order]
        np.take(tokens.angles, self._order, out=self._stepper.y)
        self._velocity(self._stepper.y, self._stepper.slope)
        return Snapshot(self.t, tokens, self.method, self.n_modes, step=self.step)


def march_particles(
    model: Model,
    start: Snapshot,
    times: FloatArray,
    options: MarchOptions,
    *,
    kernel_modes: int | None = None,
    n_threads: int = 1,
) -> Iterator[Snapshot]:
    """Move tokens to each output time with an adaptive step (see `spectral_mf.solvers.march.March`).

    Raises
    ------
    InputError
        At once, if the start is not `Atoms`, the model has diffusion, or a symmetry is to be kept exactly.
    """
    tokens = _tokens_of(model, start, options)
    step = start.step if start.method == "particles" else None
    solver = TokenSolver(model, start.t, tokens, options, step, kernel_modes=kernel_modes, n_threads=n_threads)
    return _snapshots(solver, times)


def _snapshots(solver: TokenSolver, times: FloatArray) -> Iterator[Snapshot]:
    try:
        for t in times:
            solver.advance(float(t))
            yield solver.snapshot()
    except StoppedEarly as stop:
        stop.snapshot = solver.snapshot()
        raise


def march_layers(
    model: Model,
    start: Snapshot,
    times: FloatArray,
    options: MarchOptions,
    *,
    layer_step: float,
    kernel_modes: int | None = None,
    n_threads: int = 1,
) -> Iterator[Snapshot]:
    """Move tokens through discrete layers, each normalised: x ← (x + h f(x)) / |x + h f(x)|.

    f is the velocity of the continuous model, tangent to the circle: f = V e with e ⟂ x. So x + h f stands at the angle
    θ + arctan(h V). (A layer that adds the attention's output U x + V e without the projection turns tokens by
    arctan(h V / (1 + h U)): the same layer with a step shorter by 1 + h U, and the same to first order in h.)

    Parameters
    ----------
    layer_step : float
        h, in units of time; output times lie whole numbers of layers apart.

    Raises
    ------
    InputError
        At once: as for `march_particles`, or if the step is not positive or does not divide the output times.
    """
    tokens = _tokens_of(model, start, options)
    layers = _layers_between(start.t, times, layer_step)
    velocity = partial(TokenVelocity, model, kernel_modes=kernel_modes, n_threads=n_threads)

    def snapshots() -> Iterator[Snapshot]:
        state, t = tokens, start.t
        for end, count in zip(times, layers, strict=True):
            order = np.argsort(state.angles, kind="stable")
            theta = state.angles[order]
            field, turn = velocity(state.weights[order]), np.empty_like(theta)
            for layer in range(count):
                field(theta, turn)
                theta += np.arctan(layer_step * turn)
                options.progress(t + (layer + 1) * layer_step, theta.size, "layers")
            state, t = _reordered(theta, field.weights, order), float(end)
            yield Snapshot(t, state, "layers", state.n_atoms)

    return snapshots()


def _tokens_of(model: Model, start: Snapshot, options: MarchOptions) -> Atoms:
    if model.diffusion > 0.0:
        raise InputError(
            f"diffusion = {model.diffusion:g} moves tokens at random; use "
            "spectral_mf.validation.noisy_particles.simulate_noisy, or diffusion = 0."
        )
    if not isinstance(start.measure, Atoms):
        raise InputError(f"particles start from Atoms, not from {start.measure!r}; draw tokens from it with sample().")
    if options.fold != 1:
        raise InputError(
            f"a symmetry of order {options.fold} is not kept exactly by tokens; "
            'use symmetry = "none", or method = "characteristics".'
        )
    return start.measure


def _layers_between(start: float, times: FloatArray, layer_step: float) -> list[int]:
    """Numbers of layers from each output time to the next."""
    layer_step = positive_number("layer_step", layer_step)
    counts = (times - start) / layer_step
    wrong = np.flatnonzero(np.abs(counts - np.rint(counts)) > 1e-9 * np.maximum(1.0, counts))
    if wrong.size:
        raise InputError(
            f"output time {times[wrong[0]]:g} is not a whole number of layers of {layer_step:g} after {start:g}; "
            "choose output times or layer_step so that it is."
        )
    return [int(n) for n in np.diff(np.rint(counts), prepend=0.0)]


def _reordered(theta: FloatArray, weights: FloatArray, order: NDArray[np.int64]) -> Atoms:
    """Tokens in the order that they had before sorting; the weights keep their bits."""
    vector = np.empty(2 * theta.size)
    vector[: theta.size][order] = theta
    vector[theta.size :][order] = weights
    return Atoms.from_vector(vector)
