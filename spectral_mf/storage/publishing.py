"""Whole files, put in place at once: a reader sees the last one or the next one, never a part.

A file is written beside its place and renamed over it. A kill leaves the last one; a full disk too. While a run owns a
place, a lock keeps other runs away; the lock dies with the process.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import BinaryIO

from spectral_mf.errors import StorageError

try:
    import fcntl
except ImportError:  # Windows: two runs with one name are then not kept apart
    fcntl = None  # type: ignore[assignment]


SHORTEST_PAUSE = 0.5
"""Seconds between two publications, at least."""

PAUSE_PER_EFFORT = 20.0
"""The pause is at least this many times what the last publication took: it costs at most 5 % of the run."""


def checked_place(path: str | Path, *, overwrite: bool) -> Path:
    """Absolute path of a file that may be written, or StorageError.

    Raises
    ------
    StorageError
        If the folder is missing or not one, or something is in the way.
    """
    place = _absolute(path)
    if not place.name or place.is_dir():
        raise StorageError(f"{place} is a folder; give the name of a file in it.")
    if not place.parent.exists():
        raise StorageError(f"the folder {place.parent} does not exist; make it, or choose another.")
    if not place.parent.is_dir():
        raise StorageError(f"{place.parent} is not a folder; choose another place for {place.name}.")
    if place.exists() and not place.is_file():
        raise StorageError(f"{place} is not an ordinary file; choose another name.")
    if place.exists() and not overwrite:
        raise StorageError(f"{place} exists; choose another name, or pass overwrite=True to replace it.")
    return place


def write_whole(place: Path, content: bytes) -> None:
    """Put a file in place, or leave what was there.

    Raises
    ------
    StorageError
        If it cannot be written (no space, no permission); nothing is damaged then.
    """
    beside = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise cannot_write(place, error) from error


class Claim:
    """The right to write one file; held until `release` or the end of the process.

    Raises
    ------
    StorageError
        If another run holds it, or the folder cannot be written to.
    """

    def __init__(self, place: Path) -> None:
        self._path = _lock_beside(place)
        self._file: BinaryIO | None = None
        while self._file is None:
            try:
                file = self._path.open("ab")
            except OSError as error:
                raise cannot_write(place, error) from error
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    file.close()
                    if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                        raise cannot_write(place, error) from error
                    raise StorageError(
                        f"another run is writing {place}; wait for it, or choose another name."
                    ) from None
                if not self._is_current(file):  # the holder before removed it after we had opened it
                    file.close()
                    continue
            self._file = file
        for left in place.parent.glob(f".{_literal(place.name)}.*.tmp"):  # by a run that was killed while writing
            with contextlib.suppress(OSError):
                left.unlink()

    def _is_current(self, file: BinaryIO) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let others write the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._file.close()
            self._file = None


def claim_new(path: str | Path, *, overwrite: bool) -> tuple[Path, Claim]:
    """Claim a place for a new file. What is there, if it may be overwritten, stays until something is written.

    Raises
    ------
    StorageError
        If the file exists and may not be overwritten, another run is writing it, or its folder is missing or cannot be
        written to.
    """
    place = checked_place(path, overwrite=overwrite)
    claim = Claim(place)
    try:
        checked_place(place, overwrite=overwrite)  # a run may have finished between the look and the claim
    except BaseException:
        claim.release()
        raise
    return place, claim


class Pace:
    """When a file is published again: after half a second, or 20 times what publishing took if that is longer."""

    def __init__(self) -> None:
        self._next = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time."""
        return monotonic() >= self._next

    @contextlib.contextmanager
    def publishing(self) -> Iterator[None]:
        """Measure a publication; one that fails is tried again at once."""
        start = monotonic()
        yield
        end = monotonic()
        self._next = end + max(SHORTEST_PAUSE, PAUSE_PER_EFFORT * (end - start))


def is_claimed(path: str | Path) -> bool | None:
    """Whether a process holds the claim to a file, that is, is writing it; None if that cannot be told here."""
    if fcntl is None:
        return None
    try:
        with _lock_beside(_absolute(path)).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError as error:
        return True if error.errno == errno.EWOULDBLOCK else None


def _absolute(path: str | Path) -> Path:
    place = Path(path).expanduser().absolute()
    return place.resolve() if place.is_symlink() else place


def _lock_beside(place: Path) -> Path:
    return place.with_name(f".{place.name}.lock")


def _literal(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def cannot_write(place: Path, error: OSError) -> StorageError:
    """The sentence for a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageError(
            f"no space is left to write {place} ({error.strerror}); free some, or choose another place. "
            "The rows written before are intact."
        )
    return StorageError(f"{place} cannot be written ({error.strerror}); choose another place or mend its permissions.")
