"""Tokens on the sphere S^{d-1}: dx_i/dt = P Σ_j w_j e^{β x_i·x_j} x_j (USA), divided by Σ_j w_j e^{β x_i·x_j} (SA).

P projects onto the tangent space at x_i. Velocities are pairwise sums, formed in chunks.

Growth rates of a degree l are measured in two ways, both from these pairwise sums, with no use of the kernel's
spectrum:

- on any tokens, by the power of the degree, E_l = Σ_ij w_i w_j P_l(x_i·x_j), with P_l the Gegenbauer polynomial that is
  1 at 1. It is the sum of the squared components along all harmonics of degree l, and dE_l/dt = 2 λ_l E_l but for noise
  of N^{-1/2} and, for SA, each token's attention on itself, which slows it by a share of e^β / (N mean of e^{β x·y}):
  `degree_powers`;
- without noise, on tokens placed at the nodes of a quadrature, whose weights carry a small perturbation of degree l:
  `planted_growth_rate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from spectral_mf.arguments import integer_at_least, random_generator, real_array
from spectral_mf.errors import InputError
from spectral_mf.output_times import time_grid
from spectral_mf.self_attention import SelfAttention
from spectral_mf.solvers.adaptive import AdaptiveSolver
from spectral_mf.solvers.dop853 import Dop853, error_norm
from spectral_mf.solvers.march import MarchOptions

FloatArray = NDArray[np.float64]

CHUNK = 2**20
"""Pairs at once: 8 MiB."""

PLANTED = 1e-4
"""Amplitude of a planted perturbation; what is neglected is its square."""


@dataclass(frozen=True, eq=False)
class SphereTokens:
    """Point masses on the unit sphere of R^d.

    Attributes
    ----------
    points : ndarray of float64, shape (N, d)
        Unit vectors; given vectors are divided by their length.
    weights : ndarray of float64, shape (N,)
        Non-negative, adding up to 1 (divided by their sum); equal if left out.

    Raises
    ------
    InputError
        If there are no points, d < 2, a vector is zero or not finite, or a weight is negative.
    """

    points: FloatArray
    weights: FloatArray

    def __init__(self, points: ArrayLike, weights: ArrayLike | None = None) -> None:
        x = real_array(points, "points are not real numbers; give one vector of d >= 2 numbers a token, shape (N, d).")
        if x.ndim != 2 or x.shape[0] < 1 or x.shape[1] < 2:
            raise InputError(f"points have shape {x.shape}; give one vector of d >= 2 numbers a token, shape (N, d).")
        length = np.linalg.norm(x, axis=1, keepdims=True)
        if not (np.isfinite(length).all() and length.min() > 0.0):
            raise InputError("every token needs a finite vector that is not zero.")
        w = np.full(x.shape[0], 1.0) if weights is None else np.array(weights, dtype=np.float64)
        if w.shape != x.shape[:1] or not (np.isfinite(w).all() and w.min() >= 0.0 and w.sum() > 0.0):
            raise InputError(f"weights have to be {x.shape[0]} finite numbers >= 0 that are not all zero.")
        object.__setattr__(self, "points", x / length)
        object.__setattr__(self, "weights", w / w.sum())

    @property
    def dimension(self) -> int:
        """Dimension d of the space."""
        return int(self.points.shape[1])


def sample_sphere_tokens(n_tokens: int, dimension: int, seed: int | np.random.SeedSequence) -> SphereTokens:
    """Independent tokens from the uniform measure on S^{d-1}.

    Raises
    ------
    InputError
        If there are no tokens, or d < 2.
    """
    n_tokens, dimension = integer_at_least("n_tokens", n_tokens, 1), integer_at_least("dimension", dimension, 2)
    return SphereTokens(random_generator(seed).standard_normal((n_tokens, dimension)))


def sphere_velocity(model: SelfAttention, points: FloatArray, tokens: SphereTokens) -> FloatArray:
    """Velocity at points of the sphere made by tokens, tangent to it.

    Parameters
    ----------
    model : SelfAttention
        Without diffusion.
    points : ndarray of float64, shape (M, d)
        Unit vectors.
    tokens : SphereTokens

    Returns
    -------
    ndarray of float64, shape (M, d)

    Raises
    ------
    InputError
        If the model is not a `SelfAttention` without diffusion.
    """
    _check_model(model)
    velocity = np.empty_like(points)
    for rows in _chunks(points.shape[0], tokens.weights.size):
        x = points[rows]
        output = _attention(model, x @ tokens.points.T, tokens.weights) @ tokens.points
        velocity[rows] = output - np.einsum("ij,ij->i", output, x)[:, None] * x
    return velocity


def degree_powers(model: SelfAttention, tokens: SphereTokens, degrees: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Powers E_l of the tokens' harmonic components, and their rates of change under the model.

    Returns
    -------
    powers, rates : ndarray of float64, shape (n,)
        From replicates r, λ_l is Σ_r rates / (2 Σ_r powers).
    """
    _check_degrees(degrees)
    velocity = sphere_velocity(model, tokens.points, tokens)
    powers, rates = np.zeros(len(degrees)), np.zeros(len(degrees))
    for rows in _chunks(tokens.weights.size, tokens.weights.size):
        cosines = tokens.points[rows] @ tokens.points.T
        approach = velocity[rows] @ tokens.points.T  # d(x_i·x_j)/dt from the motion of x_i
        values = gegenbauer(cosines, max(degrees), tokens.dimension)
        for degree, (value, slope) in enumerate(values):
            if degree in degrees:
                i = list(degrees).index(degree)
                powers[i] += tokens.weights[rows] @ value @ tokens.weights
                rates[i] += 2.0 * tokens.weights[rows] @ (slope * approach) @ tokens.weights
    return powers, rates


def planted_growth_rate(model: SelfAttention, degree: int, dimension: int, *, n_nodes: int | None = None) -> float:
    """Growth rate of a degree on S^{d-1}, measured on tokens that carry a small perturbation of that degree.

    The uniform measure times 1 + ε P_l(x·e) stands on tokens at the nodes of a quadrature that is exact for what a
    point of the plane spanned by e and u can see. Their velocity there, by pairwise sums, moves the component along
    P_l(x·e) at the rate that is returned, relative to the component. What is neglected is ε² = 1e-8 of the rate; and
    rounding adds about 1e-12 times the number of harmonics of the degree.

    Parameters
    ----------
    model : SelfAttention
    degree : int
        l >= 1.
    dimension : int
        d >= 3.
    n_nodes : int, optional
        Nodes for each of two angles; by default enough for the kernel and the degree.

    Raises
    ------
    InputError
        If the degree or the dimension is not allowed.
    """
    _check_degrees([degree])
    n = degree + model.bandwidth // 2 + 16 if n_nodes is None else n_nodes
    heights, height_weights, points, weights = _axial_quadrature(dimension, n)
    targets = np.zeros((n, dimension))
    targets[:, 0], targets[:, 1] = heights, np.sqrt(1.0 - heights**2)
    shape, slope = list(gegenbauer(heights, degree, dimension))[degree]
    seen = np.repeat(shape, weights.size // n)
    moved, component = [], []
    for amplitude in (PLANTED, -PLANTED):
        tokens = SphereTokens(points, weights * (1.0 + amplitude * seen))
        mass = height_weights * (1.0 + amplitude * shape)
        moved.append(mass @ (slope * sphere_velocity(model, targets, tokens)[:, 0]))
        component.append(mass @ shape)
    return float((moved[0] - moved[1]) / (component[0] - component[1]))


def simulate_sphere(
    model: SelfAttention, tokens: SphereTokens, times: float | ArrayLike, *, rtol: float = 1e-9
) -> list[SphereTokens]:
    """Move tokens on the sphere.

    Parameters
    ----------
    model : SelfAttention
        Without diffusion.
    tokens : SphereTokens
    times : float or array_like of float
        An end time, or increasing output times, the first being the initial time.
    rtol : float
        Largest error of a coordinate in a step, relative to the largest step from the start so far (at most 1).

    Returns
    -------
    list of SphereTokens
        At each of the times.
    """
    _check_model(model)
    grid = time_grid(times)
    solver = SphereSolver(model, float(grid[0]), tokens, MarchOptions(rtol=rtol))
    states = [tokens]
    for t in grid[1:]:
        solver.advance(float(t))
        states.append(solver.tokens)
    return states


class SphereSolver(AdaptiveSolver):
    """Tokens on the sphere that move by steps of the 8(5,3) method, put back on the sphere after each."""

    method: ClassVar[str] = "particles"

    def __init__(self, model: SelfAttention, t: float, tokens: SphereTokens, options: MarchOptions) -> None:
        super().__init__(t, options)
        self._model = model
        self._start = tokens
        self._stepper = Dop853(self._rhs, tokens.points.ravel())
        self._start_control(None, 1.0, float(np.abs(self._stepper.slope).max()))

    def _rhs(self, y: FloatArray, out: FloatArray) -> None:
        tokens = SphereTokens(y.reshape(self._start.points.shape), self._start.weights)
        out[:] = sphere_velocity(self._model, tokens.points, tokens).ravel()

    @property
    def n_modes(self) -> int:
        """Number of tokens."""
        return self._start.weights.size

    @property
    def tokens(self) -> SphereTokens:
        """The tokens at the time reached."""
        return SphereTokens(self._stepper.y.reshape(self._start.points.shape), self._start.weights)

    def _error(self, errors: FloatArray) -> float:
        moved = float(np.abs(self._stepper.trial - self._start.points.ravel()).max())
        return error_norm(errors, self._options.rtol * min(moved, 1.0))

    def _is_resolved(self) -> bool:
        return True

    def _refine(self) -> None:
        """Tokens need no resolution."""

    def _accepted(self) -> None:
        self._stepper.y[:] = self.tokens.points.ravel()


def gegenbauer(x: FloatArray, degree: int, dimension: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the values and derivatives of the Gegenbauer polynomials P_0 .. P_degree of R^d, P_l(1) = 1.

    Zonal harmonics of S^{d-1}: cos(l φ) at cos φ on the circle, Legendre polynomials on S^2. By
    (l + d - 2) P_{l+1} = (2 l + d - 2) x P_l - l P_{l-1}.
    """
    before, value = np.zeros_like(x), np.ones_like(x)
    before_slope, slope = np.zeros_like(x), np.zeros_like(x)
    yield value, slope
    for k in range(degree):
        if k == 0:
            a, b = 1.0, 0.0
        else:
            a, b = (2 * k + dimension - 2) / (k + dimension - 2), k / (k + dimension - 2)
        following = a * x * value - b * before
        following_slope = a * (value + x * slope) - b * before_slope
        before, value, before_slope, slope = value, following, slope, following_slope
        yield value, slope


def _attention(model: SelfAttention, cosines: FloatArray, weights: FloatArray) -> FloatArray:
    """Attention w e^{β x·y}, normalised as the model says; overwrites the cosines."""
    cosines -= 1.0
    cosines *= model.beta
    if model.normalization == "softmax":
        cosines -= np.where(weights > 0.0, cosines, -np.inf).max(axis=1, keepdims=True)
        np.exp(cosines, out=cosines)
        cosines *= weights
        cosines /= cosines.sum(axis=1, keepdims=True)
        return cosines
    if model.normalization == "none":
        cosines += model.beta
    np.exp(cosines, out=cosines)
    cosines *= weights
    return cosines


def _axial_quadrature(dimension: int, n: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Heights and their weights, and points with weights: exact for functions of x·e and x·u up to degree 2 n - 1.

    e and u are the first two unit vectors. A point is at the height t on the axis e, at s along u on the sphere S^{d-2}
    of that height, and at plus or minus a third unit vector for the rest: what lies across cancels.
    """
    integer_at_least("dimension", dimension, 3)  # the circle has its own solvers
    t, t_weights = special.roots_gegenbauer(n, 0.5 * dimension - 1.0)
    s, s_weights = special.roots_gegenbauer(n, 0.5 * (dimension - 3))
    points = np.zeros((n, n, 2, dimension))
    radius = np.sqrt(1.0 - t**2)[:, None, None]
    points[..., 0] = t[:, None, None]
    points[..., 1] = radius * s[None, :, None]
    points[..., 2] = radius * np.sqrt(1.0 - s**2)[None, :, None] * np.array([1.0, -1.0])
    weights = np.repeat(np.outer(t_weights, s_weights)[..., None], 2, axis=2).ravel()
    return t, t_weights / t_weights.sum(), points.reshape(-1, dimension), weights / weights.sum()


def _chunks(rows: int, columns: int) -> Iterator[slice]:
    size = max(1, CHUNK // columns)
    return (slice(start, start + size) for start in range(0, rows, size))


def _check_model(model: SelfAttention) -> None:
    if not isinstance(model, SelfAttention) or model.diffusion > 0.0:
        raise InputError(f"{model!r} does not move tokens on spheres; give a SelfAttention with diffusion = 0.")


def _check_degrees(degrees: Sequence[int]) -> None:
    if not degrees or min(degrees) < 1:
        raise InputError(f"degrees {degrees!r} are not allowed; give integers of at least 1.")
