"""How much noise the uniform density needs, which mode it leaves growing fastest, and how it gives way.

With noise, λ_k = k² (J_k - κ), where J_k is the critical noise of mode k: I_k(β)/β for USA, I_k/(β I_0) for SA. J_k
falls with k, so mode 1 is the last to be stabilised at every β, whatever mode grows fastest without noise: the uniform
density is stable exactly for κ >= J_1.

At κ = J_k, densities of period 2π/k leave the uniform one along c_2k ∝ c_k², and

    dc_k/dt = λ_k c_k + a |c_k|² c_k + O(|c_k|⁵).

a < 0: the branch |c_k|² = -λ_k/a exists where the uniform density is unstable, and starts from zero there (continuous
transition). a > 0: it exists at more noise than J_k and is unstable, and the density jumps (discontinuous, hysteresis).
For USA a has the sign of 2 I_2k - I_k. A pair potential has J_k = W_k, and a as USA.

References
----------
Mun, Rosenzweig, arXiv:2604.16288 and 2606.05140 (USA: continuous up to I_2/I_1 = 1/2). The coefficients a, and SA, are
derived from the equation in moments, dc_k/dt = (k/β) Σ_j j L_j c_{k-j} - κ k² c_k with L_j the Fourier coefficients of
β times the potential of the velocity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from spectral_mf import bessel
from spectral_mf.arguments import check_model, integer_at_least
from spectral_mf.errors import InputError
from spectral_mf.model import Model
from spectral_mf.pair_potential import PairPotential
from spectral_mf.self_attention import SelfAttention

FloatArray = NDArray[np.float64]


def critical_noise(model: Model, k: int = 1) -> float:
    """Diffusion J_k at which mode k of the uniform density neither grows nor decays: I_k/β (USA), I_k/(β I_0) (SA).

    Parameters
    ----------
    model : Model
        Its own diffusion does not matter.
    k : int
        Mode, >= 1.

    Raises
    ------
    InputError
        If k is no positive integer.
    """
    check_model(model)
    k = integer_at_least("k", k, 1)
    return float(model.growth_rate(k)) / k**2 + model.diffusion


def stabilising_noise(model: Model) -> float:
    """Diffusion from which on the uniform density is linearly stable: the largest J_k, for self-attention J_1.

    0 if every mode decays without noise.
    """
    check_model(model)
    k = np.arange(1, model.bandwidth + 1)
    return max(0.0, float((model.growth_rate(k) / k**2).max()) + model.diffusion)


def selection_noise(model: Model, k: int) -> float:
    """Diffusion at which modes k and k - 1 grow equally fast; with more, mode k - 1 grows faster.

    (k² J_k - (k - 1)² J_{k-1}) / (2k - 1); for k = 1 that is J_1, where nothing grows any more. Negative if mode k - 1
    grows faster without noise.

    Parameters
    ----------
    model : Model
        Its own diffusion does not matter.
    k : int
        Mode, >= 1.

    Raises
    ------
    InputError
        If k is no positive integer.
    """
    above = k**2 * critical_noise(model, k)
    below = (k - 1) ** 2 * critical_noise(model, k - 1) if k > 1 else 0.0
    return (above - below) / (2 * k - 1)


def cubic_coefficient(model: SelfAttention | PairPotential, k: int = 1) -> float:
    """The coefficient a of |c_k|² c_k in dc_k/dt at κ = J_k; negative where the transition is continuous.

    k² J_k (2 J_2k - J_k) / (2 (J_k - J_2k)) for USA and pair potentials. For SA, with R_k = I_k/I_0,
    k² J_k (1 - R_k) (2 J_2k - J_k + J_k R_2k - 2 J_k R_k) / (2 (J_k - J_2k)).

    Parameters
    ----------
    model : SelfAttention or PairPotential
        Its own diffusion does not matter.
    k : int
        Mode, >= 1; densities are taken to have period 2π/k.

    Raises
    ------
    InputError
        If the model is another, k no positive integer, J_k <= 0, or J_k <= J_2k, so that mode 2k is unstable too.
    """
    if not isinstance(model, (SelfAttention, PairPotential)):
        raise InputError(
            f"{type(model).__name__} has no closed form of this kind; give a SelfAttention or PairPotential."
        )
    first, second = critical_noise(model, k), critical_noise(model, 2 * k)
    seen, bracket = 1.0, 2.0 * second - first
    if isinstance(model, SelfAttention) and model.normalization == "softmax":
        ratio, ratio_2 = bessel.ratio([k, 2 * k], model.beta)
        seen, bracket = 1.0 - ratio, bracket + first * (ratio_2 - 2.0 * ratio)
    if first <= 0.0:
        raise InputError(f"mode {k} is not brought forth by {model!r}; give a mode that the kernel has.")
    if first <= second:
        raise InputError(f"mode {2 * k} needs as much noise as mode {k} ({second:g}, {first:g}); give k = {2 * k}.")
    return float(k**2 * first * seen * bracket / (2.0 * (first - second)))


def tricritical_beta(k: int = 1) -> float:
    """β at which USA's transition at mode k turns from continuous to discontinuous: I_2k/I_k = 1/2.

    2.4469183112890461 for k = 1; it grows like 3 k²/(2 ln 2).

    Raises
    ------
    InputError
        If k is no positive integer.
    """
    k = integer_at_least("k", k, 1)

    def excess(beta: float) -> float:
        one, two = bessel.ratio([k, 2 * k], beta)
        return float(two / one) - 0.5

    found: Any = brentq(excess, 0.5 * k, 4.0 * k**2, xtol=1e-14, rtol=1e-15)
    return float(found)
