"""A sweep from its plan to its file: what is finished is kept at once, what is missing is computed."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spectral_mf.errors import InputError, StorageError
from spectral_mf.storage.publishing import Claim, checked_place
from spectral_mf.storage.uninterrupted import uninterrupted
from spectral_mf.sweep.bundles import CaseFunction, run_cases
from spectral_mf.sweep.journal import Journal, journal_of
from spectral_mf.sweep.plan import SweepPlan
from spectral_mf.sweep.results import bytes_of_case
from spectral_mf.sweep.sweep_file import SweepSummary, is_sweep, read_sweep, stored_plan, stored_results, write_sweep
from spectral_mf.sweep.workers import DaskCluster, Processes, workers_for
from spectral_mf.wording import counted

GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, are spread as evenly as may be, however many."""


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep has come.

    Attributes
    ----------
    finished, total, failed : int
        Numbers of cases, those of earlier sessions included.
    rate : float
        Cases a second in this session; 0 before the first.
    seconds_left : float
        Time that the rest takes at this rate; inf before the first.
    workers : int
        Number of workers.
    """

    finished: int
    total: int
    failed: int
    rate: float
    seconds_left: float
    workers: int = 1


Report = Callable[[SweepProgress], None]


def carry_out(
    plan: SweepPlan,
    output: str | Path,
    function: CaseFunction,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Report | None = None,
) -> SweepSummary:
    """Compute all cases of a plan that are missing, and put them in one file.

    While the sweep goes on, finished cases are in a journal beside the file (`NAME.cases`); the file appears, whole,
    when all are finished, and the journal goes.

    Parameters
    ----------
    plan : SweepPlan
    output : path
    function : callable
        What computes a case.
    workers : int, optional
        Number of processes, or of workers of a local cluster; by default the cores.
    scheduler : str, optional
        Dask's scheduler, "tcp://HOST:PORT", or "local"; by default processes of this machine.
    resume : bool
        Whether cases that an earlier session of the same sweep has finished are taken over. Those that failed are
        tried again.
    overwrite : bool
        Whether an existing file, or the finished cases of an earlier sweep, may be replaced.
    report : callable, optional
        Called with a `SweepProgress` at the beginning and after each bundle.

    Raises
    ------
    InputError
        If an argument is not allowed, or the scheduler cannot be reached.
    StorageError
        If the file exists, another sweep is writing it, or it cannot be written.
    """
    if resume and overwrite:
        raise InputError("resume keeps the finished cases and overwrite drops them; leave one of them out.")
    place = checked_place(output, overwrite=overwrite or resume)
    hired = workers_for(workers, scheduler)
    claim = Claim(place)
    try:
        done = _stored(place, plan) if resume else None
        if done is not None and not done.outcomes["failed"]:
            journal_of(place).unlink(missing_ok=True)
            return done
        checked_place(place, overwrite=overwrite or done is not None)
        journal = _journal(place, plan, resume=resume, overwrite=overwrite)
        try:
            if done is not None:
                _take_over(place, plan, journal)
            _check_room(place, plan, journal)
            _compute_missing(plan, journal, function, hired, report)
            with uninterrupted():
                write_sweep(place, plan, journal)
                journal.path.unlink(missing_ok=True)
        finally:
            journal.close()
            if not journal.finished:  # nothing is lost, and the next sweep finds its place free
                journal.path.unlink(missing_ok=True)
        return read_sweep(place)
    finally:
        claim.release()


def _compute_missing(
    plan: SweepPlan,
    journal: Journal,
    function: CaseFunction,
    hired: Processes | DaskCluster,
    report: Report | None,
) -> None:
    finished = journal.finished
    missing = [number for number in scattered(plan.n_cases) if number not in finished]
    if not missing:
        return
    hired.count = min(hired.count, len(missing))  # as many as have something to do
    with hired:
        meter = _Meter(plan.n_cases, hired.count, journal, report)
        for results in run_cases(function, missing, plan.case, hired):
            with uninterrupted():
                journal.append(results)
            meter.show()


def scattered(n: int) -> Iterator[int]:
    """0 .. n - 1, every stretch of them spread evenly over the grid.

    Costs differ a thousandfold along an axis. In this order the first cases tell what all will take, and the dearest
    are not left for the end, when other workers have nothing to do.
    """
    step = max(1, round(n * GOLDEN))
    while math.gcd(step, n) > 1:
        step += 1
    return (i * step % n for i in range(n))


class _Meter:
    """Says how far the sweep has come."""

    def __init__(self, total: int, workers: int, journal: Journal, report: Report | None) -> None:
        self._total, self._workers, self._journal, self._report = total, workers, journal, report
        self._before = len(journal.finished)
        self._began = time.monotonic()
        self.show()

    def show(self) -> None:
        if self._report is None:
            return
        finished = len(self._journal.finished)
        done, elapsed = finished - self._before, time.monotonic() - self._began
        rate = done / elapsed if done else 0.0
        left = (self._total - finished) / rate if done else float("inf")
        self._report(SweepProgress(finished, self._total, self._journal.failed, rate, left, self._workers))


def _stored(place: Path, plan: SweepPlan) -> SweepSummary | None:
    """What the file holds of this sweep; None if there is no file, StorageError if it holds something else."""
    if not place.exists():
        return None
    if not is_sweep(place):
        raise StorageError(f"{place} is not the file of a sweep; choose another name.")
    if (differs := _difference(stored_plan(place), plan.identity)) is not None:
        raise StorageError(f"{place} holds another sweep ({differs} differs); choose another name.")
    return read_sweep(place)


def _take_over(place: Path, plan: SweepPlan, journal: Journal) -> None:
    """Take the cases of a finished sweep that did not fail into the journal, where it has them not."""
    for results in stored_results(place, plan):
        kept = [one for one in results if one.outcome != "failed" and one.number not in journal.finished]
        if kept:
            journal.append(kept)


def _check_room(place: Path, plan: SweepPlan, journal: Journal) -> None:
    """Refuse a sweep that has no room for its journal and its file now, rather than hours later."""
    to_come = 2 * plan.n_cases - len(journal.finished)
    needed = to_come * bytes_of_case(len(plan.times), plan.n_modes)
    free = shutil.disk_usage(place.parent).free
    if needed > free:
        raise StorageError(
            f"{plan.n_cases} cases of {len(plan.times)} rows and {plan.n_modes + 1} modes need {_in_megabytes(needed)} "
            f"in {place.parent}, journal and file, where {_in_megabytes(free)} are free; free some, choose another "
            "place, or store fewer rows or modes."
        )


def _in_megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.3g} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:.3g} GB"


def _journal(place: Path, plan: SweepPlan, *, resume: bool, overwrite: bool) -> Journal:
    """The journal to go on with, or a new one."""
    path = journal_of(place)
    if not path.exists() or (overwrite and not resume):
        return Journal.create(path, plan.identity)
    old = Journal(path)
    if not resume and not old.finished:
        old.close()
        return Journal.create(path, plan.identity)
    if not resume:
        old.close()
        raise StorageError(
            f"{path} holds {counted(len(old.finished), 'finished cases')} of an earlier sweep; pass resume=True to "
            "go on with it, or pass overwrite=True to begin anew."
        )
    if (differs := _difference(old.identity, plan.identity)) is not None:
        old.close()
        raise StorageError(
            f"{path} holds cases of another sweep ({differs} differs); choose another output file, or resume with the "
            "plan as it was."
        )
    old.forget_failures()
    return old.go_on()


def _difference(old: str, new: str) -> str | None:
    """What makes two plans differ, in a word or two; None if they are the same."""
    if old == new:
        return None
    before, after = json.loads(old), json.loads(new)
    for part in ("grid", "sections", "token_files", "spectral_mf"):
        if json.dumps(before.get(part)) != json.dumps(after.get(part)):
            if part == "sections":
                names = [*before[part], *after[part]]
                changed = next(name for name in names if before[part].get(name) != after[part].get(name))
                return f"[{changed}]"
            return {"grid": "the grid", "token_files": "a token file", "spectral_mf": "the version of spectral_mf"}[
                part
            ]
    return "its plan"
