"""Clusters in time: which is which from row to row, which merge and when, and how long they last."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_mf.cluster_links import successors
from spectral_mf.clusters import Clusters
from spectral_mf.density_peaks import PROMINENCE, default_resolution, find_clusters
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.point_clusters import follow
from spectral_mf.trajectory import Trajectory
from spectral_mf.wording import counted

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class ClusterTrack:
    """One cluster from the row in which it is first seen to the last before it is gone.

    Attributes
    ----------
    number : int
        Its place in `ClusterHistory.tracks`.
    rows : ndarray of int64, shape (n,)
        Rows of the trajectory, consecutive.
    t : ndarray of float64, shape (n,)
    positions : ndarray of float64, shape (n,)
        Mean angles of the cores, in [0, 2 pi).
    masses, widths : ndarray of float64, shape (n,)
        As `find_clusters` defines them.
    merged_into : int or None
        Number of the track that took it up; None if it lasts to the end or fades into the uniform density.
    """

    number: int
    rows: IntArray
    t: FloatArray
    positions: FloatArray
    masses: FloatArray
    widths: FloatArray
    merged_into: int | None

    def __repr__(self) -> str:
        end = "" if self.merged_into is None else f", merged into {self.merged_into}"
        return f"ClusterTrack({self.number}, t = {self.t[0]:g} .. {self.t[-1]:g}, mass {self.masses[-1]:.3g}{end})"


@dataclass(frozen=True)
class Merger:
    """Two clusters that are seen as one.

    Attributes
    ----------
    absorbed, into : int
        Numbers of the tracks: the lighter one ends, the heavier one goes on.
    interval : (float, float)
        Output times between which it happens.
    estimate : float
        Time at which the two are 2 h apart, h the resolution, when the clusters move as points from the earlier output
        time on; NaN where they are wider than h, with diffusion, or if that lies outside the interval.
    """

    absorbed: int
    into: int
    interval: tuple[float, float]
    estimate: float

    @property
    def t(self) -> float:
        """Best time known: the estimate, or else the interval's middle."""
        return 0.5 * sum(self.interval) if math.isnan(self.estimate) else self.estimate


@dataclass(frozen=True)
class Lifetime:
    """How long a number of clusters lasts.

    Attributes
    ----------
    n_clusters : int
    formed : float
        Time at which all of them have become narrower than the width asked for.
    ended : float
        Time at which their number first changes; the last output time if it does not.
    complete : bool
        Whether the end was seen; otherwise the duration is a lower bound.
    """

    n_clusters: int
    formed: float
    ended: float
    complete: bool

    @property
    def duration(self) -> float:
        """Time from formation to end."""
        return self.ended - self.formed


@dataclass(frozen=True, repr=False)
class ClusterHistory:
    """All clusters of a trajectory.

    Attributes
    ----------
    t : ndarray of float64, shape (n_times,)
    rows : tuple of Clusters, length n_times
        Clusters at each output time.
    tracks : tuple of ClusterTrack
        In order of appearance, then of position.
    mergers : tuple of Merger
        In order of time.
    resolution : float
        Width h (radians) through which the measures were seen.
    """

    t: FloatArray
    rows: tuple[Clusters, ...]
    tracks: tuple[ClusterTrack, ...]
    mergers: tuple[Merger, ...]
    resolution: float

    @property
    def counts(self) -> IntArray:
        """Number of clusters at each output time; shape (n_times,)."""
        return np.array([found.positions.size for found in self.rows], dtype=np.int64)

    @property
    def first_formed(self) -> int:
        """First row in which all clusters are narrower than the resolution; the number of rows if there is none."""
        narrow = [found.widths.size > 0 and found.widths.max() < self.resolution for found in self.rows]
        return narrow.index(True) if any(narrow) else len(narrow)

    def __repr__(self) -> str:
        times = ", ".join(f"{merger.t:.4g}" for merger in self.mergers[:4]) + (", ..." if len(self.mergers) > 4 else "")
        mergers = counted(len(self.mergers), "mergers") + (f" at t = {times}" if times else "")
        last = counted(int(self.counts[-1]), "clusters")
        return f"ClusterHistory({counted(self.t.size, 'rows')}, {last} at t = {self.t[-1]:g}, {mergers})"

    def lifetime(self, n_clusters: int | None = None, *, width: float | None = None) -> Lifetime:
        """Metastable lifetime: from the formation of clusters to their first merger.

        Parameters
        ----------
        n_clusters : int, optional
            Number of clusters; by default that of the first row in which all clusters are formed.
        width : float, optional
            Width in radians below which a cluster is formed; by default the resolution. Between rows it is
            interpolated in the logarithm of the widest cluster, which contracts exponentially.

        Raises
        ------
        InputError
            If no row has so many clusters that narrow.
        """
        limit = self.resolution if width is None else width
        widest = np.array([found.widths.max(initial=0.0) for found in self.rows])
        formed = (self.counts > 0) & (widest < limit)
        if n_clusters is not None:
            formed &= self.counts == n_clusters
        if not formed.any():
            wanted = "clusters" if n_clusters is None else f"{n_clusters} clusters"
            raise InputError(
                f"no row has {wanted} narrower than {limit:.3g} rad; solve to a later time, or ask for a larger width."
            )
        first = int(formed.argmax())
        count = int(self.counts[first])
        changed = np.flatnonzero(self.counts[first:] != count)
        if not changed.size:
            return Lifetime(count, self._formation(first, widest, limit), float(self.t[-1]), False)
        last = first + int(changed[0])
        times = [merger.t for merger in self.mergers if merger.interval[1] == self.t[last]]
        ended = min(times, default=0.5 * float(self.t[last - 1] + self.t[last]))
        return Lifetime(count, self._formation(first, widest, limit), ended, True)

    def _formation(self, row: int, widest: FloatArray, limit: float) -> float:
        """Time at which the widest cluster passes the limit, or the merger that leaves so many, before a row."""
        mergers = [merger.t for merger in self.mergers if merger.interval[1] == self.t[row]]
        if mergers:
            return max(mergers)
        if row == 0 or self.counts[row - 1] != self.counts[row] or widest[row] <= 0.0 or widest[row - 1] < limit:
            return float(self.t[row])
        share = math.log(widest[row - 1] / limit) / math.log(widest[row - 1] / widest[row])
        return float(self.t[row - 1] + share * (self.t[row] - self.t[row - 1]))


def clusters(
    trajectory: Trajectory, *, resolution: float | None = None, prominence: float = PROMINENCE
) -> ClusterHistory:
    """Clusters of a trajectory in time.

    Each row's clusters are those of `find_clusters`. From row to row a cluster goes where most of its mass goes when
    all mass is carried in order and as little as possible; to the nearest, where a broad one is seen as several next.
    Several that go to one have merged: the heaviest goes on, the others end. One that nobody goes to is new.

    Parameters
    ----------
    trajectory : Trajectory
    resolution : float, optional
        Width h in radians through which the measures are seen; by default 0.05, or 1 / bandwidth of a model whose
        kernel is sharper. Clusters merge when they are about 2 h apart.
    prominence : float
        By how much a cluster stands out, in units of the uniform density.

    Returns
    -------
    ClusterHistory
    """
    h = default_resolution(trajectory.model) if resolution is None else resolution
    rows = tuple(find_clusters(row.snapshot.measure, resolution=h, prominence=prominence) for row in trajectory.rows)
    linked = _Linker(trajectory.model, trajectory.t, rows, h)
    return ClusterHistory(trajectory.t, rows, linked.tracks(), tuple(linked.mergers), h)


class _Linker:
    """Walks through the rows and keeps the number of the track that each cluster is on."""

    def __init__(self, model: Model, t: FloatArray, rows: tuple[Clusters, ...], resolution: float) -> None:
        self._model, self._t, self._rows, self._resolution = model, t, rows, resolution
        self._members: list[list[tuple[int, int]]] = []
        self._ends: dict[int, int] = {}
        self.mergers: list[Merger] = []
        current: list[int] = []
        for row, found in enumerate(rows):
            current = self._advance(row, current, found)

    def _advance(self, row: int, current: list[int], found: Clusters) -> list[int]:
        """Put the clusters of a row on tracks; current are the tracks of the row before."""
        n = found.positions.size
        parents: list[list[int]] = [[] for _ in range(n)]
        if current and n:
            before = self._rows[row - 1]
            for i, j in enumerate(successors(before, found)):
                parents[j].append(i)
            parents = [sorted(each, key=lambda i: -before.masses[i]) for each in parents]
            self._merge(row, current, [each for each in parents if len(each) > 1])
        numbers = []
        for j in range(n):
            if not parents[j]:
                self._members.append([])
            number = current[parents[j][0]] if parents[j] else len(self._members) - 1
            self._members[number].append((row, j))
            numbers.append(number)
        return numbers

    def _merge(self, row: int, current: list[int], together: list[list[int]]) -> None:
        interval = (float(self._t[row - 1]), float(self._t[row]))
        pairs = [(heaviest, other) for heaviest, *others in together for other in others]
        for (into, absorbed), estimate in zip(pairs, self._estimates(row, pairs), strict=True):
            self._ends[current[absorbed]] = current[into]
            self.mergers.append(Merger(current[absorbed], current[into], interval, estimate))
        self.mergers.sort(key=lambda merger: merger.t)

    def _estimates(self, row: int, pairs: list[tuple[int, int]]) -> list[float]:
        """Times at which pairs of the row before are joined when its clusters move as points; NaN if not known."""
        before = self._rows[row - 1]
        times = [math.nan] * len(pairs)
        if not pairs or self._model.diffusion > 0.0 or before.widths.max() > self._resolution:
            return times
        gap = 2.0 * self._resolution
        for stretch in follow(self._model, before, float(self._t[row - 1]), float(self._t[row]), gap=gap):
            for number, pair in enumerate(pairs):
                if math.isnan(times[number]) and any(group.issuperset(pair) for group in stretch.groups):
                    times[number] = float(stretch.t[0])
        return times

    def tracks(self) -> tuple[ClusterTrack, ...]:
        """All tracks, once the rows are through."""
        made = []
        for number, members in enumerate(self._members):
            rows = np.array([row for row, _ in members], dtype=np.int64)
            found = np.array(
                [(self._rows[i].positions[j], self._rows[i].masses[j], self._rows[i].widths[j]) for i, j in members]
            )
            positions, masses, widths = found.T
            made.append(ClusterTrack(number, rows, self._t[rows], positions, masses, widths, self._ends.get(number)))
        return tuple(made)
