"""The equation linearised about the uniform density: ∂ₜc_k = λ_k c_k, solved exactly.

c_k(t) = exp(λ_k t) c_k(0). Valid while the moments are small: the nonlinear terms are of the size of their squares.
Modes near √(2β) grow fastest; diffusion makes the high modes decay.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spectral_mf.errors import InputError, StoppedEarly
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.trajectory import Snapshot

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


def march_linear(model: Model, start: Snapshot, times: FloatArray, options: MarchOptions) -> Iterator[Snapshot]:
    """Apply the exact propagator of the linearised equation (see `spectral_mf.solvers.march.March`).

    Each row is computed from the one before, so that a resumed run gives the same bits as one run.

    Raises
    ------
    InputError
        If the start is not a density with finitely many modes, or the model has no growth rates.
    StoppedEarly
        When linear growth makes a moment exceed 1, which no probability measure can have.
    """
    c = finite_moments(start, "linear")
    model.growth_rate(1)  # a model without growth rates says so now, not when rows are asked for
    return _march(model, start.t, c, times, options)


def finite_moments(start: Snapshot, method: str) -> ComplexArray:
    """Moments c_0 .. c_K of a start that has finitely many; InputError otherwise."""
    if not isinstance(start.measure, FourierDensity):
        raise InputError(
            f"the {method} method needs a density with finitely many modes, not {start.measure!r}; "
            "use .smoothed(n_modes)."
        )
    return start.measure.moments(start.measure.n_modes)


def _march(model: Model, t: float, c: ComplexArray, times: FloatArray, options: MarchOptions) -> Iterator[Snapshot]:
    active = np.flatnonzero(c[1:]) + 1
    rates = model.growth_rate(active)
    for t_next in times:
        log_size = np.log(np.abs(c[active]))
        h = float(t_next) - t
        # In logarithms: exp(rate h) itself may overflow.
        if np.max(log_size + rates * h, initial=-np.inf) > 1e-12:
            raise _no_measure(t, c, active, rates, log_size)
        c = c.copy()
        c[active] *= np.exp(rates * h)
        active, rates = active[c[active] != 0.0], rates[c[active] != 0.0]  # decayed below the smallest number
        t = float(t_next)
        options.progress(t, c.size - 1, "linear")
        yield _snapshot(t, c)


def _no_measure(
    t: float, c: ComplexArray, active: NDArray[np.int64], rates: FloatArray, log_size: FloatArray
) -> StoppedEarly:
    """The error for growth beyond 1, with the state at the time when the first moment reaches 1."""
    with np.errstate(divide="ignore"):
        reach = np.where(rates > 0.0, np.maximum(-log_size, 0.0) / rates, np.inf)
    first = int(reach.argmin())
    last = c.copy()
    last[active] *= np.exp(rates * reach[first])
    time = t + float(reach[first])
    return StoppedEarly(
        f"at t = {time:.6g} linear growth makes |c_{active[first]}| = 1, which no probability measure exceeds; end the "
        "run earlier, or use method = 'auto', which solves the nonlinear equation.",
        time,
        _snapshot(time, last),
    )


def _snapshot(t: float, c: ComplexArray) -> Snapshot:
    return Snapshot(t, FourierDensity.from_vector(c.view(np.float64)), "linear", c.size - 1)
