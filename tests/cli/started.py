"""A pod's start, written into a log step by step, and what `chronolet trace` makes of it.

Input: how long each step takes. Output: the command's lines. Next: test_trace, tests/history/culprits.
"""

from __future__ import annotations

from typing import Any

from chronolet.kernel.observer import Queue
from chronolet.ports.spans import TURN, Span
from chronolet_schemas import pod, prober
from chronolet_schemas.envelope import Position
from chronolet_schemas.podspec import Probe
from chronolet_schemas.prober import RawResult
from tests.cli.histories import APP, UID, WEB, accepted
from tests.cli.written import NOON, Said, WrittenNode

PROCESS = "pod,pleg 127.0.0.1:10255"
FIRST: dict[str, Any] = {**APP, "attempt": 0}
SANDBOX: dict[str, Any] = {"pod": "default/web", "uid": UID, "attempt": 0}
DEVICES: dict[str, Any] = {"pod": "default/web", "uid": UID, "container": "app"}
IMAGE = "busybox:1"


class Started:
    """The start of default/web. Its agent knows one call of nothing that is written, so that it has spans."""

    def __init__(self, **spec: Any) -> None:
        self.node = WrittenNode()
        self.node.store.renew("p", PROCESS, 24 * 3_600_000)
        self.node.spans[PROCESS] = [Span(entity="default/web", cause="1-1", what="docker.list", at=0, milliseconds=1.0)]
        self.node.write(WEB, accepted(**spec))

    def after(self, milliseconds: int, *events: Any) -> Position:
        self.node.now += milliseconds
        return self.node.write(WEB, *events)

    def called(self, cause: Position, what: str, at: int, milliseconds: float, **more: Any) -> None:
        span = Span(entity="default/web", cause=str(cause), what=what, at=NOON + at, milliseconds=milliseconds, **more)
        self.node.spans[PROCESS].append(span)

    def waited(self, cause: Position, milliseconds: float, what: str = TURN, **queue: Any) -> None:
        self.called(cause, what, self.node.now - NOON, milliseconds, queue=Queue(**queue))

    def waits(self, cause: Position, what: str = TURN, **queue: Any) -> None:
        """From now on, and still."""
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
        """A start in which nothing is slow."""
        self.sandbox()
        self.image()
        self.container()

    def probing(self) -> None:
        """Its app is probed from now on."""
        wanted = pod.ProbingRequested(
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
        self.after(0, wanted)

    def delayed(self, milliseconds: int, agent: int = 0) -> None:
        told = prober.ProbeDelayed(
            **DEVICES, probe="Liveness", id="c", late_milliseconds=milliseconds, agent_late_milliseconds=agent
        )
        self.node.write("prober/default/web/app/Liveness", told)

    def said(self, *options: str) -> Said:
        return self.node.run("trace", "pod/web", *options)

    def traced(self, *options: str) -> list[str]:
        said = self.said(*options)
        assert (said.status, said.err) == (0, ""), said.err
        return said.out.splitlines()


def result(
    *, at: int, late: float = 0.0, stalled: float = 0.0, took: float = 3.0, uid: str = UID, name: str = "default/web"
) -> RawResult:
    """Of a probe that began at that time."""
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
