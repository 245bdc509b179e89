"""`chronolet trace`: what took longest comes first, then every step, wait and call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chronolet.ports.spans import TURN, Span
from chronolet_schemas import pod
from chronolet_schemas.envelope import Position
from chronolet_schemas.prober import RawResult
from tests.cli.histories import APP, UID, WEB, accepted
from tests.cli.written import NOON, WrittenNode

PROCESS = "pod,pleg 127.0.0.1:10255"
FIRST: dict[str, Any] = {**APP, "attempt": 0}
SANDBOX: dict[str, Any] = {"pod": "default/web", "uid": UID, "attempt": 0}


class Started:
    """A pod's start, step by step."""

    def __init__(self) -> None:
        self.node = WrittenNode()
        self.node.store.renew("p", PROCESS, 3_600_000)
        self.node.write(WEB, accepted())

    def after(self, milliseconds: int, *events: Any) -> Position:
        self.node.now += milliseconds
        return self.node.write(WEB, *events)

    def called(self, cause: Position, what: str, at: int, milliseconds: float) -> None:
        spans = self.node.spans.setdefault(PROCESS, [])
        span = Span(entity="default/web", cause=str(cause), what=what, at=NOON + at, milliseconds=milliseconds)
        spans.append(span)

    def sandbox(self, milliseconds: int = 200) -> Position:
        asked = self.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
        self.after(milliseconds, pod.SandboxStarted(**SANDBOX, id="box", started_at=NOON))
        return asked

    def image(self, *, pulled_for: int = 0) -> None:
        self.after(0, pod.ImageEnsureRequested(**FIRST, image="busybox:1", policy="IfNotPresent"))
        ready = pod.ImageReady(**FIRST, image="busybox:1", image_id="i", pulled=pulled_for > 0, milliseconds=pulled_for)
        self.after(pulled_for + 5, ready)

    def container(self, milliseconds: int = 100) -> Position:
        asked = self.after(1, pod.ContainerStartRequested(**FIRST, sandbox_id="b", spec_hash="", requested_at=NOON))
        self.after(milliseconds, pod.ContainerStarted(**FIRST, id="c", started_at=NOON))
        return asked

    def traced(self, *options: str) -> list[str]:
        said = self.node.run("trace", "pod/web", *options)
        assert (said.status, said.err) == (0, ""), said.err
        return said.out.splitlines()


def test_each_step_wait_and_call_has_a_line_under_what_took_longest() -> None:
    start = Started()
    asked = start.sandbox()
    start.called(asked, TURN, 4, 0.4)
    start.called(asked, "docker.create", 5, 60.0)
    start.called(asked, "docker.start", 66, 130.0)
    start.image()
    start.container()
    assert start.traced() == [
        "default/web took 0.306 s to start, 0.200 s of it (65 %) starting the sandbox",
        "  +   0.000 s     0.200 s   65 %  starting the sandbox",
        "  +   0.000 s     0.000 s    0 %    turn",
        "  +   0.001 s     0.060 s   20 %    docker.create",
        "  +   0.062 s     0.130 s   42 %    docker.start",
        "  +   0.200 s     0.005 s    2 %  getting image busybox:1 for container app  (was there)",
        "  +   0.206 s     0.100 s   33 %  starting container app",
    ]


def test_a_slow_pull_is_named() -> None:
    start = Started()
    start.node.spans[PROCESS] = [Span(entity="default/web", cause="1-1", what="docker.list", at=0, milliseconds=1.0)]
    start.sandbox()
    start.image(pulled_for=11_700)
    start.container()
    assert start.traced()[0] == (
        "default/web took 12.006 s to start, 11.705 s of it (97 %) getting image busybox:1 for container app: "
        "pulled in 11.7 s"
    )


def test_a_full_queue_is_named() -> None:
    start = Started()
    asked = start.sandbox(9_000)
    start.called(asked, TURN, 4, 8_800.0)
    start.image()
    start.container()
    assert start.traced()[0] == (
        "default/web took 9.106 s to start, 8.800 s of it (97 %) waiting for a turn before starting the sandbox: "
        "as many starts as the engine carries were under way"
    )


def test_a_late_probe_is_named_before_the_start() -> None:
    start = Started()
    start.sandbox()
    start.image()
    start.called(start.container(), "docker.start", 210, 90.0)
    start.node.results = [
        _result(at=NOON + 9_000, late=0.4),
        _result(at=NOON + 5_000, late=2_300.0, stalled=2_100.0),
        _result(at=NOON + 4_000, late=9_000.0, uid="another"),
        _result(at=NOON - 4_000, late=9_000.0),
    ]
    assert start.traced()[0] == (
        "default/web: the liveness probe of container app began 2.300 s late: "
        "agent or machine stood still for 2.100 s meanwhile"
    )


def test_a_start_that_goes_on_says_for_how_long_and_why() -> None:
    start = Started()
    start.after(2, pod.DevicesRequested(**_devices(), role="app", resources={"a/b": 1}, requested_at=NOON))
    start.after(3, pod.DevicesAwaited(**_devices(), reason="r", message="no plugin of a/b", said_at=NOON))
    start.node.now += 60_000
    said = start.node.run("trace", "web")
    assert said.out.splitlines() == [
        (
            "default/web has been starting for 60.003 s, 60.003 s of it (100 %) getting devices for container app: "
            "no plugin of a/b"
        ),
        "  +   0.000 s    60.003 s  100 %  getting devices for container app, not over  (no plugin of a/b)",
    ]
    assert said.err == "note: no running agent could be asked what single calls to the engine took\n"


def test_a_restart_is_traced_from_its_back_off_on() -> None:
    start = Started()
    start.sandbox()
    start.image()
    start.container()
    exited = pod.ContainerExited(**FIRST, id="c", exit_code=1, reason="Error", started_at=NOON, finished_at=NOON)
    start.after(60_000, exited)
    restart = pod.RestartScheduled(**FIRST, at=NOON, back_off_seconds=10, next_back_off_seconds=20)
    start.after(1, restart)
    start.after(10_000, pod.ImageEnsureRequested(**FIRST, image="busybox:1", policy="IfNotPresent"))
    start.after(5, pod.ImageReady(**FIRST, image="busybox:1", image_id="i", pulled=False))
    start.called(start.container(), "docker.start", 210, 90.0)
    lines = start.traced()
    assert lines[0] == (
        "default/web took 10.106 s to start, 10.000 s of it (99 %) waiting out the back-off of container app"
    )
    assert len(lines) == 5


def test_as_json() -> None:
    start = Started()
    start.called(start.sandbox(), "docker.create", 5, 60.0)
    (line,) = start.traced("-o", "json")
    found = json.loads(line)
    assert (found["pod"], found["ended"] - found["began"]) == ("default/web", 200)
    assert found["steps"][0]["spans"][0]["what"] == "docker.create"


@pytest.mark.parametrize("name", ["nobody", "pod/nobody"])
def test_a_pod_that_never_was(name: str) -> None:
    said = WrittenNode().run("trace", name)
    assert said.status == 1
    assert said.err == 'error: pods "nobody" not found: the log has no start of default/nobody\n'


def _devices() -> dict[str, Any]:
    return {"pod": "default/web", "uid": UID, "container": "app"}


def _result(*, at: int, late: float, stalled: float = 0.0, uid: str = UID) -> RawResult:
    return RawResult(
        pod="default/web",
        uid=uid,
        container="app",
        probe="Liveness",
        id="c",
        outcome="success",
        code="200",
        at=str(at),
        milliseconds="3.0",
        late_milliseconds=str(late),
        output="",
        stalled_milliseconds=str(stalled),
    )
