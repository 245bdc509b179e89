"""`replay` and `timeline` on a log in a real Redis, part of which is in archive files: whole, damaged, missing."""

import json
import shutil
from pathlib import Path

import pytest

from chronolet_schemas.envelope import Position
from tests.cli.support.log_owner import FILLING, LogOwner


@pytest.fixture
def trimmed(owner: LogOwner) -> Position:
    """The position up to which the log of `owner` is archived and trimmed: pod a is before it, pod b after it."""
    owner.accept("a")
    upto = owner.fill()
    owner.accept("b")
    owner.archive_and_trim(upto)
    return upto


def archive(owner: LogOwner) -> Path:
    [file] = (owner.root / "archive" / "run-1").glob("*.archive")
    return file


def events(text: str) -> list[object]:
    return [one for line in text.splitlines() for one in json.loads(line)["events"]]


def test_the_archived_part_is_replayed_like_the_rest(owner: LogOwner, trimmed: Position) -> None:
    log = [json.loads(line) for line in owner.run("log", "-o", "json").output.splitlines()]
    assert len(log) == FILLING + 3
    result = owner.run("replay", "-o", "json")
    assert events(result.output) == log
    changed = [one["name"] for line in result.output.splitlines() for one in json.loads(line)["objects"]]
    assert changed == ["pod/a", "pod/b"]
    assert (
        events(owner.run("replay", "-o", "json", "--from", "#5", "--to", f"#{trimmed.n}").output) == log[5 : trimmed.n]
    )


@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_what_needs_a_damaged_file_names_it_and_the_rest_works(owner: LogOwner, trimmed: Position, damage: str) -> None:
    file = archive(owner)
    if damage == "truncated":
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 4])
    else:
        shutil.rmtree(file.parent)
    result = owner.run("replay")
    assert result.status == 1
    assert (file.name if damage == "truncated" else "the archive files are not here") in result.errors
    assert result.errors.count("\n") == 1
    # The snapshots, which are newer than the damaged part, have the states.
    rest = owner.run("timeline", "--from", f"#{trimmed.n + 1}", "-o", "json")
    assert (rest.status, rest.errors) == (0, "")
    assert [one["pod"] for one in json.loads(rest.output)["containers"]] == ["a", "b"]
