"""Cases to workers and results back, through any executor of `concurrent.futures`.

Small cases travel in bundles, so that what a task costs is a small part of it. A case that raises is a failed case; a
bundle whose worker dies is taken apart, and its cases are tried again one at a time, so that only the one which kills
its worker fails.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from spectral_mf.errors import SpectralMFError
from spectral_mf.sweep.lifeline import computing
from spectral_mf.sweep.results import CaseResult

CaseFunction = Callable[[int, Mapping[str, Any]], CaseResult]
"""From the number of a case and the sections of its run file to its result; a function of a module, as it travels."""

SHORTEST_BUNDLE = 0.25
"""Seconds that a bundle should take, at least: a hundred times what a task costs."""

SECONDS_A_WORKER = 0.005
"""What a bundle should take more for each worker: one scheduler serves them all, 200 tasks a second."""

_LOOK = 1.0
"""Seconds without a result until workers are asked whether they are still there."""

_LARGEST_BUNDLE = 1000
_GROWTH = 4


@dataclass(frozen=True)
class Task:
    """Results of a bundle and the time that it took its worker."""

    results: list[CaseResult]
    seconds: float


class WorkersLost(SpectralMFError):
    """No worker can be reached any more; what is finished is kept."""


class Workers(Protocol):
    """Where cases are computed (see `spectral_mf.sweep.workers`)."""

    count: int

    @property
    def executor(self) -> Executor:
        """The executor in use."""

    def renew(self) -> None:
        """Start anew after a worker died."""

    def check(self) -> None:
        """Raise WorkersLost if none can ever be reached again."""


def compute(function: CaseFunction, cases: Sequence[tuple[int, Mapping[str, Any]]]) -> Task:
    """Compute the cases of a bundle, one after the other; runs in a worker."""
    with computing():
        began = time.perf_counter()
        results = [_result(function, number, sections) for number, sections in cases]
        return Task(results, time.perf_counter() - began)


def _result(function: CaseFunction, number: int, sections: Mapping[str, Any]) -> CaseResult:
    try:
        return function(number, sections)
    except SpectralMFError as error:
        return CaseResult(number, "failed", str(error), {})
    except Exception as error:  # whatever it is, it must not stop the other cases
        return CaseResult(number, "failed", f"{type(error).__name__}: {error}", {})


def run_cases(
    function: CaseFunction, numbers: Iterable[int], sections: Callable[[int], Mapping[str, Any]], workers: Workers
) -> Iterator[list[CaseResult]]:
    """Compute cases on workers; yields the results of each bundle as it comes back.

    Parameters
    ----------
    function : callable
    numbers : iterable of int
        Cases to compute.
    sections : callable
        From a number to the sections of the case.
    workers : Workers
    """
    dispatch = _Dispatch(function, deque(numbers), sections, workers)
    yield from dispatch.run(in_flight=2 * workers.count)
    suspects, dispatch.waiting = dispatch.suspects, deque()
    for number in sorted(suspects):  # alone, so that no other case is blamed
        dispatch.waiting.append(number)
        dispatch.last_chance = True
        yield from dispatch.run(in_flight=1)


class _Dispatch:
    """Keeps the workers busy, and the size of the bundles right."""

    def __init__(
        self,
        function: CaseFunction,
        waiting: deque[int],
        sections: Callable[[int], Mapping[str, Any]],
        workers: Workers,
    ) -> None:
        self.waiting = waiting
        self.suspects: list[int] = []
        self.last_chance = False
        self._function, self._sections, self._workers = function, sections, workers
        self._size = 1
        self._seconds = SHORTEST_BUNDLE + SECONDS_A_WORKER * workers.count
        self._flying: dict[Future[Task], list[int]] = {}
        self._landed: SimpleQueue[Future[Task]] = SimpleQueue()  # no look at thousands of futures for each that is done

    def run(self, in_flight: int) -> Iterator[list[CaseResult]]:
        """Compute all cases that wait, with at most so many bundles under way."""
        try:
            while self.waiting or self._flying:
                while self.waiting and len(self._flying) < in_flight and self._submit():
                    pass
                if self._flying:
                    yield from self._take(self._next_landed())
        except WorkersLost:
            self._flying.clear()  # nobody is left to tell
            raise
        finally:
            for future in self._flying:
                future.cancel()

    def _next_landed(self) -> Future[Task]:
        while True:
            try:
                return self._landed.get(timeout=_LOOK)
            except Empty:
                self._workers.check()

    def _take(self, future: Future[Task]) -> Iterator[list[CaseResult]]:
        """Results of a bundle that came back; if it is lost, what to do about its cases."""
        numbers = self._flying.pop(future, None)
        if numbers is None:  # of a pool that broke, and seen to already
            return
        error = RuntimeError("the task was cancelled") if future.cancelled() else future.exception()
        if error is None:
            task = future.result()
            self._adapt(len(numbers), task.seconds)
            yield task.results
            return
        self._workers.check()
        if self.last_chance:
            reason = f"the worker that computed it died or lost it ({type(error).__name__})"
            yield [CaseResult(number, "failed", reason, {}) for number in numbers]
        else:
            self.suspects += numbers
        if isinstance(error, BrokenProcessPool):
            self.suspects += [number for others in self._flying.values() for number in others]
            self._flying.clear()
            self._workers.renew()

    def _submit(self) -> bool:
        share = max(1, len(self.waiting) // (2 * self._workers.count))  # so that all workers end together
        numbers = [self.waiting.popleft() for _ in range(min(self._size, share, len(self.waiting)))]
        cases = [(number, self._sections(number)) for number in numbers]
        self._workers.check()
        try:
            future = self._workers.executor.submit(compute, self._function, cases)
        except BrokenProcessPool:  # a worker died since; what is under way will say so
            self.waiting.extendleft(reversed(numbers))
            if not self._flying:
                self._workers.renew()
            return False
        self._flying[future] = numbers
        future.add_done_callback(self._landed.put)
        return True

    def _adapt(self, n_cases: int, seconds: float) -> None:
        """Choose the size of the next bundles by what the last one took; it grows slowly, and shrinks at once."""
        right = int(self._seconds * n_cases / max(seconds, 1e-9))
        self._size = max(1, min(right, _GROWTH * self._size, _LARGEST_BUNDLE))
