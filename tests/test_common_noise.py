"""Common noise: exact flows along a path, Stratonovich's limit, moments over all paths, and tokens on the same path.

Without interaction the two fields of `VectorFields.planar` move tokens, z = e^{iθ}, by Möbius maps of the disc, and a
Poisson kernel, c_k = conj(w)^k, stays one: along every straight piece, so along every path.
"""

import copy
import re

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import expm

import spectral_mf
from spectral_mf import (
    Atoms,
    AttentionHead,
    BrownianPath,
    FourierDensity,
    InputError,
    MultiHeadAttention,
    PairPotential,
    ResolutionExhausted,
    SelfAttention,
    StorageError,
    Trajectory,
    VectorFields,
    solve,
    solve_common_noise,
)
from spectral_mf.cli.app import run as run_command
from spectral_mf.solvers.common_noise_ensemble import StoppedEnsemble, solve_common_noise_ensemble
from spectral_mf.solvers.driven import DrivenRightHandSide
from spectral_mf.validation.common_noise_tokens import pair_distances, simulate_common_noise
from spectral_mf.validation.noisy_particles import simulate_noisy
from spectral_mf.validation.particles import simulate

NONE = PairPotential((0.0, 0.0))
START = FourierDensity.from_modes({1: 0.2, 2: 0.05j, 3: 0.02})
HEAD = AttentionHead(query_key=[[1.0, 0.3], [-0.2, 0.5]], value=[[0.8, 0.1], [0.4, -0.6]], beta=2.0)
ATTENTION = SelfAttention(3.0)
PLANAR = VectorFields.planar(0.5)
PATH = BrownianPath.draw(2, 1.0, 32, 7)


def mobius(path, strength):
    """Matrix of z -> (a z + b) / (c z + d) that the path's pieces make, one matrix exponential for each."""
    total = np.eye(2, dtype=complex)
    for x, y in strength * path.increments:
        total = expm(0.5 * np.array([[0.0, x + 1j * y], [x - 1j * y, 0.0]])) @ total
    return total


def image(matrix, z):
    return (matrix[0, 0] * z + matrix[0, 1]) / (matrix[1, 0] * z + matrix[1, 1])


def poisson(w, n_modes=60):
    return np.conj(w) ** np.arange(n_modes + 1)


def planar_second_moments(start, sigma, kappa, t, n_modes=60):
    """E|c_n|² without interaction: d/dt a_n = -n² ((σ² + 2κ) a_n - σ²/2 (a_{n+1} + a_{n-1})), a_0 = 1.

    The difference D of two tokens has the generator (σ² (1 - cos D) + 2κ) d²/dD², and |c_n|² is the mean of cos nD.
    """
    n = np.arange(n_modes + 1)
    system = -np.diag((sigma**2 + 2.0 * kappa) * n**2.0)
    system += 0.5 * sigma**2 * (np.diag(n[:-1] ** 2.0, 1) + np.diag(n[1:] ** 2.0, -1))
    return expm(system * t) @ np.abs(start.moments(n_modes)) ** 2


# ----------------------------------------------------------------------------------------------------------- the path


def test_a_path_is_its_seeds_own_and_is_coarsened_by_sums():
    path, same = BrownianPath.draw(3, 2.0, 12, 5), BrownianPath.draw(3, 2.0, 12, 5)
    assert (path.increments == same.increments).all()
    assert (path.increments != BrownianPath.draw(3, 2.0, 12, 6).increments).all()
    coarse = path.coarsened(4)
    assert coarse.increments.shape == (3, 3)
    assert coarse.values == pytest.approx(path.values[::4], abs=1e-15)
    assert (coarse.times == path.times[::4]).all()
    assert path.rates[0] == pytest.approx(path.increments[0] * 6.0, rel=1e-15, abs=0.0)
    again = BrownianPath.from_dict(path.to_dict())
    assert (again.increments == path.increments).all()
    assert again.t_end == 2.0


def test_a_path_is_straight_between_its_times():
    path = BrownianPath([[1.0, -2.0], [0.5, 4.0]], 1.0)
    assert path.at(0.25) == pytest.approx([0.5, -1.0])
    assert path.at([0.0, 0.5, 0.75, 1.0]) == pytest.approx(np.array([[0, 0], [1, -2], [1.25, 0], [1.5, 2.0]]))


def test_increments_have_the_variance_of_the_step():
    """A chi-square of 20000 numbers within its quantiles of 1e-5 on either side."""
    squares = (BrownianPath.draw(2, 5.0, 10_000, 3).increments ** 2 / (5.0 / 10_000)).sum()
    assert stats.chi2.ppf(1e-5, 20_000) < squares < stats.chi2.isf(1e-5, 20_000)


def test_paths_do_not_depend_on_how_many_are_drawn():
    few, many = BrownianPath.draw_many(2, 1, 1.0, 4, 9), BrownianPath.draw_many(5, 1, 1.0, 4, 9)
    assert (few[1].increments == many[1].increments).all()
    assert len({path.increments[0, 0] for path in many}) == 5


def test_fields_by_coefficients_and_as_functions_are_the_same():
    theta = np.linspace(0.0, 7.0, 29)
    given = VectorFields.from_functions([lambda x: -0.5 * np.sin(x), lambda x: 0.5 * np.cos(x)])
    assert given.coefficients == pytest.approx(PLANAR.coefficients, abs=1e-16)
    assert PLANAR.at(theta) == pytest.approx(0.5 * np.array([-np.sin(theta), np.cos(theta)]), abs=1e-15)
    odd = VectorFields.from_functions([lambda x: np.exp(np.sin(2.0 * x)), lambda x: 0.7])
    assert odd.at(theta) == pytest.approx(np.array([np.exp(np.sin(2.0 * theta)), np.full(29, 0.7)]), abs=1e-13)
    assert (odd.fold, VectorFields.rotation(0.3).fold, PLANAR.fold) == (2, 0, 1)
    again = VectorFields.from_dict(odd.to_dict())
    assert (again.coefficients == odd.coefficients).all()


# -------------------------------------------------------------------------------------------------------- exact flows


@pytest.mark.parametrize("method", ["spectral", "characteristics"])
@pytest.mark.parametrize("centre", [0.0, 0.3 - 0.4j])
def test_a_poisson_kernel_stays_one_along_every_path(method, centre):
    for factor in (1, 8):
        path = PATH.coarsened(factor)
        run = solve_common_noise(NONE, FourierDensity(poisson(centre)), PLANAR, path, [0.0, 1.0], method=method)
        w = image(mobius(path, 0.5), centre)
        assert abs(w) > 0.1
        assert np.abs(run.moments[-1, :21] - poisson(w, 20)).max() < 2e-10


def test_tokens_move_by_the_same_maps():
    tokens = Atoms(np.linspace(0.0, 6.0, 100))
    run = simulate_common_noise(NONE, tokens, PLANAR, PATH, [0.0, 1.0], rtol=1e-12)
    moved = np.exp(1j * run.measure(1).angles)
    assert np.abs(moved - image(mobius(PATH, 0.5), np.exp(1j * tokens.angles))).max() < 1e-11


def test_a_field_alone_knows_only_where_its_motion_is():
    """tan(θ/2) grows by e^{σB}, Stratonovich's rule, whatever the path in between; Ito's would take off σ² t/2."""
    path = BrownianPath.draw(1, 2.0, 48, 3)
    field = VectorFields.from_functions([lambda x: 0.8 * np.sin(x)])
    r = np.tanh(0.4 * path.values[-1, 0])
    for each in (path, path.coarsened(48)):
        run = solve_common_noise(NONE, FourierDensity.uniform(), field, each, [0.0, 2.0], rtol=1e-12)
        assert np.abs(run.moments[-1, :21] - (-r) ** np.arange(21)).max() < 1e-11


@pytest.mark.parametrize(
    "model",
    [SelfAttention(4.0), SelfAttention(2.0, "none", 0.1), PairPotential.kuramoto(1.5), SelfAttention(0.0)],
    ids=["softmax", "diffusion", "pair", "beta0"],
)
def test_with_a_rotation_the_solution_is_the_noiseless_one_turned_by_the_brownian_angle(model):
    path = BrownianPath.draw(1, 1.0, 100, 4)
    run = solve_common_noise(model, START, VectorFields.rotation(0.7), path, np.linspace(0.0, 1.0, 6))
    still = solve(model, START, np.linspace(0.0, 1.0, 6), rtol=1e-13, method="spectral")
    angle = 0.7 * path.at(run.t)
    assert np.abs(angle).max() > 0.3
    assert np.abs(run.moments - still.moments * np.exp(-1j * angle * np.arange(65))).max() < 1e-11
    assert run.energy == pytest.approx(still.energy, abs=1e-11)


def test_a_rotation_keeps_the_symmetry_of_the_data_exactly():
    path, start = BrownianPath.draw(1, 1.0, 16, 4), FourierDensity.from_modes({3: 0.1})
    run = solve_common_noise(ATTENTION, start, VectorFields.rotation(), path, [0.0, 1.0])
    broken = run.moments[-1].copy()
    broken[::3] = 0.0
    assert not broken.any()
    assert run.configuration["symmetry"] == 3
    still = solve(ATTENTION, start, [0.0, 1.0], rtol=1e-13)
    assert np.abs(np.abs(run.moments[-1]) - np.abs(still.moments[-1])).max() < 1e-11


@pytest.mark.parametrize("method", ["spectral", "characteristics"])
@pytest.mark.parametrize("n_tokens", [64, 400])
@pytest.mark.parametrize(
    "model",
    [ATTENTION, SelfAttention(1.0, "none"), MultiHeadAttention([HEAD]), PairPotential.kuramoto(-1.0), NONE],
    ids=["softmax", "none", "heads", "repulsion", "nothing"],
)
def test_equal_shares_of_the_mass_move_with_the_density(model, n_tokens, method):
    """Quantiles of a smooth density are a trapezoidal rule: their moments are its own, to rounding with 64 of them."""
    fields = VectorFields.from_functions([lambda x: 0.3 * np.sin(2.0 * x + 0.4), lambda x: 0.5 * np.cos(x)])
    times = [0.0, 0.1, 0.23]
    exact = solve_common_noise(model, START, fields, PATH, times, rtol=1e-11, method=method)
    found = simulate_common_noise(model, START.quantiles(n_tokens), fields, PATH, times, rtol=1e-11)
    assert np.abs(exact.moments[1:, :5] - found.moments[1:, :5]).max() < 2e-11
    assert np.abs(exact.moments[2, :5] - exact.moments[1, :5]).max() > 0.005


@pytest.mark.parametrize(
    ("field", "symmetry"), [(np.sin, 1), (lambda x: np.sin(6.0 * x), 3), (lambda x: np.sin(4 * x), 1)]
)
def test_the_symmetry_kept_is_that_of_data_and_fields(field, symmetry):
    fields, start = VectorFields.from_functions([lambda x: 0.1 * field(x)]), FourierDensity.from_modes({3: 0.1})
    path = BrownianPath.draw(1, 0.5, 8, 4)
    run = solve_common_noise(ATTENTION, start, fields, path, [0.0, 0.5])
    assert run.configuration["symmetry"] == symmetry
    tokens = simulate_common_noise(ATTENTION, start.quantiles(400), fields, path, [0.0, 0.5], rtol=1e-11)
    assert np.abs(run.moments[-1, :13] - tokens.moments[-1, :13]).max() < 1e-8
    assert np.abs(tokens.moments[-1, :13] - start.moments(12)).max() > 1e-3


@pytest.mark.parametrize("kappa", [0.0, 1e-28])
def test_tokens_with_weights_without_noise_are_those_of_the_other_solver(kappa):
    """κ = 1e-28 kicks them by 1e-14: by hardly anything, but they are put in order again each time."""
    random = np.random.default_rng(5)
    tokens = Atoms(random.uniform(0.0, 2.0 * np.pi, 100), random.uniform(0.5, 1.5, 100))
    still = BrownianPath(np.zeros((4, 2)), 2.0)
    model = SelfAttention(3.0, diffusion=kappa)
    found = simulate_common_noise(model, tokens, PLANAR, still, [0.0, 2.0], rtol=1e-11, seed=1)
    exact = simulate(ATTENTION, tokens, [0.0, 2.0], rtol=1e-12)
    assert np.abs(found.measure(1).angles - exact.measure(1).angles).max() < 1e-9
    assert (found.measure(1).weights == tokens.weights).all()


# ------------------------------------------------------------------------------------------------ Stratonovich's limit


def strong_errors(fields, n_fields):
    """Root mean square error of c_1 .. c_3 over 96 paths, 4 and 16 times as coarse as those of 128 steps."""
    paths = BrownianPath.draw_many(96, n_fields, 1.0, 128, 21)
    model, start = SelfAttention(2.0), START
    fine, *coarse = (
        solve_common_noise_ensemble(model, start, fields, [path.coarsened(m) for path in paths], [0.0, 1.0], rtol=1e-7)
        for m in (1, 4, 16)
    )
    return [np.sqrt((np.abs(other.moments[:, -1, 1:4] - fine.moments[:, -1, 1:4]) ** 2).mean()) for other in coarse]


def test_the_strong_order_is_one_for_one_field_and_a_half_for_two():
    """Errors of steps do not correlate: the ratios are √((16² - 1)/(4² - 1)) = 4.12 and √((16 - 1)/(4 - 1)) = 2.24."""
    one = strong_errors(VectorFields.from_functions([lambda x: 0.4 * np.sin(x)]), 1)
    two = strong_errors(VectorFields.planar(0.4), 2)
    assert 3.3 < one[1] / one[0] < 5.0
    assert 1.8 < two[1] / two[0] < 2.8
    assert one[0] < 0.2 * two[0]
    assert two[1] < 0.02


@pytest.mark.parametrize("kappa", [0.0, 0.1])
def test_second_moments_over_all_paths(kappa):
    """False alarm 1e-4 over 4 numbers; the path's own bias is σ² h / 6 of the rate, a tenth of the error."""
    sigma, n_paths, start = 0.8, 400, START
    paths = BrownianPath.draw_many(n_paths, 2, 1.0, 24, 5)
    model = PairPotential((0.0, 0.0), kappa)
    found = solve_common_noise_ensemble(model, start, VectorFields.planar(sigma), paths, [0.0, 1.0], rtol=1e-6)
    sizes = np.abs(found.moments[:, -1, 1:5]) ** 2
    exact = planar_second_moments(start, sigma, kappa, 1.0)[1:5]
    errors = sizes.std(axis=0, ddof=1) / np.sqrt(n_paths)
    assert (np.abs(sizes.mean(axis=0) - exact) < stats.norm.isf(0.5e-4 / 4) * errors).all()
    assert np.abs(abs(start.moments(1)[1]) ** 2 - exact[0]) > 10.0 * errors[0]


def test_two_tokens_come_closer_at_the_lyapunov_exponent():
    """-σ²/2, false alarm 6e-5 (4 standard errors); the straight pieces take σ² h / 6 = 0.8% off."""
    n, t_end, sigma = 400, 20.0, 0.7
    paths = BrownianPath.draw_many(n, 2, t_end, 200, 8)
    angles = np.random.default_rng(2).uniform(0.0, 2.0 * np.pi, n)
    exponents = np.log(pair_distances(VectorFields.planar(sigma), paths, angles, 1e-3) / 1e-3) / t_end
    error = exponents.std(ddof=1) / np.sqrt(n)
    assert error == pytest.approx(sigma / np.sqrt(t_end * n), rel=0.15)
    assert abs(exponents.mean() + 0.5 * sigma**2 * (1.0 - sigma**2 * 0.1 / 6.0)) < 4.0 * error


def test_distances_are_those_of_the_maps():
    paths = BrownianPath.draw_many(3, 2, 1.0, 16, 8)
    found = pair_distances(VectorFields.planar(0.7), paths, [0.1, 2.0, 5.0], 0.5)
    for path, angle, distance in zip(paths, [0.1, 2.0, 5.0], found, strict=True):
        near, far = image(mobius(path, 0.7), np.exp(1j * (angle + np.array([0.0, 0.5]))))
        assert distance == pytest.approx(np.angle(far / near), abs=1e-8)


@pytest.mark.parametrize("kappa", [0.0, 0.3])
def test_random_tokens_have_the_densitys_moments(kappa):
    """False alarm 1e-4: Student's intervals of 20 replicates for 6 numbers."""
    model = SelfAttention(2.0, diffusion=kappa)
    exact = solve_common_noise(model, START, PLANAR, PATH, [0.0, 1.0]).moments[-1, 1:4]
    found = np.array([
        simulate_common_noise(
            model, START.sample(1000, 100 + i), PLANAR, PATH, [0.0, 1.0], rtol=1e-4, seed=i
        ).moments[-1, 1:4]
        for i in range(20)
    ])  # fmt: skip
    values, wanted = np.hstack([found.real, found.imag]), np.hstack([exact.real, exact.imag])
    errors = values.std(axis=0, ddof=1) / np.sqrt(20)
    assert errors.max() < 0.012
    assert (np.abs(values.mean(axis=0) - wanted) / errors).max() < stats.t.ppf(1.0 - 1e-4 / 12, 19)


# ------------------------------------------------------------------------------------------------------------- running


def test_an_ensemble_holds_the_solutions_of_its_paths():
    paths = BrownianPath.draw_many(20, 2, 1.0, 8, 3)
    together = solve_common_noise_ensemble(ATTENTION, START, PLANAR, paths, [0.0, 0.4, 1.0], rtol=1e-11)
    for number in (0, 17):
        alone = solve_common_noise(ATTENTION, START, PLANAR, paths[number], [0.0, 0.4, 1.0], rtol=1e-11)
        assert np.abs(together.moments[number] - alone.moments).max() < 1e-9
        assert together.energy[number] == pytest.approx(alone.energy, abs=1e-9)
    assert together.mean_energy == pytest.approx(together.energy.mean(axis=0))
    assert together.energy_error[-1] == pytest.approx(together.energy[:, -1].std(ddof=1) / np.sqrt(20))


def test_a_density_too_sharp_keeps_its_rows_and_auto_goes_on():
    path, times = BrownianPath.draw(2, 4.0, 64, 2), np.linspace(0.0, 4.0, 9)
    model = SelfAttention(4.0)
    with pytest.raises(ResolutionExhausted, match="too sharp for max_modes = 256") as stopped:
        solve_common_noise(model, START, PLANAR, path, times, method="spectral", max_modes=256)
    rows = stopped.value.trajectory
    assert 2 < len(rows) < 9
    assert not rows.complete
    assert "too sharp" in rows.status
    run = solve_common_noise(model, START, PLANAR, path, times)
    assert run.complete
    assert (run.method[0], run.method[-1]) == ("spectral", "characteristics")
    assert np.abs(run.moments[: len(rows)] - rows.moments).max() < 1e-8
    tokens = simulate_common_noise(model, START.quantiles(1000), PLANAR, path, times)
    assert np.abs(run.moments[-1, :5] - tokens.moments[-1, :5]).max() < 1e-5


def test_grids_grow_and_shrink_with_the_density():
    """A path that goes out and comes back leaves the density as it was; a uniform one is Poisson on the way."""
    path = BrownianPath(np.repeat([[0.25], [-0.25]], 8, axis=0), 1.0)
    field = VectorFields.from_functions([np.sin])
    run = solve_common_noise(NONE, START, field, path, [0.0, 0.5, 1.0], method="spectral")
    assert list(run.n_modes) == [64, run.n_modes[1], 64]
    assert run.n_modes[1] >= 96
    assert np.abs(run.moments[2] - run.moments[0]).max() < 1e-10
    still = solve_common_noise(NONE, FourierDensity.uniform(), field, path, [0.0, 0.5], method="spectral")
    assert np.abs(still.moments[1] - (-np.tanh(1.0)) ** np.arange(65)).max() < 1e-10


def test_an_ensemble_too_sharp_keeps_its_rows():
    paths = BrownianPath.draw_many(18, 2, 4.0, 32, 3)
    with pytest.raises(StoppedEnsemble, match="path number") as stopped:
        solve_common_noise_ensemble(SelfAttention(4.0), START, PLANAR, paths, np.linspace(0.0, 4.0, 9), max_modes=128)
    rows = stopped.value.rows
    assert 1 < rows.t.size < 9
    assert rows.moments.shape == (18, rows.t.size, 65)
    assert np.isfinite(rows.energy).all()


def test_with_diffusion_the_density_stays_smooth():
    path = BrownianPath.draw(2, 20.0, 320, 2)
    run = solve_common_noise(SelfAttention(4.0, diffusion=0.05), START, PLANAR, path, [0.0, 20.0], rtol=1e-8)
    assert set(run.method) == {"spectral"}
    assert run.mass == pytest.approx(1.0, abs=1e-13)
    assert run.n_modes[-1] <= 256


@pytest.mark.parametrize("method", ["spectral", "characteristics"])
def test_a_run_is_stored_with_what_makes_it_again(tmp_path, method):
    run = solve_common_noise(ATTENTION, START, PLANAR, PATH, [0.0, 0.5, 1.0], method=method)
    run.save(tmp_path / "common.h5")
    loaded = Trajectory.load(tmp_path / "common.h5")
    stored = loaded.configuration
    again = solve_common_noise(
        loaded.model,
        START,
        VectorFields.from_dict(stored["fields"]),
        BrownianPath.from_dict(stored["path"]),
        stored["times"],
        method=stored["solver"],
    )
    assert (again.moments == loaded.moments).all()
    assert BrownianPath.from_dict(stored["path"]).origin == "seed 7"


def test_a_path_keeps_where_it_comes_from():
    assert repr(PATH.coarsened(2)) == "BrownianPath(2 fields, 16 steps to t = 1, seed 7, 2 steps summed to one)"
    assert [path.origin for path in BrownianPath.draw_many(2, 1, 1.0, 4, 3)] == ["seed 3, number 0", "seed 3, number 1"]
    stored = PATH.to_dict()
    del stored["origin"]  # as files had it before
    assert (BrownianPath.from_dict(stored).origin, BrownianPath([[1.0]], 1.0).origin) == ("", "")


def test_rows_go_to_a_file_as_they_come(tmp_path):
    file = tmp_path / "common.h5"
    run = solve_common_noise(ATTENTION, START, PLANAR, PATH, [0.0, 0.5], output=file)
    assert (Trajectory.load(file).moments == run.moments).all()
    with pytest.raises(StorageError, match="exists"):
        solve_common_noise(ATTENTION, START, PLANAR, PATH, 0.5, output=file)
    sharp = SelfAttention(3.0, diffusion=1e-4)
    with pytest.raises(ResolutionExhausted) as stop:
        solve_common_noise(
            sharp, START, PLANAR, BrownianPath.draw(2, 6.0, 64, 7), 6.0, max_modes=64, output=file, overwrite=True
        )
    kept = Trajectory.load(file)
    assert (len(kept), kept.complete) == (len(stop.value.trajectory), False)
    assert kept.status.startswith("stopped early")


def _tokens(**how):
    return simulate(ATTENTION, Atoms.sample_uniform(5, 1), [0.0, 0.1], **how)


@pytest.mark.parametrize(
    ("make", "again", "says"),
    [
        (
            lambda: simulate_common_noise(ATTENTION, START.sample(5, seed=2), PLANAR, PATH, [0.0, 0.5]),
            r"simulate_common_noise again, on the stored path: BrownianPath\.from_dict",
            "common to all tokens, 2 fields, path of 32 steps to t = 1, seed 7",
        ),
        (_tokens, r"particles\.simulate again, from the same tokens", "rtol 1e-08, symmetry 1"),
        (lambda: _tokens(method="euler", layer_step=0.1), r"particles\.simulate again", "layer_step 0.1, symmetry 1"),
        (
            lambda: simulate_noisy(
                SelfAttention(1.0, diffusion=0.1), Atoms.sample_uniform(5, 1), 0.1, step=0.1, seed=3
            ),
            r"noisy_particles\.simulate_noisy again",
            "step 0.1, symmetry 1",
        ),
    ],
)
def test_what_cannot_be_resumed_says_so_and_is_described(tmp_path, capsys, make, again, says):
    path = make().save(tmp_path / "run.h5")
    with pytest.raises(InputError, match=rf"cannot be resumed; call spectral_mf\..*{again}"):
        spectral_mf.resume(path, 2.0)
    assert run_command(["resume", str(path), "--t-end", "2"]) == 2
    assert "cannot be resumed; call" in capsys.readouterr().err
    assert run_command(["info", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "spectral-mf resume" not in shown
    assert "cannot be resumed; call" in shown
    assert says in shown
    assert re.search(r"written +\d{4}-\d\d-\d\dT[\d:]{8}Z spectral_mf run started", shown)


def test_a_right_hand_side_is_copied_with_its_noise():
    rhs = DrivenRightHandSide(ATTENTION, PLANAR, np.array([[0.3, -2.0]]), 128, 1)
    c = START.moments(64)[np.newaxis]
    one, other = np.empty_like(c), np.empty_like(c)
    rhs(c, one)
    copy.deepcopy(rhs)(c, other)
    assert (one == other).all()
    rhs.drive(np.zeros((1, 2)))
    rhs(c, other)
    assert (one != other).any()


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VectorFields([]), "hold no field"),
        (lambda: VectorFields([1.0, 2.0]), "hold no field"),
        (lambda: VectorFields([[0.0, 1.0], [np.inf, 0.0]]), "field number 1 has coefficients that are not finite"),
        (lambda: VectorFields([[1j, 1.0]]), "field number 0 is not real"),
        (lambda: VectorFields([[1.0, 2.0], [1.0]]), "not rows of Fourier coefficients"),
        (lambda: VectorFields(np.zeros((1, 9000))), "at most 8192"),
        (lambda: VectorFields.from_functions([]), "no field is given"),
        (lambda: VectorFields.from_functions([np.sin, 3.0]), "field number 1 = 3.0 is not a function"),
        (lambda: VectorFields.from_functions([lambda x: 1j * x]), "field number 0 is not real"),
        (lambda: VectorFields.from_functions([lambda x: 1.0 / np.sin(2.0 * x) ** 0 / 0.0 * np.ones(x.size)]), "finite"),
        (lambda: VectorFields.from_functions([lambda x: x[:3]]), "one for each angle"),
        (lambda: VectorFields.from_functions([np.abs]), "do not resolve field number 0"),
        (lambda: VectorFields.planar(np.nan), "strength = nan is not finite"),
        (lambda: BrownianPath([1.0, 2.0], 1.0), "one row a step"),
        (lambda: BrownianPath([[np.nan]], 1.0), "finite"),
        (lambda: BrownianPath([[1.0]], 0.0), "t_end = 0 is not allowed"),
        (lambda: BrownianPath.draw(0, 1.0, 4, 1), "n_fields = 0"),
        (lambda: BrownianPath.draw(1, 1.0, 0, 1), "n_steps = 0"),
        (lambda: BrownianPath.draw(1, 1.0, 4, -1), "seed = -1"),
        (lambda: BrownianPath.draw_many(3, 1, 1.0, 4, -1), "seed = -1"),
        (lambda: PATH.coarsened(5), "factor = 5 does not divide the path's 32 steps"),
        (lambda: PATH.at(1.5), "time 1.5 lies outside the path, which goes from 0 to 1"),
    ],
)  # fmt: skip
def test_fields_and_paths_that_are_none(make, message):
    with np.errstate(divide="ignore"), pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": BrownianPath.draw(1, 1.0, 4, 1)}, "the path has 1 components for 2 fields; give one for each field"),
        ({"path": None}, "path = None is no path"),
        ({"fields": [np.sin, np.cos]}, "are no vector fields"),
        ({"times": [0.0, 1.5]}, "time 1.5 lies outside the path"),
        ({"times": [-0.5, 0.5]}, "time -0.5 lies outside the path"),
        ({"calculus": "ito"}, "calculus = 'ito' is not solved, only \"stratonovich\" is"),
        ({"initial": Atoms([0.0])}, "is no smooth density"),
        ({"method": "characteristics", "model": SelfAttention(2.0, diffusion=0.1)}, "diffusion = 0.1 spreads mass"),
        ({"method": "linear"}, "method = 'linear' is unknown"),
        ({"model": 3.0}, "is not a model"),
        ({"rtol": 1.0}, "rtol = 1 is not allowed"),
        ({"max_modes": 64, "initial": FourierDensity.von_mises(200.0)}, "more than max_modes = 64"),
    ],
)
def test_what_the_solver_refuses(change, message):
    given = {"model": ATTENTION, "initial": START, "fields": PLANAR, "path": PATH, "times": [0.0, 1.0], **change}
    with pytest.raises(InputError, match=message):
        solve_common_noise(**given)


def test_what_ensembles_and_tokens_refuse():
    tokens, paths = Atoms([0.0, 1.0]), [PATH, PATH.coarsened(2)]
    with pytest.raises(InputError, match="no path is given"):
        solve_common_noise_ensemble(ATTENTION, START, PLANAR, [], [0.0, 1.0])
    with pytest.raises(InputError, match=r"path number 1 is .*16 steps.* but the first is .*32 steps"):
        solve_common_noise_ensemble(ATTENTION, START, PLANAR, paths, [0.0, 1.0])
    with pytest.raises(InputError, match="calculus = 'ito'"):
        solve_common_noise_ensemble(ATTENTION, START, PLANAR, [PATH], [0.0, 1.0], calculus="ito")
    with pytest.raises(InputError, match="calculus = 'ito'"):
        simulate_common_noise(ATTENTION, tokens, PLANAR, PATH, [0.0, 1.0], calculus="ito")
    with pytest.raises(InputError, match="time 2 lies outside"):
        simulate_common_noise(ATTENTION, tokens, PLANAR, PATH, [0.0, 2.0])
    with pytest.raises(InputError, match="noise of their own; give its seed"):
        simulate_common_noise(SelfAttention(2.0, diffusion=0.1), tokens, PLANAR, PATH, [0.0, 1.0])
    with pytest.raises(InputError, match="are not tokens"):
        simulate_common_noise(ATTENTION, START, PLANAR, PATH, [0.0, 1.0])
    with pytest.raises(InputError, match=r"angles have shape \(1,\) for 2 paths"):
        pair_distances(PLANAR, [PATH, PATH], [0.0], 1e-3)
