"""Common noise: rotations, contraction of tokens, tokens and density on one path, and what noise does to the energy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import expm
from scipy.special import iv

from spectral_mf import BrownianPath, FourierDensity, PairPotential, SelfAttention, VectorFields, solve
from spectral_mf.solvers.common_noise import solve_common_noise
from spectral_mf.solvers.common_noise_ensemble import solve_common_noise_ensemble
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.common_noise_tokens import pair_distances, simulate_common_noise
from spectral_mf.validation.drawing import THEORY, accent, colours, legend, panel
from spectral_mf.validation.findings import Finding, Picture, at_least, at_most, deviate, standard_errors, within

FloatArray = NDArray[np.float64]


def rotation(p: Parameters) -> Finding:
    """With a constant field the solution is the noiseless one, turned by the Brownian angle."""
    comparisons = []
    start = FourierDensity.from_modes({1: 0.2, 2: 0.05j, 3: 0.02})
    times = np.linspace(0.0, p.t_end, p.rows)
    path = BrownianPath.draw(1, p.t_end, p.n_steps, p.seed)
    angle = p.strength * path.at(times)
    with panel() as (figure, ax):
        for kappa, colour in zip(p.kappas, colours(len(p.kappas)), strict=True):
            model = SelfAttention(p.beta, diffusion=kappa)
            run = solve_common_noise(model, start, VectorFields.rotation(p.strength), path, times, rtol=p.rtol)
            still = solve(model, start, times, rtol=p.rtol, method="spectral")
            k = np.arange(run.moments.shape[1])
            error = float(np.abs(run.moments - still.moments * np.exp(-1j * angle * k)).max())
            comparisons.append(at_most(f"largest error of a moment at any time, κ = {kappa:g}", error, p.tolerance))
            turned = -np.unwrap(np.angle(run.moments[:, 1] / still.moments[:, 1]))
            ax.plot(times, turned, color=colour, label=f"κ = {kappa:g}")
        comparisons.append(at_least("largest angle, radians", float(np.abs(angle).max()), p.least_angle))
        ax.plot(times, angle[:, 0], **THEORY, label="σ B")
        ax.set_xlabel("time t")
        ax.set_ylabel("angle of $c_1$")
        ax.set_title(f"Turned by noise, SA, β = {p.beta:g}")
        legend(ax)
    return Finding(
        f"Moments turn by the Brownian angle to {max(c.measured for c in comparisons[:-1]):.1g}.",
        comparisons,
        [
            Picture(
                "angle", figure, "The angle of the first moment follows a Brownian path.", "Against the noiseless run."
            )
        ],
    )


def contraction(p: Parameters) -> Finding:
    """Two tokens in the fields -σ sin θ and σ cos θ come closer at the Lyapunov exponent -σ²/2."""
    paths = BrownianPath.draw_many(p.n_paths, 2, p.t_end, round(p.t_end / p.step), p.seed)
    angles = np.random.default_rng(p.seed).uniform(0.0, 2.0 * np.pi, p.n_paths)
    final = pair_distances(VectorFields.planar(p.sigma), paths, angles, p.distance, rtol=p.rtol)
    exponents = np.log(final / p.distance) / p.t_end
    exact = -0.5 * p.sigma**2
    error = float(exponents.std(ddof=1)) / math.sqrt(p.n_paths)
    half_width = deviate(1.0 - p.confidence) * error
    comparisons = [
        standard_errors(
            "Lyapunov exponent", float(exponents.mean()), exact, error, deviate(1.0 - p.confidence)
        ),
        at_most(f"half-width of its {100 * p.confidence:g}% interval / its size", half_width / -exact, p.half_width),
        within(
            "spread of ln distance / (σ √t)",
            float(exponents.std(ddof=1)) * math.sqrt(p.t_end) / p.sigma,
            1.0,
            absolute=deviate(p.false_alarm) / math.sqrt(2.0 * p.n_paths),
        ),
    ]  # fmt: skip
    with panel() as (figure, ax):
        ax.hist(exponents, bins=40, density=True, color=accent(), alpha=0.6)
        x = np.linspace(exponents.min(), exponents.max(), 200)
        ax.plot(x, stats.norm.pdf(x, exact, p.sigma / math.sqrt(p.t_end)), **THEORY, label="normal, mean -σ²/2")
        ax.set_xlabel("ln(distance / first distance) / t")
        ax.set_ylabel("density")
        ax.set_title(f"{p.n_paths} pairs of tokens, σ = {p.sigma:g}, t = {p.t_end:g}")
        legend(ax)
    return Finding(
        f"The exponent is {exponents.mean():.5f} ± {half_width:.5f}.",
        comparisons,
        [
            Picture(
                "exponents",
                figure,
                "A histogram of exponents of pairs of tokens under a normal density about minus half of σ squared.",
                "Every pair on its own path; all come closer in the long run.",
            )
        ],
    )


def tokens_on_one_path(p: Parameters) -> Finding:
    """Many tokens and the density, on the same path, have the same moments but for the sample's chance."""
    model, fields = SelfAttention(p.beta), VectorFields.planar(p.sigma)
    start = FourierDensity.from_modes({1: 0.2, 2: 0.05j, 3: 0.02})
    path = BrownianPath.draw(2, p.t_end, p.n_steps, p.seed)
    ends = [0.0, p.t_end]
    density = solve_common_noise(model, start, fields, path, ends)
    seeds = np.random.SeedSequence(p.seed).generate_state(p.replicates + 1).tolist()
    modes = slice(1, p.largest_mode + 1)
    many, *few = (
        simulate_common_noise(model, start.sample(n, seed), fields, path, ends, rtol=p.rtol, n_cells=128)
        for n, seed in zip([p.n_tokens] + p.replicates * [p.replicate_tokens], seeds, strict=True)
    )
    small = np.array([run.moments[-1, modes] for run in few])
    scale = math.sqrt(p.replicate_tokens / p.n_tokens)
    limit = float(stats.t.isf(0.5 * p.false_alarm / (2 * p.largest_mode), p.replicates - 1))
    comparisons = []
    for j, (token, exact) in enumerate(zip(many.moments[-1, modes], density.moments[-1, modes], strict=True)):
        for part, sample, measured, predicted in (
            ("Re", small[:, j].real, token.real, exact.real),
            ("Im", small[:, j].imag, token.imag, exact.imag),
        ):
            error = float(sample.std(ddof=1)) * scale
            comparisons.append(standard_errors(f"{part} c_{j + 1} of tokens", measured, predicted, error, limit))
    with panel() as (figure, ax):
        theta = np.linspace(0.0, 2.0 * np.pi, 400)
        ax.plot(many.theta, many.cells[-1], ".", color=accent(), markersize=2.0, label="tokens")
        ax.plot(theta, density.density(theta)[-1], **THEORY, label="density")
        ax.plot(theta, start.density(theta), color="0.7", linewidth=1.0, label="start")
        ax.set_xlabel("angle θ")
        ax.set_ylabel("density")
        ax.set_title(f"{p.n_tokens} tokens, one path, t = {p.t_end:g}")
        legend(ax)
    return Finding(
        f"{p.n_tokens} tokens and the density were compared on one path; {p.replicates} samples tell the chance.",
        comparisons,
        [
            Picture(
                "density", figure, "Tokens in cells lie along the density.", "SA with the fields -σ sin θ and σ cos θ."
            )
        ],
    )


def mean_energy(p: Parameters) -> Finding:
    """Common noise gathers tokens: the mean energy rises with it, with attention more than without."""
    model = SelfAttention(p.beta, diffusion=p.kappa)
    free = PairPotential((0.0, 0.0), diffusion=p.kappa)
    start = FourierDensity.from_modes({1: 0.05, 2: 0.05j, 3: 0.05})
    ends = [0.0, p.t_end]
    paths = BrownianPath.draw_many(p.n_paths, 2, p.t_end, p.n_steps, p.seed)
    point, uniform = float(model.energy(np.ones(65))), float(model.energy(np.eye(1, 65)[0]))
    shares, errors, exact, comparisons = [], [], [], []
    limit = deviate(p.false_alarm, 2 * len(p.sigmas))
    for sigma in p.sigmas:
        fields = VectorFields.planar(sigma)
        with_attention = solve_common_noise_ensemble(model, start, fields, paths, ends, rtol=p.rtol).energy[:, -1]
        alone = solve_common_noise_ensemble(free, start, fields, paths, ends, rtol=p.rtol).moments[:, -1]
        without = np.asarray(model.energy(alone))
        gain = with_attention - without
        sample = np.stack([with_attention, without])
        shares.append((sample.mean(axis=1) - uniform) / (point - uniform))
        errors.append(sample.std(axis=1, ddof=1) / math.sqrt(p.n_paths) / (point - uniform))
        exact.append((_energy_without(p.beta, start, sigma, p.kappa, p.t_end) - uniform) / (point - uniform))
        comparisons += [
            standard_errors(f"mean energy without, σ = {sigma:g}", shares[-1][1], exact[-1], errors[-1][1], limit),
            at_least(
                f"what attention adds / its standard error, σ = {sigma:g}",
                float(gain.mean() / (gain.std(ddof=1) / math.sqrt(p.n_paths))),
                limit,
            ),
        ]  # fmt: skip
    still = solve(model, start, ends, method="spectral").energy[-1]
    nothing = (still - uniform) / (point - uniform)
    exact.insert(0, (_energy_without(p.beta, start, 0.0, p.kappa, p.t_end) - uniform) / (point - uniform))
    with panel() as (figure, ax):
        sigmas = [0.0, *p.sigmas]
        means, bars = np.array([(nothing, exact[0]), *shares]), np.array([(0.0, 0.0), *errors])
        for column, name, colour in zip((0, 1), ("with attention", "without"), colours(2), strict=True):
            ax.errorbar(sigmas, means[:, column], bars[:, column], color=colour, marker="o", markersize=3.0, label=name)
        ax.plot(sigmas, exact, **THEORY, label="without, exact")
        ax.set_xlabel("strength σ of the common noise")
        ax.set_ylabel("mean energy (point: 1)")
        ax.set_title(f"SA, β = {p.beta:g}, κ = {p.kappa:g}, t = {p.t_end:g}, {p.n_paths} paths")
        legend(ax)
    return Finding(
        f"The mean energy is {nothing:.3g} of a point's without common noise and {shares[-1][0]:.3g} at "
        f"σ = {p.sigmas[-1]:g}.",
        comparisons,
        [
            Picture(
                "mean-energy",
                figure,
                "The mean energy rises with the strength of the common noise, with attention more steeply.",
                "Energies of attention, also for densities that do not feel it; bars are standard errors.",
            )
        ],
    )


def _energy_without(beta: float, start: FourierDensity, sigma: float, kappa: float, t: float) -> float:
    """Mean attention energy of densities that do not interact.

    The difference D of two tokens has the generator (σ² (1 - cos D) + 2κ) d²/dD², so that a_n = E|c_n|² obey
    da_n/dt = -n² ((σ² + 2κ) a_n - (σ²/2)(a_{n+1} + a_{n-1})).
    """
    n = np.arange(81)
    rates = -np.diag((sigma**2 + 2.0 * kappa) * n**2.0)
    rates += 0.5 * sigma**2 * (np.diag(n[:-1] ** 2.0, 1) + np.diag(n[1:] ** 2.0, -1))
    sizes = expm(t * rates) @ np.abs(start.moments(80)) ** 2
    return float((iv(n, beta) * np.where(n == 0, 1.0, 2.0) * sizes).sum() / (2.0 * beta))
