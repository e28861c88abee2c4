"""Every door refuses what is no number, by one sentence that names the argument."""

import inspect
import re

import numpy as np
import pytest

from spectral_mf import Atoms, FourierDensity, InputError, SelfAttention, arguments, solve, theory
from spectral_mf.circular import circular_distance, circular_mean, resultant_length
from spectral_mf.fft import RealTransform
from spectral_mf.output_times import output_times
from spectral_mf.solvers.ensemble import first_passage_times, solve_ensemble
from spectral_mf.validation.exit_times import density_exit_times
from spectral_mf.validation.fluctuations import expected_h_minus_one
from spectral_mf.validation.growth import measure_growth
from spectral_mf.validation.particles import simulate
from spectral_mf.validation.replicates import replicate, sample_tokens
from spectral_mf.validation.sphere_particles import sample_sphere_tokens
from spectral_mf.validation.statistics import (
    close_pair_share,
    mean_interval,
    proportion_interval,
    rayleigh_tail,
    rayleigh_test,
    token_clusters,
)

SA = SelfAttention(5.0)
UNIFORM = FourierDensity.uniform()
DENSITY = FourierDensity.from_modes({3: 0.01})
ATOMS = Atoms([0.1, 2.0, 4.0])
START = [[1.0, 0.0, 0.0, 0.01]]

NO_NUMBERS = ["5", b"5", "much", True, 1j, [1.0, 2.0], {}, object(), np.array("5")]
NO_INTEGERS = [*NO_NUMBERS, 2.5, 2.0, np.nan, np.inf]

NUMBERS = {
    "beta": lambda x: SelfAttention(x),
    "diffusion": lambda x: SelfAttention(5.0, diffusion=x),
    "kappa": lambda x: FourierDensity.von_mises(x),
    "mean": lambda x: FourierDensity.von_mises(4.0, x),
    "sigma": lambda x: FourierDensity.white_noise(x, 1000, 1),
    "angle": lambda x: DENSITY.rotated(x),
    "kappa of atoms": lambda x: ATOMS.kernel_density(x),
    "t_end": lambda x: output_times(x),
    "start": lambda x: output_times(1.0, start=x),
    "interval": lambda x: output_times(1.0, x),
    "level": lambda x: theory.exit_time(SA, 1000, x),
    "level of data": lambda x: theory.linear_exit_time(SA, DENSITY, x),
    "level on the manifold": lambda x: theory.unstable_manifold(SA, order=8).z_of_level(x),
    "rtol": lambda x: solve(SA, DENSITY, 0.1, rtol=x),
    "rtol of an ensemble": lambda x: solve_ensemble(SA, START, [0.0, 0.1], rtol=x),
    "level of an ensemble": lambda x: first_passage_times(SA, START, 3, x, t_end=0.1),
    "t_end of an ensemble": lambda x: first_passage_times(SA, START, 3, 0.1, t_end=x),
    "rtol of particles": lambda x: simulate(SA, ATOMS, 0.1, rtol=x),
    "layer_step": lambda x: simulate(SA, ATOMS, 0.1, method="euler", layer_step=x),
    "duration": lambda x: measure_growth(SA, n_tokens=10, replicates=2, duration=x),
    "resultant": lambda x: rayleigh_tail(10, x),
    "cosine": lambda x: close_pair_share([0.0, 1.0], x),
    "gap": lambda x: token_clusters(ATOMS, gap=x),
    "least_mass": lambda x: token_clusters(ATOMS, least_mass=x),
    "confidence": lambda x: mean_interval([1.0, 2.0], x),
}

INTEGERS = {
    "n_points": lambda x: FourierDensity.white_noise(0.1, x, 1),
    "n_modes": lambda x: FourierDensity.white_noise(0.1, 1000, 1, n_modes=x),
    "n_modes of a function": lambda x: FourierDensity.from_function(np.ones_like, x),
    "n_modes of moments": lambda x: DENSITY.moments(x),
    "n_modes of moments of atoms": lambda x: ATOMS.moments(x),
    "n_modes smoothed": lambda x: ATOMS.smoothed(x),
    "n_cells": lambda x: DENSITY.cell_means(x),
    "n_cells of atoms": lambda x: ATOMS.cell_means(x),
    "n_tokens": lambda x: DENSITY.sample(x, 1),
    "n_tokens of quantiles": lambda x: DENSITY.quantiles(x),
    "n_tokens of atoms": lambda x: Atoms.sample_uniform(x, 1),
    "n_tokens of theory": lambda x: theory.exit_time(SA, x, 0.1),
    "dimension": lambda x: theory.growth_rate(SA, 1, dimension=x),
    "dimension of the dominant mode": lambda x: theory.dominant_mode(SA, dimension=x),
    "dimension of thresholds": lambda x: theory.threshold(1, dimension=x),
    "mode": lambda x: theory.unstable_manifold(SA, x),
    "order": lambda x: theory.unstable_manifold(SA, order=x),
    "order of solve": lambda x: solve(SA, DENSITY, 0.1, method="quasilinear", order=x),
    "max_modes": lambda x: solve(SA, DENSITY, 0.1, max_modes=x),
    "n_modes of solve": lambda x: solve(SA, DENSITY, 0.1, n_modes=x),
    "n_cells of solve": lambda x: solve(SA, DENSITY, 0.1, n_cells=x),
    "symmetry": lambda x: solve(SA, DENSITY, 0.1, symmetry=x),
    "n_points of a transform": lambda x: RealTransform(x),
    "n_series": lambda x: RealTransform(16, x),
    "mode of an ensemble": lambda x: first_passage_times(SA, START, x, 0.1, t_end=0.1),
    "max_modes of an ensemble": lambda x: solve_ensemble(SA, START, [0.0, 0.1], max_modes=x),
    "n_tokens of a sample": lambda x: sample_tokens(x, 1),
    "replicates": lambda x: replicate(lambda seed: 1, x),
    "n_jobs": lambda x: replicate(lambda seed: 1, 1, n_jobs=x),
    "replicates of growth": lambda x: measure_growth(SA, n_tokens=10, replicates=x),
    "replicates of exits": lambda x: density_exit_times(SA, [1000, 2000], replicates=x, seed=1),
    "n_tokens of the norm": lambda x: expected_h_minus_one(x),
    "n_modes of the norm": lambda x: expected_h_minus_one(10, x),
    "n_tokens on spheres": lambda x: sample_sphere_tokens(x, 3, 1),
    "dimension of spheres": lambda x: sample_sphere_tokens(5, x, 1),
    "n_tokens of the tail": lambda x: rayleigh_tail(x, 0.5),
    "successes": lambda x: proportion_interval(x, 10),
    "trials": lambda x: proportion_interval(0, x),
    "n_modes of particles": lambda x: simulate(SA, ATOMS, 0.1, n_modes=x),
    "n_cells of particles": lambda x: simulate(SA, ATOMS, 0.1, n_cells=x),
    "kernel_modes": lambda x: simulate(SA, ATOMS, 0.1, kernel_modes=x),
    "n_threads": lambda x: simulate(SA, ATOMS, 0.1, n_threads=x),
}

SEEDS = {
    "a density": lambda x: DENSITY.sample(5, x),
    "noise": lambda x: FourierDensity.white_noise(0.1, 1000, x),
    "atoms": lambda x: Atoms.sample_uniform(5, x),
    "tokens": lambda x: sample_tokens(5, x),
    "spheres": lambda x: sample_sphere_tokens(5, 3, x),
    "replicates": lambda x: replicate(lambda seed: 1, 1, seed=x),
}

NO_ARRAYS = ["much", ["0.1", "0.2"], [1j], [True], {}, object(), [[0.1], [0.2, 0.3]], [None]]

ARRAYS = {
    "angles": lambda x: Atoms(x),
    "weights": lambda x: Atoms([0.1], x),
    "theta": lambda x: DENSITY.density(x),
    "values of a function": lambda x: FourierDensity.from_function(lambda theta: x, 8),
    "times": lambda x: solve(SA, DENSITY, x),
    "times of an ensemble": lambda x: solve_ensemble(SA, START, x),
    "a distance": lambda x: circular_distance(0.1, x),
    "a mean": lambda x: circular_mean(x),
    "a weighted resultant": lambda x: resultant_length([0.1], x),
    "a test": lambda x: rayleigh_test(x),
    "pairs": lambda x: close_pair_share(x),
    "an interval": lambda x: mean_interval(x),
}

MODELS = {
    "growth_rate": lambda x: theory.growth_rate(x, 1),
    "dominant_mode": lambda x: theory.dominant_mode(x),
    "unstable_manifold": lambda x: theory.unstable_manifold(x),
    "exit_time": lambda x: theory.exit_time(x, 1000, 0.1),
    "linear_exit_time": lambda x: theory.linear_exit_time(x, DENSITY),
    "energy": lambda x: DENSITY.energy(x),
    "energy of atoms": lambda x: ATOMS.energy(x),
    "solve": lambda x: solve(x, DENSITY, 0.1),
    "simulate": lambda x: simulate(x, ATOMS, 0.1),
    "solve_ensemble": lambda x: solve_ensemble(x, START, [0.0, 0.1]),
}


def refused(call, value):
    with pytest.raises(InputError) as caught:
        call(value)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize("door", NUMBERS)
def test_doors_for_numbers(door):
    for value in NO_NUMBERS:
        assert re.match(rf"{door.split()[0]} = ", refused(NUMBERS[door], value))
    refused(NUMBERS[door], np.nan)
    refused(NUMBERS[door], -np.inf)


@pytest.mark.parametrize("door", INTEGERS)
def test_doors_for_integers(door):
    for value in NO_INTEGERS:
        assert re.match(rf"{door.split()[0]} = ", refused(INTEGERS[door], value))
    refused(INTEGERS[door], -1)


@pytest.mark.parametrize("door", SEEDS)
def test_doors_for_seeds(door):
    for value in ["5", 2.5, -1, 1j, True, {}]:
        assert refused(SEEDS[door], value).startswith("seed = ")
    SEEDS[door](5)
    SEEDS[door](np.int64(5))


@pytest.mark.parametrize("door", ARRAYS)
def test_doors_for_arrays(door):
    for value in NO_ARRAYS:
        refused(ARRAYS[door], value)


@pytest.mark.parametrize("door", MODELS)
def test_doors_for_models(door):
    for value in [5.0, "SA", None, SelfAttention]:
        assert refused(MODELS[door], value).startswith("model = ")


@pytest.mark.parametrize("modes", ["3:0.01", 3, None, [3], {3: "0.01"}, {3: None}, {3: True}, {"3": 0.01}, {3.0: 0.01}])
def test_moments_by_mode_are_a_mapping_from_integers_to_numbers(modes):
    refused(FourierDensity.from_modes, modes)


@pytest.mark.parametrize("initial", [0.1, "uniform", None, [0.1, 0.2], FourierDensity])
def test_what_is_no_measure(initial):
    assert refused(lambda x: solve(SA, x, 0.1), initial).startswith("initial = ")
    assert refused(lambda x: theory.linear_exit_time(SA, x), initial).startswith("initial = ")


@pytest.mark.parametrize("values", ["much", [[1.0, 0.1], [1.0]], [["1", "a"]], [[1.0, None]]])
def test_moments_of_an_ensemble(values):
    refused(lambda x: solve_ensemble(SA, x, [0.0, 0.1]), values)


def test_numpy_scalars_are_as_good_as_python_numbers():
    model = SelfAttention(np.float32(5.0))
    np.testing.assert_array_equal(
        FourierDensity.von_mises(np.float32(4.0), np.array(0.5)).moments(np.int32(9)),
        FourierDensity.von_mises(4, 0.5).moments(9),
    )
    assert theory.exit_time(model, np.int64(1000), np.float64(0.1)) == theory.exit_time(SA, 1000, 0.1)
    assert solve(model, DENSITY, np.float64(0.1), n_cells=np.int16(8)).complete


@pytest.mark.parametrize(
    ("check", "allowed", "not_allowed"),
    [
        (arguments.number_from_to, [0.0, 0.5, 1.0], [-1e-300, 1.0 + 1e-15, np.nan]),
        (arguments.number_between, [1e-300, 0.5], [0.0, 1.0, np.nan]),
        (arguments.number_at_least, [0.0, 1e300], [-1e-300, np.inf, np.nan, 10**400]),
        (arguments.positive_number, [1e-300, 1e300], [0.0, -1.0, np.inf, np.nan]),
        (arguments.integer_at_least, [0, 1, 10**30], [-1, 0.0]),
    ],
)
def test_ends_of_what_is_allowed(check, allowed, not_allowed):
    ends = {"low": 0, "high": 1}
    known = {key: ends[key] for key in inspect.signature(check).parameters if key in ends}
    for value in allowed:
        assert check("x", value, **known) == value
    for value in not_allowed:
        assert refused(lambda x: check("x", x, **known), value).startswith("x = ")


def test_arrays_are_copies():
    given = np.array([0.1, 7.0])
    arguments.angle_array(given)[:] = 0.0
    np.testing.assert_array_equal(given, [0.1, 7.0])
    assert arguments.angle_array([]).shape == (0,)
    assert arguments.angle_array(np.float32(0.5)).dtype == np.float64
