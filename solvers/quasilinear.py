"""The quasi-linear phase, between linear growth and the collapse.

Data on multiples of one mode are drawn to the unstable manifold of the uniform density. A start that lies on it is
carried by its power series (`march_manifold`): z grows like exp(λ t), and nothing has to be integrated. Any other small
start is expanded in the size of the perturbation (`march_cascade`). `march_quasilinear` chooses.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from spectral_mf.errors import InputError, StoppedEarly
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model
from spectral_mf.solvers.cascade import LARGEST_REMAINDER, check_order, march_cascade
from spectral_mf.solvers.linear import finite_moments
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.symmetry import largest_fold
from spectral_mf.trajectory import Snapshot
from spectral_mf.unstable_manifold import UnstableManifold, unstable_manifold

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

SERIES_ORDER = 64
"""Powers of z, unless asked otherwise."""

CASCADE_ORDER = 8
"""Orders of the expansion of general data, unless asked otherwise."""


def march_quasilinear(
    model: Model,
    start: Snapshot,
    times: FloatArray,
    options: MarchOptions,
    *,
    order: int | None = None,
    largest_remainder: float = LARGEST_REMAINDER,
) -> Iterator[Snapshot]:
    """Follow a small perturbation through the quasi-linear phase (see `spectral_mf.solvers.march.March`).

    By the unstable manifold's series if the start lies on it within `options.rtol` of the perturbation, else by the
    expansion in the perturbation's size.

    Parameters
    ----------
    order : int, optional
        Highest order; by default 64 for the series and 8 for the expansion.
    largest_remainder : float
        Share of the perturbation at which the first order left out stops the expansion. (The series stops when what
        it leaves out exceeds `options.rtol`.)

    Raises
    ------
    InputError
        If the order is not allowed, or the start is not a density with finitely many modes.
    StoppedEarly
        When the series or the expansion is no longer accurate.
    """
    if order is not None:
        check_order(order)
    manifold = manifold_through(model, start, order=order or SERIES_ORDER, rtol=options.rtol)
    if manifold is not None:
        return march_manifold(model, start, times, options, manifold)
    return march_cascade(
        model, start, times, options, order=order or CASCADE_ORDER, largest_remainder=largest_remainder
    )


def manifold_through(model: Model, start: Snapshot, *, order: int, rtol: float) -> UnstableManifold | None:
    """The unstable manifold that a start lies on within `rtol` of its perturbation, or None.

    The mode has to grow fastest among its multiples: otherwise what the start differs from the manifold would outgrow
    the perturbation.
    """
    c = finite_moments(start, "quasilinear")
    if not c[1:].any():
        return None
    mode = largest_fold(start.measure)
    multiples = mode * np.arange(1, max(2, model.bandwidth // mode + 2))
    if not (model.growth_rate(multiples)[0] > np.max(model.growth_rate(multiples)[1:], initial=0.0)):
        return None
    manifold = unstable_manifold(model, mode, order)
    try:
        z = position(manifold, c)
    except InputError:  # |c_m| is too large for the series
        return None
    allowed = rtol * abs(z)
    if float(manifold.remainder(z)) > allowed:
        return None
    expected = manifold(z)
    n = max(c.size, expected.size)
    deviation = np.pad(expected, (0, n - expected.size)) - np.pad(c, (0, n - c.size))
    return manifold if float(np.abs(deviation).max()) <= allowed else None


def position(manifold: UnstableManifold, moments: ComplexArray) -> complex:
    """The z at which the manifold has the given moment c_m.

    Raises
    ------
    InputError
        If |c_m| is not reached within the radius of convergence.
    """
    c_m = complex(moments[manifold.mode])
    return cmath.rect(manifold.z_of_level(abs(c_m)), cmath.phase(c_m))


def march_manifold(
    model: Model, start: Snapshot, times: FloatArray, options: MarchOptions, manifold: UnstableManifold
) -> Iterator[Snapshot]:
    """Carry a start along the unstable manifold; only its moment c_m is used.

    Raises
    ------
    InputError
        If |c_m| is not reached within the radius of convergence.
    StoppedEarly
        When the orders left out exceed `options.rtol` of the perturbation.
    """
    z = position(manifold, finite_moments(start, "quasilinear"))
    return _march(model, manifold, z, start.t, times, options)


def _march(
    model: Model,
    manifold: UnstableManifold,
    z_start: complex,
    t_start: float,
    times: FloatArray,
    options: MarchOptions,
) -> Iterator[Snapshot]:
    reach = _reach(manifold, options.rtol)
    t_reach = math.inf if z_start == 0.0 else t_start + math.log(reach / abs(z_start)) / manifold.growth_rate
    n_points = 4 * manifold.order
    fields = model.grid_fields(n_points, manifold.mode)

    def snapshot(t: float) -> Snapshot:
        z = z_start * math.exp(manifold.growth_rate * (t - t_start))
        c = manifold(z)
        grid_moments = np.zeros(n_points // 2 + 1, dtype=np.complex128)
        grid_moments[: manifold.order + 1] = c[:: manifold.mode]
        fields.evaluate(grid_moments)
        transport = manifold.rates(z) + model.diffusion * np.arange(c.size) ** 2 * c
        return Snapshot(
            t=t,
            measure=FourierDensity.from_vector(c.view(np.float64)),
            method="quasilinear",
            n_modes=c.size - 1,
            energy_rate_residual=model.energy_rate(c, transport) - float(fields.dissipation()[0]),
            remainder=float(manifold.remainder(z)),
        )

    for t in times:
        if t > t_reach:
            last = max(t_reach, t_start)
            raise StoppedEarly(
                f"at t = {last:.6g} the series of order {manifold.order} leaves out more than rtol = {options.rtol:g} "
                f"(at |z| = {reach:.3g}; it converges up to {manifold.radius:.3g}); raise the order or rtol, end the "
                "run earlier, or use method = 'auto', which solves the nonlinear equation.",
                last,
                snapshot(last),
            )
        row = snapshot(float(t))
        options.progress(row.t, row.n_modes, row.method)
        yield row


def _reach(manifold: UnstableManifold, rtol: float) -> float:
    """Largest |z| at which the orders left out are below rtol |z|."""
    last_order = math.log(float(np.abs(manifold.coefficients[-1]).sum()))
    log_radius = math.log(manifold.radius)

    def excess(log_z: float) -> float:
        """Logarithm of remainder / (rtol |z|), which cannot underflow."""
        log_share = log_z - log_radius
        tail = log_share - math.log(-math.expm1(log_share))
        return last_order + (manifold.order - 1) * log_z + tail - math.log(rtol)

    low, high = log_radius - 690.0, log_radius - 1e-9
    return math.exp(high if excess(high) <= 0.0 else float(brentq(excess, low, high, xtol=1e-12)))
