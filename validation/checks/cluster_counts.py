"""Numbers of clusters: which mode is first, how many clusters it makes, and how many of them are left later.

Three things are told apart. *Which mode is first* to reach a small level follows linear theory. *How many clusters are
seen* at a given time does not: only k_max clusters last. A sample that mode 4 wins at β = 5 has four clusters, which
differ, and one of them is soon taken up by its neighbour; one that mode 2 wins often makes three from its harmonic. So
the share of k_max clusters rises above that of k_max first, and later falls as clusters merge: there is no plateau to
read a number from, and a count needs its time. Times here are those at which the literature counts.

Predictions for counts are in the table `cluster_outcomes`, made by a Lagrangian method in numpy that shares no code
with the solvers; those for the first mode have a closed form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from spectral_mf import Atoms, FourierDensity, SelfAttention, solve
from spectral_mf.data import reference
from spectral_mf.diagnostics import find_clusters
from spectral_mf.trajectory import Trajectory
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.checks.quasilinear import crossing_times
from spectral_mf.validation.claims import Parameters
from spectral_mf.validation.drawing import accent, legend, panel
from spectral_mf.validation.findings import (
    Comparison,
    Finding,
    Picture,
    at_least,
    at_most,
    binomial,
    deviate,
    equal,
    standard_errors,
)
from spectral_mf.validation.particles import condensed, simulate
from spectral_mf.validation.replicates import sample_tokens

FloatArray = NDArray[np.float64]

_LEAST_EXPECTED = 5.0
"""Runs expected of an outcome from which it is a class of its own: Pearson's statistic then is nearly chi-square."""

_ABOUT_EXIT = np.array([-0.5, -0.2, 0.1, 0.4, 0.8])
"""Rows about the time at which linear theory has the first mode at the level, in units of 1 / lambda."""


def surprise(found: Mapping[int, int], law: Mapping[int, float], false_alarm: float = 1e-5) -> tuple[float, float]:
    """Pearson's chi-square of counts against probabilities, and the limit that chance passes with `false_alarm`.

    Outcomes of which fewer than five are expected are taken together, with those that the law does not know. What the
    chi-square law is wrong by there makes the false alarm twice as frequent at most; say 1e-5 for 1e-4.
    """
    n = sum(found.values())
    classes = sorted((n * share, found.get(key, 0)) for key, share in law.items())
    expected, seen = 0.0, float(n - sum(count for _, count in classes))
    while classes and (expected < _LEAST_EXPECTED or classes[0][0] < _LEAST_EXPECTED):
        if expected == 0.0 and seen == 0.0 and classes[0][0] >= _LEAST_EXPECTED:
            break  # nothing is rare
        share, count = classes.pop(0)
        expected, seen = expected + share, seen + count
    if expected > 0.0:
        classes.append((expected, int(seen)))
    statistic = sum((count - share) ** 2 / share for share, count in classes)
    return float(statistic), float(stats.chi2.isf(false_alarm, max(1, len(classes) - 1)))


@dataclass(frozen=True)
class _Law:
    """Probabilities of outcomes at one beta, from the table."""

    early_time: float
    late_time: float
    agreement: float
    lateness: tuple[float, float]
    early: dict[int, float]
    late: dict[int, float]
    early_of: dict[int, dict[int, float]]

    @classmethod
    def at(cls, beta: float) -> _Law:
        case = next(case for case in reference("cluster_outcomes")["cases"] if case["beta"] == beta)
        early: dict[int, float] = {}
        late: dict[int, float] = {}
        early_of: dict[int, dict[int, float]] = {}
        for first, before, after, n in case["outcomes"]:
            share = n / case["samples"]
            early[before] = early.get(before, 0.0) + share
            late[after] = late.get(after, 0.0) + share
            of = early_of.setdefault(first, {})
            of[before] = of.get(before, 0.0) + share
        shares = {first: sum(of.values()) for first, of in early_of.items()}
        return cls(
            early_time=case["early"],
            late_time=case["late"],
            agreement=case["as_linear_theory"] / case["samples"],
            lateness=(case["lateness"][0], case["lateness"][1]),
            early=early,
            late=late,
            early_of={first: {k: v / shares[first] for k, v in of.items()} for first, of in early_of.items()},
        )


@dataclass(frozen=True)
class _Outcome:
    """What one sample of tokens did."""

    predicted: int
    first: int
    lateness: float
    early: int
    late: int


def _outcome(model: SelfAttention, tokens: Atoms, rates: FloatArray, level: float, law: _Law) -> _Outcome:
    start = np.abs(tokens.moments(rates.size)[1:])
    linear = np.log(level / start) / rates
    exit_rows = linear.min() + _ABOUT_EXIT / rates.max()
    times = np.unique([0.0, *exit_rows[exit_rows > 0.0], law.early_time, law.late_time])
    run = simulate(model, tokens, times, rtol=1e-4, n_modes=100, n_cells=64, keep_states=False)
    about = run.t <= exit_rows[-1]
    sizes = np.abs(run.moments[about, 1 : rates.size + 1])
    crossed = [float(crossing_times(run.t[about], sizes[:, k], level)[0]) for k in range(rates.size)]
    first = int(np.nanargmin(crossed)) if not all(map(math.isnan, crossed)) else int(sizes[-1].argmax())
    early, late = (_count(run, time) for time in (law.early_time, law.late_time))
    lateness = float(rates.max() * (crossed[first] - linear.min()))
    return _Outcome(int(linear.argmin()) + 1, first + 1, lateness, early, late)


def _count(run: Trajectory, time: float) -> int:
    """Clusters in the row of a time, through the Gaussian that the table was made with."""
    table = reference("cluster_outcomes")
    row = int(np.abs(run.t - time).argmin())
    seen = FourierDensity(run.moments[row])
    return find_clusters(seen, resolution=table["resolution"], prominence=table["prominence"]).positions.size


def _from_equal_modes(model: SelfAttention, rates: FloatArray, size: float) -> int:
    """Clusters just formed from modes of one size, so that nothing but their rates selects."""
    start = FourierDensity.from_modes({k: size * np.exp(1j * k * k) for k in range(1, rates.size + 1)})
    run = solve(model, start, [0.0, (math.log(1.0 / size) + 2.0) / rates.max()], n_modes=100, rtol=1e-8)
    return _count(run, run.t[-1])


def cluster_counts(p: Parameters) -> Finding:
    """How often each mode is first, and each number of clusters is seen, against linear theory and the table."""
    comparisons: list[Comparison] = []
    shares = []
    level = reference("cluster_outcomes")["level"]
    n_tokens = reference("cluster_outcomes")["n_tokens"]
    number = deviate(p.false_alarm)
    with panel(rows=len(p.betas), height=2.5) as (figure, axes):
        for beta, m, ax in zip(p.betas, p.expected, np.atleast_1d(axes), strict=True):
            model, law = SelfAttention(beta, "none"), _Law.at(beta)
            rates = closed_forms.growth_rate("none", beta, np.arange(1, p.largest_mode + 1))
            sure = _from_equal_modes(model, rates, p.equal_size)
            runs = [
                _outcome(model, condensed(sample_tokens(n_tokens, seed), p.cells), rates, level, law)
                for seed in np.random.SeedSequence(p.seed + m).spawn(p.replicates)
            ]
            closed = closed_forms.selection_probabilities(beta, n_tokens, level, p.largest_mode)
            first, early, late = (Counter(getattr(run, name) for run in runs) for name in ("first", "early", "late"))
            comparisons.append(
                equal(f"clusters from modes that all have the size {p.equal_size:g}, β = {beta:g}", sure, m)
            )
            for name, found, probabilities in (
                (f"first mode to reach {level:g}, linear theory", first, dict(enumerate(closed, 1))),
                (f"clusters at t = {law.early_time:g}, table", early, law.early),
                (f"clusters at t = {law.late_time:g}, table", late, law.late),
            ):
                statistic, limit = surprise(found, probabilities, p.false_alarm / 10.0)
                comparisons.append(at_most(f"χ² of: {name}, β = {beta:g}", statistic, limit, predicted=0.0))
            same = sum(run.first == run.predicted for run in runs)
            lateness = np.array([run.lateness for run in runs])
            of_m = [run for run in runs if run.first == m]
            kept = sum(run.early == m for run in of_m)
            rival = max((n for k, n in early.items() if k != m), default=0)
            lead = (early[m] - rival) / math.sqrt(max(1, early[m] + rival))
            label = f"β = {beta:g}"
            comparisons += [
                binomial(
                    f"first mode as by linear theory from the same tokens, {label}",
                    same,
                    p.replicates,
                    law.agreement,
                    p.false_alarm,
                ),
                standard_errors(
                    f"λ × delay of the first crossing behind linear theory, mean, {label}",
                    float(lateness.mean()),
                    law.lateness[0],
                    law.lateness[1] / math.sqrt(p.replicates),
                    number,
                ),
                binomial(
                    f"share with {m} clusters at t = {law.early_time:g}, {label}",
                    early[m],
                    p.replicates,
                    law.early[m],
                    p.false_alarm,
                ),
                binomial(
                    f"the same, of those whose mode {m} was first, {label}",
                    kept,
                    len(of_m),
                    law.early_of[m][m],
                    p.false_alarm,
                ),
                at_least(f"lead of {m} over the next number then, in deviations of a tie, {label}", lead, p.lead),
            ]
            shares.append(
                f"at β = {beta:g} mode {m} was first in {first[m] / p.replicates:.0%} of the runs, and {m} clusters "
                f"were seen in {early[m] / p.replicates:.0%} at t = {law.early_time:g}, in "
                f"{late[m] / p.replicates:.0%} at t = {law.late_time:g}"
            )
            k = np.arange(1, max(8, p.expected[-1] + 3))
            for shift, name, found, colour in (
                (-0.27, f"mode first to reach {level:g}", first, "0.45"),
                (0.0, f"clusters at t = {law.early_time:g}", early, accent()),
                (0.27, f"clusters at t = {law.late_time:g}", late, "0.75"),
            ):
                ax.bar(k + shift, [found[int(i)] / p.replicates for i in k], 0.25, color=colour, label=name)
            for shift, probabilities in ((-0.27, dict(enumerate(closed, 1))), (0.0, law.early), (0.27, law.late)):
                ax.plot(k + shift, [probabilities.get(int(i), 0.0) for i in k], "_", color="#c8371d", markersize=11.0)
            ax.set_ylabel("share")
            ax.set_title(f"β = {beta:g}, {p.replicates} samples of {n_tokens:,} tokens")
            legend(ax)
        ax.set_xlabel("mode, or number of clusters")
    sentence = "; ".join(shares)
    return Finding(
        f"{sentence[0].upper()}{sentence[1:]}.",
        comparisons,
        [
            Picture(
                "counts",
                figure,
                "Bars: shares of first modes and of numbers of clusters at two times, with predicted shares as dashes.",
                "Red: linear theory (first modes) and the table of 20,000 densities (clusters). The late time is that "
                "at which the published runs end, the early one that of their histograms.",
            )
        ],
    )
