"""Writes a pod's start into a log step by step, and runs `chronolet trace` on it.

Input: the duration of each step. Output: the lines that the command prints. Next: test_trace, tests/history/culprits.
"""

from __future__ import annotations

from typing import Any

from chronolet.kernel.observer import Queue
from chronolet.ports.spans import TURN, Span
from chronolet_schemas import pod, prober
from chronolet_schemas.envelope import Position
from chronolet_schemas.podspec import Probe
from chronolet_schemas.prober import RawResult
from tests.cli.support.histories import APP, UID, WEB, accepted
from tests.cli.support.written_node import NOON, Result, WrittenNode

PROCESS = "pod,pleg 127.0.0.1:10255"
FIRST: dict[str, Any] = {**APP, "attempt": 0}
SANDBOX: dict[str, Any] = {"pod": "default/web", "uid": UID, "attempt": 0}
DEVICES: dict[str, Any] = {"pod": "default/web", "uid": UID, "container": "app"}
IMAGE = "busybox:1"


class Started:
    """The start of default/web. The agent returns a span that belongs to no entry, so that its list is not empty."""

    def __init__(self, **spec: Any) -> None:
        self.node = WrittenNode()
        self.node.store.renew("p", PROCESS, 24 * 3_600_000)
        self.node.spans[PROCESS] = [Span(entity="default/web", cause="1-1", what="docker.list", at=0, milliseconds=1.0)]
        self.node.write(WEB, accepted(**spec))

    def after(self, milliseconds: int, *events: Any) -> Position:
        """Advance the clock and write events of the pod; return the position of the last one."""
        self.node.now += milliseconds
        return self.node.write(WEB, *events)

    def called(self, cause: Position, what: str, at: int, milliseconds: float, **more: Any) -> None:
        """Add the agent's span of a call that the entry at `cause` led to. It begins `at` milliseconds after noon."""
        span = Span(entity="default/web", cause=str(cause), what=what, at=NOON + at, milliseconds=milliseconds, **more)
        self.node.spans[PROCESS].append(span)

    def waited(self, cause: Position, milliseconds: float, what: str = TURN, **queue: Any) -> None:
        """Add a span for a wait in a queue that begins now and takes `milliseconds`."""
        self.called(cause, what, self.node.now - NOON, milliseconds, queue=Queue(**queue))

    def waits(self, cause: Position, what: str = TURN, **queue: Any) -> None:
        """Add a span for a wait that begins now and is still in progress."""
        self.called(cause, what, self.node.now - NOON, 0.0, over=False, queue=Queue(**queue) if queue else None)

    def sandbox(self, milliseconds: int = 200) -> Position:
        asked = self.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
        self.after(milliseconds, pod.SandboxStarted(**SANDBOX, id="box", started_at=NOON))
        return asked

    def asks_image(self, **more: Any) -> Position:
        return self.after(0, pod.ImageEnsureRequested(**{**FIRST, **more}, image=IMAGE, policy="IfNotPresent"))

    def image(self, *, pulled_for: int = 0, waited_for: int = 0, **more: Any) -> Position:
        asked = self.asks_image(**more)
        ready = pod.ImageReady(
            **{**FIRST, **more},
            image=IMAGE,
            image_id="i",
            pulled=pulled_for > 0,
            milliseconds=pulled_for,
            waited_milliseconds=waited_for,
        )
        self.after(pulled_for + waited_for + 5, ready)
        return asked

    def container(self, milliseconds: int = 100, **more: Any) -> Position:
        about = {**FIRST, **more}
        asked = self.after(1, pod.ContainerStartRequested(**about, sandbox_id="b", spec_hash="", requested_at=NOON))
        self.after(milliseconds, pod.ContainerStarted(**about, id="c", started_at=self.node.now))
        return asked

    def whole(self) -> None:
        """Write a complete start without delays."""
        self.sandbox()
        self.image()
        self.container()

    def probing(self) -> None:
        """Write an event that requests the liveness probe of app."""
        requested = pod.ProbingRequested(
            **FIRST,
            id="c",
            digest="d",
            started_at=NOON,
            ip="",
            restarts="Always",
            started=True,
            field="spec.containers{app}",
            probe="Liveness",
            definition=Probe(),
            period_milliseconds=1_000,
        )
        self.after(0, requested)

    def delayed(self, milliseconds: int, agent: int = 0) -> None:
        event = prober.ProbeDelayed(
            **DEVICES, probe="Liveness", id="c", late_milliseconds=milliseconds, agent_late_milliseconds=agent
        )
        self.node.write("prober/default/web/app/Liveness", event)

    def run(self, *options: str) -> Result:
        """Run `chronolet trace` on the pod."""
        return self.node.run("trace", "pod/web", *options)

    def traced(self, *options: str) -> list[str]:
        """Return the output lines of `chronolet trace`, which must succeed without errors."""
        result = self.run(*options)
        assert (result.status, result.errors) == (0, ""), result.errors
        return result.output.splitlines()


def result(
    *, at: int, late: float = 0.0, stalled: float = 0.0, took: float = 3.0, uid: str = UID, name: str = "default/web"
) -> RawResult:
    """Return the raw result of a probe that began at the time `at`. All times are in milliseconds."""
    return RawResult(
        pod=name,
        uid=uid,
        container="app",
        probe="Liveness",
        id="c",
        outcome="success",
        code="200",
        at=str(at),
        milliseconds=str(took),
        late_milliseconds=str(late),
        output="",
        agent_late_milliseconds=str(stalled),
    )
