"""Self-attention between tokens that have a position s in [0, 1]: ∂ₜμ_s + ∂_θ(μ_s V_s) = κ ∂²_θ μ_s.

V_s(θ) = ∫ G(s, s') ∫ e^{β cos(θ - φ + ω (s - s'))} (-sin(θ - φ)) dμ_{s'}(φ) ds', divided by the same integral without
the sine for the softmax. G(s, s') is e^{-λ |s - s'|}, for s' ≤ s only if the order is causal, with ∫ G ds' = 1. With a
query-key matrix B the score is β ⟨x(θ), B x(φ)⟩, and there are no phases.

Without such a matrix the uniform density stays stationary. With causal order, position s is moved by those before it:
near s = 0 the density moves as if alone, and later positions follow, the slower the more they are averages over many
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spectral_mf import bessel
from spectral_mf.arguments import finite_number, number_from_to
from spectral_mf.attention_head import AttentionHead, as_matrix
from spectral_mf.errors import InputError
from spectral_mf.fft import RealTransform
from spectral_mf.multi_head_attention import MultiHeadAttention
from spectral_mf.planar_forms import Matrix, PlanarForm
from spectral_mf.position_grid import PositionGrid
from spectral_mf.self_attention import MAX_BETA, Normalization, SelfAttention

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Order = Literal["full", "causal"]

IDENTITY: Matrix = ((1.0, 0.0), (0.0, 1.0))

MAX_DECAY = 500.0
"""Beyond this, e^decay is out of the range that running sums over tokens have."""

MAX_ROTARY = 1e4

MASS_FLOOR = 1e-13
"""As for `SelfAttention`: below this share of its mean, a Fourier sum does not know the softmax's denominator."""


@dataclass(frozen=True)
class PositionalAttention:
    """Self-attention with positions: full or causal, with distance decay (ALiBi), and rotary phases (RoPE).

    Parameters
    ----------
    beta : float
        Inverse temperature, as for `SelfAttention`.
    normalization : {"softmax", "none", "peak"}
        As for `SelfAttention`. Without softmax, the velocity is the mean over the positions seen.
    order : {"full", "causal"}
        Whether a token sees all positions, or its own and those before it.
    decay : float
        lambda, 0 to 500: a position at distance d weighs e^{-lambda d} (ALiBi's slope times the number of tokens).
    rotary : float
        omega: phase added to the angle between two tokens in the attention score for each unit of their distance in
        position, at most 1e4 in size; the values are not turned.
    diffusion : float
        As for `SelfAttention`.
    query_key : 2x2 array_like of float
        B = Q^T K; the identity unless given. Values are the tokens themselves. Not with rotary phases: these stand
        between Q and K, whose product does not tell how they act. With "peak", speeds are in units of the largest
        attention e^{beta |B|}.

    Raises
    ------
    InputError
        If a parameter is out of range, query_key is no 2x2 matrix of finite numbers, or it comes with rotary phases.

    References
    ----------
    Causal order and decay: arXiv:2605.09213 (kinetic theory). Causal softmax: arXiv:2411.04990. Rotary:
    arXiv:2607.24502.
    """

    beta: float
    normalization: Normalization = "softmax"
    order: Order = "causal"
    decay: float = 0.0
    rotary: float = 0.0
    diffusion: float = 0.0
    query_key: Matrix = IDENTITY

    def __post_init__(self) -> None:
        object.__setattr__(self, "query_key", as_matrix("query_key", self.query_key))
        object.__setattr__(self, "beta", number_from_to("beta", self.beta, 0.0, MAX_BETA))
        object.__setattr__(self, "diffusion", self.attention.diffusion)
        if self.order not in get_args(Order):
            raise InputError(f"order = {self.order!r} is unknown; choose one of {', '.join(get_args(Order))}.")
        object.__setattr__(self, "decay", number_from_to("decay", self.decay, 0.0, MAX_DECAY))
        object.__setattr__(self, "rotary", finite_number("rotary", self.rotary))
        number_from_to("rotary", self.rotary, -MAX_ROTARY, MAX_ROTARY)
        if self.rotary and self.has_matrix:
            raise InputError(
                f"rotary = {self.rotary:g} cannot go with a query_key: phases stand between query and key, and the "
                "product of the two matrices does not tell how they act; give one of the two."
            )

    @cached_property
    def attention(self) -> SelfAttention | MultiHeadAttention:
        """The model of each position alone, which sees itself only."""
        if not self.has_matrix:
            return SelfAttention(self.beta, self.normalization, self.diffusion)
        head = AttentionHead(self.query_key, IDENTITY, self.beta)
        return MultiHeadAttention((head,), self.normalization, self.diffusion)

    @property
    def has_matrix(self) -> bool:
        """Whether the query-key matrix is another than the identity."""
        return self.query_key != IDENTITY

    @cached_property
    def score(self) -> PlanarForm:
        """The exponent beta <x, B y> between tokens at one position."""
        (b11, b12), (b21, b22) = self.query_key
        return PlanarForm.of(((self.beta * b11, self.beta * b12), (self.beta * b21, self.beta * b22)))

    @property
    def causal(self) -> bool:
        """Whether tokens see no later position."""
        return self.order == "causal"

    @property
    def needs_positions(self) -> bool:
        """Whether the velocity depends on positions at all."""
        return self.causal or self.decay > 0.0 or self.rotary != 0.0

    @property
    def bandwidth(self) -> int:
        """Number of modes beyond which the velocity does not depend on the measure, to round-off."""
        return self.attention.bandwidth + 1  # the sine shifts by one what the rotary phase has told apart

    def to_dict(self) -> dict[str, Any]:
        """Parameters, as they are stored in files."""
        return {
            "type": "PositionalAttention",
            "beta": self.beta,
            "normalization": self.normalization,
            "order": self.order,
            "decay": self.decay,
            "rotary": self.rotary,
            "diffusion": self.diffusion,
            "query_key": [list(row) for row in self.query_key],
        }


class SystemOnNodes:
    """A positional model on the nodes of a grid.

    Parameters
    ----------
    model : PositionalAttention
    grid : PositionGrid
    """

    def __init__(self, model: PositionalAttention, grid: PositionGrid) -> None:
        self.model = model
        self.grid = grid

    @property
    def diffusion(self) -> float:
        """Coefficient kappa of d_theta^2."""
        return self.model.diffusion

    @property
    def bandwidth(self) -> int:
        """Number of modes that the velocity depends on."""
        return self.model.bandwidth


class PositionalSystem(SystemOnNodes):
    """A positional model on the nodes of a grid: from the moments at all nodes to the velocity at each.

    With a query-key matrix, see `spectral_mf.positional_heads.PositionalHeadSystem`.

    -sin x e^{β cos(x + ψ)} = Σ_k (i/2) (I_{k-1} e^{i(k-1)ψ} - I_{k+1} e^{i(k+1)ψ}) e^{ikx}: the phases belong to the
    neighbours of mode k. Without rotary phases that is i k I_k / β.

    Parameters
    ----------
    model : PositionalAttention
    grid : PositionGrid
    """

    @cached_property
    def _averages(self) -> ComplexArray:
        """Means with the phases m omega (s - s'), m = -1 .. bandwidth + 1; shape (bandwidth + 3, S, S)."""
        m = np.arange(-1, self.bandwidth + 2)
        frequencies = self.model.rotary * m if self.model.rotary else np.zeros(1)
        means = self.grid.averages(causal=self.model.causal, decay=self.model.decay, frequencies=frequencies)
        return np.broadcast_to(means, (m.size, *means.shape[1:]))

    @cached_property
    def drift(self) -> ComplexArray:
        """Fourier coefficients of the velocity without softmax, by mode, from those at all nodes: (K + 1, S, S)."""
        k = np.arange(self.bandwidth + 1)
        speed = SelfAttention(self.model.beta, self.model.normalization).speed
        if not self.model.rotary:
            slope = 1j * speed * bessel.derivative_ratio(k, self.model.beta)
            return np.asarray(slope[:, None, None] * self._averages[1:-1])
        below, above = bessel.ratio(k - 1, self.model.beta), bessel.ratio(k + 1, self.model.beta)
        turned = below[:, None, None] * self._averages[:-2] - above[:, None, None] * self._averages[2:]
        return np.asarray(0.5j * speed * turned)

    @cached_property
    def mass(self) -> ComplexArray:
        """Likewise for the softmax's denominator relative to I_0; shape (K + 1, S, S)."""
        share = bessel.ratio(np.arange(self.bandwidth + 1), self.model.beta)
        return np.asarray(share[:, None, None] * self._averages[1:-1])

    @cached_property
    def turning(self) -> FloatArray:
        """Velocity of the uniform density at each node, a rotation: zero without rotary phases; shape (S,)."""
        return np.asarray(self.drift[0].sum(axis=1).real)

    @cached_property
    def deviation(self) -> ComplexArray:
        """As `drift`, of the velocity beyond `turning` (times the softmax's denominator); shape (K + 1, S, S).

        A perturbation of any size has all its digits here, beside a rotation of order one.
        """
        if not self.model.rotary:
            return self.drift
        turned = self.mass if self.model.normalization == "softmax" else np.zeros_like(self.drift)
        deviation = self.drift - self.turning[:, None] * turned
        deviation[0] = 0.0
        return np.asarray(deviation)

    def linear_operator(self, k: int) -> ComplexArray:
        """Matrix L of dc_k/dt = L c_k for small perturbations of the uniform density; shape (S, S)."""
        velocity = np.diag(self.turning.astype(np.complex128))
        if k <= self.bandwidth:
            velocity += self.deviation[k]
        return np.asarray(-1j * k * velocity - self.diffusion * k**2 * np.eye(self.grid.n_nodes))

    def grid_fields(self, n_points: int, fold: int = 1, n_densities: int = 1) -> PositionalFields:
        """Make an evaluator of velocities and densities at all nodes, on `n_points` points of 2 pi / fold."""
        if n_densities != self.grid.n_nodes:
            raise InputError(f"{n_densities} densities for {self.grid.n_nodes} positions; give one for each.")
        return PositionalFields(self, n_points, fold)


class PositionalFields:
    """Velocities and densities on a grid, a row for each node (see `spectral_mf.model.GridFields`).

    `velocity` is what comes on top of the rotation `PositionalSystem.turning`; `mass` is the softmax's denominator
    relative to the uniform density's, None without softmax.
    """

    def __init__(self, system: PositionalSystem, n_points: int, fold: int) -> None:
        self._made_from = (system, n_points, fold)
        n, size = system.grid.n_nodes, n_points // 2 + 1
        self._softmax = system.model.normalization == "softmax"
        kernels = [system.deviation[::fold]]
        if self._softmax:
            kernels.append(system.mass[::fold])
        self._kernels = np.ascontiguousarray(np.concatenate(kernels, axis=1)[: size - 1])  # never the Nyquist mode
        self._transform = RealTransform(n_points, (2 + self._softmax) * n)
        grid = self._transform.grid.reshape(-1, n, n_points)
        spectrum = self._transform.spectrum.reshape(-1, n, size)
        self._seen = self._kernels.shape[0]
        self._sources = np.empty((self._seen, n, 1), dtype=np.complex128)
        self._sums = np.empty((self._seen, self._kernels.shape[1], 1), dtype=np.complex128)
        self._density_modes, self._mixed_modes = spectrum[0], spectrum[1:].reshape(-1, size)
        self.density, self.velocity = grid[0], grid[1]
        self.mass = grid[2] if self._softmax else None

    def evaluate(self, moments: ComplexArray) -> None:
        """Fill `velocity` and `density` from the moments c_{fold j} at all nodes."""
        self._sources[:, :, 0] = moments[:, : self._seen].T
        np.matmul(self._kernels, self._sources, out=self._sums)
        self._density_modes[...] = moments
        self._mixed_modes[:, : self._seen] = self._sums[:, :, 0].T
        self._mixed_modes[:, self._seen :] = 0.0
        self._transform.backward()
        if self.mass is not None:
            np.maximum(self.mass, MASS_FLOOR, out=self.mass)
            np.divide(self.velocity, self.mass, out=self.velocity)

    def dissipation(self) -> FloatArray:
        """Mean squared speed at each node, beside the rotation; this is no gradient flow of an energy."""
        return np.asarray((self.velocity**2 * self.density).mean(axis=-1))

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans and views into their arrays are made anew, not copied."""
        return PositionalFields, self._made_from
