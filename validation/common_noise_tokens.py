"""Finitely many tokens with common noise, dθ_i = V[μ_N](θ_i) dt + Σ_j σ_j(θ_i) ∘ dB_j + √(2κ) dW_i, on a given path.

B is one path for all tokens, W_i is each token's own. Along a path that is straight between its times tokens follow an
ordinary equation, solved to a tolerance. Their own noise comes in kicks of half a step before and after each step of
the path, which is of weak order 1 in the step of the path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, finite_number, integer_at_least, number_from_to
from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.brownian_path import BrownianPath, checked_paths
from spectral_mf.errors import InputError
from spectral_mf.harmonics import fourier_sum
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.run_kinds import moment_now
from spectral_mf.solvers.adaptive import AdaptiveSolver
from spectral_mf.solvers.common_noise import check_calculus, check_fields
from spectral_mf.solvers.dop853 import Dop853, error_norm
from spectral_mf.solvers.driven import follow
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Row, RunInfo, Snapshot, Trajectory, nonnegative_cells
from spectral_mf.validation.fast_sums import token_moments
from spectral_mf.validation.noisy_particles import Increments
from spectral_mf.validation.token_velocity import TokenVelocity
from spectral_mf.vector_fields import VectorFields

FloatArray = NDArray[np.float64]


class CommonNoiseTokenSolver(AdaptiveSolver):
    """Tokens along one path, or tokens that do not feel each other along a path each.

    Parameters
    ----------
    model : Model, optional
        None: tokens do not interact.
    fields : VectorFields
    t : float
        Initial time.
    angles, weights : ndarray of float64, shape (N,)
    options : MarchOptions
        `rtol` bounds the error of an angle (radians) in a step.
    """

    method: ClassVar[str] = "common-noise particles"

    def __init__(
        self,
        model: Model | None,
        fields: VectorFields,
        t: float,
        angles: FloatArray,
        weights: FloatArray,
        options: MarchOptions,
    ) -> None:
        super().__init__(t, options)
        self._fields, self._weights = fields, weights
        self._rates: FloatArray = np.zeros((1, fields.n_fields))
        self._velocity = None if model is None else TokenVelocity(model, weights)
        self._stepper = Dop853(self._rhs, self._in_order(angles))
        self._start_control(None, 1.0, float(np.abs(self._stepper.slope).max()))

    def _in_order(self, angles: FloatArray) -> FloatArray:
        """Angles as the fast sums want them, increasing; a flow keeps them so, kicks do not."""
        if self._velocity is None:
            self._order = np.arange(angles.size)
            return angles
        reduced = angles % TWO_PI
        self._order = np.argsort(reduced, kind="stable")
        self._velocity.weights = self._weights[self._order]
        return np.asarray(reduced[self._order])

    def _rhs(self, theta: FloatArray, out: FloatArray) -> None:
        if self._rates.shape[0] == 1:
            drift = fourier_sum(self._fields.combined(self._rates[0]), theta)
        else:
            drift = np.einsum("nj,jn->n", self._rates[self._order], self._fields.at(theta))
        if self._velocity is None:
            out[:] = drift
            return
        self._velocity(theta, out)
        out += drift

    def drive(self, rates: FloatArray) -> None:
        """Take up rates dB/dt, shape (1, n_fields), or (N, n_fields) for a path of each token."""
        self._rates = rates
        self._rhs(self._stepper.y, self._stepper.slope)

    def kick(self, displacement: FloatArray) -> None:
        """Move each token by its own displacement, shape (N,); `drive` has to come next."""
        self._stepper.y[:] = self._in_order(self.angles + displacement)

    @property
    def angles(self) -> FloatArray:
        """Angles in the tokens' first order; shape (N,)."""
        theta = np.empty_like(self._stepper.y)
        theta[self._order] = self._stepper.y
        return theta

    @property
    def n_modes(self) -> int:
        """Number of tokens."""
        return self._order.size

    def _error(self, errors: FloatArray) -> float:
        return error_norm(errors, self._options.rtol)

    def _is_resolved(self) -> bool:
        return True

    def _refine(self) -> None:
        """Tokens need no resolution."""

    def _accepted(self) -> None:
        """Nothing to look at."""


def simulate_common_noise(
    model: Model,
    tokens: Atoms,
    fields: VectorFields,
    path: BrownianPath,
    times: float | ArrayLike,
    *,
    calculus: str = "stratonovich",
    rtol: float = 1e-8,
    seed: int | None = None,
    n_modes: int | None = None,
    n_cells: int = 512,
    provenance: Mapping[str, Any] | None = None,
) -> Trajectory:
    """Move N tokens that one Brownian path drives.

    Parameters
    ----------
    model : Model
        Its diffusion κ gives each token noise √(2κ) dW of its own.
    tokens : Atoms
    fields : VectorFields
    path : BrownianPath
        The same as the density's, to compare with it.
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time; all
        on the path.
    calculus : {"stratonovich"}
    rtol : float
        Error allowed in an angle, in radians, a step; 1e-13 to 1e-2.
    seed : int, optional
        Seed of the tokens' own noise; needed with diffusion.
    n_modes, n_cells, provenance
        As for `simulate`.

    Returns
    -------
    Trajectory
        Of method "common-noise particles".

    Raises
    ------
    InputError
        If something given is not allowed. Nothing has been computed then.
    """
    check_model(model)
    check_calculus(calculus)
    check_fields(fields, path)
    if not isinstance(tokens, Atoms):
        raise InputError(f"tokens = {tokens!r} are not tokens; give Atoms, such as sample_tokens(1000, seed).")
    grid = path.checked(time_grid(times))
    if model.diffusion > 0.0 and seed is None:
        raise InputError(f"diffusion = {model.diffusion:g} gives tokens noise of their own; give its seed.")
    own = Increments(seed, tokens.n_atoms) if seed is not None and model.diffusion > 0.0 else None
    options = MarchOptions(rtol=number_from_to("rtol", rtol, 1e-13, 1e-2))
    info = RunInfo(
        model=model,
        configuration={
            "method": "common-noise particles",
            "rtol": options.rtol,
            "seed": seed,
            "symmetry": 1,
            "times": grid.tolist(),
            "fields": fields.to_dict(),
            "path": path.to_dict(),
            "initial": dict(provenance or {"description": repr(tokens)}),
            "started": moment_now(),
        },
        n_modes=max(64, model.bandwidth) if n_modes is None else integer_at_least("n_modes", n_modes, 1),
        n_cells=integer_at_least("n_cells", n_cells, 4),
        complete=True,
        status="complete",
    )
    solver = CommonNoiseTokenSolver(model, fields, float(grid[0]), tokens.angles, tokens.weights, options)
    rows = [_row(info, tokens, float(grid[0]))]
    for t in _through(solver, path, grid, model.diffusion, own):
        rows.append(_row(info, Atoms.from_vector(np.concatenate([solver.angles, tokens.weights])), t))
    return Trajectory(info, rows)


def _through(
    solver: CommonNoiseTokenSolver, path: BrownianPath, grid: FloatArray, diffusion: float, own: Increments | None
) -> Iterator[float]:
    """Carry tokens to each output time but the first, and yield it."""
    rates = path.rates[:, np.newaxis]
    number = 0
    for t in grid[1:].tolist():
        inner = path.times[(path.times > solver.t) & (path.times < t)].tolist()
        for end in [*inner, t]:
            h = end - solver.t
            if own is not None:
                solver.kick(math.sqrt(2.0 * diffusion) * own(number, 0.5 * h))
            follow(solver, path.times, rates, end)
            if own is not None:
                solver.kick(math.sqrt(2.0 * diffusion) * own(number + 1, 0.5 * h))
            number += 2
        yield t


def _row(info: RunInfo, tokens: Atoms, t: float) -> Row:
    """As `Row.from_snapshot`, with faster moments."""
    moments = token_moments(tokens.angles, tokens.weights, max(info.n_modes, info.model.bandwidth))
    return Row(
        snapshot=Snapshot(t, tokens, CommonNoiseTokenSolver.method, tokens.n_atoms),
        moments=moments[: info.n_modes + 1],
        cells=nonnegative_cells(tokens.cell_means(info.n_cells)),
        energy=float(info.model.energy(moments)),
        mass=float(tokens.weights.sum()),
    )


def pair_distances(
    fields: VectorFields,
    paths: Sequence[BrownianPath],
    angles: ArrayLike,
    distance: float,
    *,
    rtol: float = 1e-9,
) -> FloatArray:
    """Distances, at the end of each path, of two tokens that do not feel each other and began close together.

    Parameters
    ----------
    fields : VectorFields
    paths : sequence of BrownianPath
        With the same times.
    angles : array_like of float, shape (n_paths,)
        Where the first token of each pair begins.
    distance : float
        How far from it the second one begins, in radians.
    rtol : float
        Error allowed in an angle, in radians, a step.

    Returns
    -------
    ndarray of float64, shape (n_paths,)
        Not reduced modulo 2 pi; of the sign of `distance`.
    """
    together = checked_paths(paths)
    check_fields(fields, together[0])
    first = np.asarray(angles, dtype=np.float64)
    if first.shape != (len(together),):
        raise InputError(f"angles have shape {first.shape} for {len(together)} paths; give one for each path.")
    both = np.concatenate([first, first + finite_number("distance", distance)])
    options = MarchOptions(rtol=number_from_to("rtol", rtol, 1e-15, 1e-2))
    solver = CommonNoiseTokenSolver(None, fields, 0.0, both, np.full(both.size, 1.0 / both.size), options)
    rates = np.tile(np.stack([path.rates for path in together], axis=1), (1, 2, 1))
    follow(solver, together[0].times, rates, together[0].t_end)
    near, far = solver.angles.reshape(2, -1)
    return np.asarray(far - near)
