"""What is left when the dominant mode has won: k_max atoms, where they stand, and by how much they differ.

On the manifold of densities with the period 2 pi / m, m = k_max, a small part of another mode j grows linearly all the
way into the clusters. From c_j(0) and c_m(0) it is there in the amount

    x_j = c_j(0) e^{-i j arg c_m(0) / m} / |c_m(0)|^(lambda_j / lambda_m),

which for N tokens has the size N^(-(1 - lambda_j/lambda_m)/2). Masses and positions of the clusters differ from 1/m and
(2 pi j - arg c_m(0))/m by amounts that are linear in Re x_j and Im x_j, with coefficients that do not depend on N.
They are measured once, on runs with two modes, and predict every sample. Two neighbours of m have different exponents
and different coefficients, so W_1 has no single slope in ln N at any N in reach: at beta = 2 mode 1 leads up to
N = 10^10, mode 3 beyond.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_mf import Atoms, FourierDensity, SelfAttention, solve
from spectral_mf.diagnostics import find_clusters
from spectral_mf.measure import Measure
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import THEORY, accent, legend, panel
from spectral_mf.validation.findings import Comparison, Finding, Picture, at_most, deviate, standard_errors, within
from spectral_mf.validation.particles import condensed, simulate
from spectral_mf.validation.replicates import sample_tokens

FloatArray = NDArray[np.float64]

_LEVEL = 0.5
"""Size of c_m from which the time to the clusters is counted."""


@dataclass(frozen=True)
class _Response:
    """Clusters per unit of Re x_j and of Im x_j: masses and angles, each of shape (2, m)."""

    masses: FloatArray
    angles: FloatArray


class _Collapse:
    """Runs of SA in which mode m is first, to a given time after it has the size 0.5."""

    def __init__(self, beta: float, after: float) -> None:
        self.model = SelfAttention(beta)
        self.mode = closed_forms.dominant_mode(beta)
        self.others = [k for k in range(1, 3 * self.mode) if k != self.mode]
        self.rates = closed_forms.growth_rate("softmax", beta, np.arange(1, 3 * self.mode + 1))
        self.rate = float(self.rates[self.mode - 1])
        self.after = after
        self.equal = 2.0 * np.pi * np.arange(self.mode) / self.mode

    def end(self, start: Mapping[int, complex]) -> float:
        """Time until which a sample is followed."""
        return math.log(_LEVEL / abs(start[self.mode])) / self.rate + self.after

    def run(self, start: Mapping[int, complex]) -> Measure:
        """The density at the end."""
        run = solve(self.model, FourierDensity.from_modes(dict(start)), [0.0, self.end(start)], rtol=1e-9)
        measure: Measure = run.measure(1)
        return measure

    def amount(self, start: Mapping[int, complex], other: int) -> complex:
        """x_j of a sample."""
        own = start[self.mode]
        turn = cmath.exp(-1j * other * cmath.phase(own) / self.mode)
        return complex(start[other] * turn / abs(own) ** (self.rates[other - 1] / self.rate))

    def offsets(self, measure: Measure, phase: float) -> tuple[FloatArray, FloatArray]:
        """Masses and angles of the clusters, less those of equal atoms turned by a phase; nan if they are not m."""
        found = find_clusters(measure)
        if found.positions.size != self.mode:
            return np.full(self.mode, math.nan), np.full(self.mode, math.nan)
        order = np.argsort((found.positions - phase + 0.5 * self.equal[1]) % (2.0 * np.pi))
        angles = (found.positions[order] - phase - self.equal + np.pi) % (2.0 * np.pi) - np.pi
        return found.masses[order] - 1.0 / self.mode, np.asarray(angles)

    def response(self, other: int, *, own: float = 1e-6, amount: float = 1e-4) -> _Response:
        """What a small amount of another mode does to the clusters, to first order."""
        size = amount * own ** (self.rates[other - 1] / self.rate)
        found = [self.offsets(self.run({self.mode: own, other: size * turn}), 0.0) for turn in (1.0, 1j)]
        masses, angles = (np.array([pair[i] for pair in found]) / amount for i in (0, 1))
        return _Response(masses, angles)

    def predicted(self, start: Mapping[int, complex], responses: Mapping[int, _Response]) -> tuple[FloatArray, ...]:
        """Offsets of masses and angles of a sample by the responses."""
        parts = {j: self.amount(start, j) for j in responses}
        masses = sum(x.real * responses[j].masses[0] + x.imag * responses[j].masses[1] for j, x in parts.items())
        angles = sum(x.real * responses[j].angles[0] + x.imag * responses[j].angles[1] for j, x in parts.items())
        return np.asarray(masses), np.asarray(angles)

    def phase(self, start: Mapping[int, complex]) -> float:
        """Angle of one of the atoms: -arg c_m / m."""
        return -cmath.phase(start[self.mode]) / self.mode


def _sample(n: float, modes: int, seed: np.random.SeedSequence) -> dict[int, complex]:
    """c_1, c_2, .. of n random tokens: complex normal, with E|c_k|^2 = 1/n."""
    normal = np.random.default_rng(seed).standard_normal((modes, 2)) / math.sqrt(2.0 * n)
    return {k: complex(*normal[k - 1]) for k in range(1, modes + 1)}


def convergence_to_atoms(p: Parameters) -> Finding:
    """After the quasi-linear phase W_1 to k_max equal atoms tends to 0 as linear response says, sample by sample."""
    runs = _Collapse(p.beta, p.contraction_times)
    m = runs.mode
    responses = {j: runs.response(j) for j in runs.others}
    comparisons: list[Comparison] = []
    medians, predictions = [], []
    for n in p.sizes:
        measured, predicted, squares = [], [], []
        for seed in np.random.SeedSequence(p.seed).spawn(p.replicates):  # the same directions at every N
            start = _sample(n, 3 * m, seed)
            equal = Atoms(runs.phase(start) + runs.equal)
            masses, angles = runs.predicted(start, responses)
            measured.append(runs.run(start).w1(equal))
            predicted.append(Atoms(equal.angles + angles, 1.0 / m + masses).w1(equal))
            squares.append(sum(abs(runs.amount(start, j)) ** 2 for j in responses))
        medians.append(float(np.median(measured)))
        predictions.append(float(np.median(predicted)))
        worst = float((np.abs(np.array(measured) - predicted) / squares).max())
        comparisons += [
            at_most(f"largest |W_1 - by linear response| / Σ|x_j|², N = {n:.3g}", worst, p.quadratic, predicted=0.0),
            within(f"median W_1, N = {n:.3g}", medians[-1], predictions[-1], relative=p.tolerance),
        ]
    slopes = [float(np.polyfit(np.log(p.sizes), np.log(values), 1)[0]) for values in (medians, predictions)]
    comparisons += [
        at_most(f"W_1 at N = {large:.3g} / W_1 at N = {small:.3g}", after / before, 1.0)
        for small, large, before, after in zip(p.sizes, p.sizes[1:], medians, medians[1:], strict=False)
    ]
    comparisons += [
        at_most(f"W_1 at N = {p.sizes[-1]:.3g}", medians[-1], p.smallest, predicted=0.0),
        within("d ln W_1 / d ln N, by linear response", slopes[0], slopes[1], absolute=p.slope_tolerance),
    ]
    with panel() as (figure, ax):
        ax.plot(p.sizes, medians, "o", color=accent(), label="median of W_1")
        ax.plot(p.sizes, predictions, **THEORY, label="by linear response")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("number of tokens N")
        ax.set_ylabel("$W_1$ (rad)")
        ax.set_title(f"To {m} equal atoms, β = {p.beta:g}")
        legend(ax)
    neighbours = ", ".join(f"{0.5 * (1.0 - runs.rates[j - 1] / runs.rate):.4f} (mode {j})" for j in (m - 1, m + 1))
    return Finding(
        f"The median falls like N^({slopes[0]:.4f}), by linear response N^({slopes[1]:.4f}); the neighbours alone "
        f"would have the exponents {neighbours}.",
        comparisons,
        [
            Picture(
                "distance",
                figure,
                "W1 to equal atoms against N on logarithmic axes, on the line that linear response predicts.",
                "The density's equation from sampled modes: N beyond any number of tokens.",
            )
        ],
    )


def cluster_positions(p: Parameters) -> Finding:
    """Clusters of tokens stand at (2 pi j - arg c_m(0))/m, on average over samples, and as nearly as theory says."""
    runs = _Collapse(p.beta, p.contraction_times)
    m = runs.mode
    responses = {j: runs.response(j) for j in runs.others}
    number = deviate(p.false_alarm, len(p.sizes))
    comparisons: list[Comparison] = []
    spreads = []
    with panel() as (figure, ax):
        for n, stream in zip(p.sizes, np.random.SeedSequence(p.seed).spawn(len(p.sizes)), strict=True):
            found, expected = [], []
            for seed in stream.spawn(p.replicates):
                tokens = condensed(sample_tokens(n, seed), p.cells)
                start = {k: complex(tokens.moments(3 * m)[k]) for k in range(1, 3 * m + 1)}
                run = simulate(runs.model, tokens, [0.0, runs.end(start)], rtol=1e-5)
                found.append(runs.offsets(run.measure(1), runs.phase(start))[1])
                expected.append(runs.predicted(start, responses)[1])
            offsets, by_response = np.array(found), np.array(expected)
            won = ~np.isnan(offsets).any(axis=1)
            turn = offsets[won].mean(axis=1)
            error = float(turn.std(ddof=1)) / math.sqrt(turn.size)
            spread, rest = (float(np.median(np.abs(x[won]).max(axis=1))) for x in (offsets, offsets - by_response))
            spreads.append(spread)
            comparisons += [
                standard_errors(
                    f"mean offset from the predicted angles (rad), N = {n:,}", turn.mean(), 0.0, error, number
                ),
                at_most(f"median offset (rad), N = {n:,}", spread, p.largest, predicted=0.0),
                at_most(
                    f"share of it that linear response leaves, N = {n:,}", rest / spread, p.unexplained, predicted=0.0
                ),
                at_most(f"share of runs without {m} clusters, N = {n:,}", 1.0 - won.mean(), p.lost, predicted=0.0),
            ]
            ax.plot(by_response[won].ravel(), offsets[won].ravel(), "o", markersize=3.5, label=f"N = {n:,}")
        reach = 1.1 * max(abs(x) for x in ax.get_xlim())
        ax.plot([-reach, reach], [-reach, reach], **THEORY)
        ax.set_xlabel("by linear response (rad)")
        ax.set_ylabel("offset (rad)")
        ax.set_title(f"Clusters about (2πj - arg c_{m}(0))/{m}, SA, β = {p.beta:g}")
        legend(ax)
    comparisons.append(at_most(f"offset at N = {p.sizes[-1]:,} / at N = {p.sizes[0]:,}", spreads[-1] / spreads[0], 1.0))
    return Finding(
        f"The median of the larger offset in a run falls from {spreads[0]:.2g} to {spreads[-1]:.2g} rad over N.",
        comparisons,
        [
            Picture(
                "offsets",
                figure,
                "Offsets of clusters of tokens against those that linear response predicts: along the diagonal.",
                f"{p.replicates} samples at each N; tokens in one of {p.cells:,} cells joined at their mean.",
            )
        ],
    )
