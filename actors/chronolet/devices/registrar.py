"""Answer each registering plugin, and limit the registrations that reach the decider. Part of the workers, not pure.

Input: registrations, starts and ends of streams. Output: answers, `signals.PluginRegistering`. Next: `registration`,
which reaches the same verdict. Used by `effects`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec
import structlog
from msgspec import Struct

from chronolet.devices import signals
from chronolet.devices.plugins.refusals import counter_of, counters_of
from chronolet.devices.plugins.registration import BURST_REGISTRATIONS, INTERVAL_SECONDS
from chronolet.devices.plugins.stops import STOP_GRACE_MILLISECONDS
from chronolet.devices.plugins.validation import Refusal, refusal
from chronolet.kernel.kind import EffectContext
from chronolet.ports.devices.plugins import Registering

log = structlog.get_logger("chronolet.devices")

_CHECK_SECONDS = 1.0

CallLater = Callable[[float, Callable[[], None]], object]
"""Calls a function once, on another thread, after the given number of seconds."""


def _call_later(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


class _RateLimit(Struct):
    """Token bucket for one resource's registrations: `left` tokens as of `at`. `held` is the newest registration that
    is waiting for a token.
    """

    left: float
    at: float
    held: tuple[EffectContext, signals.PluginRegistering] | None = None

    def allows(self, now: float) -> bool:
        self.left = min(self.left + (now - self.at) / INTERVAL_SECONDS, BURST_REGISTRATIONS)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Registrar:
    """Answers registering plugins with the same verdict that the decider reaches.

    Refusals are counted here because the log does not record every repetition. Resources are counted here too, because
    the plugin gets its answer before the decider sees the call. A stopped plugin counts until the decider removes its
    resource.

    A newer registration supersedes earlier ones. Some plugins register endlessly while another of their resources is
    refused; from those, only the newest registration is sent, every INTERVAL_SECONDS, with the number of skipped ones.
    """

    def __init__(
        self,
        max_plugins: int = 256,
        clock: Callable[[], float] = time.monotonic,
        call_later: CallLater = _call_later,
    ) -> None:
        self._lock = threading.Lock()
        self._refused: dict[str, int] = {}
        self._max_plugins = max_plugins
        self._clock = clock
        self._call_later = call_later
        self._stopped: dict[str, float | None] = {}
        """When the plugin of each registered resource stopped; None if it has not."""
        self._endpoints: dict[str, str] = {}
        """The endpoint of each resource's plugin, as registered."""
        self._streams: dict[str, int] = {}
        """The number of each resource's newest stream."""
        self._rates: dict[str, _RateLimit] = {}
        self._checking = False

    def opened(self, context: EffectContext) -> None:
        """Reset all counts, because the registration socket is new, and signal that to the decider."""
        with self._lock:
            self._refused.clear()
            self._stopped.clear()
            self._endpoints.clear()
            self._rates.clear()
            context.send(signals.RegistryOpened())

    def register(self, context: EffectContext, asked: Registering) -> str:
        """Accept or refuse a plugin's registration, and signal it to the decider. Returns why the plugin is refused;
        empty if it is accepted.
        """
        with self._lock:  # signals must be sent in the order of their counts
            limit = self._limit(asked.resource)
            refused = refusal(
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
        """Record that a stream to the resource's newest plugin begins; return the stream's number, for `stopped`."""
        with self._lock:
            self._streams[resource] = self._streams.get(resource, 0) + 1
            if resource in self._stopped:
                self._stopped[resource] = None
            return self._streams[resource]

    def stopped(self, resource: str, stream: int) -> None:
        """Record the end of a resource's stream. The end of a replaced stream does not affect the current plugin."""
        with self._lock:
            if resource in self._stopped and stream == self._streams.get(resource):
                self._stopped[resource] = self._clock()

    def left(self, context: EffectContext, endpoint: str) -> None:
        """Record that the socket of a discovered plugin no longer exists, and signal that to the decider."""
        with self._lock:
            for resource in [name for name, one in self._endpoints.items() if one == endpoint]:
                self._stopped[resource] = self._clock()
                self._rates.pop(resource, None)
            context.send(signals.PluginLeft(socket=endpoint))

    # -- with the lock held --------------------------------------------------------------------------------------

    def _limit(self, resource: str) -> int:
        """Return the maximum number of plugins if one for this resource would exceed it, else 0."""
        kept_since = self._clock() - STOP_GRACE_MILLISECONDS / 1000
        for name, at in list(self._stopped.items()):
            if at is not None and at < kept_since:
                del self._stopped[name], self._endpoints[name]
                self._streams.pop(name, None)
                self._rates.pop(name, None)
        is_full = resource not in self._stopped and len(self._stopped) >= self._max_plugins
        return self._max_plugins if is_full else 0

    def _times(self, resource: str, refused: Refusal | None) -> int:
        if refused is None:
            for name in counters_of(resource):
                self._refused.pop(name, None)
            return 1
        name = counter_of(resource, refused.reason, self._refused)
        self._refused[name] = self._refused.get(name, 0) + 1
        return self._refused[name]

    def _send_or_hold(self, context: EffectContext, signal: signals.PluginRegistering) -> None:
        now = self._clock()
        rate = self._rates.setdefault(signal.resource, _RateLimit(BURST_REGISTRATIONS, now))
        if rate.held is not None:
            skipped = rate.held[1].skipped + 1
            rate.held = context, msgspec.structs.replace(signal, skipped=skipped)
            return
        if rate.allows(now):
            context.send(signal)
            return
        log.warning(
            "device plugin registers too often; deferring its newest registration",
            resource=signal.resource,
            endpoint=signal.endpoint,
            in_seconds=round((1 - rate.left) * INTERVAL_SECONDS),
        )
        rate.held = context, signal
        self._check_later()

    def _check_later(self) -> None:
        if not self._checking:
            self._checking = True
            self._call_later(_CHECK_SECONDS, self._send_held)

    def _send_held(self) -> None:
        """Send the held registrations that now have a token; drop those whose effect has been cancelled."""
        with self._lock:
            self._checking = False
            now = self._clock()
            for rate in self._rates.values():
                if rate.held is None:
                    continue
                context, signal = rate.held
                if context.cancelled.is_set():
                    rate.held = None
                elif rate.allows(now):
                    rate.held = None
                    context.send(signal)
            if any(rate.held is not None for rate in self._rates.values()):
                self._check_later()
