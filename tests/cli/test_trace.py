"""`chronolet trace`: every step, wait and call below the first line, and what it says where it cannot tell all.

What the first line names is tested in tests/history/culprits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import msgspec
import pytest

from chronolet.adapters.http import recent_spans
from chronolet.cli.history.trace import MOST_SHOWN
from chronolet.node.http.recent_spans import MOST, RecentSpans
from chronolet.ports.spans import TURN, Span
from chronolet_schemas import pod
from chronolet_schemas.envelope import Record
from tests.cli.histories import APP, UID, WEB, accepted
from tests.cli.started import FIRST, IMAGE, PROCESS, SANDBOX, Started
from tests.cli.written import NOON, WrittenNode

WITHOUT = "steps come from the log, without individual engine calls"


def test_each_step_wait_and_call_has_a_line_under_what_took_longest() -> None:
    start = Started()
    asked = start.sandbox()
    start.called(asked, TURN, 4, 0.4)
    start.called(asked, "docker.create", 5, 60.0)
    start.called(asked, "docker.start", 66, 130.0)
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


def test_what_goes_on_says_so() -> None:
    start = Started()
    asked = start.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
    start.waits(asked, "docker.start")
    start.node.now += 9_000
    assert start.traced()[1:] == [
        "  +   0.000 s     9.000 s  100 %  starting the sandbox, in progress",
        "  +   0.000 s     9.000 s  100 %    docker.start, in progress",
    ]


def test_as_json() -> None:
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
def test_a_pod_that_never_was(name: str) -> None:
    said = WrittenNode().run("trace", name)
    assert (said.status, said.out) == (1, "")
    assert said.err == (
        'error: pods "nobody" not found: the log of node node-1 has no entries about default/nobody; '
        "`chronolet get pods -A` lists its pods, -n selects a namespace\n"
    )


def test_another_type_than_a_pod() -> None:
    said = Started().node.run("trace", "node/web")
    assert said.status == 2
    assert "found 'node/web', expected TYPE/NAME such as pod/web." in said.err


def test_both_spellings_and_a_namespace() -> None:
    start = Started()
    start.whole()
    start.node.write("pod/data/db", accepted("db", "data"))
    assert start.node.run("trace", "web").out == start.node.run("trace", "pod/web").out
    assert start.node.run("trace", "db", "-n", "data").out.startswith("data/db: no step of its start has begun")


def test_a_removed_pod_shows_its_last_start_and_says_that_it_is_gone() -> None:
    start = Started()
    start.whole()
    start.after(
        1_000,
        pod.TerminationRequested(pod="default/web", uid=UID, reason="Deleted", grace_period_seconds=2, deadline=NOON),
    )
    start.after(2_000, pod.PodEnded(pod="default/web", uid=UID))
    start.node.now += 4_000
    said = start.said()
    assert said.out.startswith("default/web took 0.306 s to start")
    assert said.err == "note: default/web was removed 4.000 s ago: this is its last start\n"


def test_of_two_pods_of_one_name_the_newer_one_counts() -> None:
    start = Started()
    start.sandbox(9_000)
    start.after(0, pod.PodEnded(pod="default/web", uid=UID))
    start.after(1, msgspec.structs.replace(accepted(), uid="another"))
    asked = pod.SandboxStartRequested(**{**SANDBOX, "uid": "another"}, spec_hash="s", requested_at=NOON)
    start.after(1, asked)
    start.node.now += 100
    assert len(start.traced()) == 2


def test_entries_that_cannot_be_decoded_are_passed_over_and_counted() -> None:
    start = Started()
    with start.node.server.changed:
        start.node.server.append(Record("pod.SandboxStarted", WEB, "sandbox", "pod#1", "", b"\xc1"))
        start.node.server.append(Record("pod.ComesLater", WEB, "sandbox", "pod#1", "", b"\x80"))
        start.node.server.append(Record("pod.SandboxStarted", "pod/default/db", "sandbox", "pod#1", "", b"\xc1"))
    start.whole()
    said = start.said()
    assert (said.status, len(said.out.splitlines())) == (0, 4)
    assert said.err.startswith("note: 2 entries of the log (the newest: #")


def test_a_pod_of_many_restarts_shows_the_last_one() -> None:
    start = Started()
    start.whole()
    for attempt in range(300):
        exited = pod.ContainerExited(
            **APP, attempt=attempt, id="c", exit_code=1, reason="Error", started_at=NOON, finished_at=NOON
        )
        waits: dict[str, Any] = {"at": NOON, "back_off_seconds": 10, "next_back_off_seconds": 20}
        start.after(1_000, exited, pod.RestartScheduled(**APP, attempt=attempt, **waits))
        start.node.now += 10_000
        start.image(attempt=attempt + 1)
        start.container(attempt=attempt + 1)
    lines = start.traced()
    assert len(lines) == 4
    assert lines[0].startswith("default/web took 10.106 s to start, 10.000 s of it (99 %) waiting out the back-off")


def test_of_very_many_steps_the_last_ones_are_shown() -> None:
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


def test_as_many_spans_as_an_agent_keeps() -> None:
    start = Started()
    start.whole()
    asked = start.container()
    for number in range(MOST):
        start.called(asked, "docker.inspect", 300 + number, 1.0)
    lines = start.traced()
    assert sum(line.endswith("docker.inspect") for line in lines) == MOST


# -- what the agents know ---------------------------------------------------------------------------------------------


def test_no_agent() -> None:
    start = Started()
    start.node.store.renew("p", PROCESS, 0)
    start.whole()
    said = start.said()
    assert said.out.startswith("default/web took 0.306 s to start")
    assert said.err == f"note: no agent of the node is running: {WITHOUT}\n"


@pytest.mark.parametrize(
    ("process", "note"),
    [
        (PROCESS, "the agent at http://127.0.0.1:10255/trace did not return spans"),
        ("pod", "an agent of the node has its HTTP server disabled (--port 0)"),
    ],
)
def test_an_agent_that_does_not_tell(process: str, note: str) -> None:
    start = Started()
    start.whole()
    start.node.store.renew("p", process, 24 * 3_600_000)
    start.node.spans = {}
    assert start.said().err == f"note: {note}: {WITHOUT}\n"


def test_an_agent_that_was_started_since() -> None:
    start = Started()
    start.whole()
    start.node.spans = {PROCESS: []}
    assert start.said().err == (
        f"note: the agent has no engine calls of this start, which predates the agent or is too old: {WITHOUT}\n"
    )


def test_of_two_agents_the_one_that_knows_is_enough() -> None:
    start = Started()
    start.called(start.sandbox(), "docker.create", 5, 60.0)
    start.image()
    start.container()
    start.node.store.renew("q", "manifests 127.0.0.1:10256", 24 * 3_600_000)
    start.node.spans["manifests 127.0.0.1:10256"] = []
    assert [line for line in start.traced() if "docker.create" in line]


def test_of_two_agents_the_one_that_is_silent_is_named() -> None:
    start = Started()
    start.called(start.sandbox(), "docker.create", 5, 60.0)
    start.node.store.renew("q", "manifests 127.0.0.1:10256", 24 * 3_600_000)
    said = start.said()
    assert "docker.create" in said.out
    assert said.err == f"note: the agent at http://127.0.0.1:10256/trace did not return spans: {WITHOUT}\n"


# -- the ring and its page --------------------------------------------------------------------------------------------


def test_the_ring_keeps_the_newest_and_what_goes_on() -> None:
    ring = RecentSpans(most=2)
    going_on = _span("turn", over=False)
    ring.begin(going_on)
    for what in ("a", "b", "c"):
        ring.note(_span(what))
    assert [one.what for one in ring.of("default/web")] == ["b", "c", "turn"]
    ring.note(_span("turn"))
    assert [(one.what, one.over) for one in ring.of("")] == [("c", True), ("turn", True)]
    assert ring.of("default/db") == []


@pytest.fixture
def served() -> Iterator[tuple[str, list[bytes]]]:
    """An address, and the one answer that it gives to everything."""
    bodies = [b""]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bodies[0])

        def log_message(self, *_: Any) -> None:
            """Tests are silent."""

    server = HTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    server.server_close()


def test_the_page_is_read_as_it_was_written(served: tuple[str, list[bytes]]) -> None:
    address, bodies = served
    ring = RecentSpans()
    ring.note(_span("docker.create"))
    ring.begin(_span("turn", over=False))
    bodies[0] = ring.page({"entity": ["default/web"]}).body
    assert recent_spans.asked(address, "default/web") == ring.of("default/web")


@pytest.mark.parametrize("body", [b"", b"<html>", b'[{"what": 1}]', b'{"a": 1}'])
def test_another_page_is_no_answer(served: tuple[str, list[bytes]], body: bytes) -> None:
    address, bodies = served
    bodies[0] = body
    assert recent_spans.asked(address, "default/web") is None


@pytest.mark.parametrize("address", ["", "127.0.0.1:1", "nonsense"])
def test_nobody_there_is_no_answer(address: str) -> None:
    assert recent_spans.asked(address, "default/web") is None


def _span(what: str, *, over: bool = True) -> Span:
    return Span(entity="default/web", cause="1-1", what=what, at=NOON, milliseconds=1.0 if over else 0.0, over=over)
