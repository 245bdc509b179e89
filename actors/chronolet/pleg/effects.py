"""The two ways by which pleg learns what runs: the runtime's notices, and its listing.

Comes in: `wanted.FollowRuntime` and `wanted.Relist`. Goes out: `signals`. Next: `decider`. Answers to
pkg/kubelet/pleg/evented.go and generic.go. Notices are fast and may be lost; the listing is the truth.
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
"""Between two listings while the stream tells everything."""
THRESHOLD_SECONDS = 180.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
_SLICE_SECONDS = 1.0


class Link(Struct):
    """What the stream tells the listing: whether it stands, how often it was opened, and to look at once.

    `destroyed` are the ids whose end was noticed while a listing may have been under way: what that listing saw of
    them is older than their end. `noticed` are those that ran or died since the last listing and are not known to be
    destroyed: that notice may be lost with the engine. `telling` keeps the two from sending past each other.
    """

    standing: bool = False
    opened: int = 0
    look: threading.Event = field(default_factory=threading.Event)
    destroyed: set[str] = field(default_factory=set)
    noticed: set[str] = field(default_factory=set)
    telling: threading.Lock = field(default_factory=threading.Lock)


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
    """The standing effects of the pleg kind. `steady_seconds` is the listing's period while the stream stands,
    `threshold_seconds` how old the last one may be while pleg is healthy; `run` is the log's, `boot_id` the machine's,
    `endpoint` the address at which the runtime was reached; `ahead` may have begun the first listing.
    """
    link = Link()
    following = Following(runtime, node, link, run, Origin(boot_id, endpoint))
    listing = Listing(runtime, node, link, steady_seconds, threshold_seconds, ahead=ahead)
    return {wanted.FollowRuntime: Job(following.follow), wanted.Relist: Job(listing.list)}


class Origin(NamedTuple):
    """Which machine and which engine the notices come from, as StreamOpened records it."""

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
        """The time of the last notice: where the next stream goes on, as far back as the engine remembers."""

    def follow(self, effect: wanted.FollowRuntime, context: EffectContext) -> None:
        """Until it is no longer wanted: follows, and when the stream breaks, says so and follows again."""
        del effect
        pause, said = _FIRST_PAUSE_SECONDS, ""
        while not context.cancelled.is_set():
            context.fence("docker.events")
            opened = self._link.opened
            try:
                self._stream(context)
            except Refusal as refusal:
                if self._link.opened > opened or str(refusal) != said:
                    said = str(refusal)
                    log.warning("no notices of what runs; trying again", error=said)
                    context.send(signals.StreamBroken(error=said))
            finally:
                self._link.standing = False
                self._link.look.set()
            pause = _FIRST_PAUSE_SECONDS if self._link.opened > opened else min(pause * 2, _LONGEST_PAUSE_SECONDS)
            context.cancelled.wait(pause)

    def _stream(self, context: EffectContext) -> None:
        """One stream to its end."""
        engine = self._runtime.engine()
        over = threading.Event()

        def opened(stream: Stream) -> None:
            threading.Thread(target=_close_when_cancelled, args=(stream, context, over), daemon=True).start()
            first = self._link.opened == 0
            self._link.opened += 1
            self._link.standing = True
            self._link.look.set()
            log.info("following what runs", server=f"{engine.name} {engine.version}")
            context.send(self._origin.opened(engine, first=first))

        try:
            for notice in self._runtime.follow(labels.of_node(self._node), self._since, opened):
                self._since = notice.at
                with self._link.telling:
                    self._note(notice)
                    _tell(notice, context, self._run())
        finally:
            over.set()

    def _note(self, notice: Notice) -> None:
        """Remember which containers the next listing must look up, and which of its findings are outdated."""
        if notice.action == "destroy":
            self._link.destroyed.add(notice.id)
            self._link.noticed.discard(notice.id)
        elif notice.action in ("start", "die") and labels.read(notice.labels) is not None:
            self._link.noticed.add(notice.id)


def _close_when_cancelled(stream: Stream, context: EffectContext, over: threading.Event) -> None:
    """The reader sleeps in the kernel: somebody else has to end it."""
    while not over.wait(_SLICE_SECONDS):
        if context.cancelled.is_set():
            stream.close()
            return


def _tell(notice: Notice, context: EffectContext, run: str) -> None:
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
        # A position in a log that was lost is none in this one.
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
        """Until it is no longer wanted: at once, then every period, and at once when the stream asks for it."""
        with Relisting(self._runtime, self._node, effect.known) as relisting:
            opened, trusted_from = self._link.opened, time.monotonic()
            while not context.cancelled.is_set():
                self._link.look.clear()
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
        """One listing, without what it says of containers whose end was noticed meanwhile."""
        ahead = self._ahead.take() if self._ahead is not None else None
        with self._link.telling:
            if relisting.idle and ahead is None:
                self._link.destroyed.clear()
            relisting.heard_of(self._link.noticed)
            self._link.noticed.clear()
        found = relisting.relisted(lambda early: self._send(early, context), ahead)
        self._listed_at = found.began_at
        self._send(found, context)

    def _send(self, found: signals.Relisted, context: EffectContext) -> None:
        with self._link.telling:
            ended = self._link.destroyed
            seen = tuple(one for one in found.seen if one.state == "removed" or one.id not in ended)
            context.send(replace(found, seen=seen))

    def _wait(self, context: EffectContext, seconds: float) -> None:
        while seconds > 0 and not context.cancelled.is_set():
            if self._link.look.wait(min(seconds, _SLICE_SECONDS)):
                return
            seconds -= _SLICE_SECONDS
