"""The walkthrough tables in docs/architecture.md name only existing files, and list each event next to a file that
creates it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from markdown_it.token import Token

from tests.docs.markdown import ROOT, Page, spans_of
from tests.docs.test_links import BASES, PACKAGES

ARCHITECTURE = ROOT / "docs" / "architecture.md"
HEADER = ["step", "file", "event or signal"]


def walks(page: Page) -> Iterator[list[list[Token]]]:
    """Yield the rows of each walkthrough table, without the header."""
    for header, *rows in page.tables():
        if [cell.content for cell in header] == HEADER:
            yield rows


@cache
def created_in(path: Path) -> frozenset[str]:
    """Return the names of everything that a module calls, which include the classes that it instantiates."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return frozenset(
        called.attr if isinstance(called, ast.Attribute) else called.id
        for called in calls
        if isinstance(called, ast.Attribute | ast.Name)
    )


def wrong(page: Page) -> Iterator[str]:
    """Yield the files in walkthrough tables that do not exist, and the events that no file in their row creates."""
    for rows in walks(page):
        for _, files, events in rows:
            paths = [PACKAGES[0] / name for name in spans_of(files)]
            yield from (f"{path.relative_to(PACKAGES[0])}: no such file" for path in paths if not path.is_file())
            created = frozenset[str]().union(*(created_in(path) for path in paths if path.is_file()))
            for event in spans_of(events):
                if event.rpartition(".")[2] not in created:
                    yield f"{event}: not created in {', '.join(spans_of(files))}"


def misplaced(page: Page) -> Iterator[str]:
    """Yield Python files that are named without a folder and do not exist in the folder named last."""
    below: list[Path] = []
    for span in page.spans():
        if re.fullmatch(r"\w+\.py", span):
            if not any((folder / span).is_file() for folder in below):
                yield span
        elif "/" in span:
            found = [base / span for base in BASES if (base / span).exists()]
            below = [path if path.is_dir() else path.parent for path in found] or below


def test_the_walks_name_the_files_that_create_each_event() -> None:
    page = Page(ARCHITECTURE)
    found = list(walks(page))
    assert len(found) == 3, "the walks of a pod, of a notice and of a claim"
    assert sum(len(spans_of(row[2])) for rows in found for row in rows) >= 60
    assert list(wrong(page)) == []


def test_files_named_without_a_folder_exist_in_the_folder_named_last() -> None:
    page = Page(ARCHITECTURE)
    assert "decider.py" in set(page.spans())
    assert list(misplaced(page)) == []


def test_a_wrong_file_or_event_is_found() -> None:
    text = """
`pod/workers/` has `sandboxes.py`, `images.py`; `kernel/kind.py` lies next to `decider.py` and `starting.py`

| step | file | event or signal |
| --- | --- | --- |
| right | `pod/planning/starting.py` | `pod.RestartScheduled` |
| elsewhere | `pod/planning/plan.py` | `pod.SandboxStartRequested`, `pod.RestartScheduled` |
| gone | `pod/nothing.py` | |
"""
    page = Page(ROOT / "docs" / "page.md", text)
    assert list(misplaced(page)) == ["images.py", "starting.py"]
    assert list(wrong(page)) == [
        "pod.RestartScheduled: not created in pod/planning/plan.py",
        "pod/nothing.py: no such file",
    ]
