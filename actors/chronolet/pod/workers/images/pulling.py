"""Supervises image pulls: queues them, tracks their progress, and aborts a pull that stalls or is cancelled.

Input: an effect's context, the runtime's progress messages. Output: reports of progress. Next: `ensure`.
Source: pkg/kubelet/images/puller.go, and dockershim's progress reporter (libdocker/kube_docker_client.go).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chronolet.kernel.kind import EffectContext
from chronolet.kernel.observer import Queue
from chronolet.ports.runtime.runtime import PullStep
from chronolet.ports.runtime.streams import Stream
from chronolet.ports.spans import PULL_TURN, Spans, measured

_SLICE_SECONDS = 0.2
"""How often a wait checks for cancellation."""
_NAMED = 3
"""How many of the active pulls are named in a waiting pull's queue report."""
_FETCHED = ("Verifying Checksum", "Download complete", "Extracting", "Pull complete")


class _Pull:
    """An active or queued pull."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.turn = threading.Event()


class Turns:
    """A FIFO queue with at most `limit` concurrent pulls; None means no limit."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._active: list[_Pull] = []
        self._waiting: deque[_Pull] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, context: EffectContext, image: str, spans: Spans) -> Iterator[None]:
        """Wait in the queue, then hold a slot while the block runs. Raises `LostOwnership` if cancelled in the
        meantime.
        """
        mine = _Pull(image)
        queue = self._queued(mine)
        try:
            if queue is not None:
                with measured(spans, context, PULL_TURN, queue):
                    self._wait(mine, context)
            yield
        finally:
            self._leave(mine)

    def _queued(self, mine: _Pull) -> Queue | None:
        """Take a slot and return None, or join the queue and return its state."""
        with self._lock:
            if self._limit is None or len(self._active) < self._limit:
                self._active.append(mine)
                mine.turn.set()
                return None
            holders = tuple(one.image for one in self._active[:_NAMED])
            queue = Queue(at_work=len(self._active), allowed=self._limit, ahead=len(self._waiting), holders=holders)
            self._waiting.append(mine)
            return queue

    def _wait(self, mine: _Pull, context: EffectContext) -> None:
        while not mine.turn.wait(_SLICE_SECONDS):
            if context.cancelled.is_set():
                context.fence("docker.pull")

    def _leave(self, mine: _Pull) -> None:
        with self._lock:
            if not mine.turn.is_set():
                self._waiting.remove(mine)
                return
            self._active.remove(mine)
            if self._waiting:
                following = self._waiting.popleft()
                self._active.append(following)
                following.turn.set()


class Bytes:
    """Counts the downloaded bytes of an image, and the total of the layers known so far."""

    def __init__(self) -> None:
        self._layers: dict[str, tuple[int, int]] = {}

    def take(self, step: PullStep) -> bool:
        """Apply a progress message, and return whether either number has changed."""
        before = (self.done, self.total)
        if step.status == "Downloading" and step.total:
            self._layers[step.layer] = (min(step.done, step.total), step.total)
        elif step.status in _FETCHED and step.layer in self._layers:
            total = self._layers[step.layer][1]
            self._layers[step.layer] = (total, total)
        return (self.done, self.total) != before

    @property
    def done(self) -> int:
        return sum(done for done, _ in self._layers.values())

    @property
    def total(self) -> int:
        return sum(total for _, total in self._layers.values())


class Watch:
    """Watches a pull on a separate thread; aborts it on cancellation or after `patience_seconds` without progress."""

    def __init__(
        self,
        context: EffectContext,
        patience_seconds: float,
        report: Callable[[Bytes], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._clock = clock
        self._patience = patience_seconds
        self._report = report
        self._bytes = Bytes()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._over = threading.Event()
        self._moved_at = clock()
        self._last = ""
        self.stalled = False

    @property
    def last(self) -> str:
        """The runtime's latest progress message."""
        return self._last

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch the pull while the block runs."""
        thread = threading.Thread(target=self._watch, name="pull's watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def opened(self, stream: Stream) -> None:
        """Store the pull's stream, which is closed to abort the pull."""
        with self._lock:
            self._stream = stream

    def step(self, step: PullStep) -> None:
        """Handle a progress message. It counts as progress if it differs from the previous one."""
        status = f"{step.layer}: {step.status}" if step.layer else step.status
        message = f"{status} {step.done}/{step.total}" if step.total else status
        if message != self._last:
            self._last, self._moved_at = message, self._clock()
        if self._bytes.take(step):
            self._report(self._bytes)

    def _watch(self) -> None:
        while not self._over.wait(_SLICE_SECONDS):
            self.stalled = self.stalled or self._clock() - self._moved_at > self._patience
            if self.stalled or self._context.cancelled.is_set():
                self._close()

    def _close(self) -> None:
        with self._lock:
            if self._stream is not None:
                self._stream.close()
