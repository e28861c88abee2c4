"""Velocities, Jacobians and energies of self-attention against closed forms, many-digit sums and brute force."""

import copy
import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention

TWO_PI = 2.0 * np.pi
NORMALIZATIONS = ("softmax", "none", "peak")
atoms_strategy = st.lists(st.tuples(st.floats(0.0, 6.28), st.floats(0.01, 1.0)), min_size=1, max_size=6)


def brute_force_velocity(beta, density, theta, softmax, n=4096):
    """Integrals by the trapezoid rule on a periodic grid, exact for smooth densities; kernel e^{beta (cos - 1)}."""
    phi = TWO_PI * np.arange(n) / n
    x = np.asarray(theta)[:, None] - phi
    kernel = np.exp(beta * (np.cos(x) - 1.0)) * density(phi)
    numerator = -(kernel * np.sin(x)).sum(axis=1)
    return numerator / kernel.sum(axis=1) if softmax else numerator * TWO_PI / n


def exact_pair_velocity(beta, theta, angles, weights, normalization):
    """Direct sums with 60 digits and any exponent."""
    with mp.workdps(60):
        x = [mp.mpf(float(theta)) - mp.mpf(float(a)) for a in angles]
        w = [mp.mpf(float(v)) for v in weights]
        shift = beta if normalization == "peak" else 0
        kernel = [v * mp.exp(beta * mp.cos(d) - shift) for v, d in zip(w, x, strict=True)]
        top = -sum(k * mp.sin(d) for k, d in zip(kernel, x, strict=True))
        return float(top / sum(kernel) if normalization == "softmax" else top)


# ---------------------------------------------------------------- velocity from moments


@pytest.mark.parametrize(
    ("beta", "kappa", "theta", "usa", "sa"),
    [
        (5, 4, 1, -13.8606197856168222, -0.397507645398600241),
        (5, 4, 3, -0.0296065238345865628, -0.24213259368445132),
        (7, 2, 2, -11.3611166782921509, -0.25978797784000278),
        (1, 1, 1, -0.477805995658796773, -0.31315275564861286),
        (800, 4, 1, None, -0.00419336617466465997),
        (1000, 4, 1, None, -0.00335693021363967758),
    ],
)
def test_published_velocities(beta, kappa, theta, usa, sa):
    moments = FourierDensity.von_mises(kappa).moments(400)
    sa_exact = brute_force_velocity(beta, lambda p: np.exp(kappa * np.cos(p)), [theta], True)[0]
    got = SelfAttention(beta).velocity(moments, theta)
    assert got == pytest.approx(sa_exact, abs=1e-14, rel=1e-12)
    assert got == pytest.approx(sa, rel=1e-11, abs=0.0)
    if usa is not None:
        assert SelfAttention(beta, "none").velocity(moments, theta) == pytest.approx(usa, rel=1e-13, abs=0.0)
        assert SelfAttention(beta, "peak").velocity(moments, theta) == pytest.approx(
            usa * np.exp(-beta), rel=1e-13, abs=0.0
        )


def test_published_velocities_of_a_two_mode_density():
    moments = FourierDensity.from_modes({1: 0.15, 2: -0.1j}).moments(64)
    assert SelfAttention(5).velocity(moments, 0.7) == pytest.approx(-0.01936974328376047, rel=1e-12, abs=0.0)
    assert SelfAttention(5, "none").velocity(moments, 0.7) == pytest.approx(-0.7026167170601086, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("beta", [0.0, 1e-300, 1e-6, 0.5, 5.0, 50.0, 1000.0])
@pytest.mark.parametrize("normalization", ["softmax", "peak"])
def test_grid_and_points_against_brute_force(beta, normalization):
    """Also where the kernel is wider in modes than the grid: its exact coefficients do not alias."""
    density = FourierDensity.from_modes({1: 0.2 + 0.1j, 2: -0.1j, 5: 0.05})
    model = SelfAttention(beta, normalization)
    fields = model.grid_fields(64)
    fields.evaluate(density.moments(32)[None])
    theta = TWO_PI * np.arange(64) / 64
    exact = brute_force_velocity(beta, density.density, theta, normalization == "softmax")
    scale = np.abs(exact).max()
    np.testing.assert_allclose(fields.velocity[0], exact, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(model.velocity(density.moments(40), theta), exact, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(fields.density[0], TWO_PI * density.density(theta), rtol=0, atol=1e-14)


def test_kuramoto_limit():
    """beta = 0: V = -int sin(theta - phi) dmu for every normalization."""
    density = FourierDensity.from_modes({1: 0.3 - 0.2j, 2: 0.1})
    theta = np.linspace(0.0, 6.0, 9)
    exact = -(0.3 * np.sin(theta) - 0.2 * np.cos(theta))  # c_1 = 0.3 - 0.2 i: mean cos 0.3, mean sin 0.2
    for normalization in NORMALIZATIONS:
        model = SelfAttention(0.0, normalization)
        np.testing.assert_allclose(model.velocity(density.moments(9), theta), exact, rtol=0, atol=1e-15)
    atoms = Atoms([0.3, 2.0], [1, 3])
    exact = -0.25 * np.sin(theta - 0.3) - 0.75 * np.sin(theta - 2.0)
    pairs = SelfAttention(0.0).pair_velocity(theta, atoms.angles, atoms.weights)
    np.testing.assert_allclose(pairs, exact, rtol=0, atol=1e-15)


@pytest.mark.parametrize("normalization", ["softmax", "none"])
def test_folded_grids_and_batches_are_the_same_function(normalization):
    model = SelfAttention(5.0, normalization)
    densities = [FourierDensity.from_modes({3: 0.2 + 0.1j, 9: 0.05j}), FourierDensity.from_modes({3: -0.1, 6: 0.2})]
    full = model.grid_fields(192)
    folded = model.grid_fields(64, fold=3, n_densities=2)
    folded.evaluate(np.array([d.moments(96)[::3] for d in densities]))
    dissipation = folded.dissipation()
    for i, density in enumerate(densities):
        full.evaluate(density.moments(96)[None])
        np.testing.assert_allclose(folded.velocity[i], full.velocity[0, :64], rtol=0, atol=1e-13 * model.speed)
        np.testing.assert_allclose(folded.density[i], full.density[0, :64], rtol=0, atol=1e-14)
        assert dissipation[i] == pytest.approx(full.dissipation()[0], rel=1e-12, abs=0.0)


def test_top_mode_of_the_grid_has_no_derivative():
    """On 16 points d/dtheta cos 8 theta is 0 at every point, and sin 8 theta is not seen; mode 7 is kept."""
    for normalization in NORMALIZATIONS:
        fields = SelfAttention(5.0, normalization).grid_fields(16)
        c = np.zeros((1, 9), dtype=complex)
        c[0, 0], c[0, 8] = 1.0, 0.3 + 0.2j
        fields.evaluate(c)
        np.testing.assert_allclose(fields.velocity, 0.0, rtol=0, atol=1e-15)
        c[0, 8], c[0, 7] = 0.0, 0.3
        fields.evaluate(c)
        assert np.abs(fields.velocity).max() > 1e-6
    with pytest.raises(InputError, match="even"):
        SelfAttention(5.0).grid_fields(15)


@pytest.mark.parametrize("beta", [1.0, 5.0, 30.0])
def test_softmax_speed_never_exceeds_one(beta):
    theta = np.linspace(0.0, TWO_PI, 500)
    for kappa in (0.1, 5.0, 1e3, 1e6):
        moments = FourierDensity.von_mises(kappa, 1.0).moments(200)
        assert np.abs(SelfAttention(beta).velocity(moments, theta)).max() <= 1.0


@pytest.mark.parametrize(("beta", "largest"), [(1, 1.458528537136238), (5, 39.26375445805452), (7, 246.9523401973762)])
def test_largest_unnormalised_speed(beta, largest):
    theta = np.linspace(0.0, 1.6, 200_001)
    assert SelfAttention(beta, "none").pair_velocity(theta, [0.0], [1.0]).min() == pytest.approx(
        -largest, rel=1e-9, abs=0.0
    )


@given(
    st.floats(0.0, 20.0), st.sampled_from(NORMALIZATIONS), st.floats(-7.0, 7.0),
    st.lists(st.complex_numbers(max_magnitude=0.1), min_size=1, max_size=5),
)  # fmt: skip
@settings(max_examples=60)
def test_rotation_and_reflection_commute_with_the_velocity(beta, normalization, turn, values):
    model = SelfAttention(beta, normalization)
    density = FourierDensity([1.0, *values])
    theta = np.linspace(0.0, 6.0, 13)
    v = model.velocity(density.moments(30), theta)
    bound = 1e-13 * model.speed * max(1.0, beta)
    turned = model.velocity(density.rotated(turn).moments(30), theta + turn)
    np.testing.assert_allclose(turned, v, rtol=0, atol=bound)
    mirrored = model.velocity(density.reflected().moments(30), -theta)
    np.testing.assert_allclose(mirrored, -v, rtol=0, atol=bound)


# ---------------------------------------------------------------- point masses


def test_published_velocities_of_three_particles():
    theta = np.array([0.0, 1.0, 3.0])
    w = np.full(3, 1.0 / 3.0)
    usa = SelfAttention(5, "none").pair_velocity(theta, theta, w)
    np.testing.assert_allclose(usa, [4.180267372678033, -4.142095706977173, -0.03817166570085931], rtol=1e-13)
    assert usa.sum() == pytest.approx(0.0, abs=1e-14)
    sa = SelfAttention(5).pair_velocity(theta, theta, w)
    np.testing.assert_allclose(sa, [0.07678552220000532, -0.07602954639746427, -0.0007709107302593021], rtol=1e-13)
    assert sa.sum() == pytest.approx(-1.493492771825703e-5, rel=1e-10, abs=0.0)


def test_published_values_of_two_weighted_atoms():
    atoms = Atoms([0.0, 1.0], [0.3, 0.7])
    usa, sa = SelfAttention(5, "none"), SelfAttention(5)
    expected = [8.77786172886408921, -3.76194074094175252]
    np.testing.assert_allclose(usa.pair_velocity(atoms.angles, atoms.angles, atoms.weights), expected, rtol=1e-13)
    expected = [0.159726673933872017, -0.0347170984787530029]
    np.testing.assert_allclose(sa.pair_velocity(atoms.angles, atoms.angles, atoms.weights), expected, rtol=1e-13)
    assert atoms.energy(usa) == pytest.approx(9.23385730301619267, rel=1e-13, abs=0.0)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_moments_and_pairs_give_one_velocity(normalization):
    rng = np.random.default_rng(5)
    atoms = Atoms(rng.uniform(0, TWO_PI, 40), rng.random(40))
    theta = np.linspace(0.0, 6.0, 30)
    model = SelfAttention(5.0, normalization)
    pairs = model.pair_velocity(theta, atoms.angles, atoms.weights)
    from_moments = model.velocity(atoms.moments(model.bandwidth), theta)
    np.testing.assert_allclose(pairs, from_moments, rtol=0, atol=1e-13 * model.speed)


@pytest.mark.parametrize("beta", [20, 300, 800, 10_000])
@pytest.mark.parametrize("normalization", ["softmax", "peak"])
def test_far_atoms_at_large_beta(beta, normalization):
    """Attention far below round-off of its peak keeps its digits: speeds of order e^{-2 beta}, down to underflow."""
    model = SelfAttention(beta, normalization)
    for gap in (1e-3, 0.05, 0.3, 1.0, 2.0, 3.0, 3.14):
        angles, weights = np.array([0.5, 0.5 + gap]), np.array([0.25, 0.75])
        got = model.pair_velocity(angles, angles, weights)
        exact = [exact_pair_velocity(beta, a, angles, weights, normalization) for a in angles]
        exponent = 2.0 * beta * np.sin(0.5 * gap) ** 2  # known to its own rounding, so small gaps lose nothing
        np.testing.assert_allclose(got, exact, rtol=max(1e-13, 1e-15 * exponent), atol=1e-307)


@pytest.mark.parametrize("beta", [800, 10_000])
def test_a_token_far_from_all_mass_goes_to_the_nearest(beta):
    """The softmax's weights all underflow, their ratios do not."""
    angles, weights = np.array([2.0, 4.5]), np.array([0.1, 0.9])
    got = SelfAttention(beta).pair_velocity([0.0, 1.0, 3.1], angles, weights)
    exact = [exact_pair_velocity(beta, t, angles, weights, "softmax") for t in (0.0, 1.0, 3.1)]
    np.testing.assert_allclose(got, exact, rtol=1e-11)


@pytest.mark.parametrize("beta", [5.0, 800.0, 1e4])
def test_massless_atoms_do_not_count(beta):
    """Not even when they are much closer than all that has mass."""
    theta = np.array([0.0, 0.1])
    with_ghost = SelfAttention(beta).pair_velocity(theta, [0.1, 3.0], [0.0, 1.0])
    np.testing.assert_array_equal(with_ghost, SelfAttention(beta).pair_velocity(theta, [3.0], [1.0]))
    np.testing.assert_allclose(with_ghost, -np.sin(theta - 3.0), rtol=1e-14)
    jacobian = SelfAttention(beta).pair_jacobian([0.1, 3.0], [0.0, 1.0])
    assert np.isfinite(jacobian).all()
    np.testing.assert_allclose(jacobian[1], 0.0, rtol=0, atol=1e-15)


def test_one_and_two_particles():
    one = Atoms([1.7])
    for model in (SelfAttention(5.0), SelfAttention(5.0, "none"), SelfAttention(0.0)):
        assert model.pair_velocity(one.angles, one.angles, one.weights) == 0.0
        np.testing.assert_array_equal(model.pair_jacobian(one.angles, one.weights), [[0.0]])
    two = np.array([0.0, np.pi])
    half = np.array([0.5, 0.5])
    assert np.abs(SelfAttention(5.0).pair_velocity(two, two, half)).max() <= 1e-15
    for beta, phi in ((1.0, 2.0), (5.0, 1.0), (20.0, 3.0)):
        pair = np.array([0.3, 0.3 + phi])
        sa = SelfAttention(beta).pair_velocity(pair, pair, half)
        usa = SelfAttention(beta, "none").pair_velocity(pair, pair, half)
        assert sa[1] - sa[0] == pytest.approx(
            -2.0 * np.sin(phi) / (1.0 + np.exp(beta * (1.0 - np.cos(phi)))), rel=1e-12
        )
        assert usa[1] - usa[0] == pytest.approx(-np.exp(beta * np.cos(phi)) * np.sin(phi), rel=1e-12, abs=0.0)


def test_escape_rate_of_the_antipodal_pair():
    """The gap 2 pi / 2 is unstable at 2 / (e^{2 beta} + 1) (SA): 9.079573740486879e-5 at beta = 5."""
    jacobian = SelfAttention(5.0).pair_jacobian([0.0, np.pi], [0.5, 0.5])
    rates = np.linalg.eigvals(jacobian).real
    assert rates.max() == pytest.approx(9.079573740486879e-5, rel=1e-12, abs=0.0)
    assert abs(rates.min()) < 1e-19


@pytest.mark.parametrize(
    ("beta", "k", "z", "usa_contraction", "usa_merging", "mode", "sa_merging"),
    [
        (2, 2, 3.7622, 3.6269, 0.13534, 1, 0.035972),
        (5, 3, 49.526, 49.238, 0.34886, 1, 0.0070440),
        (7, 4, 274.66, 270.66, 7.0, 2, 0.025486),
        (9, 4, 2026.3, 2021.3, 9.0, 2, 0.0044417),
    ],
)
def test_rates_of_equal_clusters(beta, k, z, usa_contraction, usa_merging, mode, sa_merging):
    angles, w = TWO_PI * np.arange(k) / k, np.full(k, 1.0 / k)
    displacement = np.cos(TWO_PI * mode * np.arange(k) / k)
    usa, sa = SelfAttention(beta, "none"), SelfAttention(beta)
    for model, merging in ((usa, usa_merging), (sa, sa_merging)):
        np.testing.assert_allclose(
            model.pair_jacobian(angles, w) @ displacement, merging * displacement, rtol=2e-4, atol=1e-6 * merging
        )
    h = 1e-4
    slope = np.diff(usa.pair_velocity([-h, h], angles, w))[0] / (2 * h)
    assert slope == pytest.approx(-usa_contraction, rel=1e-4)
    assert np.diff(sa.pair_velocity([-h, h], angles, w))[0] / (2 * h) == pytest.approx(-usa_contraction / z, rel=1e-4)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0, 40.0])
def test_jacobian_by_differences(normalization, beta):
    rng = np.random.default_rng(int(beta))
    angles, weights = rng.uniform(0.0, TWO_PI, 6), rng.dirichlet(np.ones(6))
    weights[2] = 0.0
    model = SelfAttention(beta, normalization)

    def velocity(x):
        return model.pair_velocity(x, x, weights)

    h = 1e-3
    step = np.eye(6) * h
    stencil = [(1, 8.0 / 12), (2, -1.0 / 12)]
    numeric = sum(
        c / h * np.array([velocity(angles + m * e) - velocity(angles - m * e) for e in step]).T for m, c in stencil
    )
    jacobian = model.pair_jacobian(angles, weights)
    scale = np.abs(jacobian).max()
    np.testing.assert_allclose(jacobian, numeric, rtol=0, atol=scale * (1e-11 + (beta * h * h) ** 2 + h**4))
    np.testing.assert_allclose(jacobian.sum(axis=1), 0.0, rtol=0, atol=1e-14 * scale)


@given(atoms_strategy, st.floats(0.0, 100.0), st.sampled_from(["softmax", "peak"]), st.floats(-7.0, 7.0))
@settings(max_examples=60)
def test_symmetries_of_pair_velocities(points, beta, normalization, turn):
    x, w = map(np.array, zip(*points, strict=True))
    model = SelfAttention(beta, normalization)
    v = model.pair_velocity(x, x, w)
    np.testing.assert_allclose(model.pair_velocity(x + turn, x + turn, w), v, rtol=0, atol=1e-12 * w.sum())
    np.testing.assert_allclose(model.pair_velocity(-x, -x, w), -v, rtol=0, atol=1e-15 * w.sum())
    if normalization == "peak":
        assert w @ v == pytest.approx(0.0, abs=1e-14 * w.sum() ** 2)


def test_many_points_in_chunks_are_the_same():
    rng = np.random.default_rng(0)
    sources, weights = rng.uniform(0, TWO_PI, 3000), rng.random(3000)
    theta = rng.uniform(0, TWO_PI, 800)
    model = SelfAttention(5.0)
    together = model.pair_velocity(theta, sources, weights)
    np.testing.assert_allclose(together[790:], model.pair_velocity(theta[790:], sources, weights), rtol=1e-13)


# ---------------------------------------------------------------- energy

ENERGIES = {  # uniform, then 1, 2, 3, 4, 8 equal atoms
    0.5: (1.06348337074132352, 1.64872127070012815, 1.12762596520638079, 1.06877427894764596, 1.06381298260319039,
          1.0634833715034805),
    1: (0.633032938876004168, 1.35914091422952262, 0.771540317407621889, 0.65522385798071868, 0.635770158703810945,
        0.633033038482244502),
    2: (0.569896325584016817, 1.84726402473266256, 0.940548922770907865, 0.677067915106127906, 0.595274461385453932,
        0.569910175268798324),
    5: (2.72398718236044469, 14.8413159102576603, 7.42099485247878444, 4.95257763666081337, 3.76049742623939222,
        2.73881054082023165),
    7: (12.0424220364492642, 78.3309398877470428, 39.1655025110865769, 26.111751266554839, 19.6184655412575742,
        12.329704243267145),
}  # fmt: skip


@pytest.mark.parametrize("beta", ENERGIES)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_energies_of_clusters(beta, normalization):
    model = SelfAttention(beta, normalization)
    unit = np.exp(model.energy_log_unit)
    uniform, *clusters = ENERGIES[beta]
    assert FourierDensity.uniform().energy(model) * unit == pytest.approx(uniform, rel=1e-14, abs=0.0)
    for k, energy in zip((1, 2, 3, 4, 8), clusters, strict=True):
        atoms = Atoms(TWO_PI * np.arange(k) / k + 0.4)
        assert atoms.energy(model) * unit == pytest.approx(energy, rel=3e-14, abs=0.0)


@pytest.mark.parametrize(
    ("beta", "kappa", "energy"),
    [
        (1, 1, 0.747216187543766854),
        (5, 4, 7.68085525591919092),
        (7, 2, 24.6236495008811202),
        (5, 20, 12.1043667799419538),
    ],
)
def test_energies_of_von_mises(beta, kappa, energy):
    assert FourierDensity.von_mises(kappa, 1.0).energy(SelfAttention(beta)) == pytest.approx(energy, rel=1e-14, abs=0.0)


@pytest.mark.parametrize("normalization", ["softmax", "peak"])
@pytest.mark.parametrize(
    ("beta", "uniform", "atom"),
    [(800, 788.361153042517146, 792.622241091772127), (1000, 988.026406430327382, 992.399097540457918)],
)
def test_energies_beyond_overflow_have_a_unit(beta, uniform, atom, normalization):
    model = SelfAttention(beta, normalization)
    assert model.energy_log_unit == beta
    assert np.log(FourierDensity.uniform().energy(model)) + beta == pytest.approx(uniform, rel=1e-14, abs=0.0)
    assert np.log(Atoms([1.0]).energy(model)) + beta == pytest.approx(atom, rel=1e-14, abs=0.0)


def test_energy_at_beta_zero_is_its_excess():
    model = SelfAttention(0.0)
    assert FourierDensity.from_modes({1: 0.3}).energy(model) == pytest.approx(0.045, rel=1e-15, abs=0.0)
    assert FourierDensity.uniform().energy(model) == 0.0
    assert model.energy(np.ones(1, dtype=complex)) == 0.0
    small = SelfAttention(1e-6)
    excess = FourierDensity.from_modes({1: 0.3}).energy(small) - FourierDensity.uniform().energy(small)
    assert excess == pytest.approx(0.045, abs=1e-8)


@given(atoms_strategy, st.sampled_from([0.3, 1.0, 5.0, 25.0]))
@settings(max_examples=60)
def test_energy_from_moments_is_the_sum_over_pairs(points, beta):
    x, w = map(np.array, zip(*points, strict=True))
    w = w / w.sum()
    pairs = w @ np.exp(beta * (np.cos(x[:, None] - x) - 1.0)) @ w / (2.0 * beta)
    assert Atoms(x, w).energy(SelfAttention(beta, "peak")) == pytest.approx(pairs, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    ("beta", "kappa", "usa", "sa"),
    [
        (5, 4, 136.783039906375335, 2.24106299100054444),
        (7, 2, 1168.25772053971532, 4.13257522037466972),
        (1, 1, 0.128120571266378943, 0.0927666746696698128),
    ],
)
def test_energy_rises_at_the_published_rate(beta, kappa, usa, sa):
    density = FourierDensity.von_mises(kappa)
    for normalization, expected in (("none", usa), ("softmax", sa)):
        model = SelfAttention(beta, normalization)
        fields = model.grid_fields(256)
        moments = density.moments(128)
        fields.evaluate(moments[None])
        assert fields.dissipation()[0] == pytest.approx(expected, rel=1e-12, abs=0.0)
        flux = np.fft.rfft(fields.velocity[0] * fields.density[0]) / 256
        rates = -1j * np.arange(129) * flux
        assert model.energy_rate(moments, rates) == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_mean_speed_is_zero_only_without_softmax():
    moments = FourierDensity.from_modes({1: 0.15, 2: -0.1j}).moments(64)
    for normalization, mean in (("none", 0.0), ("softmax", 2.120571081196837e-4)):
        fields = SelfAttention(5.0, normalization).grid_fields(128)
        fields.evaluate(moments[None])
        assert (fields.velocity * fields.density).mean() == pytest.approx(mean, abs=1e-14)


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    "beta", [-1, -1e-9, np.nan, np.inf, 1e7, 10**400, "5", None, True, np.True_, 5 + 0j, [5], np.array([5.0]), {}]
)
def test_bad_beta(beta):
    with pytest.raises(InputError, match=r"^beta = "):
        SelfAttention(beta)


@pytest.mark.parametrize("diffusion", [-1e-3, np.nan, np.inf, "0", None, False])
def test_bad_diffusion(diffusion):
    with pytest.raises(InputError, match=r"^diffusion = "):
        SelfAttention(5.0, diffusion=diffusion)


@pytest.mark.parametrize("normalization", ["SA", "", None, 1, ["softmax"]])
def test_bad_normalization_lists_the_good_ones(normalization):
    with pytest.raises(InputError, match="softmax, none, peak"):
        SelfAttention(5.0, normalization)


def test_unnormalised_attention_that_overflows_is_refused_with_advice():
    with pytest.raises(InputError, match="use normalization = 'peak'"):
        SelfAttention(800.0, "none")
    assert np.isfinite(SelfAttention(800.0, "peak").growth_rate(np.arange(100))).all()
    assert SelfAttention(800.0, "peak").growth_rate(40) == pytest.approx(
        np.exp(795.431642243255 - 800), rel=1e-11, abs=0.0
    )
    assert np.isfinite(SelfAttention(600.0, "none").growth_rate(np.arange(100))).all()


@pytest.mark.parametrize("beta", [5, np.float32(5), np.float64(5), np.int32(5), np.array(5.0)])
def test_any_real_scalar_is_a_beta_in_double(beta):
    model = SelfAttention(beta)
    assert type(model.beta) is float
    assert model == SelfAttention(5.0)
    assert hash(model) == hash(SelfAttention(5.0))


def test_single_precision_beta_overflows_nowhere():
    assert SelfAttention(np.float32(100)).growth_rate(14) == pytest.approx(0.7331761029782111, rel=1e-14, abs=0.0)


def test_to_dict_makes_the_same_model():
    model = SelfAttention(7.5, "peak", diffusion=0.25)
    parameters = model.to_dict()
    assert parameters.pop("type") == "SelfAttention"
    assert SelfAttention(**parameters) == model


@pytest.mark.parametrize("diffusion", [0.0, 1e-16, 1e-8, 0.1])
def test_noise_lowers_rates_continuously(diffusion):
    k = np.arange(6)
    rates = SelfAttention(5.0, diffusion=diffusion).growth_rate(k)
    np.testing.assert_allclose(rates, SelfAttention(5.0).growth_rate(k) - diffusion * k**2, rtol=0, atol=1e-15)
    kuramoto = SelfAttention(0.0, diffusion=diffusion).growth_rate(k)
    np.testing.assert_allclose(kuramoto, [0.0, 0.5, 0, 0, 0, 0] - diffusion * k**2, rtol=0, atol=1e-15)


def test_noise_that_stabilises_the_uniform_density():
    """D_c = I_1 / (beta I_0) (SA): 0.1786766274 at beta = 5."""
    for shift, stable in ((-1e-9, False), (1e-9, True)):
        critical = SelfAttention(5.0).growth_rate(1) + shift
        rates = SelfAttention(5.0, diffusion=critical).growth_rate(np.arange(1, 30))
        assert bool((rates < 0.0).all()) is stable
    assert SelfAttention(5.0).growth_rate(1) == pytest.approx(0.1786766274, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("make", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_copies_of_fields_compute_on_their_own(make, normalization):
    one = SelfAttention(5.0, normalization).grid_fields(64, n_densities=2)
    c = np.zeros((2, 33), dtype=complex)
    c[:, 0], c[:, 3] = 1.0, (0.1, 0.2)
    one.evaluate(c)
    kept = one.velocity.copy()
    two = make(one)
    two.evaluate(0.5 * c)
    np.testing.assert_array_equal(one.velocity, kept)
    two.evaluate(c)
    np.testing.assert_array_equal(two.velocity, kept)
    np.testing.assert_array_equal(two.density, one.density)


def test_moments_given_are_left_alone():
    """Read-only, strided and single precision arrays are accepted; nothing is written to them."""
    model = SelfAttention(5.0)
    moments = FourierDensity.von_mises(4.0).moments(64)
    fields = model.grid_fields(128)
    before = moments.copy()
    moments.flags.writeable = False
    fields.evaluate(moments[None])
    first = fields.velocity.copy()
    wide = np.zeros((1, 130), dtype=complex)
    wide[0, ::2] = moments
    fields.evaluate(wide[:, ::2])
    np.testing.assert_array_equal(fields.velocity, first)
    np.testing.assert_array_equal(moments, before)
    one, two = model.velocity(moments, [0.5]), model.velocity(moments, [1.5])
    assert one != two
    assert model.velocity(moments.astype(np.complex64), [0.5]).dtype == np.float64
    assert model.velocity(moments.astype(np.complex64), [0.5]) == pytest.approx(one, rel=1e-5)
