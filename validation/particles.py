"""Finitely many tokens on the circle, dθ_i/dt = V[μ_N](θ_i), μ_N = Σ_i w_i δ_{θ_i}.

Velocities come from the tokens' moments, in O(N) operations (see `spectral_mf.validation.fast_sums`). Tokens keep their
order on the circle, so they are sorted once and stay side by side with their neighbours.

A token sees itself: its softmax denominator, relative to the mean of the denominator over the circle, is at least
w_i e^β / I_0(β), which is at least w_i, and about w_i √(2πβ) for large β. With equal weights that is 1/N or more, and
the rounding error of a velocity made of moments is at most about 1e-16 N. Only tokens of weight below 1e-10 can be out
of sight of moments; these, and all of few tokens (whose motion between clusters may be as slow as e^{-2β}), are moved
by direct sums.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, integer_at_least, number_from_to, positive_number
from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.errors import InputError, StoppedEarly
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.solvers.adaptive import AdaptiveSolver
from spectral_mf.solvers.dop853 import Dop853, error_norm
from spectral_mf.solvers.march import March, MarchOptions, Progress, no_progress
from spectral_mf.trajectory import Row, RunInfo, Snapshot, StepState, Trajectory, nonnegative_cells
from spectral_mf.validation.fast_sums import TokenSums, fast_sums, token_moments

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

FEW = 64
"""Up to this many tokens, direct sums are as quick as moments, and keep the digits of the slowest motions."""

LEAST_MASS_SEEN = 1e-10
"""Where the softmax's denominator is less than this share of its mean, moments do not tell the velocity."""

LEAST_SERIES_MASS = 1e-4
"""Where a denominator is less than this, its series has lost more than four digits."""

STATES_KEPT = 2**24
"""Tokens x rows up to which a trajectory keeps the tokens themselves in all rows (256 MiB)."""

CONDENSED_CELLS = 2**14
"""Cells in which tokens are joined for the rows that do not keep them."""


class TokenVelocity:
    """Velocity of tokens under their own interaction.

    Parameters
    ----------
    model : Model
    weights : ndarray of float64, shape (N,)
    kernel_modes : int, optional
        Modes through which tokens interact; by default all that the kernel has.
    n_threads : int
        Threads that finufft uses.
    """

    def __init__(
        self, model: Model, weights: FloatArray, *, kernel_modes: int | None = None, n_threads: int = 1
    ) -> None:
        self.model = model
        self.weights = weights
        self.moments: ComplexArray = np.ones(1, dtype=np.complex128)
        n_modes = model.bandwidth if kernel_modes is None else min(kernel_modes, model.bandwidth)
        self._pairs = weights.size <= FEW and kernel_modes is None
        self._sums: TokenSums = fast_sums(weights.size, n_modes, in_order=True, n_threads=n_threads)

    def __call__(self, theta: FloatArray, out: FloatArray) -> None:
        """Write the velocities of tokens at the angles theta into `out`, both of shape (N,); keep their moments."""
        self._sums.place(theta)
        self.moments = self._sums.moments(self.weights)
        if self._pairs:
            out[:] = self.model.pair_velocity(theta, theta, self.weights)
            return
        first, *others = self.model.velocity_series(self.moments)[..., : self.moments.size]
        unseen = self._write_term(first, out)
        for term in others:
            velocity = np.empty_like(out)
            unseen = unseen | self._write_term(term, velocity)
            out += velocity
        if unseen.any():
            out[unseen] = self._velocity_of_few(theta[unseen], theta)

    def _velocity_of_few(self, few: FloatArray, theta: FloatArray) -> FloatArray:
        """Velocities of tokens whose series have lost digits: by the model's own sums, or by direct ones."""
        velocity, mass = self.model.velocity_and_mass(self.moments, few)
        unseen = mass < LEAST_MASS_SEEN
        if unseen.any():
            velocity[unseen] = self.model.pair_velocity(few[unseen], theta, self.weights)
        return velocity

    def _write_term(self, series: ComplexArray, out: FloatArray) -> NDArray[np.bool_]:
        """Write one term of the velocity into `out`; return for which tokens it lost digits, shape (N,) or ()."""
        sums = self._sums.sums(series)
        if sums.shape[0] == 1:
            out[:] = sums[0]
            return np.zeros((), dtype=np.bool_)
        with np.errstate(divide="ignore", invalid="ignore"):
            np.divide(sums[0], sums[1], out=out)
        if sums[1].min() >= LEAST_SERIES_MASS:  # the usual case makes no array of N
            return np.zeros((), dtype=np.bool_)
        return np.asarray(sums[1] < LEAST_SERIES_MASS)

    @property
    def perturbation(self) -> float:
        """Largest |c_k|, k >= 1, of the tokens seen last."""
        return float(np.abs(self.moments[1:]).max())


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


def simulate(
    model: Model,
    tokens: Atoms,
    times: float | ArrayLike,
    *,
    rtol: float = 1e-8,
    method: Literal["adaptive", "euler"] = "adaptive",
    layer_step: float | None = None,
    kernel_modes: int | None = None,
    n_modes: int | None = None,
    n_cells: int = 512,
    keep_states: bool | None = None,
    n_threads: int = 1,
    provenance: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Move N tokens on the circle.

    Parameters
    ----------
    model : Model
        Without diffusion.
    tokens : Atoms
        Any number, with any weights (`sample_tokens`, `Atoms(angles)`, ...).
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time.
    rtol : float
        Largest error of an angle in a step, relative to the largest |c_k|, k >= 1; 1e-13 to 1e-2.
    method : {"adaptive", "euler"}
        "euler": layers of a transformer (see `march_layers`), with `layer_step` between them.
    layer_step : float, optional
        Time between two layers.
    kernel_modes : int, optional
        Modes through which tokens interact; by default all that the kernel has. Fewer are warned of.
    n_modes : int, optional
        Modes stored in a row; by default 64, or the kernel's bandwidth if larger.
    n_cells : int
        Cells on which the density is stored.
    keep_states : bool, optional
        Whether all rows keep the tokens. If not, rows but the last hold the tokens of each of 16384 cells joined at
        their mean (`condensed`), with moments, cells and energy of the tokens themselves. By default, whether N times
        the number of rows is at most 2^24.
    n_threads : int
        Threads that finufft uses.
    provenance : mapping, optional
        Where the tokens came from, such as their seed; stored with the run as plain JSON.
    progress : callable, optional
        Called with (time, N, method) after each step.

    Returns
    -------
    Trajectory
        Of method "particles", or "layers".

    Raises
    ------
    InputError
        If something given is not allowed.
    StoppedEarly
        If the run could not reach its end; its `trajectory` holds all rows until then.
    """
    if not isinstance(tokens, Atoms):
        raise InputError(f"tokens = {tokens!r} are not tokens; give Atoms, such as sample_tokens(1000, seed).")
    grid = time_grid(times)
    check_model(model)
    rtol = number_from_to("rtol", rtol, 1e-13, 1e-2)
    n_cells, n_threads = integer_at_least("n_cells", n_cells, 4), integer_at_least("n_threads", n_threads, 1)
    n_modes = None if n_modes is None else integer_at_least("n_modes", n_modes, 1)
    march = _march(method, layer_step, model, kernel_modes, n_threads)
    keep = tokens.n_atoms * grid.size <= STATES_KEPT if keep_states is None else keep_states
    origin = dict(provenance or {"description": repr(tokens)})
    info = RunInfo(
        model=model,
        configuration={
            "method": "particles" if method == "adaptive" else "layers",
            "layer_step": layer_step,
            "kernel_modes": kernel_modes,
            "rtol": rtol,
            "symmetry": 1,
            "times": grid.tolist(),
            "initial": origin,
            "seed": origin.get("seed"),
        },
        n_modes=max(64, model.bandwidth) if n_modes is None else n_modes,
        n_cells=n_cells,
    )
    start = Snapshot(float(grid[0]), tokens, info.configuration["method"], tokens.n_atoms)
    snapshots = march(model, start, grid[1:], MarchOptions(rtol=rtol, progress=progress or no_progress))
    rows = [_row(start, info, n_threads)]
    try:
        for snapshot in snapshots:
            if not keep:
                rows[-1] = _condensed_row(rows[-1])
            rows.append(_row(snapshot, info, n_threads))
    except StoppedEarly as stop:
        stop.trajectory = Trajectory(replace(info, status=f"stopped early: {stop}"), rows)
        raise
    return Trajectory(replace(info, complete=True, status="complete"), rows)


def condensed(tokens: Atoms, n_cells: int = CONDENSED_CELLS) -> Atoms:
    """Join the tokens of each of n equal cells at their mean; W1 to the tokens is at most pi / n.

    Returns
    -------
    Atoms
        At most n of them.
    """
    cell = np.minimum((tokens.angles * (n_cells / TWO_PI)).astype(np.int64), n_cells - 1)
    mass = np.bincount(cell, weights=tokens.weights, minlength=n_cells)
    total = np.bincount(cell, weights=tokens.weights * tokens.angles, minlength=n_cells)
    used = mass > 0.0
    return Atoms(total[used] / mass[used], mass[used])


def _row(snapshot: Snapshot, info: RunInfo, n_threads: int) -> Row:
    """As `Row.from_snapshot`, with faster moments."""
    tokens = snapshot.measure
    assert isinstance(tokens, Atoms)
    n_modes = max(info.n_modes, info.model.bandwidth)
    moments = token_moments(tokens.angles, tokens.weights, n_modes, n_threads=n_threads)
    return Row(
        snapshot=snapshot,
        moments=moments[: info.n_modes + 1],
        cells=nonnegative_cells(tokens.cell_means(info.n_cells)),
        energy=float(info.model.energy(moments)),
        mass=float(tokens.weights.sum()),
    )


def _condensed_row(row: Row) -> Row:
    assert isinstance(row.snapshot.measure, Atoms)
    return replace(row, snapshot=replace(row.snapshot, measure=condensed(row.snapshot.measure)))


def _march(method: str, layer_step: float | None, model: Model, kernel_modes: int | None, n_threads: int) -> March:
    if kernel_modes is not None:
        kernel_modes = integer_at_least("kernel_modes", kernel_modes, 1)
        if kernel_modes < model.bandwidth:
            warnings.warn(
                f"kernel_modes = {kernel_modes} cuts the interaction short, which needs {model.bandwidth} modes; "
                "leave kernel_modes out to have them all.",
                stacklevel=3,
            )
    if method == "adaptive":
        if layer_step is not None:
            raise InputError('layer_step belongs to method = "euler"; leave it out.')
        return partial(march_particles, kernel_modes=kernel_modes, n_threads=n_threads)
    if method != "euler":
        raise InputError(f"method = {method!r} is unknown; choose one of adaptive, euler.")
    if layer_step is None:
        raise InputError('method = "euler" needs layer_step, the time between two layers.')
    return partial(march_layers, layer_step=layer_step, kernel_modes=kernel_modes, n_threads=n_threads)


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
