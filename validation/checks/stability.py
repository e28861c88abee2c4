"""How fast two solutions may part: Dobrushin's bound, and two tokens that make its exponential sharp."""

from __future__ import annotations

import math

import numpy as np

from spectral_mf import Atoms, SelfAttention
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.checks.quasilinear import MODELS
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.dobrushin import check_bound, dobrushin_constant
from spectral_mf.validation.drawing import THEORY, colours, legend, panel
from spectral_mf.validation.findings import Finding, Picture, at_most, within
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import sample_tokens


def dobrushin(p: Parameters) -> Finding:
    """W1(mu_t, nu_t) <= e^{2 C t} W1(mu_0, nu_0) on random pairs; near the antipodal pair it grows exponentially."""
    comparisons = []
    with panel() as (figure, ax):
        for beta, colour in zip(p.betas, colours(len(p.betas)), strict=True):
            for (normalization, name), style in zip(MODELS, ("-", "--"), strict=True):
                model = SelfAttention(beta, normalization)
                bound = 2.0 * (math.exp(beta) if name == "USA" else dobrushin_constant(model))
                times = np.linspace(0.0, p.span / bound, p.rows)
                worst = np.full(p.rows, -np.inf)
                for seed in np.random.SeedSequence(p.seed).spawn(p.pairs):
                    one, other = (sample_tokens(p.n_tokens, part) for part in seed.spawn(2))
                    distances = check_bound(model, one, other, times).distances
                    worst = np.maximum(worst, np.log(distances / distances[0]))
                share = float((worst[1:] / (bound * times[1:])).max())
                quantity = f"ln(W_1(t) / W_1(0)) / (2 C t), largest of {p.pairs} pairs, {name}, β = {beta:g}"
                comparisons.append(at_most(quantity, share, 1.0))
                ax.plot(bound * times, worst, style, color=colour, label=f"{name}, β = {beta:g}")
            for normalization, name in MODELS:
                rate = closed_forms.merging_rate(normalization, beta, 2)
                pair = Atoms([0.3 + p.displacement, 0.3 + np.pi - p.displacement])
                run = simulate(SelfAttention(beta, normalization), pair, [0.0, 3.0 / rate], rtol=1e-12)
                antipodal = Atoms([0.3, 0.3 + np.pi])
                growth = run.measure(1).w1(antipodal) / run.measure(0).w1(antipodal)
                comparisons.append(
                    within(
                        f"growth rate of W_1 to the antipodal pair × 1/λ, {name}, β = {beta:g}",
                        math.log(growth) / 3.0,
                        1.0,
                        relative=p.tolerance,
                    )
                )
        ax.plot([0.0, p.span], [0.0, p.span], **THEORY, label="bound")
        ax.set_xlabel("2 C t")
        ax.set_ylabel("ln of the growth of $W_1$")
        ax.set_title("Largest growth among random pairs")
        legend(ax)
    return Finding(
        "The bound holds with room: its constants are those of the worst measure, at its worst point.",
        comparisons,
        [
            Picture(
                "growth",
                figure,
                "Growth of W1 between random pairs against time, far below the line of the bound.",
                f"{p.pairs} pairs of {p.n_tokens} random tokens at each β.",
            )
        ],
    )
