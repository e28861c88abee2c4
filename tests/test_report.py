"""The report: what it says, and that a browser shows all of it, on a phone and on a desk, in light and in dark."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from spectral_mf.validation.claims import all_claims, chosen_claims
from spectral_mf.validation.findings import at_most, within
from spectral_mf.validation.report import claims_json, report_html
from spectral_mf.validation.validate import validate
from spectral_mf.validation.verdicts import Verdict

MEASURED = ("growth-rates", "plotted-spectrum", "amplitude-equation", "gcd-rule", "exit-times", "energy-staircase")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed (apt-get install chromium)")


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Folder, and claims with verdicts: some that hold, one that fails, one whose check broke."""
    folder = tmp_path_factory.mktemp("validation")
    chosen = chosen_claims(MEASURED)
    entries = dict(zip((claim.id for claim in chosen), validate(chosen, "quick", folder), strict=True))
    growth = entries["growth-rates"]
    outside = within("λ_3 <of> a & b, whose name is long, SA, β = 5", 0.70, 0.68, relative=1e-6)
    entries["growth-rates"] = replace(
        growth, holds=False, sentence="Fails. 1 is outside.", comparisons=[outside, *growth.comparisons]
    )
    entries["gcd-rule"] = replace(
        entries["gcd-rule"],
        holds=False,
        sentence="Fails: the check ended.",
        comparisons=[],
        error="Traceback: " + "x" * 300,
    )
    return folder, [(claim, entries[claim.id]) for claim in all_claims() if claim.id in entries]


@pytest.fixture(scope="module")
def page(known):
    folder, entries = known
    return report_html(entries, "quick", folder / "figures")


class Elements(HTMLParser):
    """Start tags with their attributes, and the text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_the_page_stands_alone(page):
    for tag, attributes in Elements(page).tags:
        assert tag not in ("script", "iframe", "object"), tag
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("data:", "#")), attributes


def test_every_claim_has_its_verdict_source_and_numbers(known, page):
    shown = Elements(page)
    flat = " ".join(shown.text.split())
    places = [attributes["id"] for tag, attributes in shown.tags if tag == "article"]
    assert places == [claim.id for claim, _ in known[1]]
    assert "2 of 6 claims fail" in flat
    assert "λ3 <of> a & b" in flat
    assert "0.7 0.68" in flat or "0.70.68" in flat
    assert "arXiv:2410.23228" in flat
    assert "Traceback: xxx" in flat
    assert "Not measured: reference-solution, mass-and-energy" in flat


def test_every_figure_is_described_and_inside(known, page):
    expected = sum(len(verdict.pictures) for _, verdict in known[1])
    images = [attributes for tag, attributes in Elements(page).tags if tag == "img"]
    assert len(images) == expected == 5
    assert all(len(image["alt"]) > 20 for image in images)


def test_formulas_are_set(known):
    claim, verdict = known[1][0]
    line = replace(claim, statement="c_12² grows like e^(λ_k t) at N^(-1/2), to 1e-06; |c_m| = k_max")
    page = report_html([(line, verdict)], "quick", known[0] / "figures")
    for part in (
        "c<sub>12</sub>²",
        "e<sup>λ<sub>k</sub> t</sup>",
        "N<sup>-1/2</sup>",
        "1×10<sup>−6</sup>",
        "k<sub>max",
    ):
        assert part in page, part


def test_code_is_set_as_code(known):
    claim, verdict = known[1][0]
    for statement, expected in (
        (
            "of `dobrushin_constant`, `a<b_c` at c_1",
            "of <code>dobrushin_constant</code>, <code>a&lt;b_c</code> at c<sub>1",
        ),
        ("a lone ` at k_2", "a lone ` at k<sub>2</sub>"),
    ):
        assert expected in report_html([(replace(claim, statement=statement), verdict)], "quick", known[0] / "figures")


def test_json_has_no_numbers_that_json_does_not_know(known):
    claim, verdict = known[1][0]
    odd = Verdict(
        claim.id, False, "s", [at_most("x", float("nan"), float("inf"))], verdict.parameters, verdict.code, seconds=1.0
    )
    stored = json.loads(claims_json([(claim, odd)], "quick"), parse_constant=lambda name: pytest.fail(name))
    assert stored["holds"] is False
    assert stored["claims"][0]["comparisons"][0]["measured"] == "nan"
    assert Verdict.from_dict(stored["claims"][0]).comparisons[0].low == float("-inf")


def test_nothing_measured_is_said(tmp_path):
    assert "No claim has been measured yet." in report_html([], "quick", tmp_path)


# What a browser makes of the page: it is shown in frames of a given width and colour scheme, and a script looks in.
_MEASURE = """
const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => v / 255)
  .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (!/, 0\\)$/.test(c)) return c; } return "rgb(255, 255, 255)"; };
onload = async () => {
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement, width = root.clientWidth;
    page.querySelectorAll("details").forEach(d => d.open = true);
    const images = [...page.images];
    await Promise.all(images.map(image => image.decode().catch(() => 0)));
    const texts = [...page.body.querySelectorAll("*")].filter(e => e.checkVisibility() &&
      [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()));
    const contrast = e => { const a = light(getComputedStyle(e).color), b = light(ground(e));
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
    const size = e => parseFloat(getComputedStyle(e).fontSize);
    const names = [...page.querySelectorAll("td:first-child")];
    const narrowest = names.reduce((a, b) => a.clientWidth < b.clientWidth ? a : b);
    found.push({width, dark: frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
      scroll: root.scrollWidth, images: images.length, broken: images.filter(i => !i.naturalWidth).length,
      shownWidth: Math.min(...images.map(i => i.clientWidth)),
      beyond: [...page.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > width + 0.5)
        .map(e => e.tagName + ": " + e.textContent.slice(0, 40)),
      cardOverflow: [...page.querySelectorAll("article")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.id),
      smallest: Math.min(...texts.filter(e => !e.closest("sub, sup")).map(size)),
      contrast: Math.min(...texts.map(contrast)), narrowest: narrowest.clientWidth,
      narrowestName: narrowest.textContent, texts: texts.length});
  }
  document.body.replaceChildren(Object.assign(document.createElement("pre"), {textContent: JSON.stringify(found)}));
};
"""


def browse(page, tmp_path, script=_MEASURE):
    """Measurements of a page at 375 and 1280 pixels, light and dark, and what the browser wrote to its console."""
    frames = "".join(
        f'<iframe style="color-scheme:{scheme};width:{width}px;height:900px;border:0" srcdoc="{escape(page)}"></iframe>'
        for width in (375, 1280)
        for scheme in ("light", "dark")
    )
    wrapper = tmp_path / "frames.html"
    wrapper.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><body>{frames}<script>{script}</script></body>', encoding="utf-8"
    )
    command = [
        BROWSER,
        "--headless",
        "--hide-scrollbars",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--virtual-time-budget=20000"]
    done = subprocess.run(
        [*command, "--dump-dom", wrapper.as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    (shown,) = re.findall(r"<pre>(\[.*\])</pre>", done.stdout, re.DOTALL) or [done.stderr]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(re.sub("&lt;", "<", shown).replace("&gt;", ">").replace("&amp;", "&")), console


@needs_browser
@pytest.mark.slow
def test_a_browser_shows_all_of_it_on_a_phone_and_on_a_desk(page, tmp_path):
    frames, console = browse(page, tmp_path)
    assert console == []
    assert [(frame["width"], frame["dark"]) for frame in frames] == [
        (375, False),
        (375, True),
        (1280, False),
        (1280, True),
    ]
    for frame in frames:
        assert frame["images"] == 5
        assert frame["broken"] == 0
        assert frame["shownWidth"] >= 280
        assert frame["scroll"] <= frame["width"], frame["beyond"]
        assert frame["beyond"] == []
        assert frame["cardOverflow"] == []
        assert frame["smallest"] >= 12.0
        assert frame["contrast"] >= 4.5  # WCAG 2, level AA
        assert frame["narrowest"] >= 110, frame["narrowestName"]  # a name is not squeezed to a word a line
        assert frame["texts"] > 200


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ("<script>console.error('oh')</script>", lambda frame, console: any("oh" in line for line in console)),
        ("<p style='width:3000px'>wide</p>", lambda frame, console: frame["scroll"] > frame["width"]),
        ("<p style='color:#777'>pale</p>", lambda frame, console: frame["contrast"] < 4.5),
        ("<p style='font-size:8px'>small</p>", lambda frame, console: frame["smallest"] < 12.0),
        ("<img src='data:image/png;base64,AAAA'>", lambda frame, console: frame["broken"] == 1),
    ],
    ids=["console", "wide", "pale", "small", "broken"],
)
def test_the_browser_sees_faults(page, tmp_path, fault, seen):
    frames, console = browse(page.replace("<main>", f"<main>{fault}"), tmp_path)
    assert any(seen(frame, console) for frame in frames)
