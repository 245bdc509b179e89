"""The worker that follows the runtime's event stream. Notices are fast and may be lost; the listing is authoritative.

Input: `wanted.FollowRuntime`, the runtime's notices. Output: `signals.ContainerObserved`, `OomKilled`, `StreamOpened`,
`StreamBroken`. Next: `decider`. Source: pkg/kubelet/pleg/evented.go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import structlog

from chronolet.kernel.kind import EffectContext
from chronolet.pleg import signals, wanted
from chronolet.pleg.containers.observations import Sent, noticed
from chronolet.pleg.containers.sent import SentSignals
from chronolet.pleg.workers.link import Link
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import Engine, Notice, Refusal, Runtime
from chronolet.ports.runtime.streams import Stream

log = structlog.get_logger("chronolet.pleg")

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
_SLICE_SECONDS = 1.0
"""How often a wait checks for cancellation."""


class Origin(NamedTuple):
    """The machine and the engine address that the notices come from, for StreamOpened."""

    boot_id: str
    endpoint: str

    def opened(self, engine: Engine, *, first: bool) -> signals.StreamOpened:
        """Return the signal for a stream of this engine."""
        return signals.StreamOpened(
            server=f"{engine.name} {engine.version}",
            first=first,
            boot_id=self.boot_id,
            endpoint=self.endpoint,
            engine_id=engine.id,
        )


class Following:
    """The worker of FollowRuntime."""

    def __init__(self, runtime: Runtime, node: str, link: Link, run: Callable[[], str], origin: Origin) -> None:
        self._runtime = runtime
        self._node = node
        self._link = link
        self._run = run
        self._origin = origin
        self._since: int | None = None
        """Time of the last notice. The next stream resumes there, or from the oldest notice the engine still has."""
        self._sent = SentSignals()

    def follow(self, effect: wanted.FollowRuntime, context: EffectContext) -> None:
        """Follow the stream until cancelled; report a break once and reopen the stream with back-off."""
        del effect
        pause, reported = _FIRST_PAUSE_SECONDS, ""
        while not context.cancelled.is_set():
            context.fence("docker.events")
            opened = self._link.opened
            try:
                self._stream(context)
            except Refusal as refusal:
                if self._link.opened > opened or str(refusal) != reported:
                    reported = str(refusal)
                    log.warning("runtime event stream lost, retrying", error=reported)
                    context.send(signals.StreamBroken(error=reported))
            finally:
                self._link.standing = False
                self._link.relist_now.set()
            pause = _FIRST_PAUSE_SECONDS if self._link.opened > opened else min(pause * 2, _LONGEST_PAUSE_SECONDS)
            context.cancelled.wait(pause)

    def _stream(self, context: EffectContext) -> None:
        """Open one stream and send its notices until it ends."""
        engine = self._runtime.engine()
        over = threading.Event()
        self._sent = SentSignals()  # between two streams, notices may have been missed

        def opened(stream: Stream) -> None:
            threading.Thread(target=_close_when_cancelled, args=(stream, context, over), daemon=True).start()
            first = self._link.opened == 0
            self._link.opened += 1
            self._link.standing = True
            self._link.relist_now.set()
            log.info("runtime event stream open", server=f"{engine.name} {engine.version}")
            context.send(self._origin.opened(engine, first=first))

        try:
            for notice in self._runtime.follow(labels.of_node(self._node), self._since, opened):
                with self._link.sending:
                    self._note(notice)
                    _send_notice(notice, context, self._run(), self._sent.until(notice))
                if context.cancelled.is_set():
                    return  # what was read last may have been dropped: the next stream reads it again
                self._since = notice.at
        finally:
            over.set()

    def _note(self, notice: Notice) -> None:
        """Record which containers the next listing must look up and which of its results are outdated."""
        if notice.action == "destroy":
            self._link.destroyed.add(notice.id)
            self._link.noticed.discard(notice.id)
        elif notice.action in ("start", "die") and labels.read(notice.labels) is not None:
            self._link.noticed.add(notice.id)
            if notice.exit_code is None:
                self._link.relist_now.set()  # only an inspect can tell how it ended


def _close_when_cancelled(stream: Stream, context: EffectContext, over: threading.Event) -> None:
    """Close the stream once the effect is cancelled: its reader blocks in a system call and cannot check by itself."""
    while not over.wait(_SLICE_SECONDS):
        if context.cancelled.is_set():
            stream.close()
            return


def _send_notice(notice: Notice, context: EffectContext, run: str, sent: Sent) -> None:
    owner = labels.read(notice.labels)
    if owner is not None and (observed := noticed(notice, owner, sent)) is not None:
        # A position in a lost log means nothing in this one.
        context.send(observed, cause=owner.cause if owner.run == run else "")
