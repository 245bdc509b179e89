"""A bundle opens on another machine and operating system: without Docker, Redis and what only Linux has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.bundle import elsewhere
from tests.cli.bundle.test_bundle import OTHERS, READINGS, saved
from tests.cli.support.written_node import Result, WrittenNode
from tests.support.scratch import hang_limit

ROOT = Path(__file__).parents[3]
ALL = (
    (),
    *READINGS,
    *((*words, "--at", "-130s") for words in READINGS),
    *OTHERS,
    ("get", "pods", "-w", "--from", "-190s"),
    ("--help",),
    ("get", "--help"),
)


NEED_THE_BEGINNING = (("trace", "web"), ("replay", "--verify"))


def away(folder: Path, *command_lines: list[str]) -> list[Result]:
    """Run command lines in a process for which only Python and the package exist."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            _BEGIN.format(paths=[str(ROOT / "actors"), str(ROOT / "schemas")], file=elsewhere.__file__),
        ],
        input=json.dumps(command_lines),
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TZ": "UTC", "LANG": "C.UTF-8"},
        timeout=hang_limit(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Result(*one) for one in json.loads(done.stdout)]


_BEGIN = "import runpy, sys; sys.path[:0] = {paths}; runpy.run_path({file!r}, run_name='__main__')"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A folder that has nothing but a bundle of the node."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("options", [(), ("--from", "#9")], ids=["whole", "window"])
def test_every_command_answers_the_same_elsewhere(
    node: WrittenNode, empty: Path, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    path = saved(node, empty, *options)
    lines = [["bundle", "open", str(path), *words] for words in ALL]
    for words, found in zip(ALL, away(empty, *lines), strict=True):
        expected = node.run("bundle", "open", str(path), *words)
        assert expected.status == 0 or words in NEED_THE_BEGINNING, words
        assert found == expected, words


def test_the_page_is_written_elsewhere(node: WrittenNode, empty: Path) -> None:
    path, page, other = saved(node, empty), empty / "page", empty / "other"
    (found,) = away(empty, ["bundle", "open", str(path), "replay", "--html", str(page)])
    assert (found.status, found.errors) == (0, "")
    assert node.run("bundle", "open", str(path), "replay", "--html", str(other)).status == 0
    assert page.read_bytes() == other.read_bytes()


def test_a_bundle_is_anonymised_elsewhere(node: WrittenNode, empty: Path) -> None:
    path = saved(node, empty)
    made, opened = away(
        empty,
        ["bundle", "anonymise", str(path), str(empty / "x")],
        ["bundle", "open", str(empty / "x"), "get", "pods", "-A"],
    )
    assert (made.status, made.errors, opened.status) == (0, "", 0)
    assert opened.output.count("\n") == 3


def test_the_blocked_modules_are_missing(empty: Path) -> None:
    """A command that needs Redis fails: otherwise, this test could not fail either."""
    script = _BEGIN.split("runpy.run_path", maxsplit=1)[0] + "runpy.run_path({file!r})['leave'](); import redis"
    command = script.format(paths=[], file=elsewhere.__file__)
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, cwd=empty, check=False, timeout=60
    )
    assert "no module redis on this machine" in done.stderr
