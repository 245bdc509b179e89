"""Every fenced block in the repository's Markdown is valid in the language it names, including its command lines."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.commandlines import command_lines, error_of, shell_lines
from tests.docs.markdown import ROOT, Block, Page, pages

PARSERS: dict[str, Callable[[str], Any]] = {
    "python": ast.parse,
    "json": json.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "toml": tomllib.loads,
}
SHELLS = {"sh": False, "bash": False, "console": True}
"""The languages with command lines; the value says whether only lines after a prompt are commands."""
LANGUAGES = {*PARSERS, *SHELLS, "text", "diff"}
BLOCKS = [(path, block) for path in pages() for block in Page(path).blocks()]


def name_of(value: object) -> str:
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else str(getattr(value, "line", value))


def errors(block: Block) -> list[str]:
    """Return the command lines of a block that `chronolet` would reject, each with the reason."""
    lines = shell_lines(block.text, console=SHELLS[block.language])
    calls = ((line, arguments) for line in lines for arguments in command_lines(line))
    return [f"{line}: {reason}" for line, arguments in calls if (reason := error_of(arguments))]


@pytest.mark.parametrize(("path", "block"), BLOCKS, ids=name_of)
def test_a_block_names_a_known_language(path: Path, block: Block) -> None:
    assert block.language in LANGUAGES, f"{path}:{block.line}"


@pytest.mark.parametrize(("path", "block"), [one for one in BLOCKS if one[1].language in PARSERS], ids=name_of)
def test_data_and_code_parse(path: Path, block: Block) -> None:
    del path
    PARSERS[block.language](block.text)


@pytest.mark.parametrize(("path", "block"), [one for one in BLOCKS if one[1].language in SHELLS], ids=name_of)
def test_commands_are_accepted(path: Path, block: Block) -> None:
    assert errors(block) == [], f"{path}:{block.line}"


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_a_list_begins_after_an_empty_line(path: Path) -> None:
    """GitHub does not require the empty line, but the site's Markdown does."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^(?![*#]|\d+\.|  |\n).+\n[*-] .*", text, re.MULTILINE) == []


def test_the_pages_show_many_commands() -> None:
    blocks = [block for _, block in BLOCKS if block.language in SHELLS]
    lines = [line for block in blocks for line in shell_lines(block.text, console=SHELLS[block.language])]
    assert len([arguments for line in lines for arguments in command_lines(line)]) > 30


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("chronolet gte pods", "No such command"),
        ("chronolet get pods --wdie", "No such option"),
        ("chronolet get pods | chronolet logs web --limit-bytes none", "not a valid integer"),
        ("A=1 chronolet trace pod/web -o yaml > file", "is not 'json'"),
        ("chronolet completion", "Missing argument"),
        ("chronolet", "Missing command"),
    ],
)
def test_a_wrong_command_line_is_found(line: str, part: str) -> None:
    block = Block("console", f"$ {line}\nits output: chronolet nothing\n", 1)
    (error,) = errors(block)
    assert part in error


def test_the_command_lines_of_a_block_are_found() -> None:
    text = "$ chronolet get pods \\\n    -o wide | tail -1; FROM=here chronolet log > file\nchronolet of the output\n"
    found = [list(one) for line in shell_lines(text, console=True) for one in command_lines(line)]
    assert found == [["get", "pods", "-o", "wide"], ["log"]]
