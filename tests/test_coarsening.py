"""Two equal clusters with noise: metastable, one grows at the cost of the other over exponentially long times."""

import numpy as np
import pytest

from spectral_mf import FourierDensity, SelfAttention, solve
from spectral_mf.free_energy import free_energy
from spectral_mf.solvers.continuation import continue_branch
from spectral_mf.solvers.stationary import stationary_state

BETA = 5.0


def two_clusters(kappa):
    guess = FourierDensity.from_function(
        lambda theta: np.exp(2.0 / kappa * (np.cosh(5.0 * np.cos(theta)) - 60.0) / 5.0)
    )
    return stationary_state(SelfAttention(BETA, "none", kappa), guess, fold=2)


def exchange_rate(state):
    """The one growing even perturbation."""
    even, _ = state.eigenvalues()
    assert even[0] > 0.0 > even[1]
    return even[0]


def kramers_rate(state):
    """Rate at which an imbalance of masses grows, by Kramers' formula, from the density's own highest and lowest value.

    A token leaves its cluster, by either side, at rate r = (1/π) √(β sinh β) p_min/p_max (potential cosh(β cos θ)/β);
    more mass m deepens the well by (2/β) sinh β per unit of imbalance, so dδ/dt = r (2 sinh β/(βκ) - 2) δ.
    """
    low, high = state.density.density([np.pi / 2.0, 0.0])
    leaving = np.sqrt(BETA * np.sinh(BETA)) / np.pi * low / high
    return leaving * (2.0 * np.sinh(BETA) / (BETA * state.model.diffusion) - 2.0)


@pytest.mark.parametrize("kappa", [0.6, 0.7, 0.8, 1.0])
def test_the_exchange_of_mass_is_as_slow_as_kramers_formula_says(kappa):
    state = two_clusters(kappa)
    assert exchange_rate(state) == pytest.approx(kramers_rate(state), rel=0.2)
    assert exchange_rate(state) < 2e-4


def test_it_is_exponentially_slow():
    """ln of the rate against 1/κ is a line of slope -(cosh β - 1)/β, up to the logarithm of κ."""
    noises = np.array([0.6, 0.7, 0.8])
    logs = np.log([exchange_rate(two_clusters(kappa)) * kappa for kappa in noises])
    slopes = np.diff(logs) / np.diff(1.0 / noises)
    assert slopes == pytest.approx([-(np.cosh(BETA) - 1.0) / BETA] * 2, rel=0.03)


def test_one_cluster_grows_at_the_cost_of_the_other():
    state = two_clusters(2.5)
    rate = exchange_rate(state)
    start = state.density.moments(64)
    start[1] = 1e-4
    times = np.array([0.0, 3.0, 6.0, 26.0])
    run = solve(state.model, FourierDensity(start), times, method="spectral")
    imbalance = run.moments[:, 1].real
    assert np.log(imbalance[2] / imbalance[1]) / 3.0 == pytest.approx(rate, rel=1e-4)
    one = stationary_state(state.model, FourierDensity.von_mises(10.0))
    assert one.is_stable
    assert imbalance[3] == pytest.approx(one.order_parameter, abs=1e-3)
    energies = [free_energy(state.model, run.measure(i)) for i in range(4)]
    assert (np.diff(energies) < 0.0).all()


def test_two_clusters_gain_stability_nowhere():
    """Along the branch of two clusters, mode 1 stays unstable at every noise."""
    branch = continue_branch(two_clusters(1.5), "diffusion", (1.0, 3.4), largest_step=0.2)
    assert not branch.stable.any()
