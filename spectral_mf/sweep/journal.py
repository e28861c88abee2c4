"""Finished cases on disk, one after the other: what a kill leaves is every record that was complete.

A record is its length and its CRC-32 (two little-endian 32-bit integers), then its content. The first one is the
identity of the sweep. A torn record at the end, as a kill in the middle of a write leaves it, is cut off.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, KeysView, Sequence
from pathlib import Path
from typing import BinaryIO

from spectral_mf.errors import StorageError
from spectral_mf.storage.publishing import write_whole
from spectral_mf.sweep.results import CaseResult

_HEAD = struct.Struct("<II")
_MAGIC = b"spectral_mf sweep journal 1\n"


def journal_of(place: Path) -> Path:
    """Where the finished cases of a sweep into the file `place` are until all are done."""
    return place.with_name(f"{place.name}.cases")


class Journal:
    """An append-only file of finished cases; made by `create` or `open`.

    Attributes
    ----------
    path : Path
    identity : str
        What the sweep is (see `SweepPlan.identity`).

    Raises
    ------
    StorageError
        If the file cannot be read, or is not one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: dict[int, tuple[int, int]] = {}
        self._failed: set[int] = set()
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise StorageError(
                f"{path} cannot be read ({error.strerror}); mend its permissions, or choose another output file."
            ) from error
        try:
            if self._file.read(len(_MAGIC)) != _MAGIC:
                raise StorageError(f"{path} is not a journal of a sweep; move it away, or choose another output file.")
            records = self._scan()
            _, identity = next(records, (0, None))
            if identity is None:
                raise StorageError(f"{path} is damaged: it does not say which sweep it is of; delete it.")
            self.identity = identity.decode("utf-8")
            for start, content in records:
                self._note(CaseResult.from_bytes(content), start, len(content))
            self._end = self._file.tell()
        except BaseException:
            self._file.close()
            raise

    @classmethod
    def create(cls, path: Path, identity: str) -> Journal:
        """Begin an empty one, in place of what is there."""
        write_whole(path, _MAGIC + _record(identity.encode("utf-8")))
        return cls(path).go_on()

    def go_on(self) -> Journal:
        """Make it ready to be appended to; what a kill left unfinished is cut off."""
        self._file.close()
        try:
            self._file = self.path.open(
                "r+b", buffering=0
            )  # nothing that a full disk refused waits to be written again
            self._file.truncate(self._end)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written ({error.strerror}); mend its permissions.") from error
        return self

    @property
    def finished(self) -> KeysView[int]:
        """Numbers of the finished cases, as they come."""
        return self._places.keys()

    @property
    def failed(self) -> int:
        """Number of failed cases among them."""
        return len(self._failed)

    def forget_failures(self) -> None:
        """Take the failed cases for missing: what they come to next time counts."""
        for number in self._failed:
            del self._places[number]
        self._failed.clear()

    def append(self, results: Sequence[CaseResult]) -> None:
        """Put results on disk, and come back when they are there.

        Raises
        ------
        StorageError
            If that failed. What was there before is intact.
        """
        contents = [result.to_bytes() for result in results]
        try:
            self._file.seek(self._end)
            left = memoryview(b"".join(_record(content) for content in contents))
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StorageError(
                f"no case can be added to {self.path} ({error.strerror}); make room, then go on with the finished ones."
            ) from error
        for result, content in zip(results, contents, strict=True):
            self._note(result, self._end + _HEAD.size, len(content))
            self._end += _HEAD.size + len(content)

    def read(self, number: int) -> CaseResult:
        """One finished case."""
        start, length = self._places[number]
        self._file.seek(start)
        return CaseResult.from_bytes(self._file.read(length))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _note(self, result: CaseResult, start: int, length: int) -> None:
        self._places[result.number] = (start, length)  # the last record of a case is the one that counts
        if result.outcome == "failed":
            self._failed.add(result.number)
        else:
            self._failed.discard(result.number)

    def _scan(self) -> Iterator[tuple[int, bytes]]:
        """Start and content of each whole record; the file is left at the end of the last."""
        while True:
            begin = self._file.tell()
            head = self._file.read(_HEAD.size)
            length, checksum = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
            content = self._file.read(length)
            if len(head) < _HEAD.size or len(content) < length or zlib.crc32(content) != checksum:
                self._file.seek(begin)
                return
            yield begin + _HEAD.size, content


def _record(content: bytes) -> bytes:
    return _HEAD.pack(len(content), zlib.crc32(content)) + content
