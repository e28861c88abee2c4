"""Linear theory and exit times, against tables of 20 digits, closed forms and samples."""

import math

import mpmath
import numpy as np
import pytest

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention, bessel, theory
from spectral_mf.data import reference, reference_names

LINEAR = reference("linear_theory")

USA_RATES = {  # lambda_1 .. lambda_5
    0.1: [0.5006252604709269, 0.05004167968967036, 0.001876172168009444, 4.168750434079452e-5, 6.513129824734242e-7],
    0.5: [0.5157886107817926, 0.255249193421906, 0.04761201544182515, 0.005273777595354353, 4.111585656554632e-4],
    1: [0.565159103992485, 0.5429906790681531, 0.1995158243189871, 0.04379392353674986, 0.006786578898924297],
    2: [0.7953184273186645, 1.377896895397476, 0.9573298165793369, 0.4058285598334419, 0.1228209915391463],
    4: [2.439866288426112, 6.422189375284106, 7.508870501445775, 5.665102830614356, 3.15452726945729],
    9: [114.5460802796618, 384.220530645356, 646.6941918716004, 770.4297470298976, 726.3314398795878],
    20: [2122748.669256389, 7862557.044208151, 15566587.35341383, 23148048.2550119, 28772990.26676709],
}

SA_RATES = {
    0.1: [0.4993760398793892, 0.04991680964886446, 0.001871490516701352, 4.158348064693746e-5, 6.496877476850792e-7],
    1: [0.4463899658965345, 0.4288802728277239, 0.1575872376192951, 0.03459055670508169, 0.00536036790674302],
    2: [0.348887328982004, 0.604450684071984, 0.4199578825141078, 0.1780273628793614, 0.05387865565429033],
    4: [0.2158806527561376, 0.5682386944877247, 0.6643888122078582, 0.5012512787299436, 0.279114232324088],
    9: [0.1047433248599671, 0.3513392667911403, 0.5913506569485639, 0.7044970292995967, 0.664172617496571],
    100: [0.009949873730051688, 0.03920401010159586, 0.08602050266132156, 0.1476405201225092, 0.2204907757105796],
    710: [0.001407458487790415, 0.005617944129715038, 0.01259591301382157, 0.02228254214494358, 0.03459634898341576],
    1000: [9.994998748748043e-4, 0.003992004001001002, 0.00895957083786423, 0.01587244724840012, 0.02468929118124008],
}

THRESHOLDS = [
    *(1.0444568621077741737, 3.1654344427005677136, 6.2112983794320430318, 10.228483162985944394),
    *(15.236276728520544775, 21.240451963641601837, 28.242957185718108258, 36.244583046741812731),
    *(45.245700253436504758, 55.246502042675269697, 66.247097495421851099, 78.247552118585972404),
    *(91.247907246350273668, 105.24819003749147163, 120.24841894951740994, 136.24860689050091709),
    *(153.24876311213905049, 171.24889438852701394, 190.24900577339788759, 210.24910109999264448),
]

TIE_RATES = [0.442259835055238, 0.607752870703544, 0.6685235691689033, 0.6944409431775736, 0.7078678364314521]


def test_every_reference_table_is_shipped():
    assert {"linear_theory", "unstable_manifold", "case_A", "case_B"} <= set(reference_names())
    with pytest.raises(ValueError, match="linear_theory"):
        reference("nothing")


@pytest.mark.parametrize("row", LINEAR["rows"], ids=lambda r: f"d{r['d']}-beta{r['beta']}-{r['normalization']}")
def test_rates_and_dominant_modes_of_the_reference(row):
    model = SelfAttention(float(row["beta"]), row["normalization"])
    k = [int(mode) for mode in row["rates"]]
    expected = np.array([float(rate) for rate in row["rates"].values()])
    np.testing.assert_allclose(theory.growth_rate(model, k, dimension=row["d"]), expected, rtol=1e-13)
    assert theory.dominant_mode(model, dimension=row["d"]).mode == int(row["dominant"])


@pytest.mark.parametrize("dimension", [2, 3])
def test_thresholds_of_the_reference(dimension):
    for jump, beta in LINEAR[f"thresholds_d{dimension}"].items():
        k = int(jump.split("->")[0])
        assert abs(theory.threshold(k, dimension=dimension) - float(beta)) < 1e-10


@pytest.mark.parametrize(("table", "normalization"), [(USA_RATES, "none"), (SA_RATES, "softmax")])
def test_printed_tables_of_rates(table, normalization):
    for beta, rates in table.items():
        model = SelfAttention(beta, normalization)
        np.testing.assert_allclose(theory.growth_rate(model, np.arange(1, 6)), rates, rtol=1e-13)


def test_ratios_at_a_million():
    k = np.arange(1, 6)
    expected = [9.99999499999875e-7, 3.999992000004e-6, 8.999959500070875e-6, 1.5999872000448e-5, 2.499968750179687e-5]
    np.testing.assert_allclose(k * bessel.derivative_ratio(k, 1e6), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("beta", "mode", "rate"),
    [
        (710.0, 38, 0.7353066038584986),
        (1000.0, 45, 0.7354550690944857),
        (1e4, 141, 0.73572135460673),
        (200.0, 20, 0.7345310360751),
        (55.3, 11, None),
    ],
)
def test_large_beta(beta, mode, rate):
    dominant = theory.dominant_mode(SelfAttention(beta))
    assert dominant.modes == (mode,)
    assert dominant.rate < 2.0 / math.e
    if rate is not None:
        assert dominant.rate == pytest.approx(rate, rel=1e-12, abs=0.0)


def test_unscaled_rates_that_overflow_are_refused_and_available_in_other_units():
    with pytest.raises(InputError, match="peak"):
        SelfAttention(800.0, "none")
    rate = float(theory.growth_rate(SelfAttention(800.0, "peak"), 40))
    assert math.log(rate) + 800.0 == pytest.approx(795.431642243255, abs=1e-10)


@pytest.mark.parametrize("normalization", ["softmax", "none", "peak"])
@pytest.mark.parametrize("dimension", [2, 3, 8, 33])
def test_limit_of_beta_zero(normalization, dimension):
    k = np.arange(1, 5)
    first = (dimension - 1.0) / dimension  # l (l + d - 2) / d at l = 1
    for beta in (0.0, 1e-300, 1e-20):
        rates = theory.growth_rate(SelfAttention(beta, normalization), k, dimension=dimension)
        np.testing.assert_allclose(rates, [first, 0, 0, 0], rtol=1e-14, atol=1e-19)
    assert theory.dominant_mode(SelfAttention(0.0, normalization), dimension=dimension).modes == (1,)
    small = theory.growth_rate(SelfAttention(1e-8), k[:3])
    np.testing.assert_allclose(small, [0.5, 5.0e-9, 1.875e-17], rtol=1e-14)


@pytest.mark.parametrize(("dimension", "beta"), [(4, 3.0), (9, 20.0), (64, 300.0), (513, 50.0), (5, 1e4)])
def test_rates_on_spheres_against_bessel_functions_of_40_digits(dimension, beta):
    degrees = [1, 2, 9, 30]
    with mpmath.workdps(40):
        nu, b = mpmath.mpf(dimension) / 2 - 1, mpmath.mpf(beta)
        softmax = [
            degree * (degree + dimension - 2) * mpmath.besseli(degree + nu, b) / b / mpmath.besseli(nu, b)
            for degree in degrees
        ]
        mean = mpmath.gamma(nu + 1) * (2 / b) ** nu * mpmath.besseli(nu, b) * mpmath.exp(-b)
        peak = [float(rate * mean) for rate in softmax]
    model = SelfAttention(beta, "peak", diffusion=0.0)
    np.testing.assert_allclose(theory.growth_rate(model, degrees, dimension=dimension), peak, rtol=3e-14)
    expected = [float(rate) for rate in softmax]
    np.testing.assert_allclose(
        theory.growth_rate(SelfAttention(beta), degrees, dimension=dimension), expected, rtol=3e-14
    )


def test_the_circle_is_the_sphere_of_dimension_two():
    from spectral_mf.growth_rates import _kernel_eigenvalues

    for beta in (0.0, 1e-5, 0.3, 5.0, 90.0, 5000.0):
        for normalization in ("softmax", "peak"):
            model = SelfAttention(beta, normalization)
            k = np.arange(1, 20)
            by_recurrence = k**2 * _kernel_eigenvalues(model, 19, 2)[1:]
            np.testing.assert_allclose(by_recurrence, theory.growth_rate(model, k), rtol=2e-14, atol=1e-300)


def test_plotted_coefficients_are_the_rates_divided_by_pi():
    assert theory.growth_rate(SelfAttention(5.0, "none"), 3) / math.pi == pytest.approx(
        5.9193130220823, rel=1e-13, abs=0.0
    )
    assert theory.growth_rate(SelfAttention(7.0, "none"), 4) / math.pi == pytest.approx(
        37.10856681974, rel=1e-12, abs=0.0
    )


def test_single_precision_beta_gives_double_precision_rates():
    rate = theory.growth_rate(SelfAttention(np.float32(100.0)), np.float32(14))
    assert rate == pytest.approx(0.7331761029782111, rel=1e-13, abs=0.0)
    assert rate.dtype == np.float64


def test_diffusion_shifts_rates_and_stabilises_mode_one_last():
    k = np.arange(1, 9)
    for normalization, critical in (("none", 4.8671284284901), ("softmax", 0.17867662740881706)):
        model = SelfAttention(5.0, normalization, 0.25)
        bare = theory.growth_rate(SelfAttention(5.0, normalization), k)
        np.testing.assert_allclose(theory.growth_rate(model, k), bare - 0.25 * k**2, rtol=1e-13)
        for dimension in (3, 6):
            bare = theory.growth_rate(SelfAttention(5.0, normalization), k, dimension=dimension)
            with_diffusion = theory.growth_rate(model, k, dimension=dimension)
            np.testing.assert_allclose(with_diffusion, bare - 0.25 * k * (k + dimension - 2), rtol=1e-12)
        below = theory.dominant_mode(SelfAttention(5.0, normalization, critical * (1 - 1e-9)))
        above = theory.dominant_mode(SelfAttention(5.0, normalization, critical * (1 + 1e-9)))
        assert (below.unstable, above.unstable) == (True, False)
        assert below.modes == above.modes == (1,)


@pytest.mark.parametrize(
    ("normalization", "steps"), [("none", (0.918315666, 3.045787848)), ("softmax", (0.0337121872, 0.1118135896))]
)
def test_diffusion_lowers_the_dominant_mode(normalization, steps):
    for mode, kappa in zip((3, 2), steps, strict=True):
        assert theory.dominant_mode(SelfAttention(5.0, normalization, kappa * (1 - 1e-7))).modes == (mode,)
        assert theory.dominant_mode(SelfAttention(5.0, normalization, kappa * (1 + 1e-7))).modes == (mode - 1,)


def test_stable_uniform_density_still_names_the_slowest_decay():
    dominant = theory.dominant_mode(SelfAttention(5.0, diffusion=0.2))
    assert not dominant.unstable
    assert dominant.modes == (1,)
    assert dominant.rate == pytest.approx(0.17867662740881706 - 0.2, rel=1e-12, abs=0.0)
    assert not theory.dominant_mode(SelfAttention(0.0, diffusion=0.5)).unstable


@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_ties(normalization):
    for k, beta in enumerate(THRESHOLDS, start=1):
        tie = theory.dominant_mode(SelfAttention(beta, normalization))
        assert tie.modes == (k, k + 1)
        assert tie.tie
        assert tie.mode == k
        assert theory.dominant_mode(SelfAttention(beta - 1e-6, normalization)).modes == (k,)
        assert theory.dominant_mode(SelfAttention(beta + 1e-6, normalization)).modes == (k + 1,)
    for beta, rate in zip(THRESHOLDS, TIE_RATES, strict=False):
        assert theory.dominant_mode(SelfAttention(beta)).rate == pytest.approx(rate, rel=1e-13, abs=0.0)


def test_thresholds_to_twenty():
    k = np.arange(1, 21)
    found = theory.threshold(k)
    np.testing.assert_allclose(found, THRESHOLDS, rtol=0, atol=1e-10)
    assert theory.threshold(k.reshape(4, 5)).shape == (4, 5)
    # Rates of neighbours agree there in other dimensions too.
    for d in (4, 16, 100):
        for mode in (1, 5, 30):
            model = SelfAttention(float(theory.threshold(mode, dimension=d)))
            pair = theory.growth_rate(model, [mode, mode + 1], dimension=d)
            assert pair[0] == pytest.approx(pair[1], rel=1e-13, abs=0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.growth_rate(SelfAttention(5.0), 0), "k >= 1"),
        (lambda: theory.growth_rate(SelfAttention(5.0), [1, -3]), "k >= 1"),
        (lambda: theory.growth_rate(SelfAttention(5.0), 1.5), "k >= 1"),
        (lambda: theory.growth_rate(SelfAttention(5.0), math.nan), "k >= 1"),
        (lambda: theory.growth_rate(SelfAttention(5.0), "3"), "k >= 1"),
        (lambda: theory.growth_rate(SelfAttention(5.0), 1, dimension=1), "give an integer of at least 2"),
        (lambda: theory.growth_rate(SelfAttention(5.0), 1, dimension=2.5), "give an integer of at least 2"),
        (lambda: theory.dominant_mode(SelfAttention(5.0), dimension=0), "give an integer of at least 2"),
        (lambda: theory.threshold(0), "k >= 1"),
        (lambda: theory.threshold(1, dimension=1), "give an integer of at least 2"),
        (lambda: theory.growth_rate(SelfAttention(1e4, "peak"), 1, dimension=2000), "smallest float"),
        (lambda: theory.exit_time(SelfAttention(5.0), 1, 0.3), "n_tokens"),
        (lambda: theory.exit_time(SelfAttention(5.0), 1000.5, 0.3), "n_tokens"),
        (lambda: theory.exit_time(SelfAttention(5.0), 1000, 0.0), "between 0 and 1"),
        (lambda: theory.exit_time(SelfAttention(5.0), 1000, math.nan), "between 0 and 1"),
        (lambda: theory.exit_time(SelfAttention(5.0), 1000, 0.95), "smaller level"),
        (lambda: theory.exit_time(SelfAttention(5.0, diffusion=0.3), 1000, 0.3), "stable"),
        (lambda: theory.linear_exit_time(SelfAttention(5.0), FourierDensity.uniform(), 1.5), "between 0 and 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_time_at_which_given_data_leave_the_linear_regime():
    model = SelfAttention(5.0, "none")
    rates = theory.growth_rate(model, [2, 3])
    density = FourierDensity.from_modes({2: 0.02j, 3: -0.001, 9: 0.05})
    expected = min(math.log(0.1 / 0.02) / rates[0], math.log(0.1 / 0.001) / rates[1])
    assert theory.linear_exit_time(model, density, 0.1) == pytest.approx(expected, rel=1e-14, abs=0.0)
    assert theory.linear_exit_time(model, density, 0.05) == 0.0
    assert theory.linear_exit_time(model, FourierDensity.uniform()) == math.inf
    assert theory.linear_exit_time(SelfAttention(5.0, diffusion=1.0), density, 0.1) == math.inf
    four = Atoms(np.array([0.0, 0.1, 2.0, 4.0]))
    assert 0.0 < theory.linear_exit_time(model, FourierDensity.from_modes({1: 1e-9})) < math.inf
    assert theory.linear_exit_time(model, four) == 0.0


def test_exit_time_of_the_published_experiment():
    """USA, beta = 2: mean and deviation from the cubic amplitude equation (exact up to level^4), slope in ln N."""
    rate = 1.377896895397476
    small = theory.exit_time(SelfAttention(2.0, "none"), 1000, 0.3)
    cubic = (math.log(0.3) + 0.5 * (math.log(1000) + np.euler_gamma) - 0.5 * math.log(1 - 0.3**2)) / rate
    assert small.mean == pytest.approx(cubic, abs=0.3**4 / rate)
    assert abs(small.mean - cubic) < 0.1 * (cubic - small.linear_mean)
    assert small.standard_deviation == pytest.approx(0.64127 / rate, rel=1e-5)
    assert (small.mode, small.growth_rate) == (2, pytest.approx(rate, rel=1e-14, abs=0.0))
    large = theory.exit_time(SelfAttention(2.0, "none"), 16000, 0.3)
    assert large.mean - small.mean == pytest.approx(1.0061, abs=5e-5)


def test_exit_time_against_sampled_tokens():
    """The moments of 1,000 uniform tokens, 20,000 times, grown by linear theory.

    Bounds are 4.5 standard errors (false alarm 7e-6 each) and the bias O(1/N) of the limit law.
    """
    n_tokens, replicates, level = 1000, 20_000, 0.3
    model = SelfAttention(5.0)
    rng = np.random.default_rng(20241)
    sizes = []
    for _ in range(10):
        angles = rng.uniform(0.0, 2.0 * np.pi, (replicates // 10, n_tokens))
        sizes.append(np.hypot(np.cos(3.0 * angles).mean(axis=1), np.sin(3.0 * angles).mean(axis=1)))
    times = np.log(level / np.concatenate(sizes)) / float(theory.growth_rate(model, 3))
    expected = theory.exit_time(model, n_tokens, level)
    sd = expected.standard_deviation
    assert abs(times.mean() - expected.linear_mean) < 4.5 * sd / math.sqrt(replicates) + sd / n_tokens
    kurtosis = 5.4  # of the Gumbel law, which -ln|c|^2 has
    error = sd * math.sqrt((kurtosis - 1.0) / (4.0 * replicates))
    assert abs(times.std(ddof=1) - sd) < 4.5 * error + 2.0 * sd / n_tokens
