"""`spectral-mf validate`: measure what the literature claims, and write a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectral_mf.cli.options import Quiet
from spectral_mf.cli.progress import say

if TYPE_CHECKING:
    from spectral_mf.validation.claims import Claim
    from spectral_mf.validation.verdicts import Verdict

CLAIM_FAILS = 1
"""Exit code when a claim does not hold."""


def validate(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the report; made if needed.", show_default=False
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All in an hour, or with fewer tokens and replicates in two minutes.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="CLAIM", help="Measure this claim; may be given repeatedly.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Measure each published claim, compare it with theory, and write report.html, claims.json, figures and runs.

    Claims that DIR holds already, by the same code, are not measured again: the same command goes on after a stop.

    Exit code 1 if a claim fails.
    """
    from spectral_mf.validation.claims import chosen_claims
    from spectral_mf.validation.validate import validate as measure

    claims = chosen_claims(only or [])
    try:
        verdicts = measure(
            claims, "full" if full else "quick", output, progress=lambda claim, verdict: _tell(claim, verdict, quiet)
        )
    except KeyboardInterrupt:
        say(f"What was measured until then is kept in {output}; the same command goes on.")
        raise
    print(output / "report.html")
    failing = [verdict.claim for verdict in verdicts if not verdict.holds]
    if not quiet:
        held = f"{len(verdicts) - len(failing)} of {len(verdicts)} claims hold"
        print(held + (f"; fails: {', '.join(failing)}" if failing else ""))
    if failing:
        raise typer.Exit(CLAIM_FAILS)


def _tell(claim: Claim, verdict: Verdict | None, quiet: bool) -> None:
    """One line when a claim has its verdict; failures are told also when quiet."""
    if verdict is not None:
        word = "holds" if verdict.holds else "FAILS"
        say(f"{word}  {claim.id}  ({verdict.seconds:.1f} s)", quiet=quiet and verdict.holds)
        if not verdict.holds:
            say(f"       {verdict.sentence}")
