"""Measure claims, one after the other, and write what came of them."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from spectral_mf.validation.claims import Claim, Size, all_claims
from spectral_mf.validation.folder import ValidationFolder, code_fingerprint
from spectral_mf.validation.report import claims_json, report_html
from spectral_mf.validation.verdicts import Verdict, error_sentence, verdict_sentence

Progress = Callable[[Claim, Verdict | None], None]
"""Called with a claim before it is measured (None), and with its verdict afterwards."""


def validate(
    claims: Sequence[Claim], size: Size, output: str | Path, *, progress: Progress = lambda claim, verdict: None
) -> list[Verdict]:
    """Measure claims and write a report on all that the folder holds.

    A claim that the folder holds already, measured with the same parameters and code, is not measured again. Whatever
    ends the call, the claims finished until then are in the report.

    Parameters
    ----------
    claims : sequence of Claim
    size : "quick" or "full"
    output : path
        Folder for `report.html`, `claims.json`, figures and run files.
    progress : callable, optional

    Returns
    -------
    list of Verdict
        Of these claims, in their order.

    Raises
    ------
    InputError
        If the folder holds other files or a validation of the other size.
    StorageError
        If it cannot be written to.
    """
    folder = ValidationFolder(Path(output), size)
    try:
        verdicts = []
        for claim in claims:
            verdict = folder.stored(claim)
            if verdict is None or verdict.error:
                progress(claim, None)
                verdict = _measure(claim, folder)
            verdicts.append(verdict)
            progress(claim, verdict)
        return verdicts
    finally:
        known = [(claim, verdict) for claim in all_claims() if (verdict := folder.stored(claim))]
        folder.write("claims.json", claims_json(known, size))
        folder.write("report.html", report_html(known, size, folder.path / "figures"))
        folder.close()


def _measure(claim: Claim, folder: ValidationFolder) -> Verdict:
    """Measure a claim and keep its verdict; a check that breaks is a claim that fails."""
    began = time.perf_counter()
    parameters = claim.parameters(folder.size).to_dict()
    code = code_fingerprint()
    try:
        finding = claim.measure(folder.size)
    except Exception as error:
        verdict = Verdict(
            claim.id,
            holds=False,
            sentence=error_sentence(error),
            comparisons=[],
            parameters=parameters,
            code=code,
            seconds=time.perf_counter() - began,
            error=traceback.format_exc(),
        )
    else:
        verdict = Verdict(
            claim.id,
            holds=finding.holds,
            sentence=verdict_sentence(finding),
            comparisons=finding.comparisons,
            parameters=parameters,
            code=code,
            seconds=time.perf_counter() - began,
            **folder.keep_files(claim, finding),
        )
    folder.keep(verdict)
    return verdict
