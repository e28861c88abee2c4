"""Claims on common noise: they hold, and fail for a solver, noise or tokens that are wrong."""

import math

import numpy as np
import pytest

from spectral_mf import VectorFields
from spectral_mf.solvers.driven import DrivenRightHandSide
from spectral_mf.validation.claims import chosen_claims
from spectral_mf.validation.common_noise_tokens import CommonNoiseTokenSolver


def measure(name):
    (claim,) = chosen_claims([name])
    return claim.measure("quick")


NAMES = ["common-noise-rotation", "common-noise-contraction", "common-noise-tokens", "common-noise-energy"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_claim_holds(name):
    found = measure(name)
    assert [c.quantity for c in found.comparisons if not c.holds] == []
    assert found.pictures


def rates_off_by_a_billionth(patch):
    drive = DrivenRightHandSide.drive
    patch.setattr(DrivenRightHandSide, "drive", lambda self, rates: drive(self, rates * (1.0 + 1e-9)))


def noise_off_by_a_tenth(patch):
    made = VectorFields.planar.__func__
    patch.setattr(VectorFields, "planar", classmethod(lambda cls, strength=1.0: made(cls, 1.1 * strength)))


def tokens_on_a_turned_path(patch):
    drive = CommonNoiseTokenSolver.drive
    turn = np.array([[math.cos(0.3), math.sin(0.3)], [-math.sin(0.3), math.cos(0.3)]])
    patch.setattr(CommonNoiseTokenSolver, "drive", lambda self, rates: drive(self, rates @ turn))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("common-noise-rotation", rates_off_by_a_billionth),
        ("common-noise-contraction", noise_off_by_a_tenth),
        ("common-noise-tokens", tokens_on_a_turned_path),
    ],
)
def test_a_claim_fails_for_what_is_wrong(monkeypatch, name, mistake):
    mistake(monkeypatch)
    assert not measure(name).holds
