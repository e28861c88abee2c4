"""Files of tokens: angles, or vectors in the plane, with optional weights.

What a file may hold
--------------------
`.npy`
    One array: angles (N,) in radians, or vectors (N, 2).
`.npz`, `.h5`, `.hdf5`
    An array named `angles`, `theta`, `tokens` or `vectors`, or one array of any name; optionally `weights` (N,).
`.csv`, `.txt`
    One row a token, separated by commas, semicolons or white space; `#` starts a comment. A first line of names may
    give the columns: `angle` (also `angles`, `theta`), or `x` and `y`, and optionally `weight` (also `weights`, `w`);
    other columns are left out. Without names, 1 column is angles, 2 are vectors, 3 are vectors and weights. Names
    may also stand in the comment above the first row.

Vectors are normalised: only their direction counts.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_mf.errors import InputError, StorageError
from spectral_mf.wording import counted

FloatArray = NDArray[np.float64]
Tokens = tuple[FloatArray, FloatArray | None]

_TOKEN_NAMES = ("angles", "theta", "tokens", "vectors")
_WEIGHTS = "weights"
_COLUMNS = {
    "angle": "angle", "angles": "angle", "theta": "angle",
    "x": "x", "y": "y",
    "weight": "weight", "weights": "weight", "w": "weight",
}  # fmt: skip
_NPY_MAGIC = b"\x93NUMPY"
_EXPECTED = "give angles of shape (N,) in radians or vectors of shape (N, 2)"


def read_tokens(path: str | Path) -> Tokens:
    """Read angles and weights of tokens.

    Parameters
    ----------
    path : str or Path
        File; its suffix tells the format (see the module's documentation).

    Returns
    -------
    angles : ndarray of float64, shape (N,)
        In radians, as given, or the direction of each vector in [0, 2 pi).
    weights : ndarray of float64, shape (N,), or None
        Non-negative, as given; None if the file has none.

    Raises
    ------
    StorageError
        If the file is missing, unreadable, damaged or of an unknown kind.
    InputError
        If it does not hold tokens: no rows, a wrong shape, values that are not finite real numbers, a vector of
        length zero, or weights that are negative or all zero.
    """
    file = Path(path).expanduser()
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise StorageError(f"{file}: files of kind {file.suffix!r} are not known; give one of {', '.join(_READERS)}.")
    if file.is_dir():
        raise StorageError(f"{file} is a folder; give the path of a file of tokens.")
    with _clear_errors(file):
        read = reader(file)
    angles = _angles(file, read)
    return angles, None if read.weights is None else _checked_weights(file, read, angles.size)


class _Read(NamedTuple):
    """What a file holds, before it is checked; lines[i] is the line of a text that row i stands in, from 1."""

    tokens: Any
    weights: Any
    lines: list[int] | None = None

    def place(self, row: int, what: str) -> str:
        """Where a row is, as one finds it: the line of a text, or the index into an array."""
        return f"the {what} in line {self.lines[row]}" if self.lines else f"{what} {row} (counted from 0)"


@contextmanager
def _clear_errors(file: Path) -> Iterator[None]:
    """Whatever a library says about a file that cannot be read, in one sentence with the file's name."""
    try:
        yield
    except (InputError, KeyboardInterrupt):
        raise
    except FileNotFoundError:
        raise StorageError(f"{file} does not exist; give the path of a file of tokens.") from None
    except UnicodeDecodeError:
        raise StorageError(f"{file} is not text in UTF-8; save it as plain text.") from None
    except (OSError, ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        if "Object arrays" in str(error):
            raise StorageError(f"{file} holds Python objects; save an array of real numbers.") from None
        reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        raise StorageError(f"{file} cannot be read ({reason}); it may be damaged or of another kind.") from None


def _read_npy(file: Path) -> _Read:
    with file.open("rb") as stream:
        if stream.read(len(_NPY_MAGIC)) != _NPY_MAGIC:
            raise StorageError(
                f"{file} is not a NumPy array file; write it with numpy.save, or name text .csv or .txt."
            )
        stream.seek(0)
        try:
            return _Read(np.lib.format.read_array(stream, allow_pickle=False), None)
        except (ValueError, EOFError) as error:
            if "Object arrays" in str(error):
                raise
            raise StorageError(f"{file} ends early or is damaged; write it again with numpy.save.") from None


def _read_npz(file: Path) -> _Read:
    with file.open("rb") as stream:
        if not zipfile.is_zipfile(stream):
            raise StorageError(f"{file} is not a NumPy .npz archive; it may be damaged or of another kind.")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            return _by_name(file, archive, list(archive.files), lambda value: value)


def _read_hdf5(file: Path) -> _Read:
    import h5py

    file.open("rb").close()  # a file that is missing, or may not be read, in the system's words
    if not h5py.is_hdf5(file):
        raise StorageError(f"{file} is not an HDF5 file; it may be damaged or of another kind.")
    with h5py.File(file, "r") as root:
        names = [name for name, item in root.items() if isinstance(item, h5py.Dataset)]
        if "moment_real" in names:
            raise InputError(f"{file} is a run, not a file of tokens; resume it, or give angles of tokens.")
        return _by_name(file, root, names, lambda dataset: dataset[()])


def _by_name(file: Path, arrays: Mapping[str, Any], names: list[str], read: Callable[[Any], Any]) -> _Read:
    """Choose the array of tokens by its name, and the weights."""
    others = [name for name in names if name != _WEIGHTS]
    chosen = [name for name in others if name in _TOKEN_NAMES] or others
    if len(chosen) != 1:
        found = ", ".join(sorted(names)) or "no arrays"
        raise InputError(f"{file} holds {found}; name one array of tokens {', '.join(_TOKEN_NAMES[:-1])} or vectors.")
    return _Read(read(arrays[chosen[0]]), read(arrays[_WEIGHTS]) if _WEIGHTS in names else None)


def _read_text(file: Path) -> _Read:
    lines = file.read_text(encoding="utf-8-sig").splitlines()
    first = next((i for i, line in enumerate(lines) if line.partition("#")[0].strip()), None)
    if first is None:
        raise InputError(f"{file} holds no tokens; {_EXPECTED}.")
    separator = next((mark for mark in (",", ";") if mark in lines[first]), None)
    names: list[str] | None = _split(lines[first].partition("#")[0], separator)
    if not any(_is_number(name) for name in names or []):
        first += 1
    else:
        width = len(names or [])
        above = _split(lines[first - 1].strip().lstrip("#"), separator) if first else []
        names = above if len(above) == width and any(name.lower() in _COLUMNS for name in above) else None
    rows = _parse_rows(file, lines, first, separator)
    filled = [i for i, line in enumerate(lines[first:], start=first + 1) if line.partition("#")[0].strip()]
    return _Read(*_from_columns(file, rows, names), filled)


def _split(line: str, separator: str | None) -> list[str]:
    return [part.strip().strip('"') for part in line.strip().split(separator)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_rows(file: Path, lines: list[str], first: int, separator: str | None) -> FloatArray:
    """All rows after the names; if one cannot be read, the message tells its line."""
    if not any(line.partition("#")[0].strip() for line in lines[first:]):
        raise InputError(f"{file} holds no tokens; {_EXPECTED}.")
    try:
        return np.loadtxt(lines[first:], delimiter=separator, comments="#", dtype=np.float64, ndmin=2)
    except ValueError as error:
        width = None
        for number, line in enumerate(lines[first:], start=first + 1):
            parts = _split(line.partition("#")[0], separator)
            if parts in ([], [""]):
                continue
            width = width or len(parts)
            bad = next((part for part in parts if not _is_number(part)), None)
            if bad is not None:
                raise InputError(f"{file}, line {number}: {bad!r} is not a number; {_EXPECTED}.") from None
            if len(parts) != width:
                raise InputError(
                    f"{file}, line {number}: {counted(len(parts), 'columns')} where the first row has {width}; "
                    "give every row the same columns."
                ) from None
        raise InputError(f"{file} cannot be read as numbers ({error}); {_EXPECTED}.") from None


def _from_columns(file: Path, rows: FloatArray, names: list[str] | None) -> tuple[FloatArray, FloatArray | None]:
    width = rows.shape[1]
    if names is None:
        if width > 3:
            raise InputError(f"{file} has {width} columns without names; name them angle, or x and y, and weight.")
        return (rows[:, 0] if width == 1 else rows[:, :2]), (rows[:, 2] if width == 3 else None)
    if len(names) != width:
        raise InputError(
            f"{file} has {counted(len(names), 'names')} for {counted(width, 'columns')}; give each column a name."
        )
    column: dict[str, int] = {}
    for j, name in enumerate(names):
        meaning = _COLUMNS.get(name.lower())
        if meaning in column:
            raise InputError(f"{file} has two columns for the {meaning}; keep one.")
        if meaning is not None:
            column[meaning] = j
    if ("angle" in column) == ("x" in column or "y" in column) or ("x" in column) != ("y" in column):
        raise InputError(f"{file} has the columns {', '.join(names)}; name either angle, or x and y, and maybe weight.")
    weights = rows[:, column["weight"]] if "weight" in column else None
    if "angle" in column:
        return rows[:, column["angle"]], weights
    return rows[:, [column["x"], column["y"]]], weights


def _real(file: Path, values: Any, what: str) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InputError(f"{file}: the {what} are of type {array.dtype}, not real numbers; {_EXPECTED}.")
    return array.astype(np.float64)


def _angles(file: Path, read: _Read) -> FloatArray:
    tokens = _real(file, read.tokens, "tokens")
    if tokens.size == 0:
        raise InputError(f"{file} holds no tokens; {_EXPECTED}.")
    if tokens.ndim != 1 and not (tokens.ndim == 2 and tokens.shape[1] == 2):
        raise InputError(f"{file}: the tokens have shape {tokens.shape}; {_EXPECTED}.")
    bad = np.flatnonzero(~np.isfinite(tokens).reshape(tokens.shape[0], -1).all(axis=1))
    if bad.size:
        raise InputError(f"{file}: {read.place(bad[0], 'token')} is {tokens[bad[0]]}; every token has to be finite.")
    if tokens.ndim == 1:
        return tokens
    zero = np.flatnonzero(~tokens.any(axis=1))
    if zero.size:
        raise InputError(
            f"{file}: {read.place(zero[0], 'token')} is a vector of length zero, without direction; remove it."
        )
    return np.asarray(np.arctan2(tokens[:, 1], tokens[:, 0]) % (2.0 * np.pi))


def _checked_weights(file: Path, read: _Read, n_tokens: int) -> FloatArray:
    weights = _real(file, read.weights, "weights")
    if weights.shape != (n_tokens,):
        raise InputError(
            f"{file}: the weights have shape {weights.shape} for {counted(n_tokens, 'tokens')}; give one a token."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if bad.size:
        raise InputError(
            f"{file}: {read.place(bad[0], 'weight')} is {weights[bad[0]]}; weights have to be finite and >= 0."
        )
    if not weights.any():
        raise InputError(f"{file}: all weights are 0; at least one has to be positive.")
    return weights


_READERS: dict[str, Callable[[Path], _Read]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_text,
    ".txt": _read_text,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}
