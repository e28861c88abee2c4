"""The push-forward of a smooth density by a flow map: exact through the collapse, where the density itself is lost.

Each label a in [0, 2 pi / fold) is carried to X(a) = a + u(a); mass p_0(a) da goes with it and never changes. Both p_0
and the displacement u are polynomials on panels of labels. The density at X(a) is p_0(a) / X'(a).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.polynomial.legendre import legval
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from spectral_mf import panels
from spectral_mf.arguments import angle_array
from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.errors import InputError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.harmonics import point_moments

if TYPE_CHECKING:
    from spectral_mf.distribution import Distribution
    from spectral_mf.measure import Measure
    from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

PHASE_PER_PANEL = 12.0
"""Largest k |panel| (radians) whose oscillation e^{-ikX} a panel's nodes integrate to rounding."""

_NEGATIVE_ALLOWED = 1e-9
"""A density that is negative by less than this, relative to uniform, is negative by rounding or by a solver's error."""


_POLYLINE = 256
"""Pieces of a panel's distribution function."""


class FlowMap:
    """A measure given by labels, their initial density, and their displacements.

    Parameters
    ----------
    edges : ndarray of float64, shape (P + 1,)
        Ends of the panels of labels; they cover [0, 2 pi / fold].
    initial : ndarray of float64, shape (P, ORDER)
        Initial density p_0 at the nodes, >= 0.
    displacement : ndarray of float64, shape (P, ORDER)
        u = X - a at the nodes, in radians.
    fold : int
        The measure is 2 pi / fold periodic.
    """

    kind: ClassVar[str] = "flow_map"

    def __init__(self, edges: FloatArray, initial: FloatArray, displacement: FloatArray, fold: int = 1) -> None:
        self.edges = edges
        self.initial = initial
        self.displacement = displacement
        self.fold = fold

    @classmethod
    def identity(
        cls,
        density: FourierDensity,
        *,
        fold: int = 1,
        n_modes: int = 64,
        tolerance: float = 1e-15,
        negative: float = 0.0,
    ) -> FlowMap:
        """The map that moves nothing yet, on panels that resolve a density and e^{-ikX} for k up to n_modes.

        Parameters
        ----------
        density : FourierDensity
            Nowhere negative.
        fold : int
            Its symmetry; only one period is carried.
        n_modes : int
            Largest mode whose moment is to be exact.
        tolerance : float
            Mass that a panel may misplace by what its polynomial does not resolve.
        negative : float
            How far below zero the density may be, relative to uniform, beyond rounding.

        Raises
        ------
        InputError
            If the density is negative somewhere beyond rounding.
        """
        period = TWO_PI / fold
        count = max(1, int(np.ceil(period * max(n_modes, 1) / PHASE_PER_PANEL)))
        edges = np.linspace(0.0, period, count + 1)
        values = density.density(panels.nodes_of(edges))
        while True:
            rough = panels.tails(values) * np.diff(edges) > tolerance
            rough &= np.diff(edges) * density.n_modes > 3.0  # shorter panels resolve every mode there is
            if not rough.any():
                break
            edges = panels.split_edges(edges, rough)
            copies = np.where(rough, 2, 1)
            new = np.repeat(rough, copies)
            values = np.repeat(values, copies, axis=0)
            values[new] = density.density(panels.nodes_of(edges)[new])
        lowest = int(values.argmin())
        if values.flat[lowest] < -max(negative, _NEGATIVE_ALLOWED) / TWO_PI:
            where = panels.nodes_of(edges).flat[lowest]
            raise InputError(
                f"the density is negative at theta = {where:.4g} ({values.flat[lowest]:.3g}), so its mass cannot be "
                "carried along; start from a density that is nowhere negative."
            )
        initial = np.maximum(values, 0.0)
        initial /= fold * (panels.weights_of(edges) * initial).sum()
        return cls(edges, initial, np.zeros_like(initial), fold)

    @property
    def n_modes(self) -> int:
        """Nodes in use."""
        return self.initial.size

    @property
    def labels(self) -> FloatArray:
        """Labels of the nodes; shape (P, ORDER)."""
        return panels.nodes_of(self.edges)

    @property
    def positions(self) -> FloatArray:
        """X at the nodes, increasing, not reduced modulo 2 pi; shape (P, ORDER)."""
        return np.asarray(self.labels + self.displacement)

    @property
    def masses(self) -> FloatArray:
        """Mass of each node on one period; they sum to 1 / fold; shape (P, ORDER)."""
        return np.asarray(panels.weights_of(self.edges) * self.initial)

    def split(self, chosen: NDArray[np.bool_]) -> FlowMap:
        """The same map with the chosen panels halved; each panel's mass is kept exactly."""
        halved = FlowMap(
            panels.split_edges(self.edges, chosen),
            np.maximum(panels.split(self.initial, chosen), 0.0),
            panels.split(self.displacement, chosen),
            self.fold,
        )
        before = np.repeat(self.masses.sum(axis=1), np.where(chosen, 2, 1))
        after = halved.masses.sum(axis=1)
        new = np.flatnonzero(np.repeat(chosen, np.where(chosen, 2, 1)))
        pairs = after[new].reshape(-1, 2).sum(axis=1)
        scale = np.divide(before[new[::2]], pairs, out=np.ones_like(pairs), where=pairs > 0.0)
        halved.initial[new] *= np.repeat(scale, 2)[:, None]
        return halved

    def resolving(self, n_modes: int) -> FlowMap:
        """The same map on panels short enough to integrate e^{-ikX} for k up to n_modes."""
        fine = self
        while True:
            ends = fine.positions @ panels.TO_ENDS.T - fine.labels @ panels.TO_ENDS.T
            length = np.diff(fine.edges) + np.diff(ends, axis=1)[:, 0]
            long = n_modes * length > PHASE_PER_PANEL
            long &= fine.masses.sum(axis=1) > 1e-17
            if not long.any():
                return fine
            fine = fine.split(long)

    def moments(self, n_modes: int) -> ComplexArray:
        """Moments c_0 .. c_n; shape (n_modes + 1,)."""
        fine = self.resolving(n_modes)
        c = np.zeros(n_modes + 1, dtype=np.complex128)
        folded = point_moments(
            self.fold * fine.positions.ravel(), self.fold * fine.masses.ravel(), n_modes // self.fold
        )
        c[:: self.fold] = folded
        return c

    def density(self, theta: ArrayLike) -> FloatArray:
        """Density p = p_0 / X' at angles in radians, any shape."""
        angles = angle_array(theta)
        panel, x = self._labels_at(angles.ravel())
        coefficients = self.displacement @ panels.TO_COEFFICIENTS
        half = 0.5 * np.diff(self.edges)[panel]
        slope = 1.0 + panels.evaluate(panels.derivative(coefficients[panel]), x) / half
        initial = panels.evaluate((self.initial @ panels.TO_COEFFICIENTS)[panel], x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.maximum(initial, 0.0) / np.maximum(slope, 0.0)).reshape(angles.shape)

    def cdf(self, theta: ArrayLike) -> FloatArray:
        """Mass of [0, theta) for 0 <= theta <= 2 pi; shape of theta."""
        angles = np.asarray(theta, dtype=np.float64)
        return (self._mass_before(angles.ravel()) - self._mass_before(np.zeros(1))).reshape(angles.shape)

    def cell_means(self, n_cells: int) -> FloatArray:
        """Mean density over each cell centred at 2 pi j / n_cells; shape (n_cells,)."""
        ends = np.asarray((np.arange(n_cells + 1) - 0.5) * (TWO_PI / n_cells), dtype=np.float64)
        return np.asarray(np.maximum(np.diff(self._mass_before(ends)), 0.0) * (n_cells / TWO_PI))

    def energy(self, model: Model) -> float:
        """Interaction energy under a model, in units of exp(model.energy_log_unit)."""
        return float(model.energy(self.moments(model.bandwidth)))

    def w1(self, other: Measure) -> float:
        """Wasserstein-1 distance on the circle (geodesic), in radians, to about 1e-7."""
        from spectral_mf.wasserstein import w1

        return w1(self, other)

    def distribution(self) -> Distribution:
        """The distribution function as a polyline, for distances and quantiles; exact at its nodes, 256 to a panel."""
        from spectral_mf.distribution import Distribution

        x = np.linspace(-1.0, 1.0, _POLYLINE + 1)
        half = 0.5 * np.diff(self.edges)[:, None]
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])[:, None]
        position = middle + half * x + legval(x, (self.displacement @ panels.TO_COEFFICIENTS).T)
        share = half * legval(x, panels.antiderivative(self.initial @ panels.TO_COEFFICIENTS).T)
        masses = self.masses.sum(axis=1)
        before = np.concatenate([[0.0], np.cumsum(masses)])[:-1, None]
        inside = np.clip(share, 0.0, masses[:, None])
        turns = np.arange(self.fold)[:, None]
        mass = np.maximum.accumulate(((before + inside).ravel() + turns / self.fold).ravel())
        angles = _in_order((position.ravel() + turns * (TWO_PI / self.fold)).ravel(), mass)
        angles -= TWO_PI * np.floor(angles[0] / TWO_PI)
        angles = np.append(np.minimum(angles, angles[0] + TWO_PI), angles[0] + TWO_PI)
        mass = np.append(mass, 1.0) - mass[0]
        return Distribution(angles, mass / mass[-1], np.ones(1, dtype=np.complex128))

    def to_atoms(self) -> Atoms:
        """The nodes as point masses."""
        turns = np.arange(self.fold) * (TWO_PI / self.fold)
        angles = (self.positions.ravel() + turns[:, None]).ravel()
        masses = np.tile(self.masses.ravel(), self.fold)
        return Atoms(angles[masses > 0.0], masses[masses > 0.0])

    def _mass_before(self, angles: FloatArray) -> FloatArray:
        """Mass between the first label's image and an angle, growing by 1 a turn; shape (N,)."""
        panel, x, turn = self._located(angles)
        coefficients = (self.initial @ panels.TO_COEFFICIENTS)[panel]
        half = 0.5 * np.diff(self.edges)
        partial = half[panel] * panels.evaluate(panels.antiderivative(coefficients), x)
        masses = self.masses.sum(axis=1)
        before = np.concatenate([[0.0], np.cumsum(masses)])
        return np.asarray(before[panel] + np.clip(partial, 0.0, masses[panel]) + turn / self.fold)

    def _labels_at(self, angles: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
        """Panel and position on it, in [-1, 1], whose image is an angle modulo 2 pi."""
        panel, x, _ = self._located(angles)
        return panel, x

    def _located(self, angles: FloatArray) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """Panel, position on it, and number of periods by which the angle is ahead; X is monotone, so by bisection."""
        period = TWO_PI / self.fold
        shift = self.displacement @ panels.TO_ENDS.T
        starts = self.edges[:-1] + shift[:, 0]
        turn = np.floor((angles - starts[0]) / period)
        target = angles - period * turn
        panel = np.clip(np.searchsorted(np.maximum.accumulate(starts), target, side="right") - 1, 0, starts.size - 1)
        coefficients = (self.displacement @ panels.TO_COEFFICIENTS)[panel]
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])[panel]
        half = 0.5 * np.diff(self.edges)[panel]
        low, high = np.full(target.shape, -1.0), np.ones(target.shape)
        for _ in range(54):
            x = 0.5 * (low + high)
            below = middle + half * x + panels.evaluate(coefficients, x) < target
            low, high = np.where(below, x, low), np.where(below, high, x)
        return panel, 0.5 * (low + high), turn

    def to_vector(self) -> FloatArray:
        """Fold, edges, initial density and displacements, shape (1 + (P + 1) + 2 P ORDER,)."""
        return np.concatenate([[self.fold], self.edges, self.initial.ravel(), self.displacement.ravel()])

    @classmethod
    def from_vector(cls, vector: ArrayLike) -> FlowMap:
        """Make the map again from `to_vector`, bit for bit."""
        v = np.array(vector, dtype=np.float64)
        count = (v.size - 2) // (1 + 2 * panels.ORDER)
        edges, values = v[1 : count + 2], v[count + 2 :].reshape(2, count, panels.ORDER)
        return cls(edges, values[0].copy(), values[1].copy(), int(v[0]))

    def __repr__(self) -> str:
        return f"FlowMap({self.initial.shape[0]} panels, {self.n_modes} nodes, fold {self.fold})"


def _in_order(angles: FloatArray, cumulative: FloatArray) -> FloatArray:
    """The non-decreasing angles closest to those given, weighted by mass.

    A panel of negligible mass is not resolved, and its polynomial may overshoot: it has to yield to the mass that lies
    beside it, not push that away.
    """
    weights = np.gradient(cumulative) + np.finfo(np.float64).eps
    return np.asarray(isotonic_regression(angles, weights=weights).x)
