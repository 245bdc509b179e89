"""`chronolet log`: text, JSON, filters, the last N entries, undecodable entries."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chronolet.cli.history import log
from chronolet.cli.sending import follow
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.testing.exported import entries_of
from chronolet_schemas import codec, kernel, pleg, pod, upcasting
from chronolet_schemas.envelope import Entry, Event, Position, Record
from tests.cli.support.written_node import NOON, WrittenNode, manifest

ABOUT: dict[str, Any] = {"pod": "default/web", "uid": "u", "container": "app", "attempt": 0}


@pytest.fixture
def node() -> WrittenNode:
    node = WrittenNode()
    at = node.write("pod/default/web", pod.ContainerStarted(**ABOUT, id="c0ffee", started_at=5), cause=f"{NOON}-1")
    node.now += 61_000
    exited = pod.ContainerExited(
        **ABOUT, id="c0ffee", exit_code=1, reason="Error", message="\x1b[2Jboom boom", started_at=5, finished_at=6
    )
    node.write("pod/default/web", exited, cause=str(at))
    return node


def test_a_line_has_time_number_entity_type_subject_cause_and_fields(node: WrittenNode) -> None:
    result = node.run("log")
    assert result.status == 0
    assert result.output.splitlines() == [
        "2027-01-15T08:00:00.000Z #1 node/node-1 kernel.LogStarted run=r node=node-1 shards={}",
        (
            "2027-01-15T08:00:00.000Z #2 pod/default/web pod.ContainerStarted container/app <-#1"
            " uid=u attempt=0 id=c0ffee started_at=5"
        ),
        (
            "2027-01-15T08:01:01.000Z #3 pod/default/web pod.ContainerExited container/app <-#2"
            " uid=u attempt=0 id=c0ffee exit_code=1 reason=Error"
            ' message="\\u001b[2Jboom boom" started_at=5 finished_at=6'
        ),
    ]


def test_an_unobserved_exit_has_an_unknown_exit_code() -> None:
    written = WrittenNode()
    gone = pod.ContainerExited(
        **ABOUT, id="c", exit_code=137, reason="ContainerStatusUnknown", started_at=5, finished_at=6
    )
    written.write("pod/default/web", gone)
    assert "exit_code=unknown reason=ContainerStatusUnknown" in written.run("log").output
    assert json.loads(written.run("log", "-o", "json").output.splitlines()[-1])["data"]["exitCode"] == 137


def test_times_are_rfc3339_in_text_and_milliseconds_in_json() -> None:
    written = WrittenNode()
    written.write("pod/default/web", pod.ContainerStarted(**ABOUT, id="c", started_at=NOON + 1_234))
    accepted = pod.SpecAccepted(
        pod="default/web",
        uid="u",
        source="apply",
        digest="d",
        manifest=manifest(),
        accepted_at=NOON,
        sandbox_hash="s",
        container_hashes={"my_app": "h"},
    )
    written.write("pod/default/web", accepted)
    started, spec = written.run("log", "-n", "2").output.splitlines()
    assert started.endswith("id=c started_at=2027-01-15T08:00:01.234Z")
    assert "accepted_at=2027-01-15T08:00:00.000Z" in spec
    started, spec = (
        json.loads(line)["data"] for line in written.run("log", "-n", "2", "-o", "json").output.splitlines()
    )
    assert started == {**ABOUT, "id": "c", "startedAt": NOON + 1_234}
    assert spec["containerHashes"] == {"my_app": "h"}, "keys of a map are not renamed"
    assert spec["manifest"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_hashes_and_long_values_are_shortened(node: WrittenNode) -> None:
    started: dict[str, Any] = {
        "pod": "a/b",
        "uid": "0123456789abcdef" * 2,
        "container": "c",
        "attempt": 0,
        "started_at": 1,
    }
    node.write("pleg/node", pleg.ContainerStarted(**started, id="f" * 64))
    failed = pod.CleanupFailed(pod="default/web", uid="u", message="x" * 999, retry_at=1)
    node.write("pod/default/web", failed)
    first, second = node.run("log", "-n", "2").output.splitlines()
    assert first.endswith(
        "pleg.ContainerStarted container/c pod=a/b uid=0123456789ab attempt=0 id=ffffffffffff started_at=1"
    )
    assert f"message={'x' * 60}... " in second


def test_the_version_in_json_is_that_of_its_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that an exported entry of an older version is not converted twice."""

    def upcast(data: dict[str, Any]) -> dict[str, Any]:
        return {"by_milliseconds": data["by_seconds"] * 1_000}

    monkeypatch.setitem(upcasting.UPCASTERS, ("kernel.ClockJumped", 0), upcast)
    begun = Entry(Position(7, 1), "kernel.LogStarted@1", "node/n", "", "", "", b"\x80")
    old = msgspec.msgpack.encode({"by_seconds": 2})
    entry = Entry(Position(7, 2), "kernel.ClockJumped@0", "shard/pod/0", "", "pod/0#1", "", old)
    printed = log.as_json(entry)
    assert [json.loads(printed)[name] for name in ("type", "data")] == [
        "kernel.ClockJumped@1",
        {"byMilliseconds": 2_000},
    ]
    file = tmp_path / "run.jsonl"
    file.write_text(f"{log.as_json(begun)}\n{printed}\n")
    read = entries_of(file)[1]
    assert codec.decode(read.type, read.data, Event) == kernel.ClockJumped(by_milliseconds=2_000)


def test_an_entry_as_json_has_every_field(node: WrittenNode) -> None:
    lines = node.run("log", "-o", "json").output.splitlines()
    assert json.loads(lines[1]) == {
        "position": f"{NOON}-2",
        "time": "2027-01-15T08:00:00.000Z",
        "type": "pod.ContainerStarted@1",
        "entity": "pod/default/web",
        "subject": "container/app",
        "actor": "pod#1",
        "cause": f"{NOON}-1",
        "data": {**ABOUT, "id": "c0ffee", "startedAt": 5},
    }


@pytest.mark.parametrize(
    ("flags", "numbers"),
    [
        ([], [1, 2, 3]),
        (["-n", "1"], [3]),
        (["-n", "2"], [2, 3]),
        (["-n", "0"], []),
        (["-n", "9"], [1, 2, 3]),
        (["--since", "30s"], [3]),
        (["--since", "2m"], [1, 2, 3]),
        (["--entity", "pod/*"], [2, 3]),
        (["--entity", "pod/default/web", "--type", "pod.ContainerStarted"], [2]),
        (["--type", "pod.ContainerStarted@1"], [2]),
        (["--type", "pod.*", "-n", "1"], [3]),
        (["--type", "kernel.*", "-n", "1"], [1]),
        (["--type", "nothing"], []),
        (["--pod", "web"], [2, 3]),
        (["--pod", "default/web", "--type", "*Exited"], [3]),
        (["--pod", "we"], []),
    ],
)
def test_flags_select_entries(node: WrittenNode, flags: list[str], numbers: list[int]) -> None:
    lines = node.run("log", *flags).output.splitlines()
    assert [int(line.split()[1].removeprefix("#")) for line in lines] == numbers


def test_entries_of_unknown_type_or_with_invalid_data_are_printed(node: WrittenNode) -> None:
    with node.server.changed:
        node.server.append(Record("pod.Teleported@3", "pod/default/web", "", "pod#9", "", b"\x81\xa2to\xa4mars"))
        node.server.append(Record("pod.PodEnded@1", "pod/default/web", "", "pod#9", "", b"\xc1"))
    first, second = node.run("log", "-n", "2").output.splitlines()
    assert first.endswith("pod.Teleported@3 to=mars")
    assert "undecodable" in second
    assert second.endswith(': c1"')


def test_follow_continues_with_new_entries(node: WrittenNode) -> None:
    entries = follow(node.store, node.store.last())
    at = node.write("pod/default/web", pod.PodEnded(pod="default/web", uid="u"))
    assert next(entries).position == at


def test_undecodable_entries_are_noted_once_after_the_output(node: WrittenNode) -> None:
    with node.server.changed:
        for _ in range(2):
            node.server.append(Record("pod.Teleported@3", "pod/default/web", "", "pod#9", "", b"\x80"))
    note = (
        "note: 2 entries of the log (the newest: #5, 2027-01-15T08:01:01Z) cannot be decoded by this release and had "
        "no effect on this output; the node agent skips such entries, too; see `chronolet log`\n"
    )
    assert node.run("get", "pods,containers").errors == f"No resources found in default namespace.\n{note}"
    assert node.run("log").errors == node.run("get", "images").errors.replace("No resources found.\n", "") == ""


@given(st.binary(max_size=40), st.text(max_size=10), st.text(max_size=10))
@example(b"\x81\x90\x00", "", "")
@example(b"\x81\x00\x00", "", "")
def test_any_entry_is_one_printable_line(data: bytes, name: str, cause: str) -> None:
    entry = Entry(Position(1, 2), name, name, name, name, cause, data)
    assert log.as_line(entry).isprintable()
    assert "\n" not in log.as_json(entry)


def test_lines_before_an_error_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def until_damage() -> Iterator[str]:
        yield from map(str, range(250))
        raise HistoryMissing("damaged")

    with pytest.raises(HistoryMissing):
        log._print(until_damage())
    assert capsys.readouterr().out.splitlines() == list(map(str, range(250)))
