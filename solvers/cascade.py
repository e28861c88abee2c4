"""Weakly nonlinear solution: an expansion in the size of the perturbation, integrated order by order.

c = e_0 + c⁽¹⁾ + c⁽²⁾ + ... with c⁽ʲ⁾ of size εʲ when the initial perturbation, which is all in c⁽¹⁾, has size ε:

    ∂ₜ c⁽ʲ⁾_k = λ_k c⁽ʲ⁾_k - i k F⁽ʲ⁾_k,

where the forcing F⁽ʲ⁾ is made of lower orders only: the first order is linear theory, and no order feeds back on a
lower one. Orders grow like exp(j λ_max t): the expansion serves while the perturbation is moderate, and the first order
left out says how good it is.

The linear part is integrated exactly, the forcing by the 8(5,3) method. Products and the softmax's quotient (by
power-series arithmetic, V Z = N order by order) are formed on a grid that is fine enough for all of them.

References
----------
Bruno, Pasqualotto, Agazzi, arXiv:2410.23228, appendix C.4 (Grenier's scheme).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import next_fast_len

from spectral_mf.arguments import integer_at_least
from spectral_mf.errors import Diverged, InputError, StoppedEarly
from spectral_mf.fft import RealTransform
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model
from spectral_mf.solvers.adaptive import SMALLEST_STEP
from spectral_mf.solvers.dop853 import Dop853, error_norm
from spectral_mf.solvers.linear import finite_moments
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.step_control import StepController
from spectral_mf.symmetry import largest_fold
from spectral_mf.trajectory import Snapshot
from spectral_mf.unstable_manifold import ExpansionKernel

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

LARGEST_REMAINDER = 0.1
"""The run stops when the first order left out reaches this share of the perturbation."""

_LARGEST_EXPONENT = 40.0
"""Largest |lambda_k| h of a step: beyond, the exact factors amplify rounding."""


@dataclass(frozen=True, eq=False)
class Cascade:
    """The expansion at its output times.

    Attributes
    ----------
    t : ndarray of float64, shape (n_times,)
    orders : ndarray of complex128, shape (n_times, order + 1, K + 1)
        orders[i, j] holds the moments of order j at time i; order 0 is the uniform density.
    remainder : ndarray of float64, shape (n_times,)
        Largest moment of the first order left out.
    """

    t: FloatArray
    orders: ComplexArray
    remainder: FloatArray

    @property
    def moments(self) -> ComplexArray:
        """Sum of all orders, shape (n_times, K + 1)."""
        return np.asarray(self.orders.sum(axis=1))


def cascade(model: Model, initial: FourierDensity, times: ArrayLike, *, order: int = 8, rtol: float = 1e-12) -> Cascade:
    """Expand the solution in the size of the initial perturbation.

    Parameters
    ----------
    model : Model
        A `SelfAttention`.
    initial : FourierDensity
        State at the first of `times`.
    times : array_like of float, shape (n_times,)
        Increasing.
    order : int
        Highest order J >= 1; the error is of the size of the perturbation to the power J + 1. Order 1 is linear theory.
    rtol : float
        Error allowed a step, relative to the size of the perturbation.

    Raises
    ------
    InputError
        If the order is not allowed, or model or initial state are of the wrong kind.
    StoppedEarly
        When the expansion stops converging: the first order left out exceeds a tenth of the perturbation.
    """
    grid = np.atleast_1d(np.asarray(times, dtype=np.float64))
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all() or (np.diff(grid) <= 0.0).any():
        raise InputError("times have to be a row of increasing finite numbers; sort them.")
    start = Snapshot(float(grid[0]), initial, "quasilinear", initial.n_modes)
    solver = CascadeSolver(model, start, MarchOptions(rtol=rtol, fold=largest_fold(initial)), order=order)
    rows = []
    for t in grid:
        solver.advance(float(t))
        rows.append((solver.orders(), solver.remainder))
    return Cascade(grid, np.array([row[0] for row in rows]), np.array([row[1] for row in rows]))


class CascadeSolver:
    """All orders up to `order`, and the first one beyond, which measures the remainder.

    Parameters
    ----------
    model : Model
    start : Snapshot
    options : MarchOptions
    order : int
        J >= 1.
    largest_remainder : float
        Share of the perturbation at which the first order left out stops the run.

    Attributes
    ----------
    t : float
        Time reached.
    """

    def __init__(
        self,
        model: Model,
        start: Snapshot,
        options: MarchOptions,
        *,
        order: int,
        largest_remainder: float = LARGEST_REMAINDER,
    ) -> None:
        check_order(order)
        self.t = start.t
        self.order = int(order)
        self._options = options
        self._model = model
        self._fold = options.fold
        self._largest_remainder = largest_remainder
        c = finite_moments(start, "quasilinear")[:: self._fold]
        first = int(np.flatnonzero(c)[-1])  # in units of the fold, as all below
        # V has the kernel's modes only, so each order adds at most these to the modes of the one before.
        added = min(first, -(-model.bandwidth // self._fold))
        self._largest = max(1, first + self.order * added)
        if self._largest * self._fold > options.max_modes:
            raise InputError(
                f"order {self.order} of this initial density has {self._largest * self._fold} modes, more than "
                f"max_modes = {options.max_modes}; raise max_modes, or lower the order or the modes of the start."
            )
        k = self._fold * np.arange(self._largest + 1)
        kernel = ExpansionKernel.of(model, k)
        self._transport_rates = kernel.rates + model.diffusion * k.astype(np.float64) ** 2
        self._forcing = CascadeForcing(kernel, self.order, self._fold)
        self._fields = model.grid_fields(self._forcing.n_points, self._fold)
        state = np.zeros((self.order + 1, self._largest + 1), dtype=np.complex128)
        state[0, 1 : first + 1] = c[1 : first + 1]
        damping = np.tile(np.repeat(-kernel.rates, 2), self.order + 1)
        self._stepper = Dop853(self._forcing, state.reshape(-1).view(np.float64), damping, self._forcing.rows)
        fastest = float(np.abs(kernel.rates).max())
        self._largest_step = _LARGEST_EXPONENT / fastest if fastest > 0.0 else np.inf
        self._control = StepController(0.1 / fastest if fastest > 0.0 else np.inf)

    @property
    def n_modes(self) -> int:
        """Largest mode carried."""
        return self._fold * self._largest

    @property
    def remainder(self) -> float:
        """Largest moment of order J + 1, the first one left out."""
        return float(np.abs(self._forcing.rows(self._stepper.y)[-1]).max())

    def orders(self) -> ComplexArray:
        """Moments of orders 0 .. J at the time reached; shape (J + 1, n_modes + 1)."""
        full = np.zeros((self.order + 1, self.n_modes + 1), dtype=np.complex128)
        full[0, 0] = 1.0
        full[1:, :: self._fold] = self._forcing.rows(self._stepper.y)[:-1]
        return full

    def advance(self, t_end: float) -> None:
        """Go on until exactly `t_end`."""
        while self.t < t_end:
            self._step(t_end)
            self._options.progress(self.t, self.n_modes, "quasilinear")

    def snapshot(self) -> Snapshot:
        """The state as it is stored: the sum of all orders."""
        total = self.orders().sum(axis=0)
        return Snapshot(
            t=self.t,
            measure=FourierDensity.from_vector(total.view(np.float64)),
            method="quasilinear",
            n_modes=self.n_modes,
            energy_rate_residual=self._energy_rate_residual(total),
            remainder=self.remainder,
        )

    def _step(self, t_end: float) -> None:
        remaining = t_end - self.t
        while True:
            h = min(self._control.step_size, self._largest_step)
            last = h >= remaining * (1.0 - 1e-12)
            h = remaining if last else min(h, 0.5 * remaining) if h > 0.5 * remaining else h
            if not h > max(1e-15 * abs(self.t), SMALLEST_STEP):
                raise Diverged(
                    f"at t = {self.t:.6g} the step size fell to rounding; lower the order.", self.t, self.snapshot()
                )
            with np.errstate(over="ignore", invalid="ignore"):
                errors = self._stepper.attempt(h)
                size = max(self._linear_size(self._stepper.y), self._linear_size(self._stepper.trial))
                error = error_norm(errors, self._options.rtol * size)
            if self._control.accepts(error, h):
                break
        self._require_convergence()
        self._stepper.accept()
        self.t = t_end if last else self.t + h

    def _require_convergence(self) -> None:
        """Stop before a step after which the expansion would mean nothing."""
        trial = self._forcing.rows(self._stepper.trial)
        left_out = float(np.abs(trial[-1]).max())
        largest = float(np.abs(trial[:-1].sum(axis=0)).max())
        if left_out <= self._largest_remainder * largest and largest <= 1.0:
            return
        raise StoppedEarly(
            f"at t = {self.t:.6g} the expansion of order {self.order} stops converging (the first order left out "
            f"reaches {left_out:.2g}, the perturbation {largest:.2g}); end the run earlier, or use method = 'auto', "
            "which solves the nonlinear equation.",
            self.t,
            self.snapshot(),
        )

    def _linear_size(self, y: FloatArray) -> float:
        return float(np.abs(y[: 2 * (self._largest + 1)]).max())

    def _energy_rate_residual(self, total: ComplexArray) -> float:
        """How well the sum of the orders obeys the balance of energy."""
        rows, forcing = self._forcing.rows(self._stepper.y)[:-1], self._forcing.rows(self._stepper.slope)[:-1]
        rates = np.zeros_like(total)
        rates[:: self._fold] = self._transport_rates * rows.sum(axis=0) + forcing.sum(axis=0)
        grid_moments = np.zeros(self._forcing.n_points // 2 + 1, dtype=np.complex128)
        grid_moments[: self._largest + 1] = total[:: self._fold]
        self._fields.evaluate(grid_moments)
        return self._model.energy_rate(total, rates) - float(self._fields.dissipation()[0])


class CascadeForcing:
    """-i k F⁽ʲ⁾_k of orders j = 1 .. J + 1, from the moments of orders 1 .. J.

    Parameters
    ----------
    kernel : ExpansionKernel
        At the modes fold p, p = 0 .. K; K has to hold all modes of order J + 1.
    order : int
        J.
    fold : int

    Attributes
    ----------
    n_points : int
        Points of the grid on one period.
    """

    def __init__(self, kernel: ExpansionKernel, order: int, fold: int) -> None:
        n = kernel.drift.size
        self.n_points = 2 * next_fast_len(max(n, 8), real=True)
        series = [1j * kernel.drift, np.ones(n)]
        self._softmax = kernel.mass is not None
        if kernel.mass is not None:
            series.append(kernel.mass)
        self._multipliers = np.array(series, dtype=np.complex128)
        self._order = order
        self._n = n
        self._fields = RealTransform(self.n_points, len(series) * order)
        self._flux = RealTransform(self.n_points, order)
        self._derivative = -1j * fold * np.arange(n) / self.n_points

    def __call__(self, orders: ComplexArray, out: ComplexArray) -> None:
        """Write the forcing of orders 1 .. J + 1 into `out`; both arrays have shape (J + 1, K + 1)."""
        n_series = self._multipliers.shape[0]
        spectrum = self._fields.spectrum.reshape(n_series, self._order, -1)
        np.multiply(self._multipliers[:, None], orders[: self._order], out=spectrum[..., : self._n])
        spectrum[..., self._n :] = 0.0
        self._fields.backward()
        fields = self._fields.grid.reshape(n_series, self._order, -1)
        velocity, density = fields[0], fields[1]  # velocity[i] is the numerator until the quotient's part is added
        flux = self._flux.grid
        for j in range(1, self._order + 1):  # entry j belongs to order j + 1
            flux[j - 1] = np.einsum("ij,ij->j", velocity[:j], density[j - 1 :: -1])
            if self._softmax:
                quotient = np.einsum("ij,ij->j", velocity[:j], fields[2][j - 1 :: -1])
                flux[j - 1] -= quotient
                if j < self._order:
                    velocity[j] -= quotient
        self._flux.forward()
        out[0] = 0.0
        np.multiply(self._derivative, self._flux.spectrum[:, : self._n], out=out[1:])

    def rows(self, y: FloatArray) -> ComplexArray:
        """Rows of real and imaginary parts as the moments of orders 1 .. J + 1; shape (..., J + 1, K + 1)."""
        return y.view(np.complex128).reshape(*y.shape[:-1], self._order + 1, self._n)


def march_cascade(
    model: Model,
    start: Snapshot,
    times: FloatArray,
    options: MarchOptions,
    *,
    order: int = 8,
    largest_remainder: float = LARGEST_REMAINDER,
) -> Iterator[Snapshot]:
    """Carry the expansion in the size of the perturbation through the output times.

    Raises
    ------
    InputError
        As for `cascade`.
    StoppedEarly
        When the expansion stops converging.
    """
    solver = CascadeSolver(model, start, options, order=order, largest_remainder=largest_remainder)
    return _march(solver, times)


def _march(solver: CascadeSolver, times: FloatArray) -> Iterator[Snapshot]:
    for t in times:
        solver.advance(float(t))
        yield solver.snapshot()


def check_order(order: int) -> int:
    """The order as an int; InputError unless it is an integer of at least 1."""
    return integer_at_least("order", order, 1)
