"""Densities that are negative somewhere are refused at the door of every solver that moves mass."""

import numpy as np
import pytest

from spectral_mf import (
    BrownianPath,
    FourierDensity,
    InputError,
    PositionalAttention,
    SelfAttention,
    VectorFields,
    solve,
    solve_common_noise,
    solve_positions,
)
from spectral_mf.solvers.common_noise_ensemble import solve_common_noise_ensemble
from spectral_mf.solvers.positivity import negative_by_error

MODEL = SelfAttention(2.0)
FIELDS = VectorFields.planar(0.1)
PATH = BrownianPath.draw(2, 1.0, 4, 1)
NEGATIVE = FourierDensity.from_modes({1: 0.9})
SENTENCE = r"the density is negative at theta = 3\.142 \(-0\.127\); make the perturbation smaller or keep fewer modes"


@pytest.mark.parametrize(
    "start",
    [
        lambda: solve(MODEL, NEGATIVE, 1.0),
        lambda: solve(MODEL, NEGATIVE, 1.0, method="spectral"),
        lambda: solve(MODEL, NEGATIVE, 1.0, method="characteristics"),
        lambda: solve_common_noise(MODEL, NEGATIVE, FIELDS, PATH, 1.0),
        lambda: solve_common_noise(MODEL, NEGATIVE, FIELDS, PATH, 1.0, method="characteristics"),
        lambda: solve_common_noise_ensemble(MODEL, NEGATIVE, FIELDS, [PATH], 1.0),
        lambda: solve_positions(PositionalAttention(2.0), NEGATIVE, 1.0),
        lambda: solve_positions(PositionalAttention(2.0), lambda s: FourierDensity.from_modes({1: 0.9 * s**0}), 1.0),
    ],
)
def test_a_negative_density_is_refused_with_one_sentence(start):
    with pytest.raises(InputError, match=SENTENCE):
        start()


def test_no_file_is_begun(tmp_path):
    with pytest.raises(InputError, match=SENTENCE):
        solve(MODEL, NEGATIVE, 1.0, output=tmp_path / "run.h5")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["linear", "quasilinear"])
def test_expansions_take_it(method):
    assert len(solve(MODEL, NEGATIVE, [0.0, 0.01], method=method)) == 2


@pytest.mark.parametrize("size", [0.5, 0.49])
def test_a_density_that_touches_zero_is_allowed(size):
    run = solve(MODEL, FourierDensity.from_modes({1: size}), [0.0, 0.1])
    assert run.complete
    assert FourierDensity.from_modes({1: 0.3, 2: 0.2j}).require_positive().n_modes == 2


def test_what_a_run_hands_on_may_be_negative_by_its_error_only():
    touching = FourierDensity.from_modes({1: 0.5})
    rtol = 1e-6
    allowed = negative_by_error(touching, rtol)
    assert 10 * rtol < allowed < 11 * rtol
    for share, passes in ((0.99, True), (1.01, False)):
        density = FourierDensity.from_modes({1: 0.5 * (1.0 + share * allowed)})  # lowest is -share * allowed
        if passes:
            assert solve(MODEL, density, [0.0, 0.01], rtol=rtol).complete
        else:
            with pytest.raises(InputError, match="negative at theta"):
                solve(MODEL, density, [0.0, 0.01], rtol=rtol)


@pytest.mark.parametrize("seed", range(20))
def test_the_quick_answer_is_that_of_the_minimum(seed):
    rng = np.random.default_rng(seed)
    c = rng.standard_normal(6) + 1j * rng.standard_normal(6)
    c *= 0.5 * (1.0 - 1e-9) / np.abs(c).sum()
    density = FourierDensity(np.concatenate([[1.0], c]))
    assert density.require_positive() is density
    assert density.density(np.linspace(0.0, 2.0 * np.pi, 4001)).min() > 0.0
