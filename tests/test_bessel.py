"""Bessel ratios and growth rates against many-digit values."""

import mpmath as mp
import numpy as np
import pytest

from spectral_mf import SelfAttention, bessel

SA_RATES = {  # k = 1 .. 5, from 40-digit arithmetic
    0.1: (0.4993760398793892, 0.04991680964886446, 0.001871490516701352, 4.158348064693746e-5, 6.496877476850792e-7),
    1: (0.4463899658965345, 0.4288802728277239, 0.1575872376192951, 0.03459055670508169, 0.00536036790674302),
    2: (0.348887328982004, 0.604450684071984, 0.4199578825141078, 0.1780273628793614, 0.05387865565429033),
    4: (0.2158806527561376, 0.5682386944877247, 0.6643888122078582, 0.5012512787299436, 0.279114232324088),
    9: (0.1047433248599671, 0.3513392667911403, 0.5913506569485639, 0.7044970292995967, 0.664172617496571),
    100: (0.009949873730051688, 0.03920401010159586, 0.08602050266132156, 0.1476405201225092, 0.2204907757105796),
    710: (0.001407458487790415, 0.005617944129715038, 0.01259591301382157, 0.02228254214494358, 0.03459634898341576),
    1000: (9.994998748748043e-4, 0.003992004001001002, 0.00895957083786423, 0.01587244724840012, 0.02468929118124008),
    1e6: (9.99999499999875e-7, 3.999992000004e-6, 8.999959500070875e-6, 1.5999872000448e-5, 2.499968750179687e-5),
}
USA_RATES = {
    0.1: (0.5006252604709269, 0.05004167968967036, 0.001876172168009444, 4.168750434079452e-5, 6.513129824734242e-7),
    0.5: (0.5157886107817926, 0.255249193421906, 0.04761201544182515, 0.005273777595354353, 4.111585656554632e-4),
    1: (0.565159103992485, 0.5429906790681531, 0.1995158243189871, 0.04379392353674986, 0.006786578898924297),
    2: (0.7953184273186645, 1.377896895397476, 0.9573298165793369, 0.4058285598334419, 0.1228209915391463),
    4: (2.439866288426112, 6.422189375284106, 7.508870501445775, 5.665102830614356, 3.15452726945729),
    9: (114.5460802796618, 384.220530645356, 646.6941918716004, 770.4297470298976, 726.3314398795878),
    20: (2122748.669256389, 7862557.044208151, 15566587.35341383, 23148048.2550119, 28772990.26676709),
}
VON_MISES = {
    1: (0.446389965896534507, 0.107220068206930986, 0.0175096930688105634, 0.00216190979406760533),
    4: (0.863522611024550583, 0.568238694487724709, 0.295283916536825874, 0.125312819682485897),
    20: (0.974670507889807126, 0.902532949211019287, 0.794163918047603268, 0.664283773796738307),
}
TIES = (
    1.044456862107774,
    3.165434442700568,
    6.211298379432043,
    10.22848316298594,
    15.23627672852054,
    21.24045196364160,
)


def exact_ratio(k, beta):
    with mp.workdps(40):
        return mp.besseli(k, mp.mpf(beta)) / mp.besseli(0, mp.mpf(beta))


@pytest.mark.parametrize("beta", [1e-2, 0.5, 5.0, 30.0, 700.0, 1000.0, 1e4])
def test_ratios(beta):
    top = bessel.bandwidth(beta)
    k = np.unique(np.array([0, 1, 2, 3, top // 4, top // 2, top]))
    exact = np.array([float(exact_ratio(int(j), beta)) for j in k])
    np.testing.assert_allclose(bessel.ratio(k, beta), exact, rtol=1e-13)
    np.testing.assert_array_equal(bessel.ratio(-k, beta), bessel.ratio(k, beta))


def test_real_orders():
    assert bessel.ratio(2.5, 7.0) == pytest.approx(float(exact_ratio(mp.mpf("2.5"), 7)), rel=1e-13)


@pytest.mark.parametrize("kappa", VON_MISES)
def test_moments_of_von_mises(kappa):
    np.testing.assert_allclose(bessel.ratio([1, 2, 3, 4], kappa), VON_MISES[kappa], rtol=1e-14)


@pytest.mark.parametrize("beta", SA_RATES)
def test_softmax_growth_rates(beta):
    k = np.arange(1, 6)
    np.testing.assert_allclose(k * bessel.derivative_ratio(k, beta), SA_RATES[beta], rtol=2e-14)
    if beta <= 1e4:
        np.testing.assert_allclose(SelfAttention(beta).growth_rate(k), SA_RATES[beta], rtol=2e-14)


@pytest.mark.parametrize("beta", USA_RATES)
def test_unnormalised_growth_rates(beta):
    k = np.arange(1, 6)
    np.testing.assert_allclose(SelfAttention(beta, "none").growth_rate(k), USA_RATES[beta], rtol=3e-14)
    scaled = SelfAttention(beta, "peak").growth_rate(k) * np.exp(beta)
    np.testing.assert_allclose(scaled, USA_RATES[beta], rtol=3e-14)


@pytest.mark.parametrize(
    ("beta", "mode", "rate"),
    [(710, 38, 0.7353066038584986), (1000, 45, 0.7354550690944857), (1e4, 141, 0.73572135460673)],
)
def test_fastest_mode_at_large_beta(beta, mode, rate):
    rates = SelfAttention(beta).growth_rate(np.arange(400))
    assert rates.argmax() == mode
    assert rates.max() == pytest.approx(rate, rel=1e-13, abs=0.0)
    assert rates.max() < 2.0 / np.e


@pytest.mark.parametrize(("k", "beta"), list(enumerate(TIES, start=1)))
@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_two_modes_tie_where_they_should(k, beta, normalization):
    for shift, faster in ((-1e-6, k), (1e-6, k + 1)):
        rates = SelfAttention(beta + shift, normalization).growth_rate(np.arange(20))
        assert rates.argmax() == faster
    at = SelfAttention(beta, normalization).growth_rate([k, k + 1])
    assert at[0] == pytest.approx(at[1], rel=1e-14, abs=0.0)


@pytest.mark.parametrize("beta", [0.0, 1e-320, 1e-300, 1e-8, 1e-4, 9.99e-4, 1e-3, 1.01e-3])
def test_limit_of_small_beta(beta):
    """No digit is lost at beta = 0, nor where the recurrence takes over."""
    k = np.arange(5)
    rates = k * bessel.derivative_ratio(k, beta)
    if beta < 1e-200:
        np.testing.assert_allclose(rates, [0.0, 0.5, 0.0, 0.0, 0.0], rtol=0, atol=1e-290)
        return
    with mp.workdps(40):
        exact = [float(j * j * mp.besseli(j, mp.mpf(beta)) / (mp.mpf(beta) * mp.besseli(0, mp.mpf(beta)))) for j in k]
    np.testing.assert_allclose(rates, exact, rtol=3e-14)
    np.testing.assert_array_equal(bessel.derivative_ratio(-k, beta), -bessel.derivative_ratio(k, beta))


def test_published_rates_of_small_beta():
    np.testing.assert_allclose(SelfAttention(1e-8).growth_rate([1, 2, 3]), [0.5, 5.0e-9, 1.875e-17], rtol=1e-8)


@pytest.mark.parametrize(("beta", "modes"), [(0.0, 1), (1e-300, 1), (5.0, 25), (1000.0, 280)])
def test_bandwidth(beta, modes):
    assert bessel.bandwidth(beta) == modes
    assert bessel.ratio(modes + 1, beta) <= 1e-17


def test_plotted_coefficients_are_the_rate_divided_by_pi():
    """k^2 I_k / (pi beta), as printed for beta = 5 and 7, is lambda_k / pi."""
    assert SelfAttention(5.0, "none").growth_rate(3) / np.pi == pytest.approx(5.9193130220823, rel=1e-13, abs=0.0)
    assert SelfAttention(7.0, "none").growth_rate(4) / np.pi == pytest.approx(37.10856681974, rel=1e-12, abs=0.0)
    assert SelfAttention(5.0, "none").growth_rate(3) == pytest.approx(18.59607030447205, rel=1e-14, abs=0.0)
    assert SelfAttention(7.0, "none").growth_rate(4) == pytest.approx(116.58000090614, rel=1e-13, abs=0.0)
