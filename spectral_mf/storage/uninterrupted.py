"""Hold back Ctrl-C and SIGTERM while a file is written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a signal that arrives inside take effect at the end, once and surely.

    A handler that raises may do so anywhere. Inside h5py that would leave a row half written; in the weak references
    that it keeps of its objects, Python prints the exception and goes on as if nothing had been asked.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs handlers in the main thread only
        return
    arrived: list[tuple[int, FrameType | None]] = []

    def keep(number: int, frame: FrameType | None) -> None:
        arrived.append((number, frame))

    handlers: dict[signal.Signals, Callable[[int, FrameType | None], Any]] = {}
    for held in _SIGNALS:
        handler = signal.getsignal(held)
        if callable(handler):
            handlers[held] = handler
            signal.signal(held, keep)
    try:
        yield
    finally:
        for held, handler in handlers.items():
            signal.signal(held, handler)
        for number, frame in arrived[:1]:
            handlers[signal.Signals(number)](number, frame)
