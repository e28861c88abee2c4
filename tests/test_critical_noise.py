"""Critical noise, the mode that noise selects, and how the uniform density gives way, against mpmath."""

import mpmath
import numpy as np
import pytest

from spectral_mf import InputError, SelfAttention
from spectral_mf.critical_noise import (
    critical_noise,
    cubic_coefficient,
    selection_noise,
    stabilising_noise,
    tricritical_beta,
)


@pytest.mark.parametrize("beta", [0.3, 2.0, 5.0, 30.0])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("diffusion", [0.0, 0.7])
def test_critical_noise_is_a_ratio_of_bessel_functions(beta, k, diffusion):
    usa = mpmath.besseli(k, beta) / beta
    sa = usa / mpmath.besseli(0, beta)
    # the model's own diffusion is taken off the rate and added again
    assert critical_noise(SelfAttention(beta, "none", diffusion), k) == pytest.approx(float(usa), rel=1e-13, abs=1e-15)
    assert critical_noise(SelfAttention(beta, "softmax", diffusion), k) == pytest.approx(
        float(sa), rel=1e-12, abs=1e-15
    )


def test_without_temperature_only_mode_1_is_moved():
    assert [critical_noise(SelfAttention(0.0), k) for k in (1, 2, 3)] == pytest.approx([0.5, 0.0, 0.0], abs=1e-15)


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.4, 5.0, 40.0, 200.0])
@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_mode_1_is_the_last_to_be_stabilised_whatever_grows_fastest(beta, normalization):
    model = SelfAttention(beta, normalization)
    assert stabilising_noise(model) == critical_noise(model, 1)


def test_noise_lowers_the_selected_mode():
    usa = [selection_noise(SelfAttention(5.0, "none"), k) for k in (3, 2, 1)]
    assert usa == pytest.approx([0.918315666, 3.045787848, 4.867128428], abs=5e-10)
    sa = [selection_noise(SelfAttention(5.0), k) for k in (3, 2, 1)]
    assert sa == pytest.approx([noise / float(mpmath.besseli(0, 5)) for noise in usa], rel=1e-13, abs=0.0)
    assert sa == pytest.approx([0.0337121875, 0.1118135896, 0.1786766274], abs=5e-11)


def test_the_tricritical_temperature():
    assert tricritical_beta() == pytest.approx(2.4469183112890461309, rel=1e-14, abs=0.0)
    for k in (2, 5, 20):
        beta = tricritical_beta(k)
        assert float(mpmath.besseli(2 * k, beta) / mpmath.besseli(k, beta)) == pytest.approx(0.5, abs=1e-13)
    assert tricritical_beta(20) / 20**2 == pytest.approx(1.5 / np.log(2.0), rel=2e-3)


@pytest.mark.parametrize("k", [1, 2])
def test_usa_turns_discontinuous_at_the_tricritical_temperature(k):
    beta = tricritical_beta(k)
    below, above = (cubic_coefficient(SelfAttention(b, "none"), k) for b in (beta - 1e-6, beta + 1e-6))
    assert below < 0.0 < above
    model = SelfAttention(beta, "none")
    assert abs(cubic_coefficient(model, k)) < 1e-14 * k**2 * critical_noise(model, k)


def test_sa_is_continuous_at_every_temperature():
    coefficients = [cubic_coefficient(SelfAttention(beta)) for beta in np.geomspace(1e-3, 1e5, 300)]
    assert max(coefficients) < 0.0


def coefficient_by_hand(beta, k, softmax):
    """The cubic term by mpmath's Taylor coefficients of the velocity, with c_2k on its slow manifold."""
    mpmath.mp.dps = 30
    i0 = mpmath.besseli(0, beta)
    first, second = (mpmath.besseli(n, beta) / i0 for n in (k, 2 * k))
    unit = mpmath.mpf(1) if softmax else i0
    kappa = first * unit / beta

    def rates(a, b):
        """dc_k/dt and dc_2k/dt at real c_k = a, c_2k = b, all other moments zero, by the trapezoid rule."""
        n = 32
        total = [mpmath.mpf(0), mpmath.mpf(0)]
        for j in range(n):
            x = 2 * mpmath.pi * j / n
            z = 1 + 2 * first * a * mpmath.cos(x) + 2 * second * b * mpmath.cos(2 * x)
            slope = -2 * first * a * mpmath.sin(x) - 4 * second * b * mpmath.sin(2 * x)
            v = k * slope / beta / z if softmax else k * unit * slope / beta
            p = 1 + 2 * a * mpmath.cos(x) + 2 * b * mpmath.cos(2 * x)
            for m in (1, 2):
                total[m - 1] += -k * m * p * v * mpmath.sin(m * x) / n
        return total[0] - kappa * k**2 * a, total[1] - 4 * kappa * k**2 * b

    a = mpmath.mpf("1e-4")
    b = mpmath.findroot(lambda b: rates(a, b)[1], a**2)
    return rates(a, b)[0] / a**3


@pytest.mark.parametrize(("beta", "k"), [(0.7, 1), (2.0, 1), (5.0, 1), (5.0, 2)])
@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_cubic_coefficient_against_the_equation_itself(beta, k, normalization):
    by_hand = float(coefficient_by_hand(beta, k, normalization == "softmax"))
    assert cubic_coefficient(SelfAttention(beta, normalization), k) == pytest.approx(by_hand, rel=1e-6)


def test_what_is_not_allowed():
    with pytest.raises(InputError, match="k = 0"):
        critical_noise(SelfAttention(1.0), 0)
    with pytest.raises(InputError, match="no closed form"):
        cubic_coefficient("model")
    with pytest.raises(InputError, match=r"mode 2 is not brought forth by SelfAttention\(beta=0"):
        cubic_coefficient(SelfAttention(0.0), 2)
