"""Answer each registering plugin and limit the registrations that reach the decider.

Input: registrations, starts and ends of streams. Output: answers, `signals.PluginRegistering`. Next: `decider`, which
reaches the same verdict. Used by `effects`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec
import structlog
from msgspec import Struct

from chronolet.devices import signals
from chronolet.devices.plugins import validation as registration
from chronolet.devices.plugins.lists import STOP_GRACE_MILLISECONDS
from chronolet.devices.plugins.validation import AT_ONCE, PAUSE_SECONDS
from chronolet.kernel.kind import EffectContext
from chronolet.ports.devices.plugins import Registering

log = structlog.get_logger("chronolet.devices")

_LOOK_SECONDS = 1.0

Later = Callable[[float, Callable[[], None]], object]
"""Calls a function once, after the given number of seconds, on another thread."""


def _later(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


class _Pace(Struct):
    """Token bucket for one resource's registrations: `left` tokens as of `at`. `held` is the newest registration that
    waits for a token.
    """

    left: float
    at: float
    held: tuple[EffectContext, signals.PluginRegistering] | None = None

    def passes(self, now: float) -> bool:
        self.left = min(self.left + (now - self.at) / PAUSE_SECONDS, AT_ONCE)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Registrar:
    """Answers registering plugins with the verdict that the decider reaches too.

    Refusals are counted here, since a repeated one leaves no trace in the log and cannot be counted there. So are
    resources, since the plugin gets its answer before the decider sees the call. A stopped plugin counts for as long as
    the decider keeps its resource.

    A newer registration supersedes earlier ones. Some plugins register endlessly while another resource of theirs is
    refused; of these, the newest registration is sent every PAUSE_SECONDS, with the number of skipped ones.
    """

    def __init__(self, most: int = 256, clock: Callable[[], float] = time.monotonic, later: Later = _later) -> None:
        self._lock = threading.Lock()
        self._refused: dict[str, int] = {}
        self._most = most
        self._clock = clock
        self._later = later
        self._stopped: dict[str, float | None] = {}
        """When the plugin of each registered resource stopped, None while it serves."""
        self._endpoints: dict[str, str] = {}
        """The endpoint of each resource's plugin, as registered."""
        self._streams: dict[str, int] = {}
        """Number of each resource's newest stream."""
        self._paces: dict[str, _Pace] = {}
        self._looking = False

    def opened(self, context: EffectContext) -> None:
        """Reset all counts: the registration socket is new."""
        with self._lock:
            self._refused.clear()
            self._stopped.clear()
            self._endpoints.clear()
            self._paces.clear()
            context.send(signals.RegistryOpened())

    def register(self, context: EffectContext, asked: Registering) -> str:
        """Return why a plugin is refused, or an empty string."""
        with self._lock:  # signals must be sent in the order of their counts
            limit = self._limit(asked.resource)
            refused = registration.refusal(
                versions=asked.versions,
                resource=asked.resource,
                endpoint=asked.endpoint,
                folder=asked.folder,
                limit=limit,
            )
            signal = signals.PluginRegistering(
                by=asked.by,
                resource=asked.resource,
                versions=asked.versions,
                endpoint=asked.endpoint,
                folder=asked.folder,
                options=asked.options,
                times=self._times(asked.resource, refused),
                limit=limit,
            )
            if refused is not None:
                context.send(signal)
                return refused.message
            self._stopped[asked.resource], self._endpoints[asked.resource] = None, asked.endpoint
            self._send_or_hold(context, signal)
        return ""

    def following(self, resource: str) -> int:
        """Note that a stream to the resource's newest plugin begins; pass the returned number to `stopped`."""
        with self._lock:
            self._streams[resource] = self._streams.get(resource, 0) + 1
            if resource in self._stopped:
                self._stopped[resource] = None
            return self._streams[resource]

    def stopped(self, resource: str, stream: int) -> None:
        """Note the end of a resource's stream. The end of a replaced stream says nothing about the current plugin."""
        with self._lock:
            if resource in self._stopped and stream == self._streams.get(resource):
                self._stopped[resource] = self._clock()

    def left(self, context: EffectContext, endpoint: str) -> None:
        """Note that the socket of a discovered plugin is gone."""
        with self._lock:
            for resource in [name for name, one in self._endpoints.items() if one == endpoint]:
                self._stopped[resource] = self._clock()
                self._paces.pop(resource, None)
            context.send(signals.PluginLeft(socket=endpoint))

    # -- with the lock held --------------------------------------------------------------------------------------

    def _limit(self, resource: str) -> int:
        """The maximum number of plugins if this resource would exceed it, else 0."""
        kept_since = self._clock() - STOP_GRACE_MILLISECONDS / 1000
        for name, at in list(self._stopped.items()):
            if at is not None and at < kept_since:
                del self._stopped[name], self._endpoints[name]
                self._streams.pop(name, None)
                self._paces.pop(name, None)
        return self._most if resource not in self._stopped and len(self._stopped) >= self._most else 0

    def _times(self, resource: str, refused: registration.Refusal | None) -> int:
        if refused is None:
            for name in registration.all_counted_as(resource):
                self._refused.pop(name, None)
            return 1
        name = registration.counted_as(resource, refused.reason, self._refused)
        self._refused[name] = self._refused.get(name, 0) + 1
        return self._refused[name]

    def _send_or_hold(self, context: EffectContext, signal: signals.PluginRegistering) -> None:
        now = self._clock()
        pace = self._paces.setdefault(signal.resource, _Pace(AT_ONCE, now))
        if pace.held is not None:
            skipped = pace.held[1].skipped + 1
            pace.held = context, msgspec.structs.replace(signal, skipped=skipped)
            return
        if pace.passes(now):
            context.send(signal)
            return
        log.warning(
            "device plugin registers too often; deferring its newest registration",
            resource=signal.resource,
            endpoint=signal.endpoint,
            in_seconds=round((1 - pace.left) * PAUSE_SECONDS),
        )
        pace.held = context, signal
        self._look_later()

    def _look_later(self) -> None:
        if not self._looking:
            self._looking = True
            self._later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Send the held registrations whose wait is over."""
        with self._lock:
            self._looking = False
            now = self._clock()
            for pace in self._paces.values():
                if pace.held is None:
                    continue
                context, signal = pace.held
                if context.cancelled.is_set():
                    pace.held = None
                elif pace.passes(now):
                    pace.held = None
                    context.send(signal)
            if any(pace.held is not None for pace in self._paces.values()):
                self._look_later()
