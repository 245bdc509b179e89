"""Follows the log for starts of the pods that this process hosts, and passes a trace of each to an exporter.

Input: notices that a pod of this process has made progress; the log; spans. Output: traces. Next: `exporter`. Each
notice makes the follower's thread read what is new in the log; while no pod makes progress, the thread sleeps.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

import structlog

from chronolet.history.entries import ArchiveReader, entries
from chronolet.history.start_trace import Trace, trace
from chronolet.kernel.storage.store import HistoryMissing, Store, StoreBroken, StoreUnreachable
from chronolet.node.http.recent_spans import RecentSpans
from chronolet.node.tracing.starts import Starts, TimedEvent
from chronolet_schemas import codec, pod
from chronolet_schemas.envelope import START, Event, Position
from chronolet_schemas.times import stamp_of

PAUSE_SECONDS = 0.2
"""The pause after each reading, because the events of a start come in quick succession. It also leaves time to record
the last span of a start, which happens just after the start's last event.
"""

RETRY_SECONDS = 1.0

log = structlog.get_logger("chronolet.tracing")


class Exporter(Protocol):
    """Sends traces. Does not block or raise."""

    def export(self, one: Trace, uid: str) -> None:
        """Queue the trace `one` for sending. `uid`: the pod's uid."""

    def stop(self) -> None:
        """Send the waiting traces, in bounded time."""


class StartTraces:
    """Exports traces of the pod starts that begin between the calls of `start` and `stop`."""

    def __init__(self, store: Store, archive: ArchiveReader, spans: RecentSpans, exporter: Exporter) -> None:
        self._store = store
        self._archive = archive
        self._spans = spans
        self._exporter = exporter
        self._starts = Starts()
        self._ours: set[str] = set()
        """The pods whose events this process has committed. Other processes export the traces of their own pods."""
        self._at: Position | None = None
        self._run = ""
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="traces", daemon=True)

    def start(self) -> None:
        """Start following the log from its current end, as soon as the server can be reached."""
        self._news.set()
        self._thread.start()

    def stop(self) -> None:
        """Stop, and send the traces that are complete."""
        self._stopping.set()
        self._news.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._exporter.stop()

    def notice(self, event: Event) -> None:
        """Handle an event that this process has committed. Called on the hosts' threads."""
        if isinstance(event, pod.SpecAccepted | pod.ContainerStarted | pod.PodFailed | pod.PodEnded):
            self._ours.add(event.pod)
            self._news.set()

    def _follow(self) -> None:
        while not self._stopping.wait(0.0 if self._at is None else PAUSE_SECONDS):
            self._news.wait()
            self._news.clear()
            try:
                self._read()
            except (StoreUnreachable, StoreBroken, HistoryMissing) as error:
                log.debug("cannot read the log for traces, retrying", error=str(error))
                self._at = None  # starts in the meantime are not traced
                self._news.set()
                self._stopping.wait(RETRY_SECONDS)

    def _read(self) -> None:
        run = self._store.run()
        if self._at is None:
            self._starts, self._at, self._run = Starts(), self._store.last(), run
        elif run != self._run:  # a new log has begun
            self._starts, self._at, self._run = Starts(), START, run
        for entry in entries(self._store, self._archive, self._at):
            self._at = entry.position
            try:
                event = codec.decode(entry.type, entry.data, Event)
            except codec.Undecodable:
                continue
            over = self._starts.take(stamp_of(entry), entry.entity, event)
            if over is not None:
                self._export(*over)
            if isinstance(event, pod.PodEnded):
                self._ours.discard(event.pod)

    def _export(self, name: str, events: list[TimedEvent]) -> None:
        if name not in self._ours:
            return
        found = trace(name, events, self._spans.of(name), (), time.time_ns() // 1_000_000)
        uid = next((one.uid for _, _, one in events if isinstance(one, pod.SpecAccepted)), "")
        if found is not None and found.ended:
            self._exporter.export(found, uid)
