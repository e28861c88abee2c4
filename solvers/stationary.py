"""Stationary densities with noise, by Newton's method on their moments, and their stability.

A stationary density without current is p ∝ exp(Φ/κ), V = ∂_θ Φ[p]: smooth, with moments that fall geometrically, so a
few dozen moments give it to rounding. It is found as a zero of dc_k/dt among densities that are even about the angle 0
and of period 2π/m (`spectral_mf.solvers.linearised`); stable or not makes no difference to Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectral_mf.arguments import check_model, integer_at_least
from spectral_mf.errors import InputError, SpectralMFError
from spectral_mf.fourier_density import FourierDensity
from spectral_mf.model import Model
from spectral_mf.solvers.linearised import EvenEquation

FloatArray = NDArray[np.float64]

TAIL = 1e-14
"""The last tenth of the moments has to stay below this; else there are more of them."""

FEWEST_MODES = 24
MOST_MODES = 768
MOST_STEPS = 40

CONVERGED = 1e-13
"""Newton's method ends at a step of this size in the moments, which leaves an error of its square or of rounding."""

NEUTRAL = 1e-9
"""Eigenvalues of at most this share of the fastest decay kept in mind count as zero."""


class NotFound(SpectralMFError):
    """Newton's method did not arrive at a stationary density."""


@dataclass(frozen=True)
class StationaryState:
    """A stationary density, even about 0.

    Attributes
    ----------
    model : Model
    moments : ndarray of float64, shape (n,)
        c_m, c_2m, ..., c_nm, real.
    fold : int
        m.
    """

    model: Model
    moments: FloatArray
    fold: int = 1

    @cached_property
    def density(self) -> FourierDensity:
        """The density itself."""
        full = np.zeros(self.fold * self.moments.size + 1)
        full[0] = 1.0
        full[self.fold :: self.fold] = self.moments
        return FourierDensity(full)

    @property
    def order_parameter(self) -> float:
        """The first moment that need not vanish, c_m."""
        return float(self.moments[0])

    @property
    def residual(self) -> float:
        """Largest |dc_k/dt| / k² of the moments."""
        equation = EvenEquation(self.model, self.moments.size, self.fold)
        return float(np.abs(equation.rates(self.moments) / equation.k**2).max())

    def eigenvalues(self) -> tuple[FloatArray, FloatArray]:
        """Growth rates of even and of odd perturbations of any period, real parts, largest first.

        The odd ones of a density that is not uniform include the rotation, with rate 0.
        """
        c = self.density.moments(self.fold * self.moments.size)[1:].real
        equation = EvenEquation(self.model, c.size)
        even, odd = (np.linalg.eigvals(a).real for a in (equation.even_jacobian(c), equation.odd_jacobian(c)))
        return -np.sort(-even), -np.sort(-odd)

    @cached_property
    def n_unstable(self) -> int:
        """Number of growing perturbations, even and odd together."""
        even, odd = self.eigenvalues()
        limit = NEUTRAL * max(abs(float(even[min(2, even.size - 1)])), abs(float(even[0])))
        return int((even > limit).sum() + (odd > limit).sum())

    @property
    def is_stable(self) -> bool:
        """Whether no small perturbation grows."""
        return self.n_unstable == 0


def stationary_state(model: Model, guess: FourierDensity, *, fold: int = 1) -> StationaryState:
    """The stationary density that Newton's method finds from a guess.

    Parameters
    ----------
    model : Model
        With diffusion > 0; it has to keep densities that are even about the angle 0.
    guess : FourierDensity
        Even about 0 (real moments), such as `FourierDensity.von_mises(4.0)` or the end of a solve.
    fold : int
        m: densities of period 2π/m are looked for. The guess's other moments are ignored.

    Returns
    -------
    StationaryState
        Perhaps the uniform one: look at `order_parameter`.

    Raises
    ------
    InputError
        If something given is not allowed.
    NotFound
        If Newton's method does not arrive.
    """
    check_model(model)
    fold = integer_at_least("fold", fold, 1)
    require_noise(model)
    if not isinstance(guess, FourierDensity):
        raise InputError(f"guess = {guess!r} is no smooth density; give a FourierDensity.")
    given = guess.moments(max(guess.n_modes, fold))[fold::fold]
    if float(np.abs(given.imag).max()) > 1e-8:
        raise InputError("the guess is not even about the angle 0; turn it so that its moments are real (.rotated).")
    n = max(FEWEST_MODES, int(np.flatnonzero(np.abs(given) > TAIL).max(initial=0)) + 1)
    c = np.zeros(n)
    c[: min(n, given.size)] = given.real[:n]
    EvenEquation(model, n, fold).require_even(c)
    while True:
        c = _newton(EvenEquation(model, c.size, fold), c)
        if is_resolved(c):
            return StationaryState(model, c, fold)
        c = lengthened(c, fold)


def require_noise(model: Model) -> None:
    """Refuse a model without diffusion, whose stationary measures are points."""
    if model.diffusion <= 0.0:
        raise InputError("diffusion = 0 leaves points as stationary states, no densities; give diffusion > 0.")


def is_resolved(c: FloatArray) -> bool:
    """Whether the last tenth of the moments is negligible."""
    return bool(np.abs(c[int(0.9 * c.size) :]).max() <= TAIL)


def lengthened(c: FloatArray, fold: int) -> FloatArray:
    """More moments, the new ones zero."""
    n = c.size + c.size // 2
    if n * fold > MOST_MODES:
        raise NotFound(f"the density needs more than {MOST_MODES} modes; raise the diffusion.")
    return np.concatenate([c, np.zeros(n - c.size)])


def _newton(equation: EvenEquation, c: FloatArray) -> FloatArray:
    for _ in range(MOST_STEPS):
        jacobian = equation.even_jacobian(c) / equation.k[:, None] ** 2
        step = np.linalg.solve(jacobian, equation.rates(c) / equation.k**2)
        size = float(np.abs(step).max())
        if not np.isfinite(size):
            break
        c = c - step * min(1.0, 0.25 / max(size, 1e-300))  # no moment may leap
        if size <= CONVERGED:
            return c
        if float(np.abs(c).max()) > 1.5:
            break
    raise NotFound("Newton's method does not arrive at a stationary density from this guess; give a closer one.")
