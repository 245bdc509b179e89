"""`chronolet replay`: the state at a moment, and what happened step by step."""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import NoArchive
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas import devices
from chronolet_schemas.envelope import Entry, Position, Record
from chronolet_schemas.kernel import ClockJumped
from chronolet_schemas.pod import PodEnded
from tests.cli.support.busy_node import DEVICES, GPU, busy, claim, device
from tests.cli.support.histories import SECOND, UID, WEB
from tests.cli.support.written_node import NOON, WrittenNode


@pytest.fixture
def node() -> WrittenNode:
    return busy()


def frames(node: WrittenNode, *words: str) -> list[Any]:
    result = node.run("replay", "-o", "json", *words)
    assert (result.status, result.errors) == (0, ""), result
    return [json.loads(line) for line in result.output.splitlines()]


def numbers(node: WrittenNode, *words: str) -> list[int]:
    return [int(one["position"].partition("-")[2]) for frame in frames(node, *words) for one in frame["events"]]


def test_each_step_changes_what_diff_finds_between_the_moments_before_and_after_it(node: WrittenNode) -> None:
    found = frames(node)
    assert len(found) >= 15
    changed = {one["name"] for frame in found for one in frame["objects"]}
    assert {"pod/web", "pod/db", "device/vendor.test/gpu/a", "node/node-1"} <= changed
    assert sum(name.startswith("image/") for name in changed) == 2
    for before, after in itertools.pairwise(found):
        moments = ("--from", before["position"], "--to", after["position"])
        expected = json.loads(node.run("diff", *moments, "-A", "--show", "both", "-o", "json").output)
        assert (after["objects"], after["events"]) == (expected["objects"], expected["events"])


def test_all_entries_are_shown_once_and_in_order(node: WrittenNode) -> None:
    every = [json.loads(line) for line in node.run("log", "-o", "json").output.splitlines()]
    assert [one for frame in frames(node) for one in frame["events"]] == every


def test_steps_as_text_are_lines_of_the_log_and_changed_fields(node: WrittenNode) -> None:
    output = node.run("replay").output
    lines = output.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == node.run("log").output.splitlines()
    at = next(number for number, line in enumerate(lines) if "DevicesChosen" in line)
    assert lines[at + 1].split()[3] == "devices.DevicesAllocated"
    assert lines[at + 2 : at + 4] == [
        "  device/vendor.test/gpu/a: changed",
        '    namespace: (none) -> "default"',
    ]


def test_a_range_and_one_pod(node: WrittenNode) -> None:
    every = numbers(node)
    assert numbers(node, "--from", "#20") == [one for one in every if one > 20]
    assert numbers(node, "--to", "#20") == [one for one in every if one <= 20]
    assert numbers(node, "--from", "#20", "--to", "#24") == [21, 22, 23, 24]
    mine = frames(node, "--only", "pod/web")
    assert {one["name"] for frame in mine for one in frame["objects"]} == {"pod/web"}
    entities = {one["entity"] for frame in mine for one in frame["events"]}
    assert entities == {WEB, "devices/node", "prober/default/web/side/Liveness"}
    whole = [one for frame in frames(node) for one in frame["objects"] if one["name"] == "pod/web"]
    assert [one for frame in mine for one in frame["objects"]] == whole
    assert {one["entity"] for frame in frames(node, "--only", "images") for one in frame["events"]} == {"image_gc/node"}


@pytest.mark.parametrize("at", ["-4m", "#21", f"{NOON}-13", "08:04"])
def test_the_state_is_that_of_get(node: WrittenNode, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    types = "pods,containers,devices,images,nodes"
    expected = node.run("get", types, "-A", "--at", at, "-o", "json")
    assert (expected.status, expected.errors) == (0, "")
    assert node.run("replay", "--at", at, "-o", "json") == expected
    head, *rest = node.run("replay", "--at", at).output.splitlines()
    assert head.startswith("node-1 at 2027-01-15T08:0")
    assert [line for line in rest if line] == [
        line for line in node.run("get", types, "-A", "--at", at).output.splitlines() if line
    ]


def test_the_state_of_one_pod(node: WrittenNode) -> None:
    text = node.run("replay", "--at", "-4m", "--only", "pod/web").output
    assert ("pod/web" in text, "container/side" in text, "pod/db" in text, "gpu" in text) == (True, True, False, False)
    missing = node.run("replay", "--at", "-4m", "--only", "pod/typo")
    assert (missing.status, missing.errors) == (1, 'Error from server (NotFound): pods "typo" not found\n')


def test_speed_pauses_as_long_as_it_took(node: WrittenNode) -> None:
    pauses: list[float] = []
    services = node.services()
    node.services = lambda: services._replace(sleep=pauses.append)  # type: ignore[method-assign]
    assert node.run("replay", "--speed", "10").status == 0
    last = NOON + 272 * SECOND + 80 * SECOND
    assert sum(pauses) * 10_000 <= last - NOON
    assert next(one for one in pauses if one) == 6.0, "a minute, ten times as fast"
    before = len(pauses)
    node.run("replay")
    assert len(pauses) == before


def test_follow_goes_on_with_what_happens_next(node: WrittenNode) -> None:
    waits: list[Position] = []

    class Store(type(node.open_store())):  # type: ignore[misc]
        def wait(self, after: Position, mail: Any, count: int, block: int) -> Any:
            waits.append(after)
            if len(waits) == 1:
                node.write(WEB, PodEnded(pod="default/web", uid=UID))
            elif len(waits) > 2:
                raise KeyboardInterrupt
            return super().wait(after, mail, count, 0)

    node.open_store = lambda: Store(node.server)
    pauses: list[float] = []
    services = node.services()._replace(sleep=pauses.append)
    node.services = lambda: services  # type: ignore[method-assign]
    result = node.run("replay", "--from", "-1m", "--follow", "--speed", "1")
    assert (result.status, pauses) == (130, []), "only recorded steps are paced, and there are none in that minute"
    assert result.output.splitlines()[-2:][0].split()[2:4] == [WEB, "pod.PodEnded"]
    assert result.output.splitlines()[-1] == "  pod/web: removed"


class KeptArchive(NoArchive):
    """An archive with these entries."""

    def __init__(self, kept: Sequence[Entry]) -> None:
        self.kept = kept

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Iterator[Entry]:
        return iter([one for one in self.kept if after < one.position <= upto])

    def numbered(self, number: int) -> Entry | None:
        return next((one for one in self.kept if one.position.n == number), None)


@pytest.mark.parametrize("archived", [True, False])
def test_follow_continues_with_what_was_trimmed_while_recorded_steps_were_printed(
    node: WrittenNode, *, archived: bool
) -> None:
    archive = KeptArchive([])
    node.archive = archive
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 1:
            return
        for _ in range(1_500):
            node.now += 1
            node.write("shard/pod/0", *[ClockJumped(by_milliseconds=1)] * 3)
        with node.server.changed:
            archive.kept = list(node.server.log) if archived else []
            node.server.archived = node.server.trimmed = node.server.log[-2].position
            del node.server.log[:-1]

    class Store(type(node.open_store())):  # type: ignore[misc]
        def wait(self, after: Position, mail: Any, count: int, block: int) -> Any:
            raise KeyboardInterrupt

    node.open_store = lambda: Store(node.server)
    begin = node.server.last.n - 2
    services = node.services()._replace(sleep=sleep)
    node.services = lambda: services  # type: ignore[method-assign]
    result = node.run("replay", "--from", f"#{begin}", "-f", "--speed", "1000", "-o", "json")
    found = [json.loads(line)["events"] for line in result.output.splitlines()]
    if archived:
        assert (result.status, result.errors.strip()) == (130, "")
        shown = [int(one["position"].partition("-")[2]) for events in found for one in events]
        assert shown == [*range(begin + 1, node.server.last.n + 1)]
        assert {len(events) for events in found[-1_500:]} == {3}, "no step is split where a page ends"
    else:
        assert result.status == 1
        assert result.errors.startswith("error: the log's entries after ")


def test_a_change_of_a_wanted_object_is_shown_with_its_step_although_no_entry_names_the_object() -> None:
    """The health of a device is a part of the status of the pod that holds it."""
    node = busy()
    node.now += SECOND
    node.write(DEVICES, *claim(UID, "web", "b"))
    listed = devices.DevicesListed(resource=GPU, generation=1, devices=(device("b", "Unhealthy"),), count=2)
    node.now += SECOND
    node.write(DEVICES, listed)
    *_, last = frames(node, "--only", "pod/web")
    assert [one["type"] for one in last["events"]][-1] == "devices.DevicesListed@1"
    assert [one["name"] for one in last["objects"]] == ["pod/web"]


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("--at", "soon"), 1, "error: --at: found 'soon', expected a duration before now"),
        (("--at", "2031-01-01T00:00:00Z"), 1, "error: --at: 2031-01-01T00:00:00Z is in the future"),
        (("--at", "-1d"), 1, "is before the beginning of the history: the history begins at 2027-01-15T08:00:00Z"),
        (("--to", "#9999"), 1, "error: --to: the log has no entry #9999 yet"),
        (("--from", "-1d"), 1, "error: --from: 2027-01-14T08:10:00Z is before the beginning of the history"),
        (("--from", "-1s", "--to", "-2s"), 0, "No steps."),
        (("--from", "-1m", "--to", "-8m"), 1, "error: --from: found -1m, expected a moment before --to"),
        (("--at", "-1m", "--from", "-2m"), 2, "found --at with --from, expected one of them."),
        (("--at", "-1m", "--step"), 2, "found --at with --step, expected one of them."),
        (("--to", "-1m", "-f"), 2, "found --follow with --to, expected one of them."),
        (("--step", "--speed", "3"), 2, "found --step with --speed, expected one of them."),
        (("--step", "-o", "json"), 2, "found --step with --output, expected one of them."),
        (("--step",), 1, "error: --step: found a standard input that is no terminal, expected one"),
        (("--speed", "0"), 2, "'--speed': 0.0 is not in the range 0.001<=x<=1000000.0."),
        (("--speed", "-1"), 2, "'--speed': -1.0 is not in the range"),
        (("--speed", "1e-300"), 2, "'--speed': 1e-300 is not in the range"),
        (("--speed", "inf"), 2, "'--speed': inf is not in the range"),
        (("--speed", "nan"), 2, "'--speed': found nan, expected a number from 0.001 to 1000000."),
        (("--speed", "fast"), 2, "'--speed': 'fast' is not a valid float range."),
        (("--only", "pod/nobody"), 0, "No steps."),
        (("--only", "actors"), 2, "found 'actors', expected pods or devices or images or nodes"),
    ],
)
def test_what_cannot_be_replayed_is_one_line(node: WrittenNode, words: Sequence[str], status: int, error: str) -> None:
    result = node.run("replay", *words)
    assert (result.output, result.status) == ("", status)
    assert error in result.errors
    assert result.errors.count("\n") == 1


def test_an_empty_log_is_one_error_line() -> None:
    node = WrittenNode()
    node.server.log.clear()
    node.server.last = Position(0, 0)
    result = node.run("replay")
    assert (result.output, result.status) == ("", 1)
    assert result.errors.startswith("error: node node-1 has no log")


def test_entries_of_other_programs_and_unknown_types_are_shown_and_change_nothing(node: WrittenNode) -> None:
    expected = frames(node)
    with node.server.changed:
        node.server.append(Record("pod.FromTheFuture@1", WEB, "", "pod/0#9", "", b"\x81\xa1a\x01"))
        node.server.log.append(Entry(Position(node.now, 0), "", "", "", "", "", b""))
    result = node.run("replay", "-o", "json")
    found = [json.loads(line) for line in result.output.splitlines()]
    assert found[:-2] == expected
    assert [(one["events"][0]["type"], one["objects"]) for one in found[-2:]] == [("pod.FromTheFuture@1", []), ("", [])]
    assert result.errors.startswith("note: 1 entry of the log")
    assert result.status == 0


def test_after_a_clock_step_steps_keep_their_order_and_their_times(node: WrittenNode) -> None:
    """A clock that was ahead: positions stay ahead, times are those of the clock."""
    node.now += 3_600 * SECOND
    ahead = node.write("pod/data/db", PodEnded(pod="data/db", uid=UID))
    node.now -= 3_600 * SECOND
    node.write(WEB, PodEnded(pod="default/web", uid=UID))
    found = frames(node, "--from", f"#{ahead.n - 1}")
    assert [one["time"] for one in found] == ["2027-01-15T09:10:00.000Z", "2027-01-15T08:10:00.000Z"]
    assert [one["objects"] for one in found][1][0]["change"] == "removed"


class DamagedArchive(NoArchive):
    """An archive of which a file is missing."""

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Any:
        raise HistoryMissing(f"events 5..9 are missing (read after {after} up to {upto})")


def test_a_gap_in_the_archive_is_named(node: WrittenNode) -> None:
    with node.server.changed:
        trimmed = node.server.log[9].position
        node.server.log = node.server.log[10:]
        node.server.archived = node.server.trimmed = trimmed
    node.archive = DamagedArchive()
    for words in (("--from", "#19"), ("--at", "#19"), ()):
        result = node.run("replay", *words)
        assert (result.status, result.output) == (1, "")
        assert result.errors == "error: events 5..9 are missing (read after 0-0 up to 1800000000000-10)\n"
