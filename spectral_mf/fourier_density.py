"""Densities given by finitely many Fourier moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Complex, Integral
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_mf import bessel
from spectral_mf.arguments import (
    angle_array,
    check_model,
    finite_number,
    integer_at_least,
    number_at_least,
    number_from_to,
    random_generator,
    real_array,
    values_at,
)
from spectral_mf.errors import InputError
from spectral_mf.harmonics import fourier_sum
from spectral_mf.wording import counted

if TYPE_CHECKING:
    from spectral_mf.atoms import Atoms
    from spectral_mf.distribution import Distribution
    from spectral_mf.measure import Measure
    from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_ROUND_OFF = 1e-15
"""Moments below this, obtained by quadrature, are rounding errors and set to zero."""

_NEGATIVE_ALLOWED = 1e-12
"""A density may be negative by this much, relative to uniform, from rounding or truncation."""


_MOMENT_ERROR = 1e-14
"""Relative error of moments made of Bessel functions; their sum is what it makes of a sharp peak's flat rest."""


class FourierDensity:
    """The density p(theta) = (1 / 2 pi) sum_{|k| <= K} c_k exp(i k theta), with c_{-k} = conj(c_k) and c_0 = 1.

    Parameters
    ----------
    moments : array_like of complex, shape (K + 1,)
        c_0 .. c_K, where c_k = int exp(-i k theta) dmu.

    Raises
    ------
    InputError
        If a moment is not finite, c_0 is not 1, or some |c_k| exceeds 1, which no probability measure can have.
    """

    kind: ClassVar[str] = "fourier"

    def __init__(self, moments: ArrayLike) -> None:
        try:
            c = np.array(moments, dtype=np.complex128)
        except (TypeError, ValueError):
            raise InputError("moments are not numbers; give an array of complex numbers c_0 .. c_K.") from None
        if c.ndim != 1 or c.size == 0:
            raise InputError(f"moments have shape {c.shape}; give one row c_0 .. c_K, shape (K + 1,).")
        if not np.isfinite(c).all():
            k = int(np.flatnonzero(~np.isfinite(c))[0])
            raise InputError(f"moment c_{k} = {c[k]} is not finite; every moment of a measure is a finite number.")
        if abs(c[0] - 1.0) > 1e-12:
            raise InputError(f"moment c_0 = {c[0]:.6g} is the total mass and has to be 1; divide all moments by it.")
        too_large = np.flatnonzero(np.abs(c) > 1.0 + 1e-12)
        if too_large.size:
            k = int(too_large[0])
            raise InputError(f"moment |c_{k}| = {abs(c[k]):.6g} exceeds 1, which no probability measure can have.")
        c[0] = 1.0
        c.flags.writeable = False
        self._moments: ComplexArray = c

    @property
    def n_modes(self) -> int:
        """Largest mode K that is stored."""
        return self._moments.size - 1

    @classmethod
    def uniform(cls) -> FourierDensity:
        """The uniform density 1 / (2 pi)."""
        return cls([1.0])

    @classmethod
    def from_modes(cls, modes: Mapping[int, complex]) -> FourierDensity:
        """Uniform density plus the given moments: `{3: 0.01}` is (1 + 0.02 cos 3 theta) / (2 pi).

        Parameters
        ----------
        modes : mapping from int to complex
            c_k by k >= 1.

        Raises
        ------
        InputError
            If a mode is not a positive integer, or a value is not allowed.
        """
        if not isinstance(modes, Mapping):
            raise InputError(f"modes = {modes!r} are not moments by mode; give a mapping such as {{3: 0.01}}.")
        for k, value in modes.items():
            if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
                raise InputError(f"mode {k!r} is not allowed; give moments c_k by integers k >= 1 (c_0 is 1).")
            if not isinstance(value, Complex) or isinstance(value, bool):
                raise InputError(f"moment c_{k} = {value!r} is not a number; give a complex or real number.")
        c = np.zeros(int(max(modes, default=0)) + 1, dtype=np.complex128)
        c[0] = 1.0
        for k, value in modes.items():
            c[int(k)] = value
        return cls(c)

    @classmethod
    def von_mises(cls, kappa: float, mean: float = 0.0) -> FourierDensity:
        """The von Mises density exp(kappa cos(theta - mean)) / (2 pi I_0(kappa)).

        Parameters
        ----------
        kappa : float
            Concentration, >= 0 and at most 1e6.
        mean : float
            Mean angle in radians.

        Raises
        ------
        InputError
            If a parameter is not a number or out of range.
        """
        kappa, mean = number_from_to("kappa", kappa, 0.0, 1e6), finite_number("mean", mean)
        k = np.arange(bessel.bandwidth(kappa) + 1)
        return cls(bessel.ratio(k, kappa) * np.exp(-1j * k * mean))

    @classmethod
    def white_noise(cls, sigma: float, n_points: int, seed: int, *, n_modes: int = 64) -> FourierDensity:
        """Uniform density with independent noise of relative size sigma at each of `n_points` grid points.

        Its moments are independent complex normals with E|c_k|^2 = sigma^2 / n_points; the mass is exactly 1. The
        noise is drawn mode by mode: more modes kept leave the lower ones as they are.

        Parameters
        ----------
        sigma : float
            Standard deviation of the noise at a point, relative to the uniform density.
        n_points : int
            Number of points that the noise is meant to live on; it sets the size of the moments.
        seed : int
            Seed of the random numbers.
        n_modes : int
            Number of modes kept, at most n_points // 2.

        Raises
        ------
        InputError
            If a parameter is out of range, or the density is negative somewhere.
        """
        sigma, n_points = number_at_least("sigma", sigma, 0.0), integer_at_least("n_points", n_points, 2)
        n_modes = min(integer_at_least("n_modes", n_modes, 1), n_points // 2)
        normal = random_generator(seed).standard_normal((n_modes, 2))
        noise = (normal[:, 0] + 1j * normal[:, 1]) * (sigma / np.sqrt(2.0 * n_points))
        return cls(np.concatenate([[1.0], noise])).require_positive()

    @classmethod
    def from_function(cls, density: Callable[[FloatArray], ArrayLike], n_modes: int = 1024) -> FourierDensity:
        """Moments of a smooth density given as a function of the angle; it is normalised to total mass 1.

        Parameters
        ----------
        density : callable
            Values >= 0 (any unit) at an array of angles in [0, 2 pi).
        n_modes : int
            Largest mode looked for; the density has to be resolved by it.

        Raises
        ------
        InputError
            If a value is not finite or negative, the mass is zero, or `n_modes` do not resolve the density.
        """
        if not callable(density):
            raise InputError(f"density = {density!r} is not a function; give one of the angle.")
        n_modes = integer_at_least("n_modes", n_modes, 1)
        theta = 2.0 * np.pi * np.arange(4 * n_modes) / (4 * n_modes)
        given = real_array(
            values_at("the density", density, theta), "the density's values are not real numbers; give a real function."
        )
        if given.shape not in ((), theta.shape):
            raise InputError(f"the density has shape {given.shape} at {theta.size} angles; give one value for each.")
        values = np.broadcast_to(given, theta.shape)
        if not np.isfinite(values).all():
            where = theta[np.flatnonzero(~np.isfinite(values))[0]]
            raise InputError(f"the density at theta = {where:.6g} is not finite; give a finite function.")
        if values.min() < 0.0:
            raise InputError(f"the density at theta = {theta[values.argmin()]:.6g} is negative; give a density >= 0.")
        if values.sum() <= 0.0:
            raise InputError("the density is zero everywhere; its integral has to be positive.")
        c = np.fft.rfft(values) / values.sum()
        if np.abs(c[n_modes:]).max() > 1e-12:
            raise InputError(
                f"{n_modes} modes do not resolve the density (|c_k| = {np.abs(c[n_modes:]).max():.2g} beyond them); "
                "raise n_modes or give a smoother function."
            )
        c[np.abs(c) < _ROUND_OFF] = 0.0
        return cls(c[: np.flatnonzero(c)[-1] + 1])

    def require_positive(self, *, negative: float = 0.0) -> FourierDensity:
        """Return self, or raise InputError with the angle where the density is most negative.

        The minimum itself is found, between grid points too.

        Parameters
        ----------
        negative : float
            How far below zero the density may be, relative to uniform, beyond rounding.
        """
        if 2.0 * float(np.abs(self._moments[1:]).sum()) <= 1.0:
            return self  # no sum of these terms takes it below zero
        from spectral_mf.local_polynomials import LocalPolynomials

        angle, lowest = LocalPolynomials(self._moments).minimum()
        rounding = _MOMENT_ERROR * float(np.abs(self._moments).sum())
        if lowest < -max(_NEGATIVE_ALLOWED, rounding, negative):
            raise InputError(
                f"the density is negative at theta = {angle:.4g} ({lowest / (2.0 * np.pi):.3g}); "
                "make the perturbation smaller or keep fewer modes."
            )
        return self

    def moments(self, n_modes: int) -> ComplexArray:
        """Moments c_0 .. c_n, padded with zeros or cut; shape (n_modes + 1,)."""
        c = np.zeros(integer_at_least("n_modes", n_modes, 0) + 1, dtype=np.complex128)
        kept = min(n_modes + 1, self._moments.size)
        c[:kept] = self._moments[:kept]
        return c

    def density(self, theta: ArrayLike) -> FloatArray:
        """Density p at angles in radians, any shape."""
        return fourier_sum(self._moments, angle_array(theta)) / (2.0 * np.pi)

    def cell_means(self, n_cells: int) -> FloatArray:
        """Mean density over each cell centred at 2 pi j / n_cells, integrated exactly; shape (n_cells,)."""
        integer_at_least("n_cells", n_cells, 1)
        k = np.arange(self._moments.size)
        averaged = self._moments * np.sinc(k / n_cells)
        spectrum = np.zeros(n_cells, dtype=np.complex128)
        np.add.at(spectrum, k % n_cells, averaged)
        np.add.at(spectrum, -k[1:] % n_cells, averaged[1:].conj())
        return np.asarray(np.fft.ifft(spectrum).real * (n_cells / (2.0 * np.pi)))

    def rotated(self, angle: float) -> FourierDensity:
        """The same density turned by an angle in radians."""
        turn = -1j * finite_number("angle", angle)
        return FourierDensity(self._moments * np.exp(turn * np.arange(self._moments.size)))

    def reflected(self) -> FourierDensity:
        """The mirror image theta -> -theta."""
        return FourierDensity(self._moments.conj())

    def energy(self, model: Model) -> float:
        """Interaction energy under a model, in units of exp(model.energy_log_unit)."""
        check_model(model)
        return float(model.energy(self.moments(max(self.n_modes, 1))))

    def w1(self, other: Measure) -> float:
        """Wasserstein-1 distance on the circle (geodesic), in radians."""
        from spectral_mf.wasserstein import w1

        return w1(self, other)

    def distribution(self) -> Distribution:
        """Distribution function on [0, 2 pi], up to a constant."""
        from spectral_mf.distribution import Distribution

        return Distribution(np.array([0.0, 2.0 * np.pi]), np.array([0.0, 1.0]), self._moments)

    def quantiles(self, n_tokens: int) -> Atoms:
        """Equal point masses at the angles below which a share (j + 1/2) / N of the mass lies, j = 0 .. N - 1.

        The closest N equal masses to the density, up to a shift of the levels; nothing is random.

        Parameters
        ----------
        n_tokens : int
            Number N >= 1 of tokens.

        Raises
        ------
        InputError
            If N < 1, or the density is negative somewhere.
        """
        n_tokens = integer_at_least("n_tokens", n_tokens, 1)
        return self._at_levels((np.arange(n_tokens) + 0.5) / n_tokens)

    def sample(self, n_tokens: int, seed: int) -> Atoms:
        """Independent tokens from the density, by its inverse distribution function.

        Parameters
        ----------
        n_tokens : int
            Number N >= 1 of tokens.
        seed : int
            Seed of the random numbers.

        Raises
        ------
        InputError
            If N < 1, or the density is negative somewhere.
        """
        return self._at_levels(random_generator(seed).random(integer_at_least("n_tokens", n_tokens, 1)))

    def _at_levels(self, levels: FloatArray) -> Atoms:
        from spectral_mf.atoms import Atoms
        from spectral_mf.distribution import smooth_quantiles

        return Atoms(smooth_quantiles(self.require_positive()._moments, levels))

    def to_vector(self) -> FloatArray:
        """Moments as pairs (real, imaginary), shape (2 (K + 1),)."""
        return self._moments.view(np.float64).copy()

    @classmethod
    def from_vector(cls, vector: ArrayLike) -> FourierDensity:
        """Make the density again from `to_vector`, bit for bit.

        Values are not checked: a solver's |c_k| may exceed 1 by its error.
        """
        density = cls.__new__(cls)
        density._moments = np.array(vector, dtype=np.float64).view(np.complex128)
        density._moments.flags.writeable = False
        return density

    def __repr__(self) -> str:
        sizes = np.abs(self._moments[1:])
        largest = f", largest |c_{sizes.argmax() + 1}| = {sizes.max():.3g}" if sizes.size else ""
        return f"FourierDensity({counted(self.n_modes, 'modes')}{largest})"
