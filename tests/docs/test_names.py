"""Every dotted name of the project in a docstring or on a page refers to something that exists."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, Page, pages, spans_of
from tests.docs.test_links import BASES, HISTORICAL, PACKAGES, name_of

ACTORS, SCHEMAS = PACKAGES
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.(?!py\b|lua\b|json\b)\w+)+")
"""Matches a dotted name that is not a file name."""
UNIT = "chronolet.service"
"""The unit of systemd, which looks like a dotted name."""
MESSAGES = ("signals", "wanted")
FOLDERS = ("actors", "schemas", "scripts", "tests")


@cache
def modules_in(folder: Path) -> frozenset[str]:
    """Return the names of the modules and packages directly in a folder."""
    return frozenset(path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir())


@cache
def parts_of(actor: str) -> frozenset[str]:
    """Return an actor's subfolders and message modules. Other modules, such as `state`, are named like variables."""
    return modules_in(ACTORS / actor) & {
        *(path.name for path in (ACTORS / actor).iterdir() if path.is_dir()),
        *MESSAGES,
    }


OURS = (modules_in(ACTORS) | modules_in(SCHEMAS) | {"chronolet", "chronolet_schemas", "tests"}) - {"resources"}
"""The first parts of the project's dotted names, without `resources`: `resources.limits.cpu` is a field of a Pod."""


@cache
def exists(name: str, actor: str = "") -> bool:
    """Return whether a module or an object in one has this name in a package of the project or the actor's folder."""
    packages = ("", "chronolet.", "chronolet_schemas.", *([f"chronolet.{actor}."] if actor else ()))
    return any(_resolves(f"{package}{name}") for package in packages)


def _resolves(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def named(text: str, actor: str = "") -> Iterator[str]:
    """Yield the project's dotted names in the code spans of a text; they may be relative to the actor's folder."""
    first = OURS | (parts_of(actor) if actor else frozenset())
    for span in re.findall(r"`([^`\n]+)`", text):
        if DOTTED.fullmatch(span) and span.partition(".")[0] in first and span != UNIT:
            yield span


def docstrings(path: Path) -> Iterator[str]:
    """Yield the texts of all docstrings, including those of attributes."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def actor_of(path: Path) -> str:
    """Return the name of the actor's folder that contains a file, or an empty string if there is none."""
    return path.relative_to(ACTORS).parts[0] if path.is_relative_to(ACTORS) and path.parent != ACTORS else ""


def missing(path: Path) -> Iterator[str]:
    """Yield the names in a module's docstrings that do not exist."""
    actor = actor_of(path)
    for text in docstrings(path):
        yield from (f"{name_of(path)}: {name}" for name in named(text, actor) if not exists(name, actor))


def test_names_in_docstrings_exist() -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert sum(len(list(named(text))) for path in paths for text in docstrings(path)) > 100
    assert [line for path in paths for line in missing(path)] == []


@pytest.mark.parametrize("path", [path for path in pages() if not name_of(path).startswith(HISTORICAL)], ids=name_of)
def test_names_on_pages_exist(path: Path) -> None:
    names = (span for span in Page(path).spans() if span in set(named(f"`{span}`")))
    assert [name for name in names if not exists(name)] == []


def gone(page: Page) -> set[str]:
    """Return those Python file names and dotted names of the project on a page that no longer exist."""
    spans = set(page.spans())
    files = {span for span in spans if span.endswith(".py") and not any((base / span).exists() for base in BASES)}
    return files | {span for span in spans if set(named(f"`{span}`")) and not exists(span)}


def test_names_of_their_time_in_decisions_are_in_the_table_of_todays_names() -> None:
    folder = ROOT / "docs" / "adr"
    decisions = {int(path.name[:4]): Page(path) for path in folder.glob("0*.md")}
    rows = next(rows for rows in Page(folder / "README.md").tables() if rows[0][1].content == "old name")
    table = {
        (int(number), name) for row in rows[1:] for number in row[0].content.split(",") for name in spans_of(row[1])
    }
    assert {(number, name) for number, page in decisions.items() for name in gone(page)} - table == set()
    assert {(number, name) for number, name in table if name not in set(decisions[number].spans())} == set()
    todays = {span for row in rows[1:] for span in spans_of(row[2])}
    assert [span for span in todays if span.endswith(".py") and not (ACTORS / span).exists()] == []


def test_a_name_that_does_not_exist_is_found() -> None:
    text = "`pod.planning.starting`, `pod.SpecAccepted`, `kernel.gone`, `pod.Gone`, `adapters.fakes.runtime`, `x.gone`"
    assert [name for name in named(text) if not exists(name)] == ["kernel.gone", "pod.Gone"]
