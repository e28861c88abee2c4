"""The energy staircase: plateaus while clusters stay apart, and a jump whenever some form or merge.

The energy is given as its share of a single point's: 2 β e^{-β} E = ∬ e^{β (cos(θ-φ) - 1)} dμ dμ. For clusters that are
far apart it is the sum of their squared masses. Plateaus last for times exponential in β; on the rescaled clock τ of
`spectral_mf.point_clusters.clock_rate` jumps follow each other at distances of order one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spectral_mf.cluster_history import ClusterHistory, clusters
from spectral_mf.clusters import Clusters
from spectral_mf.errors import InputError
from spectral_mf.harmonics import point_moments
from spectral_mf.model import Model
from spectral_mf.point_clusters import follow
from spectral_mf.self_attention import SelfAttention
from spectral_mf.trajectory import Trajectory
from spectral_mf.wording import counted

FloatArray = NDArray[np.float64]

LEAST_HEIGHT = 0.01
"""Share of a single point's energy below which a rise is no jump."""


@dataclass(frozen=True)
class EnergyJump:
    """A rise from one plateau to the next.

    Attributes
    ----------
    t : float
        Time at which the energy is halfway between the plateaus, interpolated on the fine curve.
    interval : (float, float)
        Output times between which it is.
    clock : float
        Rescaled time of the jump; NaN before the clock starts, as for the first one, in which the clusters form.
    before, after : float
        Energies of the plateaus, as shares of a single point's.
    """

    t: float
    interval: tuple[float, float]
    clock: float
    before: float
    after: float

    @property
    def height(self) -> float:
        """Rise of the energy, as a share of a single point's energy."""
        return self.after - self.before


@dataclass(frozen=True, repr=False)
class StaircaseCurve:
    """Energy, time and rescaled time along a run.

    Attributes
    ----------
    t, share, clock : ndarray of float64, shape (n,)
        As in `EnergyStaircase`.
    """

    t: FloatArray
    share: FloatArray
    clock: FloatArray

    def __repr__(self) -> str:
        return f"StaircaseCurve({counted(self.t.size, 'points')}, t = {self.t[0]:g} .. {self.t[-1]:g})"


@dataclass(frozen=True, repr=False)
class EnergyStaircase:
    """Energy against time and against the rescaled clock.

    Attributes
    ----------
    t : ndarray of float64, shape (n_times,)
    share : ndarray of float64, shape (n_times,)
        Energy as a share of a single point's.
    clock : ndarray of float64, shape (n_times,)
        Rescaled time τ: 0 where all clusters are first narrower than the resolution, NaN before. All NaN with
        diffusion, or if no row has such clusters.
    fine : StaircaseCurve
        The same, also between rows once the clock runs: there the clusters move as points.
    jumps : tuple of EnergyJump
    """

    t: FloatArray
    share: FloatArray
    clock: FloatArray
    fine: StaircaseCurve
    jumps: tuple[EnergyJump, ...]

    def __repr__(self) -> str:
        times = ", ".join(f"{jump.t:.4g}" for jump in self.jumps[:4]) + (", ..." if len(self.jumps) > 4 else "")
        jumps = counted(len(self.jumps), "jumps") + (f" at t = {times}" if times else "")
        return f"EnergyStaircase({counted(self.t.size, 'rows')}, {jumps})"


def energy_staircase(
    trajectory: Trajectory, *, history: ClusterHistory | None = None, least_height: float = LEAST_HEIGHT
) -> EnergyStaircase:
    """Plateaus and jumps of the energy.

    The first plateau lasts until all clusters are narrower than the resolution, the others from one change of their
    number to the next. A plateau's energy is the one at which it changes slowest. One that is less than `least_height`
    above the one before belongs to that.

    Parameters
    ----------
    trajectory : Trajectory
    history : ClusterHistory, optional
        Its clusters, if they are known already.
    least_height : float
        Smallest rise that is a jump, as a share of a single point's energy.

    Returns
    -------
    EnergyStaircase

    Raises
    ------
    InputError
        If the model is not a `SelfAttention`.

    References
    ----------
    Geshkovski, Koubbi, Polyanskiy, Rigollet, "Dynamic metastability in the self-attention model", arXiv:2410.06833,
    section 6. Their tokens' clock is slower than that of normalization "none" here by N e^β, of "peak" by N.
    """
    if not isinstance(trajectory.model, SelfAttention):
        raise InputError(
            f"the energy staircase is known for SelfAttention, not for {type(trajectory.model).__name__}; look at the "
            "energy itself."
        )
    found = clusters(trajectory) if history is None else history
    share = trajectory.energy / _single(trajectory.model)
    clock, fine = _clock(trajectory, found, share)
    forming = np.arange(len(trajectory)) < found.first_formed  # what comes and goes then is no plateau
    stages = np.where(forming, 0, found.counts)
    jumps = _jumps(trajectory.t, share, stages, fine, least_height)
    return EnergyStaircase(trajectory.t, share, clock, fine, jumps)


def _single(model: Model) -> float:
    """Energy of a single point."""
    return float(model.energy(np.ones(model.bandwidth + 1, dtype=np.complex128)))


def _clock(trajectory: Trajectory, history: ClusterHistory, share: FloatArray) -> tuple[FloatArray, StaircaseCurve]:
    """Rescaled time at the rows, and the curve that goes through them, with what is between them."""
    t, model = trajectory.t, trajectory.model
    clock = np.full(t.size, math.nan)
    first = history.first_formed
    if model.diffusion > 0.0 or first == t.size:
        return clock, StaircaseCurve(t, share, clock)
    clock[first] = 0.0
    pieces = [StaircaseCurve(t[: first + 1], share[: first + 1], clock[: first + 1])]
    for row in range(first, t.size - 1):
        piece = _between(model, history.rows[row], float(t[row]), float(t[row + 1]), 2.0 * history.resolution)
        ticks = clock[row] + piece.clock
        clock[row + 1] = ticks[-1]
        inner = np.clip(piece.share, share[row], share[row + 1])
        inner[-1] = share[row + 1]
        pieces.append(StaircaseCurve(piece.t, inner, ticks))
    return clock, StaircaseCurve(
        np.concatenate([piece.t for piece in pieces]),
        np.concatenate([piece.share for piece in pieces]),
        np.concatenate([piece.clock for piece in pieces]),
    )


def _between(model: Model, before: Clusters, start: float, end: float, gap: float) -> StaircaseCurve:
    """What happens after one row, up to and including the next; the clock begins at 0."""
    times, energies, ticks = [], [], []
    passed = 0.0
    for stretch in follow(model, before, start, end, gap=gap):
        times.append(stretch.t)
        ticks.append(passed + stretch.clock)
        passed += float(stretch.clock[-1])
        energies += [float(model.energy(point_moments(x, stretch.masses, model.bandwidth))) for x in stretch.angles]
    return StaircaseCurve(np.concatenate(times)[1:], np.array(energies)[1:] / _single(model), np.concatenate(ticks)[1:])


def _jumps(
    t: FloatArray, share: FloatArray, stages: NDArray[np.int64], fine: StaircaseCurve, least_height: float
) -> tuple[EnergyJump, ...]:
    """Rises between the plateaus of successive stages."""
    changes = np.flatnonzero(np.diff(stages)) + 1
    levels: list[float] = []
    for start, end in zip(np.append(0, changes), np.append(changes, t.size), strict=True):
        level = _plateau(t[start:end], share[start:end])
        if not levels or level - levels[-1] >= least_height:
            levels.append(level)
    jumps = []
    for before, after in pairwise(levels):
        halfway = 0.5 * (before + after)
        i = int(np.argmax(fine.share >= halfway))
        part = (halfway - fine.share[i - 1]) / (fine.share[i] - fine.share[i - 1])
        time = float(fine.t[i - 1] + part * (fine.t[i] - fine.t[i - 1]))
        tick = float(fine.clock[i - 1] + part * (fine.clock[i] - fine.clock[i - 1]))
        row = int(np.searchsorted(t[1:-1], time)) + 1
        jumps.append(EnergyJump(time, (float(t[row - 1]), float(t[row])), tick, before, after))
    return tuple(jumps)


def _plateau(t: FloatArray, share: FloatArray) -> float:
    """Energy where it changes slowest; a stage of one row has that row's."""
    if t.size == 1:
        return float(share[0])
    slowest = int((np.diff(share) / np.diff(t)).argmin())
    return 0.5 * float(share[slowest] + share[slowest + 1])
