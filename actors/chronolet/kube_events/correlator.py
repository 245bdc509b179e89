"""Correlate KubeEvents: count identical ones, combine similar ones, suppress excess ones. Pure.

Input: `kube_events.Recorded`, each with its position. Output: the resulting `Post`s, and the changed cache entries.
Next: `decider`, which records both as `kube_events.Correlated`; log readers, which correlate the events of one object
themselves. Source: client-go's tools/record/events_cache.go.

    similar: the 10th and later different messages of one object, type and reason, each at most 600 s after the
             previous one, become one event with a count
    same:    identical events become one event with a count
    spam:    an object has 25 tokens per type and regains one every 300 s; without a token an event is only counted

The order is similar, same, spam: a suppressed event has already been counted, so the next post's count includes it.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from chronolet.kube_events.policy import Options
from chronolet.kube_events.recent import Recent
from chronolet.kube_events.state import Caches
from chronolet.rules.names.kube_event import event_name
from chronolet_schemas.envelope import Position
from chronolet_schemas.kube_events import Known, Post, Recorded, Similar
from chronolet_schemas.times import Stamp

COMBINED = "(combined from similar events): "
LONGEST_MESSAGE = 4096
"""Maximum length, in characters, of a message sent to sinks."""


class Keys(NamedTuple):
    """Digests of the three keys by which an event is correlated."""

    spam: str
    similar: str
    same: str


def keys(event: Recorded, spam_key: tuple[str, ...] = Options().spam_key) -> Keys:
    """Compute the keys from the kubelet's fields, except source, reporter and API version, which all events of a node
    share.
    """
    about = f"{event.object_kind}\0{event.namespace}\0{event.name}\0{event.uid}"
    similar = f"{about}\0{event.severity}\0{event.reason}"
    parts = {"object": about, "type": event.severity, "reason": event.reason}
    spam = "\0".join([parts[name] for name in spam_key])
    return Keys(_digest(spam), _digest(similar), _digest(f"{similar}\0{event.field_path}\0{event.message}"))


class Correlation:
    """Correlates a sequence of events."""

    def __init__(self, caches: Caches, options: Options) -> None:
        self.known = Recent(caches.known)
        self.similar = Recent(caches.similar)
        self.tokens = Recent(caches.tokens)
        self._options = options

    def take(self, stamp: Stamp, event: Recorded) -> Post | None:
        """Return the post that results from this event; None if it is suppressed."""
        at, time = stamp
        key = keys(event, self._options.spam_key)
        combined = self._is_combined(key.similar, time, event.message)
        known = self._counted(key.similar if combined else key.same, stamp, event)
        if not self._has_token(key.spam, time):
            return None
        message = f"{COMBINED}{event.message}" if combined else event.message
        return Post(
            at=str(at),
            name=known.name,
            first=known.first,
            last=time if time != at.milliseconds else 0,
            count=known.count,
            object_kind=event.object_kind,
            namespace=event.namespace,
            object_name=event.name,
            uid=event.uid,
            field_path=event.field_path,
            severity=event.severity,
            reason=event.reason,
            message=message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 3]}...",
        )

    def _is_combined(self, key: str, now: int, message: str) -> bool:
        before = self.similar.get(key)
        fresh = before is None or now - before.last > self._options.interval
        messages = () if before is None or fresh else before.messages
        digest = _digest(message)
        if digest not in messages:
            messages = (*messages, digest)
        combined = len(messages) >= self._options.max_events
        # Drop one message, so that the next new one is combined as well. The kubelet drops an arbitrary one.
        self.similar.put(key, Similar(last=now, messages=messages[1:] if combined else messages))
        return combined

    def _counted(self, key: str, stamp: Stamp, event: Recorded) -> Known:
        before = self.known.get(key)
        if before is None:
            known = Known(name=event_name(event.name, nanoseconds(stamp.position)), first=stamp.milliseconds, count=1)
        else:
            known = Known(name=before.name, first=before.first, count=before.count + 1)
        self.known.put(key, known)
        return known

    def _has_token(self, key: str, now: int) -> bool:
        """Take a token; return False if none is left.

        The bucket is stored as the time at which it will be full again: each token taken postpones that time by one
        refill interval.
        """
        options = self._options
        full_at = max(self.tokens.get(key) or 0, now)
        left = full_at + options.refill - now <= options.burst * options.refill
        self.tokens.put(key, full_at + options.refill if left else full_at)
        return left


def nanoseconds(at: Position) -> int:
    """Return the time in an entry's position in nanoseconds, made unique by the entry's number."""
    return at.milliseconds * 1_000_000 + at.n % 1_000_000


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode(), digest_size=12).hexdigest()
