"""The table `cluster_outcomes`, by code that shares nothing with the solvers: numpy, Bessel functions and peaks.

Run as a script it makes the table again, in some minutes: `python tests/test_cluster_outcomes.py 40000 > table.json`.
"""

import json
import sys
from collections import Counter

import numpy as np
import pytest
from scipy.signal import find_peaks
from scipy.special import iv
from scipy.stats import chi2

from spectral_mf import bessel
from spectral_mf.data import reference
from spectral_mf.validation.checks.closed_forms import selection_probabilities
from spectral_mf.validation.checks.cluster_counts import cluster_counts, surprise
from spectral_mf.validation.claims import Parameters, chosen_claims

N_TOKENS, LEVEL, RESOLUTION, PROMINENCE = 10_000, 0.1, 0.1, 0.5
CASES = ((5.0, 0.3, 0.6), (7.0, 0.045, 0.1))  # beta; time of the histogram in print; end of the run there
N_NODES, BATCH, COMPARED = 200, 50, 9


def velocity(x, amplitudes):
    """USA's velocity of equal nodes x (B, M), and their moments (K, B), by powers of e^{ix}."""
    z = np.exp(1j * x).astype(np.complex64)
    back, power = np.conj(z), np.conj(z)
    c = np.empty((amplitudes.size, x.shape[0]), np.complex64)
    for k in range(amplitudes.size):
        c[k] = power.mean(axis=1)
        power = power * back
    series = np.zeros_like(z)
    for k in reversed(range(amplitudes.size)):
        series = (series + (amplitudes[k] * c[k])[:, None]) * z
    return -series.imag, c


def quantiles(c):
    """Nodes of equal mass of the densities with moments c (B, K), by Newton's method on the distribution function."""
    k = np.arange(1, c.shape[1] + 1)
    mass = 2.0 * np.pi * (np.arange(N_NODES) + 0.5) / N_NODES
    x = np.tile(mass, (c.shape[0], 1))
    for _ in range(4):
        waves = c[:, None, :] * np.exp(1j * k * x[:, :, None])
        distribution = x + (2.0 / k * (waves.imag - c.imag[:, None, :])).sum(axis=2)
        x -= (distribution - mass) / (1.0 + 2.0 * waves.real.sum(axis=2))
    return x


def n_peaks(x):
    """Peaks of the nodes seen through a Gaussian."""
    spectrum = np.zeros((x.shape[0], 129), complex)
    for k in range(65):
        spectrum[:, k] = np.exp(-1j * k * x).mean(axis=1) * np.exp(-0.5 * (RESOLUTION * k) ** 2)
    seen = np.fft.irfft(spectrum, n=256, axis=1) * 256
    cut = [np.append(np.roll(row, -row.argmin()), row.min()) for row in seen]
    return [len(find_peaks(row, prominence=PROMINENCE)[0]) for row in cut]


def outcomes(beta, early, late, samples, seed):
    """First mode by linear theory, first mode, clusters early and late, lateness in 1/lambda: a row for each sample."""
    k = np.arange(1, int(6 + 5 * np.sqrt(beta)) + 1)
    amplitudes = (2.0 * k * iv(k, beta) / beta).astype(np.float32)
    rates = k**2 * iv(k, beta) / beta
    longest = 0.1 / rates.max()
    steps = [np.full(n := int(np.ceil(span / longest)), span / n) for span in (early, late - early)]
    rng = np.random.default_rng([seed, int(beta)])
    rows = []
    for _ in range(samples // BATCH):
        c = (rng.standard_normal((BATCH, k.size)) + 1j * rng.standard_normal((BATCH, k.size))) / np.sqrt(2 * N_TOKENS)
        linear = np.log(LEVEL / np.abs(c[:, :COMPARED])) / rates[:COMPARED]
        x, t, before = quantiles(c), 0.0, np.abs(c[:, :COMPARED])
        crossed = np.full((BATCH, COMPARED), np.inf)
        counts = []
        for part in steps:
            for h in part:
                k1, _ = velocity(x, amplitudes)
                k2, _ = velocity(x + 0.5 * h * k1, amplitudes)
                k3, _ = velocity(x + 0.5 * h * k2, amplitudes)
                k4, _ = velocity(x + h * k3, amplitudes)
                x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
                size = np.abs([np.exp(-1j * j * x).mean(axis=1) for j in k[:COMPARED]]).T
                with np.errstate(divide="ignore", invalid="ignore"):
                    time = t + h * np.log(LEVEL / before) / np.log(size / before)
                hit = (size >= LEVEL) & (before < LEVEL) & np.isinf(crossed)
                crossed[hit] = time[hit]
                t, before = t + h, size
            counts.append(n_peaks(x))
        lateness = rates.max() * (crossed.min(axis=1) - linear.min(axis=1))
        rows += zip(linear.argmin(axis=1) + 1, crossed.argmin(axis=1) + 1, *counts, lateness, strict=True)
    return rows


def table(samples, seed=11):
    cases = []
    for beta, early, late in CASES:
        rows = outcomes(beta, early, late, samples, seed)
        lateness = np.array([row[4] for row in rows])
        found = sorted(Counter(tuple(map(int, row[1:4])) for row in rows).items())
        cases.append(
            {
                "beta": beta,
                "early": early,
                "late": late,
                "samples": len(rows),
                "as_linear_theory": sum(int(row[0] == row[1]) for row in rows),
                "lateness": [round(float(lateness.mean()), 5), round(float(lateness.std()), 5)],
                "outcomes": [[*key, n] for key, n in found],
            }
        )
    note = (
        "USA from 10^4 uniform tokens' law of c_k: [first mode to reach 0.1, clusters at the early and the late time, "
        "number of samples]; lateness: mean and deviation of lambda (time of the first crossing - linear theory's)"
    )
    common = {"note": note, "n_tokens": N_TOKENS, "level": LEVEL, "resolution": RESOLUTION, "prominence": PROMINENCE}
    return {**common, "cases": cases}


@pytest.fixture(scope="module", params=range(2), ids=["beta = 5", "beta = 7"])
def made_again(request):
    stored = reference("cluster_outcomes")["cases"][request.param]
    return stored, outcomes(*CASES[request.param], samples=1000, seed=12)


@pytest.mark.parametrize("column", [1, 2, 3], ids=["first mode", "early", "late"])
def test_the_table_of_outcomes_can_be_made_again(made_again, column):
    stored, rows = made_again
    numbers = Counter()
    for outcome in stored["outcomes"]:
        numbers[outcome[column - 1]] += outcome[3] / stored["samples"]
    found = Counter(int(row[column]) for row in rows)
    assert surprise(found, numbers)[0] < surprise(found, numbers)[1]  # false alarm 1e-5


def test_lateness_and_agreement_can_be_made_again(made_again):
    stored, rows = made_again
    mean, deviation = stored["lateness"]
    lateness = np.array([row[4] for row in rows])
    assert lateness.mean() == pytest.approx(mean, abs=4.4 * deviation / np.sqrt(len(rows)))
    share = stored["as_linear_theory"] / stored["samples"]
    same = np.mean([row[0] == row[1] for row in rows])
    assert same == pytest.approx(share, abs=4.4 * np.sqrt(share * (1 - share) / len(rows)))


@pytest.mark.parametrize("case", reference("cluster_outcomes")["cases"], ids=lambda case: str(case["beta"]))
def test_the_first_mode_follows_the_closed_form(case):
    """What linear theory leaves out, of the order of the level's square, changes no probability by more than 2%."""
    closed = selection_probabilities(case["beta"], N_TOKENS, LEVEL, COMPARED)
    first = np.zeros(COMPARED)
    for mode, _, _, n in case["outcomes"]:
        first[mode - 1] += n / case["samples"]
    assert np.abs(first - closed).max() < 0.02


def test_a_surprise_is_as_rare_as_it_says_and_sees_a_wrong_law():
    law = {2: 0.01, 3: 0.83, 4: 0.15, 5: 0.01}
    rng = np.random.default_rng(3)
    keys, shares = list(law), list(law.values())
    draws = [dict(zip(keys, row, strict=True)) for row in rng.multinomial(200, shares, 20_000)]
    beyond = sum(statistic > limit for statistic, limit in (surprise(draw, law) for draw in draws))
    assert beyond <= 6  # expected below 2 at 1e-4, 7 or more have the probability 5e-3 even then
    wrong = rng.multinomial(200, [0.06, 0.68, 0.25, 0.01], 200)
    seen = [surprise(dict(zip(keys, row, strict=True)), law) for row in wrong]
    assert np.mean([statistic > limit for statistic, limit in seen]) > 0.75  # 81%: these are shares of first modes
    assert surprise(Counter({3: 200}), {3: 1.0}) == (0.0, pytest.approx(chi2.isf(1e-5, 1)))
    statistic, limit = surprise(Counter({7: 200}), law)  # what the law does not know
    assert statistic > limit


@pytest.mark.parametrize("change", [0.97, 1.03], ids=["3% slower", "3% faster"])
def test_a_rate_of_the_dominant_mode_that_is_off_by_three_percent_is_seen(monkeypatch, change):
    ratio = bessel.derivative_ratio
    monkeypatch.setattr(bessel, "derivative_ratio", lambda k, beta: np.where(k == 3, change, 1.0) * ratio(k, beta))
    finding = cluster_counts(_at_beta_5())
    failing = [comparison.quantity for comparison in finding.comparisons if not comparison.holds]
    assert any("delay of the first crossing" in quantity for quantity in failing)


def test_a_wrong_number_of_clusters_is_seen():
    finding = cluster_counts(_at_beta_5(expected=[4], replicates=4))
    assert not finding.comparisons[0].holds


def _at_beta_5(**changes):
    (claim,) = chosen_claims(["cluster-counts"])
    return Parameters({**claim.quick, "betas": [5.0], "expected": [3], **changes})


if __name__ == "__main__":
    json.dump(table(int(sys.argv[1])), sys.stdout, indent=1)
