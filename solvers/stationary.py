"""Stationary densities with noise, by Newton's method on their moments, and their stability.

A stationary density without current is p ∝ exp(Φ/κ), V = ∂_θ Φ[p]: smooth, with moments that fall geometrically, so a
few dozen moments give it to rounding. It is found as a zero of dc_k/dt among densities that are even about the angle 0
and of period 2π/m (`spectral_mf.solvers.linearised`); stable or not makes no difference to Newton's method. Where it
does not arrive, p ← exp(Φ[p]/κ), repeated, leads to a closer guess: with little noise the velocity of a guess that is
much too wide already gives a density that is nearly narrow enough.
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

GIBBS_STEPS = 300
GIBBS_CLOSE = 1e-3
"""Newton's method takes over when p ← exp(Φ[p]/κ) changes no moment by more; or after so many steps."""

GIBBS_TAIL = 1e-10
"""Last moments of that guess, which rounding divided by κ disturbs."""

VANISHED, PRESENT = 1e-9, 1e-3
"""A first moment c_m below and above these is gone and was there."""

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
    def is_uniform(self) -> bool:
        """Whether this is the uniform density, which is stationary at any noise."""
        return float(np.abs(self.moments).max()) < VANISHED

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

    From a guess with c_m ≠ 0 it does not come back with c_m of the other sign, or with an unstable density that has
    c_m = 0, such as the uniform one below the critical noise; from there, and where it does not arrive, it tries again
    from a closer guess of its own.

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
        Perhaps the uniform one (`is_uniform`): if that is the guess, or is stable, as above the critical noise.

    Raises
    ------
    InputError
        If something given is not allowed.
    NotFound
        If Newton's method does not arrive, or only where the guess's c_m is lost.
    """
    check_model(model)
    fold = integer_at_least("fold", fold, 1)
    require_noise(model)
    if not isinstance(guess, FourierDensity):
        raise InputError(f"guess is of type {type(guess).__name__}, no smooth density; give a FourierDensity.")
    given = guess.moments(max(guess.n_modes, fold))[fold::fold]
    if float(np.abs(given.imag).max()) > 1e-8:
        raise InputError("the guess is not even about the angle 0; turn it so that its moments are real (.rotated).")
    n = max(FEWEST_MODES, int(np.flatnonzero(np.abs(given) > TAIL).max(initial=0)) + 1)
    c = np.zeros(n)
    c[: min(n, given.size)] = given.real[:n]
    EvenEquation(model, n, fold).require_even(c)
    try:
        found = _arrive(model, c, fold)
        if not _strayed(found, c):
            return found
    except NotFound:
        pass
    found = _arrive(model, _closer(model, c, fold), fold)
    if _strayed(found, c):
        raise NotFound(
            f"Newton's method arrives only at a density with c_{fold} = {found.order_parameter:.2g}, far from the "
            f"guess ({c[0]:.2g}); give a closer guess."
        )
    return found


def _arrive(model: Model, c: FloatArray, fold: int) -> StationaryState:
    """Newton's method, with as many moments as it needs."""
    while True:
        c = _newton(EvenEquation(model, c.size, fold), c)
        if is_resolved(c):
            return StationaryState(model, c, fold)
        c = lengthened(c, fold)


def _closer(model: Model, c: FloatArray, fold: int) -> FloatArray:
    """Where p ← exp(Φ[p]/κ) leads, with as many moments as it needs."""
    seen = min(-(-model.bandwidth // fold), MOST_MODES // fold)  # with these the velocity is exact, whatever p is
    c = np.concatenate([c, np.zeros(max(0, seen - c.size))])
    equation = EvenEquation(model, c.size, fold)
    for _ in range(GIBBS_STEPS):
        before, c = c, equation.gibbs(c)
        if float(np.abs(c - before).max()) < GIBBS_CLOSE:
            break
    while not is_resolved(c, GIBBS_TAIL):
        c = lengthened(c, fold)
        c = EvenEquation(model, c.size, fold).gibbs(c)
    return c


def _strayed(found: StationaryState, guess: FloatArray) -> bool:
    """Whether the first moment has changed its sign, or is gone and the density is unstable without it."""
    if abs(guess[0]) < PRESENT:
        return False
    first = float(np.sign(guess[0])) * found.order_parameter
    return first < -VANISHED or (first < VANISHED and not found.is_stable)


def require_noise(model: Model) -> None:
    """Refuse a model without diffusion, whose stationary measures are points."""
    if model.diffusion <= 0.0:
        raise InputError("diffusion = 0 leaves points as stationary states, no densities; give diffusion > 0.")


def is_resolved(c: FloatArray, tail: float = TAIL) -> bool:
    """Whether the last tenth of the moments is negligible."""
    return bool(np.abs(c[int(0.9 * c.size) :]).max() <= tail)


def lengthened(c: FloatArray, fold: int) -> FloatArray:
    """More moments, the new ones zero."""
    n = c.size + c.size // 2
    if n * fold > MOST_MODES:
        raise NotFound(f"the density needs more than {MOST_MODES} modes; raise the diffusion.")
    return np.concatenate([c, np.zeros(n - c.size)])


def _newton(equation: EvenEquation, c: FloatArray) -> FloatArray:
    for _ in range(MOST_STEPS):
        jacobian = equation.even_jacobian(c) / equation.k[:, None] ** 2
        try:
            step = np.linalg.solve(jacobian, equation.rates(c) / equation.k**2)
        except np.linalg.LinAlgError:
            break
        size = float(np.abs(step).max())
        if not np.isfinite(size):
            break
        c = c - step * min(1.0, 0.25 / max(size, 1e-300))  # no moment may leap
        if size <= CONVERGED:
            return c
        if float(np.abs(c).max()) > 1.5:
            break
    raise NotFound("Newton's method does not arrive at a stationary density from this guess; give a closer one.")
