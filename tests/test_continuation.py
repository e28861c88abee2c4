"""Branches of stationary densities: where they begin, turn and end."""

from functools import lru_cache

import numpy as np
import pytest
from scipy import optimize, special

from spectral_mf import FourierDensity, InputError, SelfAttention
from spectral_mf.critical_noise import critical_noise, cubic_coefficient, tricritical_beta
from spectral_mf.solvers.continuation import continue_branch
from spectral_mf.solvers.stationary import stationary_state


@lru_cache
def uniform_branch(beta, normalization, fold=1):
    critical = critical_noise(SelfAttention(beta, normalization), fold)
    start = stationary_state(SelfAttention(beta, normalization, 1.1 * critical), FourierDensity.uniform(), fold=fold)
    return continue_branch(start, "diffusion", (0.5 * critical, 1.2 * critical), increasing=False)


@lru_cache
def clustered_branch(beta, normalization, fold=1, step=0.02, low=0.5):
    first = uniform_branch(beta, normalization, fold).of_kind("branch")[0]
    limits = (low * first.value, 1.5 * first.value)
    return continue_branch(first, "diffusion", limits, step=step, largest_step=max(step, 0.1))


@pytest.mark.parametrize("beta", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("normalization", ["none", "softmax"])
def test_the_uniform_density_loses_stability_at_its_critical_noise(beta, normalization):
    branch = uniform_branch(beta, normalization)
    exact = special.ive(1, beta) / beta * (np.exp(beta) if normalization == "none" else 1.0 / special.ive(0, beta))
    assert branch.of_kind("branch")[0].value == pytest.approx(exact, abs=1e-12)
    assert branch.of_kind("fold") == []
    assert (branch.stable == (branch.values > exact)).all()


@pytest.mark.parametrize(("beta", "fold"), [(5.0, 2), (5.0, 3), (9.5, 2)])
def test_higher_modes_have_their_own(beta, fold):
    branch = uniform_branch(beta, "none", fold)
    exact = special.ive(fold, beta) / beta * np.exp(beta)
    assert branch.of_kind("branch")[0].value == pytest.approx(exact, rel=1e-12, abs=0.0)
    assert not branch.stable.any()  # mode 1 has grown since I_1/β


@pytest.mark.parametrize(
    ("beta", "normalization", "fold"),
    [(1.0, "none", 1), (2.4, "none", 1), (2.5, "none", 1), (5.0, "none", 1), (2.0, "softmax", 1), (5.0, "softmax", 1),
     (8.5, "none", 2), (9.5, "none", 2)],
)  # fmt: skip
def test_the_branch_starts_with_the_cubic_coefficient(beta, normalization, fold):
    """κ = J + a c_m² / m² + O(c_m⁴), by extrapolation from two small amplitudes."""
    branch = clustered_branch(beta, normalization, fold, step=0.005)
    bend = (branch.values[1:] - branch.values[0]) / branch.order_parameter[1:] ** 2
    one, two = branch.order_parameter[1:3] ** 2
    start = (bend[0] * two - bend[1] * one) / (two - one)
    expected = cubic_coefficient(branch.points[0].state.model, fold) / fold**2
    assert start == pytest.approx(expected, abs=1e-4 * branch.values[0])


def test_the_transition_is_continuous_up_to_the_tricritical_temperature():
    critical = tricritical_beta()
    below, above = (clustered_branch(critical + shift, "none") for shift in (-0.1, 0.1))
    assert below.of_kind("fold") == []
    assert (np.diff(below.values) < 0.0).all()
    assert below.stable[1:].all()
    (fold,) = above.of_kind("fold")
    assert fold.value > above.values[0]
    before = above.order_parameter < fold.state.order_parameter
    assert (above.stable[1:] == ~before[1:]).all()
    # hysteresis between I_1/β and the fold: the cluster and the uniform density are both stable
    assert stationary_state(SelfAttention(critical + 0.1, "none", 0.5 * (fold.value + above.values[0])),
                            FourierDensity.uniform()).is_stable  # fmt: skip


def test_the_fold_opens_quadratically_from_the_tricritical_temperature():
    """κ_fold - J = -a²/(4 b) for κ = J + a c² + b c⁴: its root falls linearly to zero at β*."""
    shifts = np.array([0.04, 0.08])
    heights = []
    for shift in shifts:
        branch = clustered_branch(tricritical_beta() + shift, "none", step=0.01)
        heights.append(np.sqrt(branch.of_kind("fold")[0].value - branch.values[0]))
    ending = shifts[0] - heights[0] * (shifts[1] - shifts[0]) / (heights[1] - heights[0])
    assert ending == pytest.approx(0.0, abs=2e-3)


def test_the_fold_is_where_two_stationary_densities_meet():
    branch = clustered_branch(5.0, "none")
    (fold,) = branch.of_kind("fold")
    assert abs(fold.state.eigenvalues()[0][0]) < 1e-6
    assert branch.of_kind("branch") == []  # more moments on the way are none

    def potential_gap(r, kappa):
        """Newton's own equations, by hand: c = moments of exp(Φ[c]/κ), iterated at fixed c_1 = r."""
        theta = 2.0 * np.pi * np.arange(256) / 256
        k = np.arange(1, 30)
        weights = 2.0 * special.iv(k, 5.0) / 5.0
        waves = np.cos(np.outer(k, theta))
        c = r ** k.astype(float)
        for _ in range(4000):
            p = np.exp((weights * c) @ waves / kappa)
            new = waves @ p / p.sum()
            gap = new[0] - r
            new[0] = r
            if np.abs(new - c).max() < 1e-15:
                break
            c = new
        return gap

    def noise(r):
        """κ at which c_1 = r is stationary."""
        return optimize.brentq(lambda kappa: potential_gap(r, kappa), 4.5, 6.0, xtol=1e-13)

    best = optimize.minimize_scalar(lambda r: -noise(r), bounds=(0.5, 0.75), method="bounded", options={"xatol": 1e-7})
    assert fold.value == pytest.approx(-best.fun, rel=1e-10, abs=0.0)
    assert fold.state.order_parameter == pytest.approx(best.x, abs=1e-5)


def test_more_moments_on_the_way_are_no_branch_points():
    """With less noise the density needs more moments, an odd number of them more at one place."""
    branch = clustered_branch(2.0, "none", low=0.3)
    sizes = np.array([point.state.moments.size for point in branch.points])
    assert (np.diff(sizes) % 2 == 1).any()
    assert branch.special == []


@pytest.mark.parametrize("normalization", ["none", "softmax"])
def test_continuation_in_beta_meets_continuation_in_noise(normalization):
    kappa = 0.5 if normalization == "none" else 0.1
    start = stationary_state(SelfAttention(1.0, normalization, kappa), FourierDensity.von_mises(3.0))
    branch = continue_branch(start, "beta", (1.0, 3.0))
    point = branch.points[-2]
    direct = stationary_state(SelfAttention(point.value, normalization, kappa), FourierDensity.von_mises(4.0))
    n = min(direct.moments.size, point.state.moments.size)
    assert direct.moments[:n] == pytest.approx(point.state.moments[:n], abs=1e-12)


def test_in_beta_the_uniform_density_gives_way_where_the_noise_is_critical():
    start = stationary_state(SelfAttention(1.0, "none", 0.7), FourierDensity.uniform())
    (place,) = continue_branch(start, "beta", (0.5, 2.4)).of_kind("branch")
    exact = optimize.brentq(lambda beta: special.iv(1, beta) / beta - 0.7, 1.0, 2.4, xtol=1e-14)
    assert place.value == pytest.approx(exact, abs=1e-10)


def test_what_is_not_allowed():
    start = stationary_state(SelfAttention(1.0, "none", 0.7), FourierDensity.uniform())
    with pytest.raises(InputError, match="parameter = 'time'"):
        continue_branch(start, "time", (0.1, 1.0))
    with pytest.raises(InputError, match=r"the start's diffusion = 0\.7 is not allowed"):
        continue_branch(start, "diffusion", (0.1, 0.5))
    with pytest.raises(InputError, match="lower limit of diffusion"):
        continue_branch(start, "diffusion", (0.0, 1.0))
    with pytest.raises(InputError, match="no stationary state"):
        continue_branch(FourierDensity.uniform(), "diffusion", (0.1, 1.0))
