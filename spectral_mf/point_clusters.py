"""Clusters as point masses, between two output times: when they merge, and how fast the clock of mergers runs.

Clusters that are narrow against the kernel move as atoms do, dθ_i/dt = V[μ](θ_i). Followed from one output time to the
next, they tell what happens in between, however far apart the two are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from spectral_mf.atoms import TWO_PI
from spectral_mf.clusters import Clusters
from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
Groups = tuple[frozenset[int], ...]

_RTOL, _ATOL = 1e-10, 1e-13


@dataclass(frozen=True)
class Stretch:
    """Point masses from one merger to the next.

    Attributes
    ----------
    groups : tuple of frozenset of int
        Which of the clusters at the start each point holds.
    t : ndarray of float64, shape (n,)
    angles : ndarray of float64, shape (n, number of groups)
        In radians, not reduced modulo 2 pi.
    masses : ndarray of float64, shape (number of groups,)
    clock : ndarray of float64, shape (n,)
        Rescaled time since the start of the stretch (see `clock_rate`).
    """

    groups: Groups
    t: FloatArray
    angles: FloatArray
    masses: FloatArray
    clock: FloatArray


def clock_rate(model: Model, angles: FloatArray) -> float:
    """Rate dτ/dt of the clock on which mergers take times of order one.

    dt = ln β min_{i<j} e^{β (1 - cos(θ_i - θ_j))} dτ for the clusters' positions θ; for normalization "none" times
    e^{-β}, because that flow is faster by e^β. Below β = e, where nothing is metastable, ln β is taken as 1.

    After Geshkovski, Koubbi, Polyanskiy, Rigollet, arXiv:2410.06833, section 6. The maximum that stands in print there
    is a minimum: the closest pair merges next. Their tokens are slower by N e^β than normalization "none" here.

    Parameters
    ----------
    model : Model
        The clock is known for one that has an inverse temperature beta.
    angles : ndarray of float64, shape (n,)

    Returns
    -------
    float
        0 for a single point, and without a beta.
    """
    parameters = model.to_dict()
    if angles.size < 2 or "beta" not in parameters:
        return 0.0
    beta = float(parameters["beta"])
    closest = float(_gaps(np.sort(angles % TWO_PI)).min())
    exponent = -2.0 * beta * math.sin(0.5 * closest) ** 2
    if parameters.get("normalization") == "none":
        exponent += beta
    return math.exp(exponent) / max(1.0, math.log(max(beta, 1.0)))


def follow(model: Model, clusters: Clusters, t_start: float, t_end: float, *, gap: float) -> Iterator[Stretch]:
    """Move clusters as point masses, and join neighbours that come closer than `gap` radians.

    Parameters
    ----------
    model : Model
    clusters : Clusters
        At least one.
    t_start, t_end : float
    gap : float

    Yields
    ------
    Stretch
        From one merger to the next; the last ends at t_end.
    """
    groups: Groups = tuple(frozenset([i]) for i in range(clusters.positions.size))
    angles, masses, t = clusters.positions.copy(), clusters.masses.copy(), t_start

    def rates(_: float, y: FloatArray) -> FloatArray:
        velocity = model.pair_velocity(y[:-1], y[:-1], masses)
        return np.append(velocity, clock_rate(model, y[:-1]))

    def nearest(_: float, y: FloatArray) -> float:
        return float(_gaps(y[:-1]).min()) - gap

    nearest.terminal = True  # type: ignore[attr-defined]
    nearest.direction = -1.0  # type: ignore[attr-defined]
    while True:
        while angles.size > 1 and _gaps(angles).min() <= gap:
            groups, angles, masses = _joined(groups, angles, masses)
        if angles.size == 1 or t >= t_end:
            still = np.array([t, max(t, t_end)])
            yield Stretch(groups, still, np.tile(angles, (2, 1)), masses, np.zeros(2))
            return
        path = solve_ivp(
            rates, (t, t_end), np.append(angles, 0.0), method="DOP853", rtol=_RTOL, atol=_ATOL, events=nearest
        )
        yield Stretch(groups, path.t, path.y[:-1].T, masses, path.y[-1])
        t, angles = float(path.t[-1]), path.y[:-1, -1]
        if path.status != 1:
            return
        # At late times the rounding of t leaves the pair a little more than the gap apart, or less.
        groups, angles, masses = _joined(groups, angles, masses)


def _gaps(angles: FloatArray) -> FloatArray:
    """Distances from each point to the next, around the circle; the points are in order."""
    return np.append(np.diff(angles), angles[0] + TWO_PI - angles[-1])


def _joined(groups: Groups, angles: FloatArray, masses: FloatArray) -> tuple[Groups, FloatArray, FloatArray]:
    """The two neighbours that are closest become one point at their centre of mass."""
    i = int(_gaps(angles).argmin())
    j = (i + 1) % angles.size
    ahead = (angles[j] - angles[i]) % TWO_PI
    mass = masses[i] + masses[j]
    place = angles[i] + ahead * masses[j] / mass
    if j == 0:  # across the end: the joined point stays last
        first, kept = groups[1:-1], slice(1, -1)
        return (
            (*first, groups[i] | groups[j]),
            np.append(angles[kept], place),
            np.append(masses[kept], mass),
        )
    return (
        (*groups[:i], groups[i] | groups[j], *groups[j + 1 :]),
        np.concatenate([angles[:i], [place], angles[j + 1 :]]),
        np.concatenate([masses[:i], [mass], masses[j + 1 :]]),
    )
