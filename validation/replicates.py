"""Independent replicates of a random experiment: each has its own stream of random numbers, in any number of processes.

Streams are spawned from one seed, so replicate number r is the same whatever else is run, and in whatever process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Generic, TypeVar

import numpy as np

from spectral_mf.arguments import integer_at_least, random_generator
from spectral_mf.atoms import TWO_PI, Atoms
from spectral_mf.errors import InputError

T = TypeVar("T")
Work = Callable[[np.random.SeedSequence], T]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Replicates(Generic[T]):
    """Results of the replicates.

    Attributes
    ----------
    entropy : int
        The seed that gives the same results again; drawn from the system if none was given.
    results : list
        In order; those that failed are left out.
    failures : dict from int to str
        Number of each replicate that failed, and why.
    """

    entropy: int
    results: list[T]
    failures: dict[int, str] = field(default_factory=dict)


def sample_tokens(n_tokens: int, seed: int | np.random.SeedSequence) -> Atoms:
    """Independent tokens from the uniform density on the circle.

    Parameters
    ----------
    n_tokens : int
        N >= 1.
    seed : int or SeedSequence
        The same numbers for the same seed, on every machine.

    Raises
    ------
    InputError
        If there are no tokens.
    """
    n_tokens = integer_at_least("n_tokens", n_tokens, 1)
    return Atoms(random_generator(seed).uniform(0.0, TWO_PI, n_tokens))


def replicate(work: Work[T], replicates: int, *, seed: int | None = None, n_jobs: int = 1) -> Replicates[T]:
    """Run an experiment several times.

    Parameters
    ----------
    work : callable
        Takes a SeedSequence and returns a result. For `n_jobs` > 1 it is a function of a module (or a
        `functools.partial` of one), since it is sent to other processes.
    replicates : int
        At least 1.
    seed : int, optional
        If left out, one is drawn and returned.
    n_jobs : int
        Processes. They are started anew (never forked, so no library's threads or locks are copied) with one thread
        for each library. Results are the same for any number, bit for bit where this process runs one thread too.

    Returns
    -------
    Replicates
        One that fails does not stop the others.

    Raises
    ------
    InputError
        If there are no replicates or processes, or the processes cannot start.
    Exception
        That of the first replicate, if all fail.
    """
    replicates, n_jobs = integer_at_least("replicates", replicates, 1), integer_at_least("n_jobs", n_jobs, 1)
    root = np.random.SeedSequence(None if seed is None else integer_at_least("seed", seed, 0))
    outcomes = _here(work, root.spawn(replicates)) if n_jobs == 1 else _elsewhere(work, root.spawn(replicates), n_jobs)
    failures = {i: outcome for i, outcome in enumerate(outcomes) if isinstance(outcome, Exception)}
    if len(failures) == replicates:
        raise failures[0]
    return Replicates(
        entropy=int(root.entropy),  # type: ignore[arg-type]
        results=[outcome for outcome in outcomes if not isinstance(outcome, Exception)],
        failures={i: f"{type(error).__name__}: {error}" for i, error in failures.items()},
    )


def _here(work: Work[T], seeds: list[np.random.SeedSequence]) -> list[T | Exception]:
    outcomes: list[T | Exception] = []
    for seed in seeds:
        try:
            outcomes.append(work(seed))
        except Exception as error:
            outcomes.append(error)
    return outcomes


def _elsewhere(work: Work[T], seeds: list[np.random.SeedSequence], n_jobs: int) -> list[T | Exception]:
    with _one_thread_each(), ProcessPoolExecutor(min(n_jobs, len(seeds)), get_context("spawn")) as pool:
        futures = [pool.submit(work, seed) for seed in seeds]
        outcomes: list[T | Exception] = [*map(_outcome, futures)]
    if all(isinstance(outcome, BrokenProcessPool) for outcome in outcomes):
        raise InputError(
            "the worker processes could not start; call this under `if __name__ == '__main__':`, or use n_jobs = 1."
        )
    return outcomes


def _outcome(future: Future[T]) -> T | Exception:
    try:
        return future.result()
    except Exception as error:
        return error


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes started meanwhile run one thread in each library: they read this before they load them."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
