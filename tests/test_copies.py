"""Solvers that are copied, pickled, or run side by side in threads give the bits of one that is left alone."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spectral_mf import Atoms, FourierDensity, SelfAttention, solve
from spectral_mf.flow_map import FlowMap
from spectral_mf.solvers.atom_dynamics import AtomSolver
from spectral_mf.solvers.cascade import CascadeSolver
from spectral_mf.solvers.characteristics import CharacteristicSolver
from spectral_mf.solvers.march import MarchOptions
from spectral_mf.solvers.spectral import SpectralSolver
from spectral_mf.trajectory import Snapshot
from spectral_mf.validation.fast_sums import NonuniformFFT, Recurrences, SortedCells
from spectral_mf.validation.replicates import sample_tokens
from spectral_mf.validation.token_march import TokenSolver

SA = SelfAttention(5.0)
NOISY = SelfAttention(3.0, "none", diffusion=0.05)
DENSITY = FourierDensity.from_modes({2: 0.01j, 3: 0.02, 4: 0.005})
MAKES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda solver: pickle.loads(pickle.dumps(solver)),
}


def spectral(model, modes, options):
    return SpectralSolver(model, 0.0, np.array(modes, dtype=complex), options)


SOLVERS = {
    "spectral": lambda: spectral(SA, [DENSITY.moments(4)], MarchOptions()),
    "two folded densities with noise": lambda: spectral(
        NOISY, [[1.0, 0.02, 0.001], [1.0, 0.1j, 0.01]], MarchOptions(fold=2)
    ),
    "characteristics": lambda: CharacteristicSolver(SA, 0.0, FlowMap.identity(DENSITY), MarchOptions()),
    "atoms": lambda: AtomSolver(SA, 0.0, np.array([0.1, 1.0, 3.0]), np.array([0.2, 0.3, 0.5]), MarchOptions()),
    "expansion": lambda: CascadeSolver(
        SA, Snapshot(0.0, FourierDensity.from_modes({3: 1e-3}), "", 0), MarchOptions(), order=4
    ),
    "few tokens": lambda: TokenSolver(SA, 0.0, sample_tokens(40, 1), MarchOptions(rtol=1e-6)),
    "tokens by recurrences": lambda: TokenSolver(SA, 0.0, sample_tokens(300, 1), MarchOptions(rtol=1e-6)),
    "tokens by finufft": lambda: TokenSolver(SA, 0.0, sample_tokens(3000, 1), MarchOptions(rtol=1e-6)),
    "tokens in cells": lambda: TokenSolver(SA, 0.0, sample_tokens(100_000, 1), MarchOptions(rtol=1e-4)),
}


def state(solver):
    if isinstance(solver, SpectralSolver):
        return np.concatenate([solver.moments.view(float).ravel(), solver.dissipation()])
    return solver.snapshot().measure.to_vector()


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_copy_goes_on_as_the_original_does(name, make):
    original = SOLVERS[name]()
    original.advance(0.3)
    twin = MAKES[make](original)
    before = state(original)
    np.testing.assert_array_equal(state(twin), before)
    twin.advance(1.0)
    assert twin.t == 1.0
    np.testing.assert_array_equal(state(original), before)  # the copy has moved alone
    assert np.abs(state(twin)[: before.size] - before[: state(twin).size]).max() > 1e-6
    original.advance(1.0)
    np.testing.assert_array_equal(state(twin), state(original))


@pytest.mark.parametrize("make", MAKES)
def test_a_copy_refines_its_own_grid(make):
    original = spectral(SA, [DENSITY.moments(4)], MarchOptions())
    original.advance(3.0)
    twin = MAKES[make](original)
    coarse = original.n_points
    twin.advance(6.0)
    assert original.n_points == coarse < twin.n_points
    original.advance(6.0)
    np.testing.assert_array_equal(twin.moments, original.moments)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("way", [Recurrences, NonuniformFFT, SortedCells])
def test_copies_of_sums(way, make):
    theta = np.sort(np.random.default_rng(1).uniform(0.0, 6.0, 500))
    shuffled = theta[::-1].copy()  # cells hand it to finufft
    weights = np.full(500, 1 / 500)
    original = way(9)
    for first in (theta, shuffled):
        original.place(first)
        twin = MAKES[make](original)
        for angles in (theta, shuffled):
            original.place(angles)
            twin.place(angles)
            np.testing.assert_array_equal(twin.moments(weights), original.moments(weights))
            original.place(first)


def test_solves_in_eight_threads_give_the_serial_results():
    """Each thread has its own beta, resolution, symmetry and method; plans are made and dropped all the time."""

    def work(i):
        model = SelfAttention(1.0 + i, "softmax" if i % 2 else "peak")
        density = FourierDensity.from_modes({2 + i: 0.02, 4 + 2 * i: 0.01j})
        method = ("spectral", "auto", "characteristics", "quasilinear")[i % 4]
        run = solve(model, density, [0.0, 0.5, 1.5], method=method, rtol=1e-9)
        moved = solve(model, Atoms(np.linspace(0.0, 5.0, 20 + i)), [0.0, 0.5], rtol=1e-8)
        return np.concatenate([run.moments.ravel(), moved.moments.ravel(), run.energy_rate_residual])

    serial = [work(i) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            for alone, together in zip(serial, pool.map(work, range(8)), strict=True):
                np.testing.assert_array_equal(together, alone)
