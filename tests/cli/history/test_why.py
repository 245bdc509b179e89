"""`chronolet why`: the forms of its output, its options, its errors. The answers are tested in tests/history/why."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import NoArchive
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas import pleg, pod
from chronolet_schemas.envelope import Entry, Position, Record
from tests.cli.support.archived_node import archive_log
from tests.cli.support.histories import APP, SECOND, UID, WEB, accepted, back_off, crash, start
from tests.cli.support.written_node import NOON, Result, WrittenNode

KILLED = "someone sent it SIGKILL through Docker, as `docker kill` does; it was not chronolet"
SOON = "2027-01-15T08:01:02Z"
IDS = ("a0" * 32, "a1" * 32, "a2" * 32)


def died(attempt: int, sent: tuple[int, ...] | None, exit_code: int = 137) -> pleg.ContainerDied:
    times = {"started_at": NOON, "finished_at": NOON}
    about: dict[str, Any] = {**APP, "attempt": attempt, "id": IDS[attempt], **times}
    return pleg.ContainerDied(**about, exit_code=exit_code, reason="Error", sent=sent)


def crashing() -> WrittenNode:
    """A node with the pod web: its container app was killed by `docker kill`, exited with code 3, and runs again."""
    node = WrittenNode()
    node.write(WEB, accepted(), *start(APP, 0, IDS[0], node.now))
    node.now += 60 * SECOND
    node.write("pleg/node", died(0, (9,)))
    killed = pod.ContainerExited(
        **APP, attempt=0, id=IDS[0], exit_code=137, reason="Error", started_at=NOON, finished_at=node.now
    )
    node.write(WEB, killed)
    node.now += 2 * SECOND
    node.write(WEB, *start(APP, 1, IDS[1], node.now))
    node.now += 60 * SECOND
    node.write("pleg/node", died(1, (), 3))
    node.write(WEB, *crash(1, IDS[1], node.now), back_off(1, node.now + 10 * SECOND))
    node.now += 10 * SECOND
    node.write(WEB, *start(APP, 2, IDS[2], node.now))
    return node


def succeeded(result: Result) -> list[str]:
    assert (result.status, result.errors) == (0, ""), result
    return result.output.splitlines()


def test_the_answer_comes_first_then_the_chain_and_the_timeline() -> None:
    lines = succeeded(crashing().run("why", "pod/web", "--nth", "1"))
    assert lines == [
        f"container app of default/web was restarted (restart 1, {SOON}) because {KILLED} (exit code 137).",
        "",
        "Because:",
        f"  2027-01-15T08:01:00.000Z  #8  {KILLED}",
        "  2027-01-15T08:01:00.000Z  #8  container app ended with exit code 137 after 60.0 s",
        "  2027-01-15T08:01:02.000Z  #12  container app was started again 2.000 s after its end (attempt 1)",
        "",
        "Not known. This would have settled it:",
        "  an audit of Docker's socket, or its debug log, which name the client",
        "",
        "Timeline:",
        "  2027-01-15T08:00:00.000Z  #6  +0.000 s  container app started (attempt 0)",
        "  2027-01-15T08:01:00.000Z  #7  +60.000 s  Docker: app died, exit code 137; Docker sent SIGKILL",
        "  2027-01-15T08:01:00.000Z  #8  +0.000 s  container app ended: exit code 137 (Error)",
        "  2027-01-15T08:01:02.000Z  #10  +2.000 s  image busybox:1 present",
        "  2027-01-15T08:01:02.000Z  #12  +0.000 s  container app started (attempt 1)",
        "",
        "The history begins at 2027-01-15T08:00:00.000Z  #1.",
    ]


def test_without_a_number_the_last_restart_is_explained() -> None:
    (sentence, *_) = succeeded(crashing().run("why", "web"))
    assert "(restart 2, 2027-01-15T08:02:12Z) because its process exited by itself with code 3" in sentence


def test_with_a_moment_the_last_restart_up_to_then_is_explained() -> None:
    node = crashing()
    (sentence, *_) = succeeded(node.run("why", "web", "--at", "2027-01-15T08:02:01Z"))
    assert "(restart 1, " in sentence
    (sentence, *_) = succeeded(node.run("why", "web", "--at", "2027-01-15T08:02:05Z"))
    assert "waits in a back-off of 10 s, until 2027-01-15T08:02:12Z, (restart 2) because" in sentence
    (sentence, *_) = succeeded(node.run("why", "web", "--at", "2027-01-15T08:00:10Z"))
    assert "all its containers run as their manifest wants" in sentence


def test_the_answer_as_json_has_the_facts() -> None:
    (line,) = succeeded(crashing().run("why", "web", "--nth", "1", "-o", "json"))
    found = json.loads(line)
    assert (found["pod"], found["uid"], found["container"]) == ("default/web", UID, "app")
    assert (found["about"], found["restart"]) == ("restart", 1)
    assert found["chain"][0] == {
        "type": "OtherSignal",
        "at": NOON + 60 * SECOND,
        "position": f"{NOON + 60 * SECOND}-8",
        "signals": [9],
        "removed": False,
        "startedAgain": False,
        "certain": True,
        "others": True,
        "text": KILLED,
    }
    assert [one["type"] for one in found["chain"]] == ["OtherSignal", "Exited", "Restarted"]
    assert found["timeline"][1]["after"] == 60 * SECOND
    assert found["history"] == {"begin": f"{NOON}-1", "gaps": []}


def test_the_chain_as_a_graph_leads_to_the_answer() -> None:
    lines = succeeded(crashing().run("why", "web", "--nth", "2", "-o", "dot"))
    assert lines[0] == "digraph why {"
    assert lines[-1] == "}"
    assert '  c0 -> c1 [label="+0.000 s"];' in lines
    assert "  c3 -> answer;" in lines
    assert any(line.startswith('  c0 [label="its process exited by itself with code 3') for line in lines)


def test_quotation_marks_and_control_characters_of_a_pod_cannot_break_the_graph_or_the_terminal() -> None:
    node = WrittenNode()
    reason = 'env "A\\" is \x1b[31mred\nand long'
    node.write(
        WEB, accepted(), pod.ContainerBlocked(**APP, attempt=0, reason="CreateContainerConfigError", message=reason)
    )
    text = node.run("why", "web").output
    assert "\x1b" not in text
    assert 'env "A\\" is \\x1b[31mred and long' in text.splitlines()[0]
    graph = node.run("why", "web", "-o", "dot").output
    assert 'env \\"A\\\\\\" is \\\\x1b[31mred and long' in graph
    assert "\x1b" not in graph


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("nobody",), 1, 'pods "nobody" not found: the log of node node-1 has no entries about default/nobody'),
        (("web", "-n", "data"), 1, 'pods "web" not found: the log of node node-1 has no entries about data/web'),
        (("node/web",), 2, "found 'node/web', expected TYPE/NAME such as pod/web."),
        (("web", "--nth", "0"), 2, "--nth"),
        (("web", "--nth", "3"), 1, f"default/web has 2 restarts under its uid {UID}: found 3, expected a number up to"),
        (("web", "-c", "side"), 1, "found container 'side', expected one of the pod's containers: app"),
        (("web", "--nth", "1", "--at", "-1m"), 2, "--nth and --at exclude each other"),
        (("web", "--at", "2027-01-15T09:00:00Z"), 1, "--at: 2027-01-15T09:00:00Z is in the future"),
        (("web", "--at", "yesterday"), 1, "--at: found 'yesterday', expected"),
        (("web", "-o", "yaml"), 2, "yaml"),
    ],
)
def test_a_question_without_an_answer_is_an_error(words: tuple[str, ...], status: int, error: str) -> None:
    result = crashing().run("why", *words)
    assert (result.status, result.output) == (status, "")
    assert error in result.errors


def test_a_pod_that_is_not_in_the_log_yet_at_that_moment_is_not_found() -> None:
    node = WrittenNode()
    node.now += SECOND
    node.write(WEB, accepted())
    result = node.run("why", "web", "--at", "2027-01-15T08:00:00Z")
    assert result.status == 1
    assert "has no entries about default/web up to 2027-01-15T08:00:00Z" in result.errors


def test_entries_that_this_release_cannot_decode_are_passed_over_and_counted() -> None:
    node = crashing()
    with node.server.changed:
        node.server.append(Record("pod.Unheard@1", WEB, "", "pod#1", "", b"\x80"))
        node.server.append(Record("pod.ContainerExited@1", WEB, "", "pod#1", "", b"\xc1"))
    result = node.run("why", "web")
    assert "(restart 2, " in result.output
    assert result.errors.startswith("note: 2 entries of the log")


class Missing(NoArchive):
    """An archive whose files are missing."""

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Any:
        raise HistoryMissing(f"the log's entries after {after} up to {upto} were archived, and are not here")

    def numbered(self, number: int) -> Entry | None:
        raise HistoryMissing(f"entry {number} is not here")


def test_with_a_missing_archive_the_rest_of_the_log_answers_and_the_gap_is_named() -> None:
    node = crashing()
    kept = node.now
    node.now += 60 * SECOND
    node.write(WEB, accepted(), *start(APP, 3, "a3" * 32, node.now))
    with node.server.changed:
        first = next(index for index, one in enumerate(node.server.log) if one.position.milliseconds > kept)
        node.server.trimmed = node.server.log[first - 1].position
        node.server.log = node.server.log[first:]
    node.archive = Missing()
    result = node.run("why", "web")
    assert result.status == 0
    assert "all its containers run" in result.output.splitlines()[0]
    assert result.output.splitlines()[-1].endswith(f"#{node.server.log[0].position.n}.")
    assert result.errors.startswith("note: the log's entries after 0-0 up to")
    assert "the answer is from the other entries" in result.errors


Holed = Callable[[Collection[int]], WrittenNode]


@pytest.fixture(params=[True, False], ids=["with indexes", "without"])
def holed(request: pytest.FixtureRequest, tmp_path: Path) -> Holed:
    """Return a node whose archive lacks the entries with some numbers; the stream has the newest one only."""

    def made(lost: Collection[int]) -> WrittenNode:
        node = crashing()
        archive_log(node, tmp_path, file_entries=1, indexed=request.param, lost=lost)
        return node

    return made


def test_what_precedes_a_gap_in_the_archive_counts_as_well(holed: Holed) -> None:
    node = holed({9})
    result = node.run("why", "web", "--nth", "1")
    assert result.status == 0, result
    assert "someone sent it SIGKILL through Docker" in result.output.splitlines()[0]
    assert result.output.splitlines()[-1] == "The history begins at 2027-01-15T08:00:00.000Z  #1."
    assert result.errors.count("expected event number 9, found") == 1


def test_an_end_in_a_gap_of_the_archive_is_not_recorded(holed: Holed) -> None:
    sentence = holed({7, 8}).run("why", "web", "--nth", "1").output.splitlines()[0]
    assert "why is not known: its end is not recorded in the log" in sentence
    assert "(restart 1 of those in the log, " in sentence


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("words", [(), ("--at", "-1s")])
def test_a_pod_that_is_only_in_a_lost_part_of_the_archive_is_not_denied(
    tmp_path: Path, words: tuple[str, ...], *, indexed: bool
) -> None:
    node = crashing()
    node.now += 60 * SECOND
    lost = range(2, node.server.last.n + 1)
    node.write("pleg/node", *[pleg.RelistWorking(containers=1)] * 4)
    archive_log(node, tmp_path, file_entries=1, indexed=indexed, lost=lost)
    node.now += 60 * SECOND
    result = node.run("why", "web", *words)
    assert (result.status, result.output) == (1, "")
    assert 'pods "web" not found: of the entries that can be read, the log of node node-1 has none about' in (
        result.errors
    )
    assert "expected event number 2, found" in result.errors


def test_several_gaps_are_all_named(holed: Holed) -> None:
    result = holed({3, 9}).run("why", "web", "-o", "json")
    assert len(json.loads(result.output)["history"]["gaps"]) == 2
    assert [line.partition(": ")[0] for line in result.errors.splitlines()] == ["note", "note"]


def test_a_damaged_signal_of_chronolet_is_not_an_accusation() -> None:
    node = WrittenNode()
    node.write(WEB, accepted(), *start(APP, 0, IDS[0], node.now))
    with node.server.changed:
        node.server.append(Record("pod.ContainerStopRequested@1", WEB, "", "pod#1", "", b"\xc1"))
    node.write("pleg/node", died(0, (15, 9)))
    exited: dict[str, Any] = {"exit_code": 137, "reason": "Error", "started_at": NOON, "finished_at": NOON}
    node.write(WEB, pod.ContainerExited(**APP, attempt=0, id=IDS[0], **exited), *start(APP, 1, IDS[1], node.now))
    sentence = node.run("why", "web").output.splitlines()[0]
    assert "it was not chronolet" not in sentence
    assert "it may have been chronolet" in sentence
