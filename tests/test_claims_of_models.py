"""Claims on matrices, heads and pair potentials: they hold, and fail for a model that is wrong."""

from dataclasses import replace

import numpy as np
import pytest

from spectral_mf import MultiHeadAttention, PairPotential
from spectral_mf.attention_head import AttentionHead
from spectral_mf.head_fields import HeadFields
from spectral_mf.planar_forms import PlanarForm
from spectral_mf.validation.claims import chosen_claims

slow = pytest.mark.slow


def measure(name):
    (claim,) = chosen_claims([name])
    return claim.measure("quick")


@pytest.mark.parametrize(
    "name",
    [
        "heads-reference",
        "heads-identity",
        "heads-eigendirections",
        "heads-energy",
        "heads-heat-flow",
        "kuramoto",
        "potential-rates",
        "bounded-confidence",
    ],
)
@slow
def test_a_claim_holds(name):
    found = measure(name)
    assert [c.quantity for c in found.comparisons if not c.holds] == []
    assert found.pictures


def strength_off_by_a_millionth(patch):
    made = PairPotential.kuramoto.__func__
    patch.setattr(
        PairPotential, "kuramoto", classmethod(lambda cls, strength, *rest: made(cls, strength * 1.000001, *rest))
    )


def coefficients_off_by_a_billionth(patch):
    made = PairPotential.from_function.__func__

    def off(cls, *args, **options):
        model = made(cls, *args, **options)
        return replace(model, coefficients=tuple(1.000000001 * np.array(model.coefficients)))

    patch.setattr(PairPotential, "from_function", classmethod(off))


def radius_off_by_a_millionth(patch):
    made = PairPotential.hegselmann_krause.__func__
    patch.setattr(
        PairPotential,
        "hegselmann_krause",
        classmethod(lambda cls, radius, *rest: made(cls, radius * 1.000001, *rest)),
    )


def value_off_by_a_trillionth(patch):
    row = PlanarForm.tangent_row
    patch.setattr(PlanarForm, "tangent_row", lambda self, x: tuple((1.0 + 1e-12) * part for part in row(self, x)))


def matrices_transposed(patch):
    row = PlanarForm.row
    patch.setattr(PlanarForm, "row", lambda self, x: row(replace(self, b=-self.b), x))


def energy_that_falls(patch):
    energy = MultiHeadAttention.energy
    patch.setattr(MultiHeadAttention, "energy", lambda self, moments: -energy(self, moments))


def values_turned(patch):
    evaluate = HeadFields.evaluate

    def turned(self, moments):
        evaluate(self, moments)
        self.velocity *= 1.001

    patch.setattr(HeadFields, "evaluate", turned)


def slower_attention_of_pairs(patch):
    jacobian = AttentionHead.pair_jacobian

    def off(self, d, s, weights, unit):
        return jacobian(self, d, s, weights, unit) - 1e-6 * np.eye(len(weights))

    patch.setattr(AttentionHead, "pair_jacobian", off)


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("kuramoto", strength_off_by_a_millionth),
        ("potential-rates", coefficients_off_by_a_billionth),
        ("heads-identity", value_off_by_a_trillionth),
        pytest.param("heads-reference", matrices_transposed, marks=slow),
        pytest.param("heads-energy", energy_that_falls, marks=slow),
        pytest.param("heads-heat-flow", values_turned, marks=slow),
        pytest.param("heads-eigendirections", slower_attention_of_pairs, marks=slow),
        pytest.param("bounded-confidence", radius_off_by_a_millionth, marks=slow),
    ],
)
def test_a_wrong_model_fails(name, mutant, monkeypatch):
    """By what was measured: some comparison is outside its range."""
    mutant(monkeypatch)
    assert not measure(name).holds
