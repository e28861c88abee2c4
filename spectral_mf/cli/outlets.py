"""Stdout and stderr that may be lost: a reader that has gone, or a disk that is full.

What a command writes to files is worth more than what it says. So losing an outlet stops nothing: the rest of the text
is dropped, the command goes on to its end, and only then is it told that text is missing.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOBase
from typing import Any, TextIO


class Outlet:
    """A text stream whose first failure is kept, and which drops what is written after it.

    Attributes
    ----------
    failure : OSError or None
        Why text was lost. A reader that has gone (`head` has seen enough) is no failure.
    """

    def __init__(self, stream: TextIO | TextIOBase) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write, or drop."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        """Flush, or drop what was waiting."""
        try:
            self._stream.flush()
        except OSError as error:
            self._lose(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _lose(self, error: OSError) -> None:
        if self.failure is None and not isinstance(error, BrokenPipeError):
            self.failure = error
        with suppress(OSError, ValueError):  # what waits in the buffer goes nowhere, also when Python ends
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class Closed(TextIOBase):
    """A stream that was closed from the start: writing to it fails."""

    def write(self, text: str) -> int:
        """Fail, as the system does."""
        raise OSError(errno.EBADF, "it is closed")


@contextmanager
def outlets() -> Iterator[Outlet]:
    """Guard stdout and stderr while the context lasts; yields stdout's guard."""
    before = sys.stdout, sys.stderr
    result = Outlet(Closed() if sys.stdout is None else sys.stdout)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout = result
        sys.stderr = nowhere if sys.stderr is None else Outlet(sys.stderr)
        try:
            yield result
        finally:
            for outlet in (sys.stdout, sys.stderr):
                outlet.flush()
            sys.stdout, sys.stderr = before
