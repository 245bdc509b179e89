"""Only starts of this process's pods are exported, also after an outage and if the log begins later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronolet.history.entries import NoArchive
from chronolet.history.start_trace import Trace
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet.node.http.recent_spans import RecentSpans
from chronolet.node.tracing.follower import StartTraces
from chronolet.ports.spans import Span
from chronolet_schemas import codec, kernel, pod, registry
from chronolet_schemas.envelope import Event, Record
from tests.deciders.pod.life import running
from tests.support.scratch import wait_until

NOW = 5_000
"""The time of every entry, in milliseconds."""


class Kept:
    """An exporter that keeps the traces."""

    def __init__(self) -> None:
        self.traces: list[tuple[Trace, str]] = []
        self.stopped = False

    def export(self, one: Trace, uid: str) -> None:
        self.traces.append((one, uid))

    def stop(self) -> None:
        self.stopped = True


class Store(MemoryStore):
    """A store that may be unreachable."""

    down = False
    calls = 0

    def run(self) -> str:
        self.calls += 1
        if self.down:
            raise StoreUnreachable("down")
        return super().run()


class Rig:
    def __init__(self) -> None:
        self.server = MemoryServer(lambda: NOW)
        self.store = Store(self.server)
        self.kept = Kept()
        self.spans = RecentSpans()
        self.traces = StartTraces(self.store, NoArchive(), self.spans, self.kept)

    def begin(self, run: str) -> None:
        record = self._record("node/n", kernel.LogStarted(run=run, node="n", shards={}))
        self.store.begin(run, {}, record)

    def start_pod(self, name: str, *, ours: bool = True) -> None:
        """Write all events of a pod's start to the log. If the pod is `ours`, notify the follower of its progress."""
        key = f"default/{name}"
        for event in running().history:
            self.write(f"pod/{key}", event)
            if ours and isinstance(event, pod.SpecAccepted | pod.ContainerStarted):
                self.traces.notice(type(event)(**{**_fields(event), "pod": key}))

    def write(self, entity: str, event: Event) -> None:
        with self.server.changed:
            self.server.append(self._record(entity, event))

    def follows(self) -> None:
        """Wait until the follower has read up to the log's current end."""
        wait_until(lambda: self.traces._at == self.store.last(), "the follower")

    def exported(self) -> list[str]:
        return [one.pod for one, _ in self.kept.traces]

    def _record(self, entity: str, event: Event) -> Record:
        return Record(registry.type_of(type(event)), entity, event.subject(), "pod#1", "", codec.encode(event))


def _fields(event: Event) -> dict[str, object]:
    return {name: getattr(event, name) for name in event.__struct_fields__}


@pytest.fixture
def rig() -> Iterator[Rig]:
    one = Rig()
    try:
        yield one
    finally:
        one.store.down = False
        one.traces.stop()
        assert one.kept.stopped


def test_the_pods_of_this_process_are_exported_with_their_spans(rig: Rig) -> None:
    rig.begin("r")
    rig.traces.start()
    rig.follows()
    rig.start_pod("theirs", ours=False)
    rig.start_pod("web")
    wait_until(lambda: bool(rig.kept.traces), "the trace")
    ((one, uid),) = rig.kept.traces
    assert (one.pod, uid) == ("default/web", "u1")
    assert one.ended
    assert one.steps


def test_spans_of_the_pod_are_in_its_steps(rig: Rig) -> None:
    rig.begin("r")
    rig.traces.start()
    rig.follows()
    first = rig.store.last().n
    requested = next(n for n, event in enumerate(running().history, 1) if isinstance(event, pod.SandboxStartRequested))
    cause = f"{NOW}-{first + requested}"
    rig.spans.note(Span(entity="default/web", cause=cause, what="docker.create", at=NOW, milliseconds=1.0))
    rig.start_pod("web")
    wait_until(lambda: bool(rig.kept.traces), "the trace")
    assert [span.what for step in rig.kept.traces[0][0].steps for span in step.spans] == ["docker.create"]


def test_a_log_that_begins_later_is_read_from_its_beginning(rig: Rig) -> None:
    rig.traces.start()
    rig.follows()
    rig.begin("r")
    rig.start_pod("web")
    wait_until(lambda: rig.exported() == ["default/web"], "the trace")


def test_an_outage_is_survived(rig: Rig) -> None:
    rig.begin("r")
    rig.store.down = True
    rig.traces.start()
    wait_until(lambda: rig.store.calls > 0, "a failed call")
    rig.store.down = False
    rig.follows()
    rig.start_pod("web")
    wait_until(lambda: rig.exported() == ["default/web"], "the trace")


def test_an_entry_that_cannot_be_decoded_is_skipped(rig: Rig) -> None:
    rig.begin("r")
    rig.traces.start()
    rig.follows()
    with rig.server.changed:
        rig.server.append(Record("no.Such@1", "pod/default/x", "", "pod#1", "", b"\xc1"))
    rig.start_pod("web")
    wait_until(lambda: rig.exported() == ["default/web"], "the trace")
