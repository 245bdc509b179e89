"""`chronolet history`: its arguments, and bad input."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import NoArchive
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import Entry, Position, Record
from tests.cli.support.busy_node import DEVICES, busy
from tests.cli.support.written_node import NOON, WrittenNode

SUBJECTS = ("devices", "images", "node")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_time_is_the_last_hour_or_what_the_history_has_of_it(subject: str) -> None:
    node = busy()
    found = json.loads(node.run("history", subject, "-o", "json").output)
    assert (found["from"], found["to"]) == (NOON, node.now)
    node.now += 7_200_000
    found = json.loads(node.run("history", subject, "-o", "json").output)
    assert (found["from"], found["to"]) == (node.now - 3_600_000, node.now)
    found = json.loads(node.run("history", subject, "-o", "json", "--from", "#1", "--to", "#30").output)
    assert found["from"] == NOON


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("--from", "soon"), 1, "error: --from: found 'soon', expected a duration before now"),
        (("--from", "2031-01-01T00:00:00Z"), 1, "error: --from: 2031-01-01T00:00:00Z is in the future"),
        (("--from", "-1d"), 1, "is before the beginning of the history: the history begins at 2027-01-15T08:00:00Z"),
        (("--from", "-1m", "--to", "-5m"), 1, "error: --from: found -1m, expected a moment before --to"),
        (("--to", "#9999"), 1, "error: --to: the log has no entry #9999 yet"),
        (("typo", "--to", "-1m"), 1, 'typo" not found'),
    ],
)
def test_moments_and_names_that_do_not_exist_are_one_line(
    subject: str, words: Sequence[str], status: int, error: str
) -> None:
    result = busy().run("history", subject, *words)
    assert (result.status, result.errors.count("\n")) == (status, 1)
    assert error in result.errors


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("pods",), "found 'pods', expected devices or images or nodes"),
        (("devices,images",), "found 'devices,images', expected one of devices, images, node and probes."),
        ((), "Missing argument '(devices|images|node|probes) [NAME...]'"),
    ],
)
def test_other_subjects_are_usage_errors(words: Sequence[str], error: str) -> None:
    result = busy().run("history", *words)
    assert result.status == 2
    assert error in result.errors


@pytest.mark.parametrize("subject", SUBJECTS)
def test_foreign_and_unknown_entries_change_nothing(subject: str) -> None:
    node = busy()
    expected = json.loads(node.run("history", subject, "-o", "json").output)
    with node.server.changed:
        node.server.append(Record("devices.FromTheFuture@1", DEVICES, "", "devices#9", "", b"\x81\xa1a\x01"))
        node.server.log.append(Entry(Position(node.now, 0), "", "", "", "", "", b"\xff"))
    found = json.loads(node.run("history", subject, "-o", "json").output)
    if subject == "node":
        assert found.pop("load")[-1]["entries"] == expected.pop("load")[-1]["entries"] + 2
    assert found == expected


class DamagedArchive(NoArchive):
    """An archive of which a file is missing."""

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Any:
        raise HistoryMissing("events 5..9 are missing")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_gap_in_the_archive_is_named(subject: str) -> None:
    node: WrittenNode = busy()
    with node.server.changed:
        node.server.archived = node.server.trimmed = node.server.log[9].position
        node.server.log = node.server.log[10:]
    node.archive = DamagedArchive()
    result = node.run("history", subject)
    assert (result.status, result.output, result.errors) == (1, "", "error: events 5..9 are missing\n")
