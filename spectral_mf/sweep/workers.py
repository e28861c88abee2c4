"""Where the cases of a sweep are computed: processes of this machine, or a Dask cluster.

Both are executors of `concurrent.futures`. Every worker computes on one thread: as many workers as cores, each with as
many threads as cores, would be slower than one.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

import spectral_mf
from spectral_mf.arguments import integer_at_least
from spectral_mf.errors import InputError
from spectral_mf.storage.uninterrupted import uninterrupted
from spectral_mf.sweep.bundles import WorkersLost
from spectral_mf.sweep.lifeline import live_on

if TYPE_CHECKING:
    from spectral_mf.sweep.bundles import Workers

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Environment variables from which libraries take their number of threads when they are loaded."""

LOCAL_CLUSTER = "local"
"""Name of a scheduler that is started for the sweep, with its workers, on this machine."""

_MOST_A_CORE, _FEWEST_ALLOWED = 4, 16
"""More workers on this machine than these would take its memory, and no less time."""

_CLEANED_UP = "ignore:resource_tracker:UserWarning"
"""Filter for the warning that semaphores of a killed process were removed."""

TIMEOUT = 10.0
"""Seconds until a scheduler that does not answer is given up."""


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes:
    """Worker processes of this machine, each on one thread. A context: they end with it, and if this process dies."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._context = multiprocessing.get_context("spawn")  # a fork would copy locks and plans of this process
        self._pool: ProcessPoolExecutor | None = None
        self._lifeline: Connection | None = None
        self._starting: set[BaseProcess] = set()
        self._environment = contextlib.ExitStack()

    @property
    def executor(self) -> Executor:
        """The pool in use."""
        assert self._pool is not None
        return self._pool

    def renew(self) -> None:
        """Put a new pool in the place of a broken one."""
        self._end(at_once=True)
        self._begin()

    def check(self) -> None:
        """Nothing: those that die are replaced."""

    def __enter__(self) -> Processes:
        self._environment.enter_context(_one_thread())
        try:
            _start_quiet_tracker()
            self._begin()
            self._wait_for_first()
        except BaseException:
            for process in self._starting:  # they have nothing to send yet, and may take seconds to begin to listen
                process.terminate()
            self.__exit__(*sys.exc_info())
            raise
        return self

    def _wait_for_first(self) -> None:
        """Come back when a worker works; one that is killed as it starts gets a second chance."""
        for chance in (2, 1):
            try:
                self.executor.submit(version).result()
                return
            except BrokenProcessPool:
                if chance > 1:
                    self.renew()
        raise InputError(
            "worker processes cannot start; a script that runs a sweep does so below the line "
            "if __name__ == '__main__', as the module multiprocessing wants it."
        )

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        with uninterrupted():  # a second Ctrl-C must not leave workers behind
            self._end(at_once=kind is not None)
            self._environment.close()

    def _begin(self) -> None:
        reader, self._lifeline = self._context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(self.count, mp_context=self._context, initializer=live_on, initargs=(reader,))
        others = set(multiprocessing.active_children())
        with _deaf_to_interrupts(), contextlib.suppress(BrokenProcessPool):  # which the next task will say
            for _ in range(self.count):  # each task starts a worker, as none is idle yet
                self._pool.submit(version)
        self._starting = set(multiprocessing.active_children()) - others

    def _end(self, *, at_once: bool) -> None:
        """End the workers; if at once, also in the middle of a case."""
        pool, lifeline = self._pool, self._lifeline
        if lifeline is not None and at_once:
            lifeline.close()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        if lifeline is not None:
            lifeline.close()


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that start meanwhile not hear Ctrl-C, of which they would die aloud: their parent answers it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_quiet_tracker() -> None:
    """Let the process that cleans up after a kill do so without a warning: it is nothing the user has to mend."""
    if os.name != "posix":
        return
    with _variables(PYTHONWARNINGS=",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), _CLEANED_UP]))):
        resource_tracker.ensure_running()


def _one_thread() -> contextlib.AbstractContextManager[None]:
    """Let processes that start meanwhile use one thread; libraries read this when they are loaded."""
    return _variables(**dict.fromkeys(THREADS, "1"))


@contextlib.contextmanager
def _variables(**variables: str) -> Iterator[None]:
    """Set variables of the environment for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class DaskCluster:
    """The workers of a Dask cluster. A context: a cluster that was started for it ends with it.

    Parameters
    ----------
    scheduler : str
        Address such as "tcp://host:8786", or "local" for a cluster on this machine.
    count : int
        Workers of a cluster on this machine; another one has its own.
    timeout : float
        Seconds until a scheduler that does not answer is given up.
    """

    def __init__(self, scheduler: str, count: int, *, timeout: float = TIMEOUT) -> None:
        self.count = count
        self._scheduler, self._timeout = scheduler, timeout
        self._open = contextlib.ExitStack()
        self._executor: Executor | None = None
        self._client: Any = None

    @property
    def executor(self) -> Executor:
        """The cluster's executor."""
        assert self._executor is not None
        return self._executor

    def renew(self) -> None:
        """Nothing: Dask starts its workers anew itself."""

    def check(self) -> None:
        """Raise WorkersLost if the scheduler has gone, and did not come back within Dask's own time-out."""
        if self._client is not None and self._client.status in ("closing", "closed"):
            raise WorkersLost(
                f"the scheduler {self._scheduler} has gone; the finished cases are kept: start it again, and resume."
            )

    def __enter__(self) -> DaskCluster:
        try:
            import distributed
        except ImportError:
            raise InputError(
                "a sweep on Dask needs distributed; install it, in the clone by pip install -e '.[distributed]'."
            ) from None
        try:
            self._open.enter_context(_one_thread())
            client = self._connect(distributed)
            self.count = self._count_workers(client)
            self._client = client
            self._open.enter_context(_silence("distributed.client"))  # its end is said by `check`
            self._executor = client.get_executor(pure=False)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
        with _silence():
            self._open.close()

    def _connect(self, distributed: Any) -> Any:
        from spectral_mf.sweep.dask_client import DaskClient

        address = self._scheduler
        if address == LOCAL_CLUSTER:
            address = self._open.enter_context(
                distributed.LocalCluster(n_workers=self.count, threads_per_worker=1, dashboard_address=None)
            )
        try:
            with _silence():
                return self._open.enter_context(DaskClient(address, timeout=self._timeout, set_as_default=False))
        except (OSError, TimeoutError, ValueError) as error:
            if isinstance(error, ValueError):
                reason = f"{self._scheduler!r} is not the address of a scheduler ({error})"
            else:
                reason = f"no Dask scheduler answers at {self._scheduler} within {self._timeout:g} s"
            raise InputError(f'{reason}; give one as tcp://HOST:PORT, or "{LOCAL_CLUSTER}" to start one.') from None

    def _count_workers(self, client: Any) -> int:
        """Threads of all workers, once they are known to have this package."""
        try:
            client.wait_for_workers(1, timeout=self._timeout)
        except TimeoutError:
            raise InputError(
                f"the scheduler {self._scheduler} has no workers; start some with 'dask worker {self._scheduler}'."
            ) from None
        try:
            found = set(client.run(version).values())
        except Exception as error:
            raise InputError(
                f"the workers of {self._scheduler} cannot import spectral_mf ({error}); install it there."
            ) from None
        if found != {spectral_mf.__version__}:
            raise InputError(
                f"the workers of {self._scheduler} have spectral_mf {', '.join(sorted(found))}, "
                f"not {spectral_mf.__version__}; install this version there."
            )
        return sum(client.nthreads().values())


def version() -> str:
    """Version of the package in a worker."""
    return spectral_mf.__version__


@contextlib.contextmanager
def _silence(name: str = "distributed") -> Iterator[None]:
    """Keep Dask's own lines about connections that fail or close away: they are said in one sentence."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def workers_for(count: int | None, scheduler: str | None) -> Processes | DaskCluster:
    """Workers as asked for: processes, or those of a scheduler."""
    number = available_cores() if count is None else integer_at_least("workers", count, 1)
    most = max(_FEWEST_ALLOWED, _MOST_A_CORE * available_cores())
    if number > most:
        raise InputError(
            f"workers = {number} is not allowed; give at most {most}, as each keeps a core busy, of which there are "
            f"{available_cores()}."
        )
    if scheduler is None:
        return Processes(number)
    if count is not None and scheduler != LOCAL_CLUSTER:
        raise InputError(f"workers = {count} is not for {scheduler} to say, which has its own; leave one of them out.")
    return DaskCluster(scheduler, number)


if TYPE_CHECKING:
    _kinds: tuple[type[Workers], ...] = (Processes, DaskCluster)
