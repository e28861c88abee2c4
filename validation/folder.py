"""The folder that a validation writes to: each verdict is kept as soon as it is there, so that a later call goes on.

report.html   claims.json            the whole, written at the end of each call
validation.json                      what the folder is
verdicts/{claim}.json                one finished claim each
figures/{claim}-{name}.svg, .png
runs/{claim}-{name}.h5
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from spectral_mf import __version__
from spectral_mf.errors import InputError, StorageError
from spectral_mf.storage.publishing import Claim as Lock
from spectral_mf.storage.publishing import write_whole
from spectral_mf.validation.claims import Claim, Size
from spectral_mf.validation.environment import versions
from spectral_mf.validation.findings import Finding
from spectral_mf.validation.verdicts import Verdict

FORMAT = 1

_LABEL = "validation.json"
_FOLDERS = ("verdicts", "figures", "runs")
_PACKAGES = (
    "spectral_mf",
    "spectral_mf.data",
    "spectral_mf.solvers",
    "spectral_mf.validation",
    "spectral_mf.validation.checks",
)


class ValidationFolder:
    """An output folder of one size, locked against other writers until `close`.

    Parameters
    ----------
    path : Path
        Made if it does not exist.
    size : "quick" or "full"

    Raises
    ------
    InputError
        If the folder holds something else: other files, or a validation of the other size.
    StorageError
        If it cannot be made or written to, or another validation is writing to it.
    """

    def __init__(self, path: Path, size: Size) -> None:
        self.path = path.expanduser().absolute()
        self.size: Size = size
        self._require_ours()
        _make(self.path)
        self._lock = Lock(self.path / _LABEL)
        # The label comes first: a folder that has anything in it can be told from that of somebody else.
        self.write(_LABEL, _json({"format": FORMAT, "size": size, "spectral_mf": __version__}))
        for name in _FOLDERS:
            _make(self.path / name)

    def _require_ours(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise InputError(f"{self.path} is a file; give a folder to write the report to.")
        label = self.path / _LABEL
        if not label.exists():
            if any(not entry.name.startswith(f".{_LABEL}") for entry in self.path.iterdir()):
                raise InputError(
                    f"{self.path} holds files that are not of a validation; give a new folder, or an empty one."
                )
            return
        stored = _read(label)
        if stored.get("format") != FORMAT:
            raise InputError(f"{self.path} was written by another version of spectral_mf; give a new folder.")
        if stored.get("size") != self.size:
            raise InputError(
                f"{self.path} holds a --{stored.get('size')} validation, not a --{self.size} one; give another folder."
            )

    def stored(self, claim: Claim) -> Verdict | None:
        """The verdict on a claim that was measured before with the same parameters and the same code, if whole."""
        place = self.path / "verdicts" / f"{claim.id}.json"
        if not place.exists():
            return None
        try:
            verdict = Verdict.from_dict(_read(place))
        except (KeyError, TypeError, ValueError):
            return None
        same = verdict.parameters == claim.parameters(self.size).to_dict() and verdict.code == code_fingerprint()
        return verdict if same and self._holds_files_of(verdict) else None

    def _holds_files_of(self, verdict: Verdict) -> bool:
        wanted = [f"figures/{verdict.claim}-{picture['name']}.{kind}" for picture in verdict.pictures for kind in KINDS]
        wanted += [f"runs/{name}" for name in verdict.runs]
        return all((self.path / name).exists() for name in wanted)

    def keep_files(self, claim: Claim, finding: Finding) -> dict[str, Any]:
        """Write the figures and runs of a finding, and return how a verdict names them."""
        from spectral_mf.plotting import save_figure

        for picture in finding.pictures:
            for kind in KINDS:
                save_figure(picture.figure, self.path / "figures" / f"{claim.id}-{picture.name}.{kind}")
        runs = []
        for name, trajectory in finding.runs.items():
            runs.append(f"{claim.id}-{name}.h5")
            trajectory.save(self.path / "runs" / runs[-1], overwrite=True)
        pictures = [{"name": p.name, "alt": p.alt, "caption": p.caption} for p in finding.pictures]
        return {"pictures": pictures, "runs": runs}

    def keep(self, verdict: Verdict) -> None:
        """Store a verdict; its files have to be there already."""
        self.write(f"verdicts/{verdict.claim}.json", _json(verdict.to_dict()))

    def write(self, name: str, content: str) -> Path:
        """Put a text file in place, whole or not at all."""
        place = self.path / name
        write_whole(place, content.encode("utf-8"))
        return place

    def close(self) -> None:
        """Let others write to the folder."""
        self._lock.release()


KINDS = ("svg", "png")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"the folder {folder} cannot be made ({error.strerror}); give another.") from None


@cache
def code_fingerprint() -> str:
    """Digest of the modules, reference tables, and versions of libraries, that a measurement depends on."""
    digest = hashlib.sha256(repr(versions()).encode())
    for package in _PACKAGES:
        folder = resources.files(package)
        for name in sorted(entry.name for entry in folder.iterdir() if entry.name.endswith((".py", ".json"))):
            if not name.startswith("report"):
                digest.update(name.encode() + folder.joinpath(name).read_bytes())
    return digest.hexdigest()[:16]


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _read(place: Path) -> dict[str, Any]:
    try:
        value = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise InputError(f"{place} cannot be read ({error}); give a new folder.") from None
    return value if isinstance(value, dict) else {}
