"""The report: one HTML page that stands alone, and the same as JSON."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from spectral_mf.validation.claims import Claim, Size, all_claims, papers
from spectral_mf.validation.environment import machine, versions
from spectral_mf.validation.findings import Comparison
from spectral_mf.validation.verdicts import Verdict

Known = Sequence[tuple[Claim, Verdict]]

_ABOUT = """Published claims about the mean-field limit of self-attention on the circle, measured anew: solutions of the
continuity equation and runs of finitely many tokens, beside what theory predicts. SA is attention with the softmax
denominator, USA without; β is the inverse temperature, c_k = ∫ e^(-ikθ) dμ, λ_k the growth rate of c_k, and k_max the
mode that grows fastest."""

SHOWN = 8
"""Comparisons of a claim that are shown at once, those nearest the edge of what is accepted; more are folded away."""


def claims_json(known: Known, size: Size) -> str:
    """All that is known about the claims, as JSON text."""
    content = {
        "spectral_mf": versions()["spectral_mf"],
        "size": size,
        "written": _now(),
        "versions": versions(),
        "machine": machine(),
        "holds": all(verdict.holds for _, verdict in known),
        "not_measured": [claim.id for claim in _missing(known)],
        "claims": [
            {
                **{name: getattr(claim, name) for name in ("title", "group", "paper", "place", "statement")},
                "acceptance": claim.acceptance,
                **verdict.to_dict(),
            }
            for claim, verdict in known
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def report_html(known: Known, size: Size, figures: Path) -> str:
    """The page: what holds, then each claim with its numbers and figures.

    Parameters
    ----------
    known : sequence of (Claim, Verdict)
        What has been measured, in the order of the table.
    size : "quick" or "full"
    figures : Path
        Folder with `{claim}-{picture}.svg` of each picture; they are put into the page.
    """
    style = resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    groups = [(name, list(members)) for name, members in groupby(known, key=lambda entry: entry[0].group)]
    body = "\n".join(
        f"<h2>{escape(name)}</h2>\n" + "\n".join(_article(claim, verdict, figures) for claim, verdict in members)
        for name, members in groups
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>Validation of spectral_mf {escape(versions()["spectral_mf"])}</title>
<style>
{style}</style>
</head>
<body>
{_header(known, size)}
<main>
{_overview(known)}
{body}
</main>
{_footer(known)}
</body>
</html>
"""


def _header(known: Known, size: Size) -> str:
    failing = [(claim, verdict) for claim, verdict in known if not verdict.holds]
    missing = _missing(known)
    number = len(known)
    if not number:
        lead = "No claim has been measured yet."
    elif failing:
        names = ", ".join(f'<a href="#{claim.id}">{_formula(claim.title)}</a>' for claim, _ in failing)
        lead = f'<span class="chip fails">fails</span> {len(failing)} of {number} claims fail: {names}.'
    else:
        lead = f'<span class="chip">holds</span> {"All" if number > 1 else "The"} {number} claims hold.'
        lead = lead.replace("The 1 claims hold", "The claim that was measured holds")
    left = f"<p>Not measured: {escape(', '.join(claim.id for claim in missing))}.</p>" if missing and number else ""
    return f"""<header>
<h1>Validation of spectral_mf {escape(versions()["spectral_mf"])}</h1>
<p class="lead">{lead}</p>
<p>{_formula(_ABOUT)}</p>
{left}
<p class="soft">{size.capitalize()} validation, {_total_time(known)} of computing, written {_now()}.</p>
</header>"""


def _overview(known: Known) -> str:
    rows = []
    for claim, verdict in known:
        tightest = verdict.tightest
        cells = ["", "", ""]
        if tightest is not None:
            cells = [_formula(tightest.quantity), _measured(tightest), _number(tightest.predicted)]
        rows.append(
            f"<tr{_row_class(verdict.holds)}>"
            f'<td>{_chip(verdict.holds)} <a href="#{claim.id}">{_formula(claim.title)}</a></td>'
            f'<td class="soft">{cells[0]}</td>'
            f'<td class="number" data-name="measured">{cells[1]}</td>'
            f'<td class="number" data-name="predicted">{cells[2]}</td></tr>'
        )
    if not rows:
        return ""
    return f"""<h2>Overview</h2>
<p class="soft">With the comparison of each claim that comes closest to the edge of what is accepted.</p>
<table>
<thead><tr><th>claim</th><th>closest comparison</th><th>measured</th><th>predicted</th></tr></thead>
<tbody>
{chr(10).join(rows)}
</tbody>
</table>"""


def _article(claim: Claim, verdict: Verdict, figures: Path) -> str:
    source = f"{escape(papers().get(claim.paper, claim.paper))} ({_formula(claim.place)})"
    trace = (
        f"<details><summary>Traceback</summary><pre>{escape(verdict.error)}</pre></details>" if verdict.error else ""
    )
    return f"""<article id="{claim.id}"{_row_class(verdict.holds)}>
<h3>{_chip(verdict.holds)} {_formula(claim.title)}</h3>
<p>{_formula(claim.statement)}</p>
<p class="soft">Source: {source}. Accepted: {_formula(claim.acceptance)}.</p>
<p><strong>{_formula(verdict.sentence)}</strong></p>
{_evidence(claim, verdict, figures)}
{trace}
<details><summary>Parameters, seeds, files, time</summary>
{_definitions(_particulars(claim, verdict))}
</details>
</article>"""


def _evidence(claim: Claim, verdict: Verdict, figures: Path) -> str:
    """Figures and numbers; side by side where there is room."""
    shown = f"{_figures(claim, verdict, figures)}<div>{_comparisons(verdict.comparisons)}</div>"
    return f'<div class="evidence{" both" if verdict.pictures else ""}">{shown}</div>'


def _figures(claim: Claim, verdict: Verdict, folder: Path) -> str:
    if not verdict.pictures:
        return ""
    parts = []
    for picture in verdict.pictures:
        image = base64.b64encode((folder / f"{claim.id}-{picture['name']}.svg").read_bytes()).decode("ascii")
        parts.append(
            f'<figure><img alt="{escape(picture["alt"])}" src="data:image/svg+xml;base64,{image}">'
            f"<figcaption>{_formula(picture['caption'])}</figcaption></figure>"
        )
    return f'<div class="figures">{"".join(parts)}</div>'


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return ""
    if len(comparisons) <= SHOWN:
        return _table(comparisons)
    closest = sorted(comparisons, key=lambda comparison: -comparison.strain)[:SHOWN]
    folded = f"<details><summary>All {len(comparisons)} comparisons</summary>{_table(comparisons)}</details>"
    return f"{_table(closest)}{folded}"


def _table(comparisons: Sequence[Comparison]) -> str:
    rows = "\n".join(
        f"<tr{_row_class(entry.holds)}><td>{_formula(entry.quantity)}</td>"
        f'<td class="number" data-name="measured">{_measured(entry)}</td>'
        f'<td class="number" data-name="predicted">{_number(entry.predicted)}</td>'
        f'<td class="rule" data-name="accepted">{_range(entry)}</td>'
        f"<td>{_chip(entry.holds)}</td></tr>"
        for entry in comparisons
    )
    head = "<tr><th>quantity</th><th>measured</th><th>predicted</th><th>accepted</th><th></th></tr>"
    return f"<table><thead>{head}</thead><tbody>\n{rows}\n</tbody></table>"


def _particulars(claim: Claim, verdict: Verdict) -> dict[str, str]:
    entries = {"command": f"spectral-mf validate --only {claim.id} --output DIR"}
    entries |= {name: json.dumps(value, ensure_ascii=False) for name, value in verdict.parameters.items()}
    if verdict.pictures:
        names = (f"figures/{claim.id}-{picture['name']}.svg, .png" for picture in verdict.pictures)
        entries["figures"] = ", ".join(names)
    if verdict.runs:
        entries["runs"] = ", ".join(f"runs/{name}" for name in verdict.runs)
    return entries | {"measured": f"in {verdict.seconds:.1f} s, {verdict.finished}, by code {verdict.code}"}


def _footer(known: Known) -> str:
    entries = {**versions(), "machine": machine()}
    values = [value for _, verdict in known for value in verdict.seeds.values()]
    seeds = sorted({seed for value in values for seed in (value if isinstance(value, list) else [value])})
    if seeds:
        entries["seeds"] = ", ".join(map(str, seeds)) + "; each replicate has a stream of its own spawned from one"
    return f"""<footer>
<h2>Made with</h2>
{_definitions(entries)}
<p class="soft">The same numbers, unrounded, are in claims.json beside this page.</p>
</footer>"""


def _definitions(entries: Mapping[str, Any]) -> str:
    parts = (f"<dt>{escape(name)}</dt><dd><code>{escape(str(value))}</code></dd>" for name, value in entries.items())
    return f"<dl>{''.join(parts)}</dl>"


def _range(entry: Comparison) -> str:
    """What is accepted, in words and numbers."""
    if math.isinf(entry.low):
        return f"≤ {_number(entry.high)}"
    if math.isinf(entry.high):
        return f"≥ {_number(entry.low)}"
    return _formula(entry.rule)


def _formula(text: str) -> str:
    """Text as HTML: `code` between backticks as it is, elsewhere formulas, see `_indexed`."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its other half is a character
        return _indexed(text)
    return "".join(f"<code>{escape(part)}</code>" if i % 2 else _indexed(part) for i, part in enumerate(parts))


def _indexed(text: str) -> str:
    """Text as HTML, with `a_b`, `a_(b c)` as subscripts and `a^b`, `a^(b c)` as superscripts."""
    marked = re.sub(r"(?<=\d)e(-?)0?(\d+)", lambda m: f"×10^({m[1].replace('-', '−')}{m[2]})", escape(text))
    for sign, tag in (("_", "sub"), (r"\^", "sup")):
        inner = r"\(((?:[^()]|\([^()]*\))*)\)|([^\W²³]+)"
        marked = re.sub(rf"(?<=[\w|)]){sign}(?:{inner})", rf"<{tag}>\1\2</{tag}>", marked)
    return marked


def _number(value: float, digits: int = 7) -> str:
    """With a proper minus sign and power of ten."""
    text = f"{value:.{digits}g}"
    mantissa, _, exponent = text.partition("e")
    power = f"×10<sup>{int(exponent)}</sup>" if exponent else ""
    return f"{mantissa}{power}".replace("-", "−")


def _measured(entry: Comparison) -> str:
    """Seven digits beside a prediction; fewer of an error, which is predicted to be zero."""
    return _number(entry.measured, 3 if entry.predicted == 0.0 else 7)


def _chip(holds: bool) -> str:
    return '<span class="chip">holds</span>' if holds else '<span class="chip fails">fails</span>'


def _row_class(holds: bool) -> str:
    return "" if holds else ' class="fails"'


def _missing(known: Known) -> list[Claim]:
    measured = {claim.id for claim, _ in known}
    return [claim for claim in all_claims() if claim.id not in measured]


def _total_time(known: Known) -> str:
    seconds = sum(verdict.seconds for _, verdict in known)
    return f"{seconds / 60.0:.1f} min" if seconds >= 90.0 else f"{seconds:.0f} s"


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
