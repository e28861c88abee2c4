"""Densities that depend on a position s in [0, 1]: dc_k(s)/dt = -i k F_k(s) - κ k² c_k(s), at Gauss-Legendre nodes.

The nodes are a batch of the spectral method: the velocity at each is made of the moments at all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm

from spectral_mf.arguments import integer_at_least, number_from_to
from spectral_mf.errors import InputError, ResolutionExhausted, StoppedEarly
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.output_times import time_grid
from spectral_mf.position_grid import PositionGrid
from spectral_mf.positional_heads import AnyPositionalSystem, PositionalHeadFields, positional_system
from spectral_mf.positional_trajectory import PositionalTrajectory
from spectral_mf.positions import PositionalAttention, PositionalFields
from spectral_mf.run_kinds import moment_now
from spectral_mf.solvers.march import MarchOptions, Progress, no_progress
from spectral_mf.solvers.position_nodes import NodeChoice
from spectral_mf.solvers.positional_recording import PositionalRecord
from spectral_mf.solvers.positivity import check_positive
from spectral_mf.solvers.spectral import SpectralRightHandSide, SpectralSolver, kept_modes

if TYPE_CHECKING:
    from spectral_mf.storage.positional_file import PositionalFile

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
PositionalInitial = FourierDensity | Callable[[float], FourierDensity]
"""The same density at all positions, or one for each."""

DEFAULT_MODES = 64

KNOWN_MASS = 1e-7
"""Where tokens see less than this share of the mean attention, Fourier sums know their velocity to 1e-9 at best."""

TOKENS = 1e-6
"""Densities below this share of the uniform one are no tokens that could be moved wrongly."""


class StoppedWithPositions(StoppedEarly):
    """A run with positions that could not reach its last output time.

    Attributes
    ----------
    rows : PositionalTrajectory
        All rows computed until then.
    """

    def __init__(self, message: str, time: float, rows: PositionalTrajectory) -> None:
        super().__init__(message, time)
        self.rows = rows


class PositionalRightHandSide(SpectralRightHandSide):
    """-i k F_k at all nodes; the rotation of the uniform density is kept apart, since it would drown the flux."""

    fields: PositionalFields | PositionalHeadFields

    def __init__(self, system: AnyPositionalSystem, n_points: int, fold: int) -> None:
        super().__init__(system, n_points, fold, system.grid.n_nodes)
        self._arguments = (system, n_points, fold)
        kept = kept_modes(n_points)
        k = np.where(np.arange(n_points // 2 + 1) <= kept, fold * np.arange(n_points // 2 + 1), 0)
        self._rotation = -1j * np.outer(system.turning, k) if system.model.rotary else None

    def __call__(self, c: ComplexArray, out: ComplexArray) -> None:
        """Write the rates of the moments c into out; both of shape (S, M // 2 + 1)."""
        super().__call__(c, out)
        if self._rotation is not None:
            out += self._rotation * c

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans and views into their arrays are made anew, not copied."""
        return PositionalRightHandSide, self._arguments


class PositionalSolver(SpectralSolver):
    """The spectral method for the densities at all nodes of a `PositionalSystem`.

    Positions move each other, so errors are measured against the largest perturbation of all: where one position has
    hardly any, as near s = 0 for data that vanish there, it has the others' rounding.
    """

    def __init__(self, system: AnyPositionalSystem, t: float, moments: ComplexArray, options: MarchOptions) -> None:
        self._system = system
        super().__init__(system, t, moments, options)

    _rhs: PositionalRightHandSide

    def _right_hand_side(self, n_densities: int) -> PositionalRightHandSide:
        return PositionalRightHandSide(self._system, self.n_points, self._fold)

    def _limit_step(self) -> None:
        speed = float(np.abs(self._rhs.fields.velocity).max() + np.abs(self._system.turning).max())
        self._largest_step = min(self._transport_limit / max(speed, 1e-300), self._damping_step)

    def _accepted(self) -> None:
        super()._accepted()
        self._check_softmax()

    def _refine(self) -> None:
        """Continue from the last accepted state on the next finer grid."""
        self._rhs.fields.evaluate(self.moments)
        self._check_softmax()  # what moves by rounding looks unresolved on every grid
        super()._refine()

    def _check_softmax(self) -> None:
        """See to it that the velocity on the grid is known where tokens are."""
        mass = self._rhs.fields.mass
        if mass is None:
            return
        blind = ((mass < KNOWN_MASS) & (self._rhs.fields.density > TOKENS)).any(axis=1)
        if blind.any():
            s = self._system.grid.nodes[int(np.argmax(blind))]
            raise StoppedEarly(
                f"at t = {self.t:.6g} tokens at position {s:.3g} see so few of the others that Fourier sums do not "
                "tell the softmax; take a smaller beta, or tokens, whose sums are direct there.",
                self.t,
            )

    def _measured_by(self, sizes: list[float]) -> list[float]:
        return [max(sizes)] * len(sizes)


def solve_positions(
    model: PositionalAttention,
    initial: PositionalInitial,
    times: float | ArrayLike,
    *,
    n_positions: int | None = None,
    grading: int | None = None,
    rtol: float = 1e-10,
    max_modes: int = 2048,
    n_modes: int | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    provenance: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> PositionalTrajectory:
    """Solve d_t mu_s + d_theta(mu_s V_s) = kappa d_theta^2 mu_s for all positions s in [0, 1].

    Parameters
    ----------
    model : PositionalAttention
    initial : FourierDensity, or callable from a position to one
        The density at each position.
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time.
    n_positions : int, optional
        Number of nodes in s, to be kept. By default 32, or as many as the start and the rows computed need, up to 256.
    grading : int, optional
        How nodes gather near s = 0 (see `spectral_mf.position_grid.PositionGrid`); by default the one of 1 to 4 that
        needs the fewest nodes at the start, or 1 if n_positions is given.
    rtol : float
        Error allowed a step, relative to the largest |c_k(s)|, k >= 1, of all positions; 1e-13 to 1e-2.
    max_modes : int
        Largest number of modes in theta.
    n_modes : int, optional
        Modes stored; by default 64, or the kernel's bandwidth if larger.
    output : path, optional
        HDF5 file that rows go to as they are computed; readable at any moment, also after the process is killed.
    overwrite : bool
        Whether `output` may replace an existing file.
    provenance : mapping, optional
        Where the initial densities came from; stored with the run as plain JSON.
    progress : callable, optional
        Called with (time, modes in use, method) after each step.

    Returns
    -------
    PositionalTrajectory
        Its `unresolved()` tells whether the nodes were enough: at most rtol / 10 or 1e-12 unless n_positions is given.

    Raises
    ------
    InputError
        If something given is not allowed. Nothing has been computed then.
    StoppedWithPositions
        If the densities became too sharp before the end, in theta or in s; its `rows` holds what was computed, and so
        does the file.
    StorageError
        If the file cannot be written; its `trajectory` holds what was computed.
    """
    nodes = NodeChoice(n_positions, grading, number_from_to("rtol", rtol, 1e-13, 1e-2))
    _checked_model(model)
    t = time_grid(times)
    grid, start = nodes.first(lambda grid: _initial_moments(initial, grid.nodes, nodes.rtol))
    used = np.flatnonzero(start[:, 1:].any(axis=0)) + 1
    options = MarchOptions(
        rtol=nodes.rtol,
        max_modes=integer_at_least("max_modes", max_modes, 64),
        fold=max(1, math.gcd(model.attention.turns, *used.tolist())),  # the symmetry of all positions and the model
        progress=progress or no_progress,
    )
    stored = max(DEFAULT_MODES, model.bandwidth) if n_modes is None else integer_at_least("n_modes", n_modes, 1)
    c = np.ascontiguousarray(start[:, :: options.fold])
    solver = PositionalSolver(positional_system(model, grid), float(t[0]), c, options)
    origin = dict(provenance or {"description": repr(initial)})
    configuration = {
        "rtol": options.rtol,
        "max_modes": options.max_modes,
        "symmetry": options.fold,
        "times": t.tolist(),
        "initial": origin,
        "seed": origin.get("seed"),
        "started": moment_now(),
    }
    record = PositionalRecord(model, grid, t, configuration, _file_for(output, overwrite))
    try:
        record.add(_unfolded(solver.moments, options.fold, stored), solver.n_modes)
        for before, now in pairwise(t.tolist()):
            c = solver.moments.copy()
            solver.advance(now)
            while finer := nodes.finer(record.grid, solver.moments, now):
                c = record.grid.interpolation(finer.nodes) @ c
                record.refine(finer)
                solver = PositionalSolver(positional_system(model, finer), before, c, options)
                solver.advance(now)
            record.add(_unfolded(solver.moments, options.fold, stored), solver.n_modes)
    except ResolutionExhausted as stop:
        message = (
            f"at t = {stop.time:.6g} the density at a position has become too sharp for max_modes = "
            f"{options.max_modes}; raise max_modes, end the run earlier, or take tokens."
        )
        raise StoppedWithPositions(message, stop.time, record.end(f"stopped early: {message}")) from stop
    except StoppedEarly as stop:
        raise StoppedWithPositions(str(stop), stop.time, record.end(f"stopped early: {stop}")) from stop
    except BaseException as error:
        record.end_by(error)
        raise
    return record.end("complete")


def _file_for(output: str | Path | None, overwrite: bool) -> PositionalFile | None:
    if output is None:
        return None
    from spectral_mf.storage.positional_file import PositionalFile

    return PositionalFile.create(output, overwrite=overwrite)


def solve_linear_positions(
    model: PositionalAttention, initial: ArrayLike, k: int, times: ArrayLike, grid: PositionGrid
) -> ComplexArray:
    """Solve the linearisation about the uniform density for mode k, exactly in time.

    Parameters
    ----------
    model : PositionalAttention
    initial : array_like of complex, shape (S,) or (S, n)
        c_k at the nodes of the grid, at time 0; columns are several data.
    k : int
        Mode, >= 1.
    times : array_like of float, shape (n_times,)
    grid : PositionGrid

    Returns
    -------
    ndarray of complex128, shape (n_times, S) or (n_times, S, n)
    """
    operator = positional_system(_checked_model(model), grid).linear_operator(integer_at_least("k", k, 1))
    start = np.asarray(initial, dtype=np.complex128)
    if start.ndim not in (1, 2) or start.shape[0] != grid.n_nodes:
        raise InputError(f"initial values have shape {start.shape}; give one for each of {grid.n_nodes} positions.")
    return np.array([expm(float(t) * operator) @ start for t in np.asarray(times, dtype=np.float64)])


def _checked_model(model: object) -> PositionalAttention:
    if not isinstance(model, PositionalAttention):
        raise InputError(
            f"model = {model!r} has no positions; give a PositionalAttention, or use solve for a model without them."
        )
    return model


def _initial_moments(initial: PositionalInitial, nodes: FloatArray, rtol: float) -> ComplexArray:
    """Moments of the density at each node, up to the largest mode that any has; shape (S, K + 1).

    Raises
    ------
    InputError
        If there is no density at a node, or it is negative somewhere.
    """
    if isinstance(initial, FourierDensity):
        densities = [initial] * nodes.size
    elif callable(initial) and not isinstance(initial, type):
        densities = [initial(float(s)) for s in nodes]
    else:
        densities = []
    if not densities or not all(isinstance(density, FourierDensity) for density in densities):
        raise InputError(
            f"initial = {initial!r} gives no densities; give a FourierDensity, or a function from a position to one."
        )
    for density in dict.fromkeys(densities):
        check_positive(density, rtol)
    n_modes = max(1, *(density.n_modes for density in densities))
    return np.array([density.moments(n_modes) for density in densities])


def _unfolded(c: ComplexArray, fold: int, n_modes: int) -> ComplexArray:
    """Moments c_0 .. c_{n_modes} from every fold-th; shape (S, n_modes + 1)."""
    full = np.zeros((c.shape[0], n_modes + 1), dtype=np.complex128)
    target = full[:, ::fold]
    n = min(target.shape[1], c.shape[1])
    target[:, :n] = c[:, :n]
    return full
