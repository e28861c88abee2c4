"""The table of claims, what their checks compare with, and how findings are judged."""

import inspect
import json
import math
import re
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from spectral_mf import InputError
from spectral_mf.data import reference
from spectral_mf.validation import findings
from spectral_mf.validation.checks import closed_forms
from spectral_mf.validation.claims import Parameters, all_claims, chosen_claims, papers
from spectral_mf.validation.findings import Comparison, Finding
from spectral_mf.validation.verdicts import Verdict

NAMES = [claim.id for claim in all_claims()]


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.id)
def test_a_claim_says_where_it_is_from_and_how_it_is_judged(claim):
    assert claim.paper in papers()
    for text in (claim.title, claim.group, claim.place, claim.statement, claim.acceptance):
        assert len(text) >= 8
    module, name = claim.check.split(".")
    check = getattr(import_module(f"spectral_mf.validation.checks.{module}"), name)
    used = set(re.findall(r"\bp\.(\w+)", inspect.getsource(check)))
    for size in ("quick", "full"):
        assert set(claim.parameters(size).to_dict()) == used, size


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.id)
def test_a_verdict_on_any_claim_can_be_stored_and_has_its_seeds(claim):
    for size in ("quick", "full"):
        verdict = Verdict(claim.id, True, "", [], claim.parameters(size).to_dict(), "code", 1.0)
        stored = json.loads(json.dumps(verdict.to_dict()))
        assert Verdict.from_dict(stored).to_dict() == stored
        for some in stored["seeds"].values():
            assert all(isinstance(seed, int) for seed in (some if isinstance(some, list) else [some]))


def test_names_are_distinct_and_groups_are_not_interrupted():
    assert len(set(NAMES)) == len(NAMES)
    groups = [claim.group for claim in all_claims()]
    assert len([a for a, b in zip(groups, [*groups[1:], ""], strict=True) if a != b]) == len(set(groups))


def test_claims_are_chosen_in_the_order_of_the_table():
    assert [claim.id for claim in chosen_claims([NAMES[3], NAMES[1]])] == [NAMES[1], NAMES[3]]
    assert [claim.id for claim in chosen_claims()] == NAMES


def test_an_unknown_claim_lists_the_known_ones():
    with pytest.raises(InputError, match="did you mean 'growth-rates'") as refused:
        chosen_claims(["growth-rate"])
    assert all(name in str(refused.value) for name in NAMES)


def test_a_parameter_that_is_missing_is_named():
    with pytest.raises(AttributeError, match="no parameter 'beta'"):
        _ = Parameters({}).beta


@pytest.mark.parametrize("row", reference("linear_theory")["rows"], ids=str)
def test_closed_form_growth_rates_are_those_of_the_table_of_many_digits(row):
    if row["d"] == 2:
        for k, rate in row["rates"].items():
            found = closed_forms.growth_rate(row["normalization"], float(row["beta"]), int(k))
            assert found == pytest.approx(float(rate), rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    ("beta", "k", "q", "contraction", "merging"),
    [(2, 2, 1, 3.6269, 0.135335), (5, 3, 1, 49.238, 0.34886), (7, 4, 2, 270.66, 7.0), (9, 4, 2, 2021.3, 9.0)],
)
def test_rates_of_equal_clusters(beta, k, q, contraction, merging):
    assert closed_forms.contraction_rate("none", beta, k) == pytest.approx(contraction, rel=2e-5)
    assert closed_forms.merging_rate("none", beta, k, q) == pytest.approx(merging, rel=2e-5)


@pytest.mark.parametrize("beta", [1.0, 2.0, 5.0])
def test_two_clusters_part_at_a_simple_rate(beta):
    assert closed_forms.merging_rate("none", beta, 2) == pytest.approx(math.exp(-beta), rel=1e-12, abs=0.0)
    assert closed_forms.merging_rate("softmax", beta, 2) == pytest.approx(
        2.0 / (math.exp(2 * beta) + 1.0), rel=1e-12, abs=0.0
    )


@pytest.mark.parametrize(
    ("beta", "harmonic", "cubic"), [(1, 1.065429, 0.91497), (5, 0.733189, 0.87748), (20, 0.696814, 0.85933)]
)
def test_amplitude_equation_of_softmax_attention(beta, harmonic, cubic):
    assert closed_forms.second_harmonic("softmax", beta) == pytest.approx(harmonic, abs=1e-6)
    assert closed_forms.cubic_coefficient("softmax", beta) == pytest.approx(cubic, abs=1e-5)


def test_selection_probabilities_are_those_of_random_exponential_times():
    """Against a simulation of 200,000 draws; 4.5 standard errors of three shares: false alarm below 3e-5."""
    beta, n, level, modes = 5.0, 10_000, 0.3, 9
    rates = closed_forms.growth_rate("softmax", beta, np.arange(1, modes + 1))
    size = np.sqrt(np.random.default_rng(3).exponential(1.0 / n, (200_000, modes)))
    first = np.argmin(np.log(level / size) / rates, axis=1) + 1
    share = closed_forms.selection_probabilities(beta, n, level, modes)
    assert share.sum() == pytest.approx(1.0, abs=1e-6)
    for k in (2, 3, 4):
        expected = share[k - 1]
        assert abs((first == k).mean() - expected) < 4.5 * math.sqrt(expected * (1.0 - expected) / 200_000)


@pytest.mark.parametrize(
    ("kappa", "angle", "distance"),
    [(4.0, 0.5, 0.491211558122557112), (4.0, math.pi, 2.28723537930872681), (20.0, 1.0, 0.999999357363566373)],
)
def test_w1_of_rotated_von_mises_densities(kappa, angle, distance):
    assert closed_forms.w1_rotated_von_mises(kappa, angle) == pytest.approx(distance, abs=1e-13)
    assert closed_forms.w1_uniform_von_mises(4.0) == pytest.approx(1.1436176896543634, abs=1e-13)


def test_energy_of_equal_clusters_is_the_sum_of_bessel_functions():
    beta, k = 5.0, 3
    expected = special.iv(k * np.arange(-20, 21), beta).sum() / math.exp(beta)
    found = closed_forms.cluster_energy(beta, np.full(k, 1 / k), 2 * np.pi * np.arange(k) / k)
    assert found == pytest.approx(expected, rel=1e-13, abs=0.0)


numbers = st.floats(-1e6, 1e6)


@given(numbers, numbers, st.floats(1e-9, 1e3))
def test_a_comparison_holds_in_its_range_and_strains_beyond(measured, predicted, room):
    comparison = findings.within("x", measured, predicted, absolute=room)
    assert comparison.holds == (predicted - room <= measured <= predicted + room)
    assert comparison.holds or comparison.strain > 1.0 - 1e-9
    assert Comparison.from_dict(comparison.to_dict()) == comparison


def test_what_is_no_number_never_holds():
    for comparison in (
        findings.within("x", math.nan, 1.0, relative=1.0),
        findings.at_most("x", math.nan, 1.0),
        findings.at_least("x", math.nan, 1.0),
    ):
        assert not comparison.holds
        assert comparison.strain == math.inf


def test_open_ranges():
    assert findings.at_most("x", 1.0, 1.0).holds
    assert not findings.at_most("x", 1.0001, 1.0).holds
    assert findings.at_least("x", 1.0, 1.0).holds
    assert not findings.at_least("x", 0.9999, 1.0).holds


def test_a_finding_without_comparisons_does_not_hold():
    assert not Finding("nothing", []).holds
    assert Finding("one", [findings.equal("n", 3, 3)]).holds
    assert not Finding("two", [findings.equal("n", 3, 3), findings.equal("n", 4, 3)]).holds


def test_binomial_ranges_hold_what_chance_allows():
    """The share of 10 successes in 10 trials of probability 1/2 has probability 1/1024."""
    assert findings.binomial("x", 10, 10, 0.5, 1e-4).holds
    assert not findings.binomial("x", 10, 10, 0.5, 1e-2).holds
    assert findings.deviate(0.0027) == pytest.approx(3.0, abs=1e-3)
