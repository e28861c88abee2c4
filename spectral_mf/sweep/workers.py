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
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import spectral_mf
from spectral_mf.errors import InputError

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
        self._environment = contextlib.ExitStack()

    @property
    def executor(self) -> Executor:
        """The pool in use."""
        assert self._pool is not None
        return self._pool

    def renew(self) -> None:
        """Put a new pool in the place of a broken one."""
        self._end()
        self._begin()

    def __enter__(self) -> Processes:
        self._environment.enter_context(_one_thread())
        try:
            self._begin()
            self.executor.submit(version).result()
        except BaseException as error:
            self.__exit__()
            if isinstance(error, BrokenProcessPool):
                raise InputError(
                    "worker processes cannot start; a script that runs a sweep does so below the line "
                    "if __name__ == '__main__', as the module multiprocessing wants it."
                ) from None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._environment.close()

    def _begin(self) -> None:
        reader, self._lifeline = self._context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(self.count, mp_context=self._context, initializer=_live_on, initargs=(reader,))

    def _end(self) -> None:
        """End the workers, also in the middle of a case."""
        pool, lifeline = self._pool, self._lifeline
        if lifeline is not None:
            lifeline.close()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _live_on(lifeline: Connection) -> None:
    """Begin a worker: Ctrl-C is for its parent to handle, and it ends when the parent's end of the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            lifeline.recv_bytes()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start meanwhile use one thread; libraries read this when they are loaded."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
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

    @property
    def executor(self) -> Executor:
        """The cluster's executor."""
        assert self._executor is not None
        return self._executor

    def renew(self) -> None:
        """Nothing: Dask starts its workers anew itself."""

    def __enter__(self) -> DaskCluster:
        try:
            import distributed
        except ImportError:
            raise InputError("a sweep on Dask needs distributed; install spectral_mf[distributed].") from None
        try:
            self._open.enter_context(_one_thread())
            client = self._connect(distributed)
            self.count = self._count_workers(client)
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
        address = self._scheduler
        if address == LOCAL_CLUSTER:
            address = self._open.enter_context(
                distributed.LocalCluster(n_workers=self.count, threads_per_worker=1, dashboard_address=None)
            )
        try:
            with _silence():
                return self._open.enter_context(distributed.Client(address, timeout=self._timeout))
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
def _silence() -> Iterator[None]:
    """Keep Dask's own lines about connections that fail or close away: they are said in one sentence."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def workers_for(count: int | None, scheduler: str | None) -> Processes | DaskCluster:
    """Workers as asked for: processes, or those of a scheduler."""
    from spectral_mf.arguments import integer_at_least

    number = available_cores() if count is None else integer_at_least("workers", count, 1)
    if scheduler is None:
        return Processes(number)
    if count is not None and scheduler != LOCAL_CLUSTER:
        raise InputError(f"workers = {count} is not for {scheduler} to say, which has its own; leave one of them out.")
    return DaskCluster(scheduler, number)


if TYPE_CHECKING:
    _kinds: tuple[type[Workers], ...] = (Processes, DaskCluster)
