"""Free energy and its rate, against closed forms, quadrature and solves."""

import numpy as np
import pytest
from scipy import integrate, special

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention, solve
from spectral_mf.free_energy import dissipation, entropy, free_energy, free_energy_rate


def test_entropy_of_the_uniform_density_is_least():
    assert entropy(FourierDensity.uniform()) == pytest.approx(-np.log(2.0 * np.pi), abs=1e-15)


@pytest.mark.parametrize("concentration", [0.5, 4.0, 50.0, 1000.0])
def test_entropy_of_a_von_mises_density(concentration):
    """∫ p log p = κ I_1/I_0 - log(2π I_0)."""
    ratio = special.ive(1, concentration) / special.ive(0, concentration)
    exact = concentration * (ratio - 1.0) - np.log(2.0 * np.pi * special.ive(0, concentration))
    assert entropy(FourierDensity.von_mises(concentration, 1.0)) == pytest.approx(exact, abs=1e-12)


def test_free_energy_by_quadrature():
    model = SelfAttention(3.0, "none", diffusion=0.8)
    density = FourierDensity.from_modes({1: 0.3, 2: 0.1j})

    def p(x):
        return (1.0 + 0.6 * np.cos(x) - 0.2 * np.sin(2.0 * x)) / (2.0 * np.pi)

    order, _ = integrate.quad(lambda x: p(x) * np.log(p(x)), 0.0, 2.0 * np.pi, epsabs=1e-13)
    pairs, _ = integrate.dblquad(
        lambda y, x: np.exp(3.0 * np.cos(x - y)) * p(x) * p(y), 0.0, 2.0 * np.pi, 0.0, 2.0 * np.pi, epsabs=1e-11
    )
    assert free_energy(model, density) == pytest.approx(0.8 * order - pairs / 6.0, abs=1e-11)


@pytest.mark.parametrize("model", [SelfAttention(3.0, "none", 0.8), SelfAttention(0.0, "softmax", 0.2)], ids=str)
def test_the_rate_is_minus_the_dissipation_of_a_gradient_flow(model):
    density = FourierDensity.from_modes({1: 0.3, 2: 0.1j, 3: 0.05})
    assert dissipation(model, density) > 0.01
    assert free_energy_rate(model, density) == pytest.approx(-dissipation(model, density), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("normalization", ["none", "softmax"])
def test_the_rate_is_that_of_a_solve(normalization):
    model = SelfAttention(2.0, normalization, diffusion=0.2)
    start, h = FourierDensity.from_modes({1: 0.25, 2: 0.1j}), 1e-3
    run = solve(model, start, [0.0, h, 2.0 * h], method="spectral", rtol=1e-13)
    slope = (free_energy(model, run.measure(2)) - free_energy(model, run.measure(0))) / (2.0 * h)
    assert free_energy_rate(model, run.measure(1)) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize(("beta", "kappa", "t_end"), [(1.0, 0.3, 20.0), (5.0, 3.0, 2.0), (5.0, 1.0, 1.0)])
def test_free_energy_never_rises(beta, kappa, t_end):
    model = SelfAttention(beta, "none", diffusion=kappa)
    start = FourierDensity.from_modes({1: 0.02, 2: 0.03j, 3: 0.05})
    run = solve(model, start, np.linspace(0.0, t_end, 201), method="spectral")
    values = np.array([free_energy(model, run.measure(i)) for i in range(len(run))])
    assert values[0] - values[-1] > 0.01
    assert np.diff(values).max() <= 1e-12 * np.abs(values).max()


def test_of_sa_it_may_rise():
    """The softmax divides the flux by Z: no gradient flow of this free energy."""
    model, density = SelfAttention(2.0, diffusion=0.2), FourierDensity.von_mises(3.0)
    assert free_energy_rate(model, density) == pytest.approx(0.00893599258, rel=1e-6)
    run = solve(model, density, [0.0, 0.01], method="spectral")
    assert free_energy(model, run.measure(1)) > free_energy(model, density)


def test_what_is_not_allowed():
    with pytest.raises(InputError, match=r"negative at theta = 3\.142"):
        entropy(FourierDensity.from_modes({1: 0.6}))
    with pytest.raises(InputError, match="has no entropy; give a FourierDensity"):
        entropy(Atoms([0.0]))
    with pytest.raises(InputError, match="is not a model"):
        free_energy("model", FourierDensity.uniform())
