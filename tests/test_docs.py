"""Every page: links lead somewhere, and names that look like the package's are in it."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("benchmarks/*.md"))]

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAME = re.compile(r"`(spectral_mf(?:\.\w+)+)")
CODE = re.compile(r"^```.*?^```|^ {4}.*?$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def prose(page):
    """A page without its code."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """Anchors of a page's headings, by GitHub's rule."""
    headings = re.findall(r"^#+ +(.+?) *$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def resolve(name):
    """Object with this dotted name; a module is imported as far as it goes."""
    parts = name.split(".")
    found = import_module(parts[0])
    for i, part in enumerate(parts[1:], start=2):
        found = getattr(found, part) if hasattr(found, part) else import_module(".".join(parts[:i]))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    broken = []
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_of_the_package_exist(page):
    missing = []
    for name in sorted(set(NAME.findall(page.read_text(encoding="utf-8")))):
        try:
            resolve(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_tests_that_are_cited_exist(page):
    missing = []
    for file, words in re.findall(r"`(?:tests/)?(test_\w+\.py)`(?:, ([\w ]+?) *\|)?", page.read_text(encoding="utf-8")):
        path = ROOT / "tests" / file
        tests = re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")) if path.exists() else []
        if not any(all(word.lower() in name.lower() for word in words.split()) for name in tests):
            missing.append((file, words))
    assert missing == []
