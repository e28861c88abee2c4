"""The unstable manifold of the uniform density: the quasi-linear phase as a power series.

Densities on multiples of one mode m leave the uniform density along a curve,

    mu(t) = sum_j z^j P_j(theta),  z = alpha e^{lambda_m t},  P_j = sum_p a[j, p] e^{i p m theta} (p <= j, p = j mod 2),

that is, c_{m p}(t) = sum_j a[j, p] |z|^j e^{i p arg z}. Every solution that starts small on multiples of the dominant
mode is drawn to it. Inserting the series into the continuity equation gives, order by order,

    (j lambda_m - lambda_{m p}) a[j, p] = m p F_j[p],

where the forcing F_j is made of lower orders; a[1, 1] = 1, and a[j, 1] for j > 1 is the forced response, which fixes
the parameter z. The softmax's quotient V = N / Z is formed by power-series arithmetic, V Z = N.

References
----------
Bruno, Pasqualotto, Agazzi, arXiv:2410.23228, section 4 and appendix C.4 (the expansion f^{alpha,K}).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from spectral_mf.arguments import integer_at_least, number_from_to
from spectral_mf.convolution_fields import ConvolutionModel
from spectral_mf.errors import InputError
from spectral_mf.growth_rates import dominant_mode
from spectral_mf.model import Model

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_RADIUS_ORDER = 64
"""Orders computed for the estimate of the radius, whatever order is asked for."""

_RESONANCE = 1e-9
"""Smallest |j lambda_m - lambda_{m p}|, relative to lambda_m, that may be divided by."""


@dataclass(frozen=True)
class ExpansionKernel:
    """What order-by-order expansions need of a model: multipliers of the moments on multiples of one mode.

    Attributes
    ----------
    drift : ndarray of float64, shape (n,)
        The velocity's numerator has Fourier coefficients i drift_p c_{m p}, p = 0 .. n - 1.
    mass : ndarray of float64, shape (n,), or None
        The softmax's denominator has mass_p c_{m p} (mass_0 = 1); None if there is no denominator.
    rates : ndarray of float64, shape (n,)
        Growth rates lambda_{m p}, with diffusion.
    """

    drift: FloatArray
    mass: FloatArray | None
    rates: FloatArray

    @classmethod
    def of(cls, model: Model, modes: NDArray[np.int64]) -> ExpansionKernel:
        """Multipliers of a model at the given modes (>= 0).

        Raises
        ------
        InputError
            If the model is no convolution with one kernel.
        """
        if not isinstance(model, ConvolutionModel):
            raise InputError(
                "order-by-order expansions are known for a single convolution kernel, not for "
                f"{type(model).__name__}; give a SelfAttention or a PairPotential."
            )
        kernels = np.zeros((model.kernels.shape[0], modes.size), dtype=np.complex128)
        seen = modes <= model.bandwidth
        kernels[:, seen] = model.kernels[:, modes[seen]]
        return cls(
            drift=kernels[0].imag,
            mass=kernels[1].real if len(kernels) == 2 else None,
            rates=model.growth_rate(modes),
        )


@dataclass(frozen=True, eq=False)
class UnstableManifold:
    """The series sum_j z^j P_j; call it with z to get the moments there.

    Attributes
    ----------
    mode : int
        The mode m that the manifold is tangent to.
    growth_rate : float
        lambda_m; z grows like exp(growth_rate t).
    coefficients : ndarray of float64, shape (order + 1, order + 1)
        a[j, p], so that c_{m p} = sum_j a[j, p] z^j for real z >= 0. a[0, 0] = a[1, 1] = 1.
    radius : float
        Estimated radius of convergence in |z| of the series of densities (sum over p of |a[j, p]| |z|^j), from a
        straight-line fit of the logarithms of the orders' sizes; good to a few digits without diffusion (the sizes
        are then nearly geometric) and to a tenth or so with it. Single moments converge somewhat farther.
    """

    mode: int
    growth_rate: float
    coefficients: FloatArray
    radius: float

    @property
    def order(self) -> int:
        """Highest power of z."""
        return int(self.coefficients.shape[0]) - 1

    def __call__(self, z: ArrayLike) -> ComplexArray:
        """Moments at z.

        Parameters
        ----------
        z : array_like of complex, shape (...)
            Position on the manifold, |z| <= radius; its argument turns the density by arg(z) / m against theta.

        Returns
        -------
        ndarray of complex128, shape (..., mode * order + 1)
            c_0 .. c_{mode * order}; only multiples of the mode are not zero.

        Raises
        ------
        InputError
            If |z| exceeds the radius of convergence.
        """
        return self._moments(z, self.coefficients)

    def rates(self, z: ArrayLike) -> ComplexArray:
        """Time derivatives of the moments at z; shape (..., mode * order + 1)."""
        j = np.arange(self.order + 1)
        return self._moments(z, self.growth_rate * j[:, None] * self.coefficients)

    def remainder(self, z: ArrayLike) -> FloatArray:
        """Bound on the error of the moments at z: the orders left out, as a geometric series from the last one kept."""
        size = self._checked_size(z)
        share = size / self.radius
        with np.errstate(divide="ignore"):
            tail = np.where(share < 1.0, share / (1.0 - share), np.inf)
        return np.asarray(np.abs(self.coefficients[-1]).sum() * size**self.order * tail)

    def z_of_level(self, level: float) -> float:
        """The z >= 0 at which |c_m| first reaches `level`: the inverse of the series of c_m as it is, cut at its order.

        Parameters
        ----------
        level : float
            Value of |c_m|, 0 <= level < 1.

        Raises
        ------
        InputError
            If the level is not allowed, or |c_m| does not reach it within the radius of convergence.
        """
        level = number_from_to("level", level, 0.0, math.nextafter(1.0, 0.0))
        z = np.linspace(0.0, self.radius, 257)
        reached = np.flatnonzero(self._amplitude(z) >= level)
        if reached.size == 0:
            raise InputError(
                f"|c_{self.mode}| reaches {float(self._amplitude(z).max()):.3g} within the radius of convergence of "
                f"the unstable manifold's series, not {level:g}; give a smaller level."
            )
        first = int(reached[0])
        if first == 0:
            return 0.0
        root = brentq(
            lambda x: float(self._amplitude(np.array(x))) - level,
            z[first - 1],
            z[first],
            xtol=1e-15 * level,
            rtol=4.0 * np.finfo(np.float64).eps,
        )
        return float(root)

    def _amplitude(self, z: FloatArray) -> FloatArray:
        """c_m at real z."""
        return np.asarray(np.polynomial.polynomial.polyval(z, self.coefficients[:, 1]), dtype=np.float64)

    def _moments(self, z: ArrayLike, coefficients: FloatArray) -> ComplexArray:
        size = self._checked_size(z)
        powers = size[..., None] ** np.arange(self.order + 1)
        phase = np.exp(1j * np.angle(np.asarray(z, dtype=np.complex128)))
        moments = np.zeros((*size.shape, self.mode * self.order + 1), dtype=np.complex128)
        moments[..., :: self.mode] = (powers @ coefficients) * phase[..., None] ** np.arange(self.order + 1)
        return moments

    def _checked_size(self, z: ArrayLike) -> FloatArray:
        size = np.abs(np.asarray(z, dtype=np.complex128))
        if not (size <= self.radius).all():
            raise InputError(
                f"|z| = {float(size.max()):.4g} lies beyond the radius of convergence {self.radius:.4g} of the "
                "unstable manifold's series; give a smaller z, or follow the density with a nonlinear solver."
            )
        return size


def unstable_manifold(model: Model, mode: int | None = None, order: int = 40) -> UnstableManifold:
    """Power series of the unstable manifold of the uniform density that is tangent to one mode.

    Parameters
    ----------
    model : Model
        A `SelfAttention` or a `PairPotential`, with or without diffusion.
    mode : int, optional
        The mode m, which has to grow; by default the dominant mode (the smaller one in a tie).
    order : int
        Highest power of z, >= 1.

    Returns
    -------
    UnstableManifold

    Raises
    ------
    InputError
        If the order or the mode is not allowed, the mode does not grow, or a resonance j lambda_m = lambda_{m p}
        forbids the expansion (never for the dominant mode).
    """
    order = integer_at_least("order", order, 1)
    m = dominant_mode(model).mode if mode is None else integer_at_least("mode", mode, 1)
    rate = float(model.growth_rate(m))
    if rate <= 0.0:
        raise InputError(f"mode {m} does not grow (rate {rate:.4g}), so it has no unstable manifold; choose another.")
    coefficients = _coefficients(model, m, max(order, _RADIUS_ORDER))
    return UnstableManifold(
        mode=m,
        growth_rate=rate,
        coefficients=_read_only(coefficients[: order + 1, : order + 1]),
        radius=_radius(coefficients),
    )


def _coefficients(model: Model, mode: int, order: int) -> FloatArray:
    """a[j, p], j and p = 0 .. order, by the recursion over orders."""
    kernel = ExpansionKernel.of(model, mode * np.arange(order + 1))
    rate = kernel.rates[1]
    # Order j of each field as its coefficients p = -j .. j. The density and Z are even in p; V = i v has odd v.
    density = [np.ones(1)]
    velocity = [np.zeros(1)]
    attention = [np.ones(1)]
    coefficients = np.zeros((order + 1, order + 1))
    coefficients[0, 0] = 1.0
    for j in range(1, order + 1):
        p = np.arange(-j, j + 1)
        known_velocity = np.zeros(2 * j + 1)
        if kernel.mass is not None:
            for i in range(1, j):
                known_velocity -= np.convolve(attention[i], velocity[j - i])
        flux = known_velocity.copy()
        for i in range(1, j):
            flux += np.convolve(velocity[i], density[j - i])
        a = _response(mode, j, mode * p * flux, rate, kernel.rates)
        coefficients[j, : j + 1] = a[j:]
        density.append(a)
        velocity.append(known_velocity + np.sign(p) * kernel.drift[np.abs(p)] * a)
        if kernel.mass is not None:
            attention.append(kernel.mass[np.abs(p)] * a)
    return coefficients


def _response(mode: int, j: int, forcing: FloatArray, rate: float, rates: FloatArray) -> FloatArray:
    """Solve (j lambda_m - lambda_{m p}) a[p] = forcing[p], p = -j .. j; at order 1 the eigenvector, which defines z."""
    if j == 1:
        return np.array([1.0, 0.0, 1.0])
    p = np.abs(np.arange(-j, j + 1))
    active = (p - j) % 2 == 0
    active[j] = False  # the mass is 1 at every order
    denominator = j * rate - rates[p]
    resonant = active & (np.abs(denominator) < _RESONANCE * rate)
    if resonant.any():
        raise InputError(
            f"mode {mode} is in resonance: {j} times its rate is the rate of mode {mode * int(p[resonant][0])}, so its "
            "unstable manifold has no power series; choose the dominant mode."
        )
    a = np.zeros(2 * j + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        a[active] = forcing[active] / denominator[active]
    if not np.isfinite(a).all():
        raise InputError(
            f"the unstable manifold's coefficients of mode {mode} overflow at order {j}: its series converges in "
            "a tiny disc only; choose the dominant mode."
        )
    return a


def _radius(coefficients: FloatArray) -> float:
    """Radius of convergence: the orders' sizes sum_p |a[j, p]| fall or grow like radius^-j."""
    sizes = np.abs(coefficients).sum(axis=1)
    j = np.arange(sizes.size // 2, sizes.size)
    seen = sizes[j] > 0.0
    slope = np.polyfit(j[seen], np.log(sizes[j][seen]), 1)[0]
    return float(np.exp(-slope))


def _read_only(values: FloatArray) -> FloatArray:
    copy = values.copy()
    copy.flags.writeable = False
    return copy
