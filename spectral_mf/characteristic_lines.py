"""Characteristics X(t; label) of a trajectory, for pictures: paths of some of its mass from the first row to the last.

Flow maps and atoms carry their paths. Between rows of Fourier modes dX/dt = V[μ_t](X) is integrated with moments
interpolated in time, which is exact enough to be looked at.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from spectral_mf import panels
from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.errors import InputError
from spectral_mf.flow_map import FlowMap
from spectral_mf.measure import Measure
from spectral_mf.trajectory import Trajectory

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_STEPS = 8
"""Runge-Kutta steps between two rows of Fourier modes."""


def characteristic_lines(trajectory: Trajectory, n_lines: int = 48) -> FloatArray:
    """Paths of equal shares of the mass.

    Parameters
    ----------
    trajectory : Trajectory
        Without diffusion.
    n_lines : int
        Number of paths; all atoms are followed if there are no more than that.

    Returns
    -------
    ndarray of float64, shape (n_lines, n_times)
        Angles in radians, not reduced modulo 2 pi, so that paths are continuous.

    Raises
    ------
    InputError
        If n_lines < 1, or the run has diffusion.
    """
    if n_lines < 1:
        raise InputError(f"n_lines = {n_lines} is not allowed; draw at least 1 characteristic.")
    if trajectory.model.diffusion > 0.0:
        raise InputError("with diffusion mass does not move along characteristics; draw the density instead.")
    measures = [row.snapshot.measure for row in trajectory.rows]
    x = _start(measures[0], n_lines)
    velocity = CubicSpline(trajectory.t, trajectory.moments, axis=0) if len(measures) > 3 else None
    lines = [x]
    labels: FloatArray | None = None
    for row, (before, after) in enumerate(pairwise(measures)):
        if isinstance(after, FlowMap) and isinstance(before, FlowMap):
            labels = _labels(before, x) if labels is None else labels
            x = _images(after, labels)
        elif isinstance(after, Atoms):
            x = _moved_atoms(before, after, x)
        else:
            x = _integrated(trajectory, row, velocity, x)
        lines.append(lines[-1] + (x - lines[-1] + np.pi) % TWO_PI - np.pi)
    return np.array(lines).T


def _start(measure: Measure, n_lines: int) -> FloatArray:
    """Angles below which equal shares of the mass lie, or the atoms themselves."""
    if isinstance(measure, Atoms):
        chosen = np.unique(np.linspace(0, measure.n_atoms - 1, n_lines).round().astype(np.int64))
        return np.asarray(np.sort(measure.angles)[chosen])
    n_cells = 4096
    masses = np.maximum(measure.cell_means(n_cells), 0.0)
    levels = np.concatenate([[0.0], np.cumsum(masses)]) / masses.sum()
    ends = (np.arange(n_cells + 1) - 0.5) * (TWO_PI / n_cells)
    return np.asarray(np.interp((np.arange(n_lines) + 0.5) / n_lines, levels, ends))


def _labels(flow: FlowMap, x: FloatArray) -> FloatArray:
    """Labels that a flow map carries to the angles x, by interpolation between its nodes."""
    period = TWO_PI / flow.fold
    images = np.maximum.accumulate(flow.positions.ravel())
    images = np.concatenate([images - period, images, images + period])
    labels = flow.labels.ravel()
    labels = np.concatenate([labels - period, labels, labels + period])
    turn = np.floor((x - flow.positions[0, 0]) / period)
    return np.asarray(np.interp(x - period * turn, images, labels) + period * turn)


def _images(flow: FlowMap, labels: FloatArray) -> FloatArray:
    """X at labels; shape of labels."""
    period = TWO_PI / flow.fold
    turn = np.floor(labels / period)
    a = labels - period * turn
    panel = np.clip(np.searchsorted(flow.edges, a, side="right") - 1, 0, flow.edges.size - 2)
    start, end = flow.edges[panel], flow.edges[panel + 1]
    place = 2.0 * (a - start) / (end - start) - 1.0
    return labels + panels.evaluate((flow.displacement @ panels.TO_COEFFICIENTS)[panel], place)


def _moved_atoms(before: Measure, after: Atoms, x: FloatArray) -> FloatArray:
    """Atoms keep their numbers while there are as many; else each path goes on at the nearest."""
    if isinstance(before, Atoms) and before.n_atoms == after.n_atoms:
        return after.angles[_nearest(before.angles, x)]
    return after.angles[_nearest(after.angles, x)]


def _nearest(angles: FloatArray, x: FloatArray) -> NDArray[np.int64]:
    """Number of the angle that is nearest to each x, around the circle."""
    order = np.argsort(angles)
    ring = np.concatenate([angles[order[-1:]] - TWO_PI, angles[order], angles[order[:1]] + TWO_PI])
    number = np.concatenate([order[-1:], order, order[:1]])
    target = x % TWO_PI
    above = np.clip(np.searchsorted(ring, target), 1, ring.size - 1)
    closer = np.where(target - ring[above - 1] <= ring[above] - target, above - 1, above)
    return np.asarray(number[closer], dtype=np.int64)


def _integrated(
    trajectory: Trajectory, row: int, moments: CubicSpline[np.complex128] | None, x: FloatArray
) -> FloatArray:
    """Angles at the next row by the classical Runge-Kutta method."""
    start, end = float(trajectory.t[row]), float(trajectory.t[row + 1])
    h = (end - start) / _STEPS

    def velocity(t: float, angles: FloatArray) -> FloatArray:
        share = (t - start) / (end - start)
        c: ComplexArray = (
            (1.0 - share) * trajectory.moments[row] + share * trajectory.moments[row + 1]
            if moments is None
            else np.asarray(moments(t), dtype=np.complex128)
        )
        return trajectory.model.velocity(c, angles)

    for step in range(_STEPS):
        t = start + step * h
        k1 = velocity(t, x)
        k2 = velocity(t + 0.5 * h, x + 0.5 * h * k1)
        k3 = velocity(t + 0.5 * h, x + 0.5 * h * k2)
        k4 = velocity(t + h, x + h * k3)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return x
