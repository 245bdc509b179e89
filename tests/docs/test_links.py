"""Every relative link, anchor and file name in the repository's Markdown refers to something that exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.markdown import ROOT, Page, pages

PAGES = pages()
PACKAGES = (ROOT / "actors" / "chronolet", ROOT / "schemas" / "chronolet_schemas")
BASES = (ROOT, *PACKAGES, *(path for path in PACKAGES[0].iterdir() if path.is_dir()))
"""The folders to which file names are relative: the repository, a package, or the folder of an actor."""
FILE_NAME = re.compile(
    r"^(?:(?:actors|docs|examples|requirements|schemas|scripts|tests)/[\w./-]+|[\w./-]+/\w+\.(?:py|lua))$"
)
HISTORICAL = ("docs/adr/", "CHANGELOG.md")
"""Pages that describe the past: files that they name may have moved since."""


def broken(page: Page) -> Iterator[str]:
    """Yield the relative links on a page whose file or anchor does not exist."""
    for link in page.links():
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (page.path.parent / name).resolve()
        if name and not target.exists():
            yield f"{link}: no such file"
        elif anchor and anchor not in (Page(target) if name else page).anchors():
            yield f"{link}: no such heading"


def missing(page: Page) -> Iterator[str]:
    """Yield the file names in code spans that do not exist in any folder of `BASES`."""
    for span in page.spans():
        if FILE_NAME.match(span) and not any((base / span).exists() for base in BASES):
            yield span


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_all_pages_are_found() -> None:
    assert {"README.md", "CONTRIBUTING.md", "docs/index.md"} <= {name_of(path) for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(path: Path) -> None:
    assert list(broken(Page(path))) == []


@pytest.mark.parametrize("path", [path for path in PAGES if not name_of(path).startswith(HISTORICAL)], ids=name_of)
def test_named_files_exist(path: Path) -> None:
    assert list(missing(Page(path))) == []


def test_every_page_of_docs_is_reached_from_the_index() -> None:
    reached, open_pages = set[Path](), [ROOT / "docs" / "index.md"]
    while open_pages:
        path = open_pages.pop()
        if path in reached:
            continue
        reached.add(path)
        names = (link.partition("#")[0] for link in Page(path).links() if not re.match(r"[a-z]+:", link))
        targets = ((path.parent / name).resolve() for name in names if name)
        open_pages += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert {path for path in PAGES if path.is_relative_to(ROOT / "docs")} - reached == set()


def test_the_list_of_decisions_has_each_with_its_title() -> None:
    folder = ROOT / "docs" / "adr"
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (folder / "README.md").read_text(), re.MULTILINE)
    heads = {path.name: path.read_text().splitlines()[0] for path in folder.glob("0*.md")}
    titles = {name: re.sub(r"^# \d+[.:] ", "", head) for name, head in heads.items()}
    assert {name: (int(number), title) for number, title, name in rows} == {
        name: (int(name[:4]), title) for name, title in titles.items()
    }


def test_a_broken_link_anchor_or_file_name_is_found() -> None:
    text = """
# A page with `code`

[good](index.md) [good](#a-page-with-code) [good](../README.md#limits) [away](https://example.com/#x)
[bad](nothing.md) [bad](#nothing) [bad](../README.md#nothing) `scripts/test` `kernel/kind.py` `scripts/nothing`
"""
    page = Page(ROOT / "docs" / "page.md", text)
    assert list(broken(page)) == [
        "nothing.md: no such file",
        "#nothing: no such heading",
        "../README.md#nothing: no such heading",
    ]
    assert list(missing(page)) == ["scripts/nothing"]
