"""The workers of pleg's two standing effects: one follows the runtime's notices, one lists its containers.

Input: `wanted.FollowRuntime` and `wanted.Relist`. Output: `signals`. Next: `decider`. Notices are fast and may be lost;
the listing is authoritative. Source: pkg/kubelet/pleg/evented.go and generic.go.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from chronolet.kernel.kind import Effect, EffectContext, Job
from chronolet.pleg import signals, wanted
from chronolet.pleg.relisting import Ahead, Relisting
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import Engine, Notice, Refusal, Runtime
from chronolet.ports.runtime.streams import Stream

log = structlog.get_logger("chronolet.pleg")

STEADY_SECONDS = 10.0
"""Interval between two listings while the stream is open."""
THRESHOLD_SECONDS = 180.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
_SLICE_SECONDS = 1.0


class Link(Struct):
    """State shared by the two workers. `standing`: the stream is open; `opened`: how often it was opened; `relist_now`:
    wakes the listing.

    `destroyed`: ids whose removal was noticed while a listing may have been running, so what that listing saw of them
    is outdated. `noticed`: ids that started or died since the last listing, without a notice of their removal, which
    may be lost with the engine. `sending` serializes the signals of the two workers.
    """

    standing: bool = False
    opened: int = 0
    relist_now: threading.Event = field(default_factory=threading.Event)
    destroyed: set[str] = field(default_factory=set)
    noticed: set[str] = field(default_factory=set)
    sending: threading.Lock = field(default_factory=threading.Lock)


def jobs(
    runtime: Runtime,
    node: str,
    *,
    steady_seconds: float = STEADY_SECONDS,
    threshold_seconds: float = THRESHOLD_SECONDS,
    run: Callable[[], str] = lambda: "",
    boot_id: str = "",
    endpoint: str = "",
    ahead: Ahead | None = None,
) -> Mapping[type[Effect], Job]:
    """The standing effects of the pleg kind.

    `steady_seconds`: the listing's period while the stream is open. `threshold_seconds`: maximum age of the last
    successful listing for pleg to be healthy. `run`: the log's run; `boot_id`: the machine's; `endpoint`: the runtime's
    address. `ahead`: may hold an early first listing.
    """
    link = Link()
    following = Following(runtime, node, link, run, Origin(boot_id, endpoint))
    listing = Listing(runtime, node, link, steady_seconds, threshold_seconds, ahead=ahead)
    return {wanted.FollowRuntime: Job(following.follow), wanted.Relist: Job(listing.list)}


class Origin(NamedTuple):
    """The machine and the engine address that the notices come from, for StreamOpened."""

    boot_id: str
    endpoint: str

    def opened(self, engine: Engine, *, first: bool) -> signals.StreamOpened:
        """The signal for a stream of this engine."""
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
        """Time of the last notice. The next stream resumes there, as far back as the engine's memory reaches."""

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
                self._since = notice.at
                with self._link.sending:
                    self._note(notice)
                    _send_notice(notice, context, self._run())
        finally:
            over.set()

    def _note(self, notice: Notice) -> None:
        """Record which containers the next listing must look up and which of its results are outdated."""
        if notice.action == "destroy":
            self._link.destroyed.add(notice.id)
            self._link.noticed.discard(notice.id)
        elif notice.action in ("start", "die") and labels.read(notice.labels) is not None:
            self._link.noticed.add(notice.id)


def _close_when_cancelled(stream: Stream, context: EffectContext, over: threading.Event) -> None:
    """Close the stream once the effect is cancelled: its reader blocks in a system call and cannot check by itself."""
    while not over.wait(_SLICE_SECONDS):
        if context.cancelled.is_set():
            stream.close()
            return


def _send_notice(notice: Notice, context: EffectContext, run: str) -> None:
    owner = labels.read(notice.labels)
    if owner is None:
        return
    context.send(
        signals.Noticed(
            action=notice.action,
            pod=owner.pod,
            uid=owner.uid,
            container=owner.container,
            attempt=owner.attempt,
            id=notice.id,
            at=notice.at,
            exit_code=notice.exit_code,
        ),
        # A position in a lost log means nothing in this one.
        cause=owner.cause if owner.run == run else "",
    )


class Listing:
    """The worker of Relist."""

    def __init__(
        self,
        runtime: Runtime,
        node: str,
        link: Link,
        steady_seconds: float,
        threshold_seconds: float,
        *,
        ahead: Ahead | None = None,
    ) -> None:
        self._runtime = runtime
        self._node = node
        self._link = link
        self._steady_seconds = steady_seconds
        self._threshold = round(threshold_seconds * 1000)
        self._ahead = ahead
        self._listed_at = 0

    def list(self, effect: wanted.Relist, context: EffectContext) -> None:
        """List until cancelled: immediately, then every period, and whenever the stream opens or breaks."""
        with Relisting(self._runtime, self._node, effect.known) as relisting:
            opened, trusted_from = self._link.opened, time.monotonic()
            while not context.cancelled.is_set():
                self._link.relist_now.clear()
                old = time.monotonic() - trusted_from >= effect.event_driven_period_seconds
                if old or opened != self._link.opened:
                    opened, trusted_from = self._link.opened, time.monotonic()
                    relisting.distrust()
                context.fence("docker.list")
                try:
                    self._relist(relisting, context)
                except Refusal as refusal:
                    context.send(
                        signals.RelistFailed(
                            error=str(refusal),
                            last_listed_at=self._listed_at,
                            threshold_milliseconds=self._threshold,
                        )
                    )
                self._wait(context, self._steady_seconds if self._link.standing else effect.period_seconds)

    def _relist(self, relisting: Relisting, context: EffectContext) -> None:
        """Make one listing and send it, without containers whose removal was noticed meanwhile."""
        ahead = self._ahead.take() if self._ahead is not None else None
        with self._link.sending:
            if relisting.idle and ahead is None:
                self._link.destroyed.clear()
            relisting.look_up(self._link.noticed)
            self._link.noticed.clear()
        found = relisting.relisted(lambda early: self._send(early, context), ahead)
        self._listed_at = found.began_at
        self._send(found, context)

    def _send(self, found: signals.Relisted, context: EffectContext) -> None:
        with self._link.sending:
            ended = self._link.destroyed
            seen = tuple(one for one in found.seen if one.state == "removed" or one.id not in ended)
            context.send(replace(found, seen=seen))

    def _wait(self, context: EffectContext, seconds: float) -> None:
        while seconds > 0 and not context.cancelled.is_set():
            if self._link.relist_now.wait(min(seconds, _SLICE_SECONDS)):
                return
            seconds -= _SLICE_SECONDS
