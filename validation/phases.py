"""The phases of a solution near the uniform density: linear, quasi-linear, clustering; when each of them ends.

ρ_t = μ_t - 1/(2π), ‖·‖ the H^{-1} norm over the stored modes (see `spectral_mf.validation.fluctuations`), m = k_max the
dominant mode and λ its growth rate. Definitions, with the thresholds as arguments of `find_phases`:

- **linear** until ‖μ_t - μ_t^lin‖ reaches `linear` ‖ρ_t‖, where c_k^lin(t) = e^{λ_k t} c_k(0) for every mode.
- **quasi-linear** from there, if the state is then on its way along the unstable manifold of mode m, until |c_m|
  reaches `delta`, or the state stops being so. It is so while the multiples of m carry at least the share `harmonics`
  of ‖ρ_t‖², and the distance to the manifold is at most `manifold` ‖ρ_t‖. The distance is that to the manifold's point
  with the same c_m. A state that another mode has taken elsewhere has no quasi-linear phase.
- **clustering** from the end of the phase before, until all mass but `eps` lies within `eps` radians of k points that
  are at least 4 `eps` apart and hold at least `eps` each, for some k <= `most_clusters`; the smallest such k is the
  number of clusters.

The theory's times beside them, for N tokens: T_1 = ln(N^{-1/4} / ‖ρ_0‖) / λ, the end of its linear phase, is when the
linear solution has the size N^{-1/4} if mode m has taken over; after it T_2 = ln(δ / α) / λ with
α = N^{-1/4} |c_m(0)| / ‖ρ_0‖, so that T_1 + T_2 = ln(δ / |c_m(0)|) / λ is when |c_m| = δ. Both N^{-1/4} and δ here are
sizes of moments; a density 1/(2π) + a cos(mθ) has |c_m| = π a.

References
----------
Bruno, Pasqualotto, Agazzi, arXiv:2410.23228, theorems 4.2, 4.3, 4.5 and appendix C.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spectral_mf import theory
from spectral_mf.atoms import TWO_PI
from spectral_mf.circular import circular_distance
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.trajectory import Trajectory
from spectral_mf.unstable_manifold import unstable_manifold
from spectral_mf.validation.covers import Cover, cover
from spectral_mf.validation.crossings import between, first_rise
from spectral_mf.validation.fluctuations import check_tokens
from spectral_mf.validation.phase_curves import ORDER, Curves, phase_curves

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
State = Literal["ended", "not ended", "not entered"]


@dataclass(frozen=True)
class Phase:
    """One phase of a run.

    Attributes
    ----------
    start : float or None
        None if the phase is not entered.
    end : float or None
        None if it does not end in the run, or is not entered.
    reason : str
        What ended it, or why it was not entered.
    """

    start: float | None
    end: float | None
    reason: str

    @property
    def state(self) -> State:
        """Whether the phase has ended, has not, or never was."""
        if self.start is None:
            return "not entered"
        return "not ended" if self.end is None else "ended"


@dataclass(frozen=True)
class Phases:
    """Phases of a run, measured and predicted.

    Attributes
    ----------
    mode : int
        m = k_max.
    growth_rate : float
        λ_m.
    linear, quasilinear, clustering : Phase
    leading_mode : int
        Mode with the largest moment when |c_k| of any mode first reaches `delta`; at the last row if none does. Where
        it is not m, another mode has won.
    predicted_t1, predicted_t2 : float or None
        T_1 and T_2, durations. None without a number of tokens, or if c_m is zero at the start.
    measured_t1 : float or None
        Time from the start until ‖ρ‖ = N^{-1/4}: T_1 as it is measured.
    predicted_exit, measured_exit : float or None
        Time from the start until |c_m| = δ; predicted T_1 + T_2, which needs no number of tokens.
    n_clusters : int or None
        When clustering ends; None if it does not.
    positions, masses : ndarray of float64, shape (n_clusters,)
        Of the clusters then, in order of position; empty if clustering does not end.
    predicted_positions : ndarray of float64, shape (m,)
        (2 π j - arg c_m(0)) / m, in increasing order.
    position_error : float or None
        Largest distance (radians) of a cluster from the predicted position nearest to it; None without clusters.
    periodicity_defect : float
        At the last row.
    curves : Curves
    """

    mode: int
    growth_rate: float
    linear: Phase
    quasilinear: Phase
    clustering: Phase
    leading_mode: int
    predicted_t1: float | None
    predicted_t2: float | None
    measured_t1: float | None
    predicted_exit: float | None
    measured_exit: float | None
    n_clusters: int | None
    positions: FloatArray
    masses: FloatArray
    predicted_positions: FloatArray
    position_error: float | None
    periodicity_defect: float
    curves: Curves


def find_phases(
    trajectory: Trajectory,
    *,
    n_tokens: int | None = None,
    linear: float = 0.1,
    harmonics: float = 0.5,
    manifold: float = 0.5,
    delta: float = 0.3,
    eps: float | None = None,
    most_clusters: int | None = None,
) -> Phases:
    """Times at which the linear, quasi-linear and clustering phases end.

    Times between rows are interpolated in the logarithm of the quantity. A phase that does not end in the run has the
    end None.

    Parameters
    ----------
    trajectory : Trajectory
        Of the density's equation or of tokens, from near the uniform density.
    n_tokens : int, optional
        N for T_1; by default that of a run of tokens.
    linear : float
        Largest relative distance to the linear solution in the linear phase.
    harmonics : float
        Smallest share of the multiples of k_max in the quasi-linear phase.
    manifold : float
        Largest relative distance to the unstable manifold in the quasi-linear phase.
    delta : float
        |c_kmax| at which the quasi-linear phase ends, within reach of the manifold's series.
    eps : float, optional
        Radius of clusters in radians, and mass that need not be in them; by default 0.15 / k_max and at most 0.05.
    most_clusters : int, optional
        Largest number of clusters; by default 2 k_max.

    Returns
    -------
    Phases

    Raises
    ------
    InputError
        If a threshold is not allowed, the uniform density is stable, the run starts from exactly that, or the modes
        stored do not include k_max.

    Warns
    -----
    UserWarning
        If fewer modes are stored than the kernel sees.
    """
    for name, value in (("linear", linear), ("harmonics", harmonics), ("manifold", manifold), ("delta", delta)):
        _check_share(name, value)
    model = trajectory.model
    dominant = theory.dominant_mode(model)
    m, rate = dominant.mode, dominant.rate
    if not dominant.unstable:
        raise InputError(f"the uniform density is stable (largest rate {rate:.4g}): there are no phases to find.")
    reach = min(0.05, 0.15 / m) if eps is None else eps
    _check_share("eps", reach)
    most = 2 * m if most_clusters is None else most_clusters
    if most < 1:
        raise InputError(f"most_clusters = {most} is not allowed; give at least 1.")
    _check_modes(trajectory.moments.shape[1] - 1, m, model)
    unstable_manifold(model, m, ORDER).z_of_level(delta)  # refuses a level out of its reach
    t, c = trajectory.t, trajectory.moments
    curves = phase_curves(model, t, c, m)
    if curves.size[0] == 0.0:
        raise InputError("the run starts from the uniform density, where nothing grows; start from a perturbation.")

    linear_end = first_rise(t, curves.linear_error, linear)
    exit_time = first_rise(t, curves.amplitude, delta)
    quasilinear = _quasilinear(t, curves, linear_end, exit_time, harmonics, manifold, delta)
    clusters, cluster_time = _clustering(trajectory, reach, most)
    before = quasilinear.end if quasilinear.state == "ended" else linear_end if quasilinear.start is None else None
    start = before if cluster_time is None or before is None else min(before, cluster_time)
    n = _tokens(trajectory) if n_tokens is None else n_tokens
    t1, t2, predicted_exit = _predictions(curves, rate, n, delta)
    predicted_positions = cluster_positions(complex(c[0, m]), m)
    order = np.argsort(clusters.positions)
    return Phases(
        mode=m,
        growth_rate=rate,
        linear=Phase(float(t[0]), linear_end, "" if linear_end is None else "the linear solution is left"),
        quasilinear=quasilinear,
        clustering=Phase(start, cluster_time, f"all mass but {reach:g} within {reach:g} rad of points")
        if cluster_time is not None
        else Phase(start, None, "" if start is not None else "the phase before has not ended"),
        leading_mode=_leading_mode(c, delta),
        predicted_t1=t1,
        predicted_t2=t2,
        measured_t1=None if n is None else _since(t, first_rise(t, curves.size, n**-0.25)),
        predicted_exit=predicted_exit,
        measured_exit=_since(t, exit_time),
        n_clusters=None if cluster_time is None else int(clusters.positions.size),
        positions=clusters.positions[order],
        masses=clusters.masses[order],
        predicted_positions=predicted_positions,
        position_error=None if cluster_time is None else _position_error(clusters.positions, predicted_positions),
        periodicity_defect=float(curves.periodicity_defect[-1]),
        curves=curves,
    )


def cluster_positions(moment: complex, mode: int) -> FloatArray:
    """Where clusters of a density 1/(2π) + (1/π) Re(c_m e^{imθ}) form: at its peaks (2 π j - arg c_m) / m.

    Returns
    -------
    ndarray of float64, shape (mode,)
        In [0, 2 pi), increasing.
    """
    return np.sort((TWO_PI * np.arange(mode) - np.angle(moment)) / mode % TWO_PI)


def _quasilinear(
    t: FloatArray,
    curves: Curves,
    start: float | None,
    exit_time: float | None,
    harmonics: float,
    manifold: float,
    delta: float,
) -> Phase:
    """The quasi-linear phase, from the end of the linear one."""
    if start is None:
        return Phase(None, None, "the linear phase has not ended")
    size_ends = "|c_m| has reached delta"
    foreign = np.maximum(0.0, 1.0 - curves.harmonics)
    tests = (
        (foreign, 1.0 - harmonics, "modes that are no multiples of k_max carry the spectrum"),
        (curves.manifold_distance, manifold, "the state is away from the unstable manifold"),
    )
    if exit_time is not None and exit_time <= start:
        return Phase(None, None, f"{size_ends} in the linear phase")
    ends = [] if exit_time is None else [(exit_time, size_ends)]
    for values, limit, reason in tests:
        now = _value_at(start, t, values)
        if now >= limit:
            return Phase(None, None, reason)
        later = t > start
        end = first_rise(np.append(start, t[later]), np.append(now, values[later]), limit)
        if end is not None:
            ends.append((end, reason))
    end, reason = min(ends, default=(None, ""))
    return Phase(start, end, reason)


def _value_at(time: float, t: FloatArray, values: FloatArray) -> float:
    """A quantity between rows; that of the row before where it is infinite in the row after."""
    row = max(0, int(np.searchsorted(t, time, side="right")) - 1)
    if row + 1 == t.size or math.isinf(values[row + 1]):
        return float(values[row])
    return float(np.interp(time, t[row : row + 2], values[row : row + 2]))


def _clustering(trajectory: Trajectory, eps: float, most: int) -> tuple[Cover, float | None]:
    """The clusters in the first row that has them, and the time at which they formed."""
    before: Cover | None = None
    for i, t in enumerate(trajectory.t):
        found = cover(trajectory.measure(i), eps, most, least_mass=eps)
        enough = np.flatnonzero(found.uncovered <= eps)
        if enough.size:
            k = int(enough[0])
            kept = Cover(found.positions[:k], found.masses[:k], found.uncovered[: k + 1])
            if before is None:
                return kept, float(t)
            outside = before.outside(k), found.outside(k)
            return kept, between(trajectory.t[i - 1], t, *outside, eps)
        before = found
    return Cover(np.empty(0), np.empty(0), np.ones(1)), None


def _predictions(
    curves: Curves, rate: float, n_tokens: int | None, delta: float
) -> tuple[float | None, float | None, float | None]:
    """T_1, T_2 and their sum."""
    amplitude, size = float(curves.amplitude[0]), float(curves.size[0])
    together = math.log(delta / amplitude) / rate if amplitude > 0.0 else None
    if n_tokens is None:
        return None, None, together
    check_tokens(n_tokens)
    epsilon = n_tokens**-0.25
    t1 = math.log(epsilon / size) / rate
    t2 = math.log(delta / (epsilon * amplitude / size)) / rate if amplitude > 0.0 else None
    return t1, t2, together


def _tokens(trajectory: Trajectory) -> int | None:
    """Number of tokens of a run of tokens."""
    return int(trajectory.n_modes[0]) if trajectory.method[0] in ("particles", "layers") else None


def _leading_mode(c: ComplexArray, delta: float) -> int:
    sizes = np.abs(c[:, 1:])
    reached = (sizes >= delta).any(axis=1)
    row = int(reached.argmax()) if reached.any() else -1
    return int(sizes[row].argmax()) + 1


def _position_error(found: FloatArray, predicted: FloatArray) -> float:
    return float(circular_distance(found[:, None], predicted).min(axis=1).max())


def _since(t: FloatArray, time: float | None) -> float | None:
    return None if time is None else time - float(t[0])


def _check_share(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise InputError(f"{name} = {value!r} is not allowed; give a number between 0 and 1.")


def _check_modes(stored: int, mode: int, model: Model) -> None:
    if stored < mode:
        raise InputError(f"the run stores {stored} modes, without the dominant mode {mode}; store {model.bandwidth}.")
    if stored < model.bandwidth:
        warnings.warn(
            f"the run stores {stored} modes and the kernel sees {model.bandwidth}; "
            f"store n_modes = {model.bandwidth} to judge distances by all of them.",
            stacklevel=3,
        )
