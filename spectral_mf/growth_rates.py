"""Linear stability of the uniform measure on the sphere S^{d-1}: growth rates, dominant mode, thresholds.

A perturbation of degree l grows like exp(lambda_l t) with lambda_l = l (l + d - 2) (w_l - kappa). With nu = d/2 - 1,

    SA:   w_l = I_{l+nu}(beta) / (beta I_nu(beta)),
    USA:  w_l = Gamma(d/2) (2/beta)^nu I_{l+nu}(beta) / beta.

On the circle (d = 2) this is k^2 I_k / (beta I_0) and k^2 I_k / beta. SA and USA differ by the mean of e^{beta cos}
over the sphere, one factor for all l: they have the same dominant mode and the same thresholds (without diffusion).

Beyond the circle everything is built from the ratios r_mu = I_{mu+1} / I_mu, which obey
r_mu = 1 / (2 (mu + 1) / beta + r_{mu+1}) (DLMF 10.33.1): all terms are positive and of order one, so nothing
overflows, cancels or needs a special case at beta = 0, in any dimension.

References
----------
Bruno, Pasqualotto, Agazzi, arXiv:2410.23228, section 4. The coefficients gamma_k that are plotted there and in the
authors' notebook are lambda_k / pi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ive

from spectral_mf import bessel
from spectral_mf.arguments import check_model, integer_at_least
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.self_attention import SelfAttention

FloatArray = NDArray[np.float64]

TIE_TOLERANCE = 1e-12
"""Rates that differ by less than this, relative to their terms, are equal to rounding."""


@dataclass(frozen=True)
class DominantMode:
    """The modes with the largest growth rate.

    Attributes
    ----------
    modes : tuple of int
        Modes whose rates are equal to rounding, in increasing order: one, or two at a threshold.
    rate : float
        Their growth rate, in inverse units of time.
    and_above : bool
        Whether every mode above the last of `modes` has this rate too, and they are too many to be listed: all that
        the kernel does not see, where no mode grows and there is no diffusion.
    """

    modes: tuple[int, ...]
    rate: float
    and_above: bool = False

    @property
    def mode(self) -> int:
        """The dominant mode; the smallest one in a tie."""
        return self.modes[0]

    @property
    def tie(self) -> bool:
        """Whether several modes share the largest rate."""
        return len(self.modes) > 1 or self.and_above

    @property
    def unstable(self) -> bool:
        """Whether the largest rate is positive; if not, the uniform measure is linearly stable."""
        return self.rate > 0.0


def growth_rate(model: Model, k: ArrayLike, *, dimension: int = 2) -> FloatArray:
    """Rate lambda_k at which a small perturbation of degree k of the uniform measure on S^{d-1} grows.

    Parameters
    ----------
    model : Model
        Beyond the circle, a `SelfAttention`.
    k : array_like of int
        Modes (degrees) >= 1, shape (...).
    dimension : int
        Dimension d >= 2 of the space that the sphere lies in; 2 is the circle.

    Returns
    -------
    ndarray of float64, shape (...)
        Rates of the amplitude, in inverse units of time (of e^-beta for normalization "peak").

    Raises
    ------
    InputError
        If a mode or the dimension is not allowed, or the model has no rates in that dimension.
    """
    check_model(model)
    modes = _checked_modes(k)
    if integer_at_least("dimension", dimension, 2) == 2:
        return model.growth_rate(modes)
    if not isinstance(model, SelfAttention):
        raise InputError(f"{model!r} has growth rates on the circle only; use dimension = 2 or a SelfAttention.")
    if modes.size == 0:
        return np.zeros(modes.shape)
    kernel = _kernel_eigenvalues(model, int(modes.max()), dimension)
    rates = _laplacian(modes, dimension) * (kernel[modes] - model.diffusion)
    return np.asarray(rates, dtype=np.float64)


def dominant_mode(model: Model, *, dimension: int = 2) -> DominantMode:
    """The mode that grows fastest about the uniform measure on S^{d-1}; near sqrt(2 beta) on the circle.

    Ties are reported as ties. If no mode grows (strong diffusion), the answer says so and holds the modes that decay
    slowest.

    Parameters
    ----------
    model : Model
        Beyond the circle, a `SelfAttention`.
    dimension : int
        d >= 2.

    Returns
    -------
    DominantMode

    Raises
    ------
    InputError
        As for `growth_rate`.
    """
    check_model(model)
    # Without diffusion the fastest degree is at most sqrt(2 beta) + 1, within the bandwidth; diffusion lowers it.
    k = np.arange(1, model.bandwidth + 2)
    rates = growth_rate(model, k, dimension=dimension)
    best = int(rates.argmax())
    scale = abs(float(rates[best])) + model.diffusion * float(_laplacian(k[best : best + 1], dimension)[0])
    modes = k[rates >= rates[best] - TIE_TOLERANCE * scale]
    # The last one is beyond the bandwidth. Without diffusion it is at rest, and so are all above it.
    and_above = model.diffusion == 0.0 and int(modes[-1]) == int(k[-1])
    return DominantMode(tuple(int(mode) for mode in modes), float(rates[best]), and_above)


def threshold(k: ArrayLike, *, dimension: int = 2) -> FloatArray:
    """The beta at which degree k + 1 overtakes degree k, for SA and USA alike (without diffusion).

    On the circle the root of k^2 I_k = (k+1)^2 I_{k+1}, near k (k + 1) / 2 + 1/4.

    Parameters
    ----------
    k : array_like of int
        Modes >= 1, shape (...).
    dimension : int
        d >= 2.

    Returns
    -------
    ndarray of float64, shape (...)

    Raises
    ------
    InputError
        If a mode or the dimension is not allowed.
    """
    modes = _checked_modes(k)
    d = integer_at_least("dimension", dimension, 2)
    roots = [_threshold(int(mode), d) for mode in modes.ravel()]
    return np.array(roots, dtype=np.float64).reshape(modes.shape)


def _threshold(k: int, dimension: int) -> float:
    order = k + dimension / 2.0 - 1.0
    gain = float(_laplacian(np.array([k + 1]), dimension)[0] / _laplacian(np.array([k]), dimension)[0])

    def excess(beta: float) -> float:
        return gain * float(_bessel_ratios(order, 0, beta)[0]) - 1.0

    # r_mu increases in beta from 0 to 1, so the root is unique; beta > mu + 1 makes the ratio large enough soon.
    upper = 2.0 * (order + 1.0)
    while excess(upper) <= 0.0:
        upper *= 2.0
    return float(brentq(excess, 0.0, upper, xtol=1e-14 * upper, rtol=4.0 * np.finfo(np.float64).eps))


def _kernel_eigenvalues(model: SelfAttention, largest: int, dimension: int) -> FloatArray:
    """w_l, l = 0 .. largest, without diffusion; w_0 is not used and set to 0."""
    nu = dimension / 2.0 - 1.0
    beta = model.beta
    ratios = _bessel_ratios(nu, largest, beta)
    first = 1.0 / (2.0 * (nu + 1.0) + beta * ratios[1])  # r_nu / beta, which has a limit at beta = 0
    w = np.zeros(largest + 1)
    w[1:] = first * np.concatenate([[1.0], np.cumprod(ratios[1:largest])])
    if model.normalization == "softmax":
        return w
    mean = _mean_kernel(nu, beta)
    if mean < np.finfo(np.float64).tiny:
        raise InputError(
            f"the mean of e^(beta (cos - 1)) at beta = {beta:g}, dimension = {dimension} is below the smallest float; "
            'use normalization = "softmax", which has the same dominant mode.'
        )
    return w * (mean if model.normalization == "peak" else mean * math.exp(beta))


def _bessel_ratios(order: float, count: int, beta: float) -> FloatArray:
    """r_mu = I_{mu+1}(beta) / I_mu(beta) at mu = order, order + 1, .., order + count.

    By the recurrence downwards, which damps the error of its start by r_mu r_{mu+1} a step.
    """
    start = count + bessel.bandwidth(beta) + 2
    ratios = np.empty(count + 1)
    mu = order + start
    r = beta / (mu + 0.5 + math.hypot(mu + 1.5, beta))  # within the bounds of Amos (1974)
    for step in range(start - 1, -1, -1):
        r = beta / (2.0 * (order + step + 1.0) + beta * r)
        if step <= count:
            ratios[step] = r
    return ratios


def _mean_kernel(nu: float, beta: float) -> float:
    """Mean of e^{beta (cos - 1)} over the sphere S^{2 nu + 1}, that is e^-beta Gamma(nu+1) (2/beta)^nu I_nu(beta)."""
    half = nu % 1.0  # 0 on spheres of even d, which start from the circle; 1/2 on those of odd d, from S^2
    mean = float(ive(0, beta)) if half == 0.0 else _mean_kernel_on_s2(beta)
    steps = round(nu - half)
    mu = half + np.arange(steps)
    ratios = _bessel_ratios(half, steps, beta)
    return mean * float(np.prod(1.0 / (1.0 + beta * ratios[1:] / (2.0 * (mu + 1.0)))))


def _mean_kernel_on_s2(beta: float) -> float:
    return -math.expm1(-2.0 * beta) / (2.0 * beta) if beta > 0.0 else 1.0


def _laplacian(k: NDArray[np.int64], dimension: int) -> FloatArray:
    """Eigenvalues l (l + d - 2) of minus the Laplacian on S^{d-1}."""
    degree = k.astype(np.float64)
    return degree * (degree + (dimension - 2))


def _checked_modes(k: ArrayLike) -> NDArray[np.int64]:
    values = np.asarray(k)
    if values.dtype == bool or not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
        raise InputError(f"modes {k!r} are not integers; give modes k >= 1.")
    wrong = values[~((values >= 1) & (values == np.floor(values)))]
    if wrong.size:
        raise InputError(f"mode {wrong.flat[0]:g} is not allowed; give integers k >= 1.")
    return values.astype(np.int64)
