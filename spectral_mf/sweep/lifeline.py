"""How worker processes end with the process that started them, also where that is killed.

A worker that ended while it sends results would leave half a message in the pipe, and its parent would wait for the
rest for ever. So it ends at once while it computes, and otherwise a little later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

GRACE = 1.0
"""Seconds in which a worker that computes nothing may send what it has."""

_POLL = 0.01
_gate = threading.Lock()
_computing = 0


@contextlib.contextmanager
def computing() -> Iterator[None]:
    """Where a worker may end at any instant: nothing it does inside is seen from outside."""
    global _computing
    with _gate:
        _computing += 1
    try:
        yield
    finally:
        with _gate:
            _computing -= 1


def live_on(lifeline: Connection) -> None:
    """Begin a worker: Ctrl-C is for its parent to handle, and it ends when the parent's end of the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv_bytes()
    latest = time.monotonic() + GRACE
    while True:
        with _gate:  # so that it cannot begin to send between the look and the end
            if _computing or time.monotonic() >= latest:
                os._exit(0)
        time.sleep(_POLL)
