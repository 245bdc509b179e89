"""`chronolet trace`: a line for each step, wait and call, and notes on what the trace lacks.

The first line, which names the main delay, is tested in tests/history/culprits.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from chronolet.cli.history.trace import MOST_SHOWN
from chronolet.node.http.recent_spans import MOST
from chronolet.ports.spans import TURN
from chronolet_schemas import pod
from chronolet_schemas.envelope import Record
from tests.cli.support.histories import APP, UID, WEB, accepted
from tests.cli.support.pod_start import FIRST, IMAGE, PROCESS, SANDBOX, Started
from tests.cli.support.written_node import NOON, WrittenNode

WITHOUT = "steps come from the log, without individual engine calls"


def test_each_step_wait_and_call_has_a_line_below_the_main_delay() -> None:
    start = Started()
    requested = start.sandbox()
    start.called(requested, TURN, 4, 0.4)
    start.called(requested, "docker.create", 5, 60.0)
    start.called(requested, "docker.start", 66, 130.0)
    start.image()
    start.container()
    assert start.traced() == [
        "default/web took 0.306 s to start, 0.200 s of it (65 %) starting the sandbox: docker.start took 0.130 s",
        "  +   0.000 s     0.200 s   65 %  starting the sandbox",
        "  +   0.000 s     0.000 s    0 %    turn",
        "  +   0.001 s     0.060 s   20 %    docker.create",
        "  +   0.062 s     0.130 s   42 %    docker.start",
        "  +   0.200 s     0.005 s    2 %  getting image busybox:1 for container app  (was present)",
        "  +   0.206 s     0.100 s   33 %  starting container app",
    ]


def test_unfinished_steps_and_calls_are_in_progress() -> None:
    start = Started()
    requested = start.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
    start.waits(requested, "docker.start")
    start.node.now += 9_000
    assert start.traced()[1:] == [
        "  +   0.000 s     9.000 s  100 %  starting the sandbox, in progress",
        "  +   0.000 s     9.000 s  100 %    docker.start, in progress",
    ]


def test_a_trace_as_json_has_steps_and_spans() -> None:
    start = Started()
    start.called(start.sandbox(), "docker.create", 5, 60.0)
    start.image()
    start.container()
    (line,) = start.traced("-o", "json")
    found = json.loads(line)
    assert (found["pod"], found["ended"] - found["began"], found["milliseconds"]) == ("default/web", 306, 306)
    assert found["steps"][0]["spans"][0] == {
        "entity": "default/web",
        "cause": found["steps"][0]["spans"][0]["cause"],
        "what": "docker.create",
        "at": NOON + 5,
        "milliseconds": 60.0,
    }


@pytest.mark.parametrize("name", ["nobody", "pod/nobody"])
def test_a_pod_without_entries_is_not_found(name: str) -> None:
    result = WrittenNode().run("trace", name)
    assert (result.status, result.output) == (1, "")
    assert result.errors == (
        'error: pods "nobody" not found: the log of node node-1 has no entries about the start of '
        "default/nobody; "
        "`chronolet get pods -A` lists its pods, -n selects a namespace\n"
    )


def test_another_type_is_a_usage_error() -> None:
    result = Started().node.run("trace", "node/web")
    assert result.status == 2
    assert "found 'node/web', expected TYPE/NAME such as pod/web." in result.errors


def test_a_pod_is_named_with_or_without_its_type() -> None:
    start = Started()
    start.whole()
    start.node.write("pod/data/db", accepted("db", "data"))
    assert start.node.run("trace", "web").output == start.node.run("trace", "pod/web").output
    assert start.node.run("trace", "db", "-n", "data").output.startswith("data/db: no step of its start has begun")


def test_a_removed_pod_has_its_last_start_and_a_note() -> None:
    start = Started()
    start.whole()
    start.after(
        1_000,
        pod.TerminationRequested(pod="default/web", uid=UID, reason="Deleted", grace_period_seconds=2, deadline=NOON),
    )
    start.after(2_000, pod.PodEnded(pod="default/web", uid=UID))
    start.node.now += 4_000
    result = start.run()
    assert result.output.startswith("default/web took 0.306 s to start")
    assert result.errors == "note: default/web was removed 4.000 s ago: this is its last start\n"


def test_of_two_pods_with_one_name_the_newer_is_traced() -> None:
    start = Started()
    start.sandbox(9_000)
    start.after(0, pod.PodEnded(pod="default/web", uid=UID))
    start.after(1, msgspec.structs.replace(accepted(), uid="another"))
    requested = pod.SandboxStartRequested(**{**SANDBOX, "uid": "another"}, spec_hash="s", requested_at=NOON)
    start.after(1, requested)
    start.node.now += 100
    assert len(start.traced()) == 2


def test_undecodable_entries_are_skipped_and_counted() -> None:
    start = Started()
    with start.node.server.changed:
        start.node.server.append(Record("pod.SandboxStarted", WEB, "sandbox", "pod#1", "", b"\xc1"))
        start.node.server.append(Record("pod.ComesLater", WEB, "sandbox", "pod#1", "", b"\x80"))
        start.node.server.append(Record("pod.SandboxStarted", "pod/default/db", "sandbox", "pod#1", "", b"\xc1"))
    start.whole()
    result = start.run()
    assert (result.status, len(result.output.splitlines())) == (0, 4)
    assert result.errors.startswith("note: 2 entries of the log (the newest: #")


def test_of_many_restarts_the_last_is_traced() -> None:
    start = Started()
    start.whole()
    for attempt in range(300):
        exited = pod.ContainerExited(
            **APP, attempt=attempt, id="c", exit_code=1, reason="Error", started_at=NOON, finished_at=NOON
        )
        times: dict[str, Any] = {"at": NOON, "back_off_seconds": 10, "next_back_off_seconds": 20}
        start.after(1_000, exited, pod.RestartScheduled(**APP, attempt=attempt, **times))
        start.node.now += 10_000
        start.image(attempt=attempt + 1)
        start.container(attempt=attempt + 1)
    lines = start.traced()
    assert len(lines) == 4
    assert lines[0].startswith("default/web took 10.106 s to start, 10.000 s of it (99 %) waiting out the back-off")


def test_of_very_many_steps_the_last_are_printed() -> None:
    start = Started()
    for _ in range(MOST_SHOWN):
        start.asks_image()
        failed: dict[str, Any] = {
            "reason": "ErrImagePull",
            "message": "denied",
            "failures": 1,
            "waits_from": NOON,
            "retry_at": NOON,
        }
        start.after(1_000, pod.ImageFailed(**FIRST, image=IMAGE, **failed))
        start.after(0, pod.ImageBackOffBegan(**FIRST, image=IMAGE, retry_at=NOON))
        start.node.now += 9_000
    lines = start.traced()
    assert lines[0] == (
        "default/web has been starting for 600.000 s, 540.000 s of it (90 %) waiting out the back-off of image "
        "busybox:1 for container app, 60 times: ErrImagePull: denied"
    )
    assert lines[1] == f"  ... {MOST_SHOWN} earlier steps; `-o json` prints all"
    assert len(lines) == MOST_SHOWN + 2
    assert len(json.loads(start.traced("-o", "json")[0])["steps"]) == 2 * MOST_SHOWN


def test_all_spans_that_an_agent_keeps_are_printed() -> None:
    start = Started()
    start.whole()
    requested = start.container()
    for number in range(MOST):
        start.called(requested, "docker.inspect", 300 + number, 1.0)
    lines = start.traced()
    assert sum(line.endswith("docker.inspect") for line in lines) == MOST


# -- spans of the agents ----------------------------------------------------------------------------------------------


def test_without_an_agent_a_note_explains_the_missing_calls() -> None:
    start = Started()
    start.node.store.renew("p", PROCESS, 0)
    start.whole()
    result = start.run()
    assert result.output.startswith("default/web took 0.306 s to start")
    assert result.errors == f"note: no agent of the node is running: {WITHOUT}\n"


@pytest.mark.parametrize(
    ("process", "note"),
    [
        (PROCESS, "the agent at http://127.0.0.1:10255/trace did not return spans"),
        ("pod", "an agent of the node has its HTTP server disabled (--port 0)"),
    ],
)
def test_an_agent_that_does_not_return_spans_is_noted(process: str, note: str) -> None:
    start = Started()
    start.whole()
    start.node.store.renew("p", process, 24 * 3_600_000)
    start.node.spans = {}
    assert start.run().errors == f"note: {note}: {WITHOUT}\n"


def test_an_agent_that_started_after_the_pod_is_noted() -> None:
    start = Started()
    start.whole()
    start.node.spans = {PROCESS: []}
    assert start.run().errors == (
        f"note: the agent has no engine calls of this start, which predates the agent or is too old: {WITHOUT}\n"
    )


def test_spans_of_one_of_two_agents_suffice() -> None:
    start = Started()
    start.called(start.sandbox(), "docker.create", 5, 60.0)
    start.image()
    start.container()
    start.node.store.renew("q", "manifests 127.0.0.1:10256", 24 * 3_600_000)
    start.node.spans["manifests 127.0.0.1:10256"] = []
    assert [line for line in start.traced() if "docker.create" in line]


def test_of_two_agents_the_silent_one_is_noted() -> None:
    start = Started()
    start.called(start.sandbox(), "docker.create", 5, 60.0)
    start.node.store.renew("q", "manifests 127.0.0.1:10256", 24 * 3_600_000)
    result = start.run()
    assert "docker.create" in result.output
    assert result.errors == f"note: the agent at http://127.0.0.1:10256/trace did not return spans: {WITHOUT}\n"
