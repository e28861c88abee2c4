"""Common noise: ∂ₜμ + ∂_θ(μ V[μ]) + Σ_j ∂_θ(μ σ_j) ∘ dB_j/dt = κ ∂²_θ μ, one Brownian path for all tokens.

The noise is Stratonovich's: along a path that is straight between its times the equation is an ordinary one,
with the velocity V[μ] + Σ_j σ_j dB_j/dt, and is solved as such to the tolerance, by the same methods as without noise.
What is left is how coarse the path is. μ stays random however many tokens there are: the noise does not average out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf.arguments import check_model, integer_at_least, number_from_to
from spectral_mf.brownian_path import BrownianPath
from spectral_mf.errors import InputError, ResolutionExhausted, StoppedEarly
from spectral_mf.flow_map import FlowMap
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.measure import Measure
from spectral_mf.model import Model
from spectral_mf.output_times import time_grid
from spectral_mf.run_kinds import moment_now
from spectral_mf.solvers.auto import HAND_OVER_MODES
from spectral_mf.solvers.characteristics import flow_of
from spectral_mf.solvers.driven import DrivenCharacteristicSolver, DrivenSpectralSolver, follow
from spectral_mf.solvers.march import March, MarchOptions, Progress, no_progress
from spectral_mf.solvers.positivity import check_positive, negative_by_error
from spectral_mf.solvers.recording import record
from spectral_mf.solvers.spectral import folded_moments
from spectral_mf.symmetry import largest_fold
from spectral_mf.trajectory import RunInfo, Snapshot, Trajectory
from spectral_mf.vector_fields import VectorFields

FloatArray = NDArray[np.float64]
Method = Literal["auto", "spectral", "characteristics"]
Calculus = Literal["stratonovich"]

DEFAULT_MODES = 64


def solve_common_noise(
    model: Model,
    initial: FourierDensity,
    fields: VectorFields,
    path: BrownianPath,
    times: float | ArrayLike,
    *,
    method: Method = "auto",
    calculus: Calculus = "stratonovich",
    rtol: float = 1e-10,
    max_modes: int = 4096,
    n_modes: int | None = None,
    n_cells: int = 512,
    output: str | Path | None = None,
    overwrite: bool = False,
    provenance: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Solve for the density that one Brownian path drives.

    Parameters
    ----------
    model : Model
        The interaction, also with diffusion (noise of each token's own); `PairPotential((0.0, 0.0))` is none.
    initial : FourierDensity
    fields : VectorFields
        One for each component of the path.
    path : BrownianPath
    times : float or array_like of float
        An end time (101 equally spaced rows from 0), or increasing output times, the first being the initial time; all
        on the path.
    method : {"auto", "spectral", "characteristics"}
        "spectral": Fourier modes, until the density is too sharp for max_modes. "characteristics": the flow map,
        through a collapse, without diffusion. "auto": the one, then the other where there is no diffusion.
    calculus : {"stratonovich"}
        What ∘ dB means; Ito's is refused.
    rtol : float
        Error allowed a step, relative to the size of the perturbation (largest |c_k|, k >= 1); 1e-13 to 1e-2. That of
        the path, which is straight between its times, comes on top.
    max_modes : int
        Largest number of modes that the spectral method may use.
    n_modes, n_cells, output, overwrite, provenance, progress
        As for `solve`.

    Returns
    -------
    Trajectory
        Its configuration holds fields and path (`VectorFields.from_dict`, `BrownianPath.from_dict`), in files too.
        Energies are those of the interaction.

    Raises
    ------
    InputError
        If something given is not allowed. Nothing has been computed then.
    ResolutionExhausted
        If the density became too sharp before the end; its `trajectory` and the file hold all rows until then.
    StorageError
        If the file cannot be written; its `trajectory` holds what was computed.
    """
    check_model(model)
    check_calculus(calculus)
    check_fields(fields, path)
    if not isinstance(initial, FourierDensity):
        raise InputError(f"initial = {initial!r} is no smooth density; give a FourierDensity, or move tokens instead.")
    grid = path.checked(time_grid(times))
    _check_method(method, model)
    options = MarchOptions(
        rtol=number_from_to("rtol", rtol, 1e-13, 1e-2),
        max_modes=integer_at_least("max_modes", max_modes, 64),
        fold=common_fold(model, initial, fields),
        progress=progress or no_progress,
    )
    check_positive(initial, options.rtol)
    info = RunInfo(
        model=model,
        configuration={
            "method": "common noise",
            "solver": method,
            "rtol": options.rtol,
            "max_modes": options.max_modes,
            "symmetry": options.fold,
            "times": grid.tolist(),
            "fields": fields.to_dict(),
            "path": path.to_dict(),
            "initial": dict(provenance or {"description": repr(initial)}),
            "started": moment_now(),
        },
        n_modes=max(DEFAULT_MODES, model.bandwidth) if n_modes is None else integer_at_least("n_modes", n_modes, 1),
        n_cells=integer_at_least("n_cells", n_cells, 4),
    )
    measure = flow_of(initial, model, options) if method == "characteristics" else initial
    start = Snapshot(float(grid[0]), measure, method, initial.n_modes)
    snapshots = march_common_noise(
        model, start, grid, options, fields=fields, path=path, method=method, initial=initial
    )
    if output is None:
        return record(info, [], snapshots, None)
    from spectral_mf.storage import RunFile

    return record(info, [], snapshots, RunFile.create(output, info, overwrite=overwrite))


def march_common_noise(
    model: Model,
    start: Snapshot,
    times: FloatArray,
    options: MarchOptions,
    *,
    fields: VectorFields,
    path: BrownianPath,
    method: Method,
    initial: Measure,
) -> Iterator[Snapshot]:
    """Follow a density along its path (see `spectral_mf.solvers.march.March`).

    Parameters
    ----------
    start : Snapshot
        A `FourierDensity` or a `FlowMap`; a run goes on bit for bit from a row that is stored.
    initial : Measure
        The state that the run began with: how far Fourier modes are tried depends on it.
    """
    path.checked(times)
    hands_over = method == "auto" and model.diffusion == 0.0
    solver: DrivenSpectralSolver | DrivenCharacteristicSolver
    if isinstance(start.measure, FlowMap):
        solver = DrivenCharacteristicSolver(model, fields, start.t, start.measure, options, start.step)
    else:
        enough = max(HAND_OVER_MODES, 4 * model.bandwidth, 2 * _top_mode(initial), 4 * fields.bandwidth) * options.fold
        tried = replace(options, max_modes=min(options.max_modes, enough)) if hands_over else options
        moments = folded_moments(start.measure, options.fold)
        solver = DrivenSpectralSolver(model, fields, start.t, moments, tried, start.step)
    return _snapshots(solver, model, fields, path, times, options if hands_over else None)


def stored_march(configuration: Mapping[str, Any], initial: Measure) -> March:
    """What goes on with a stored run.

    Parameters
    ----------
    configuration : mapping
        As stored with the run.
    initial : Measure
        Its first row.
    """
    return partial(
        march_common_noise,
        fields=VectorFields.from_dict(configuration["fields"]),
        path=BrownianPath.from_dict(configuration["path"]),
        method=configuration["solver"],
        initial=initial,
    )


def _top_mode(measure: Measure) -> int:
    """Largest mode that is not zero; 0 of what has no such."""
    if not isinstance(measure, FourierDensity):
        return 0
    return int(np.flatnonzero(measure.moments(measure.n_modes))[-1])


def _snapshots(
    solver: DrivenSpectralSolver | DrivenCharacteristicSolver,
    model: Model,
    fields: VectorFields,
    path: BrownianPath,
    times: FloatArray,
    beyond: MarchOptions | None,
) -> Iterator[Snapshot]:
    """March along the path; where Fourier modes end, the flow map goes on with the options `beyond`, if there are."""
    rates = path.rates[:, np.newaxis]
    for t in times:
        try:
            follow(solver, path.times, rates, float(t))
        except ResolutionExhausted as stop:
            if beyond is None or isinstance(solver, DrivenCharacteristicSolver):
                stop.snapshot = solver.snapshot()
                raise
            solver = _handed_over(model, fields, solver.snapshot(), beyond)
            follow(solver, path.times, rates, float(t))
        except StoppedEarly as stop:
            stop.snapshot = solver.snapshot()
            raise
        yield solver.snapshot()


def _handed_over(
    model: Model, fields: VectorFields, state: Snapshot, options: MarchOptions
) -> DrivenCharacteristicSolver:
    """The same state as a flow map; it may be negative by what the spectral solver's error explains."""
    assert isinstance(state.measure, FourierDensity)
    try:
        flow = flow_of(state.measure, model, options, negative=negative_by_error(state.measure, options.rtol))
    except InputError as refusal:
        raise ResolutionExhausted(
            f"at t = {state.t:.6g} the density is too sharp for Fourier modes, and {refusal}", state.t, state
        ) from None
    return DrivenCharacteristicSolver(model, fields, state.t, flow, options)


def check_calculus(calculus: object) -> None:
    """Refuse all but Stratonovich's."""
    if calculus != "stratonovich":
        raise InputError(
            f'calculus = {calculus!r} is not solved, only "stratonovich" is: one path moves tokens and density alike '
            "only in that sense; write Ito noise as Stratonovich noise with the drift -(1/2) sum_j sigma_j sigma_j'."
        )


def check_fields(fields: object, path: object) -> None:
    """Refuse what are no fields, what is no path, or one with another number of components."""
    if not isinstance(fields, VectorFields):
        raise InputError(
            f"fields = {fields!r} are no vector fields; give VectorFields, such as VectorFields.planar(0.5)."
        )
    if not isinstance(path, BrownianPath):
        raise InputError(f"path = {path!r} is no path; give a BrownianPath, such as BrownianPath.draw(2, 1.0, 64, 1).")
    if path.n_fields != fields.n_fields:
        raise InputError(
            f"the path has {path.n_fields} components for {fields.n_fields} fields; give one for each field."
        )


def common_fold(model: Model, initial: FourierDensity, fields: VectorFields) -> int:
    """Largest m such that data, model and fields all have the symmetry of a turn by 2 pi / m."""
    return math.gcd(largest_fold(initial), model.turns, fields.fold)


def _check_method(method: object, model: Model) -> None:
    if method not in get_args(Method):
        raise InputError(f"method = {method!r} is unknown; choose one of {', '.join(get_args(Method))}.")
    if method == "characteristics" and model.diffusion > 0.0:
        raise InputError(
            f"diffusion = {model.diffusion:g} spreads mass across characteristics, which cannot follow it; "
            'use method = "spectral", or diffusion = 0.'
        )
