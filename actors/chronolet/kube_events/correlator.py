"""Which KubeEvents are the same, which are similar, which are too many. Pure.

Comes in: `kube_events.Recorded`, each with its position. Goes out: the `Post`s that follow, and what has to be
remembered. Next: `decider`, which writes it down as `kube_events.Correlated`; readers of the log, who correlate one
object's events for themselves. Source: client-go's tools/record/events_cache.go.

    similar: the 10th different message of one object, type and reason within 600 s is combined with those before it
    same:    what is alike in every word is one event with a count
    spam:    an object has 25 tokens a type and gets one back in 300 s; without one nothing is posted, but counted

Similar first, then same, then spam: what is kept back was counted, so the next that is let through tells of it.
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

COMBINED = "(combined from similar events): "
LONGEST_MESSAGE = 4096
"""Characters of a message that a sink is given."""


class Keys(NamedTuple):
    """Digests of what makes two events the same in three respects."""

    spam: str
    similar: str
    same: str


def keys(event: Recorded, spam_key: tuple[str, ...] = Options().spam_key) -> Keys:
    """By the kubelet's fields, but for source, reporter and API version: all events of a node have these in common."""
    about = f"{event.object_kind}\0{event.namespace}\0{event.name}\0{event.uid}"
    similar = f"{about}\0{event.severity}\0{event.reason}"
    parts = {"object": about, "type": event.severity, "reason": event.reason}
    spam = "\0".join([parts[name] for name in spam_key])
    return Keys(_digest(spam), _digest(similar), _digest(f"{similar}\0{event.field_path}\0{event.message}"))


class Correlation:
    """Some events on their way through the correlator, one after the other."""

    def __init__(self, caches: Caches, options: Options) -> None:
        self.known = Recent(caches.known)
        self.similar = Recent(caches.similar)
        self.tokens = Recent(caches.tokens)
        self._options = options

    def take(self, at: Position, event: Recorded) -> Post | None:
        """What is posted because of this event; None if it is kept back."""
        key = keys(event, self._options.spam_key)
        combined = self._is_combined(key.similar, at.milliseconds, event.message)
        known = self._counted(key.similar if combined else key.same, at, event)
        if not self._has_token(key.spam, at.milliseconds):
            return None
        message = f"{COMBINED}{event.message}" if combined else event.message
        return Post(
            at=str(at),
            name=known.name,
            first=known.first,
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
        # One leaves, so that the next new message is combined as well. Which one is open in the kubelet.
        self.similar.put(key, Similar(last=now, messages=messages[1:] if combined else messages))
        return combined

    def _counted(self, key: str, at: Position, event: Recorded) -> Known:
        before = self.known.get(key)
        if before is None:
            known = Known(name=event_name(event.name, nanoseconds(at)), first=at.milliseconds, count=1)
        else:
            known = Known(name=before.name, first=before.first, count=before.count + 1)
        self.known.put(key, known)
        return known

    def _has_token(self, key: str, now: int) -> bool:
        """Told by when the object has all its tokens again: each one that is taken puts that off by one refill."""
        options = self._options
        full_at = max(self.tokens.get(key) or 0, now)
        left = full_at + options.refill - now <= options.burst * options.refill
        self.tokens.put(key, full_at + options.refill if left else full_at)
        return left


def nanoseconds(at: Position) -> int:
    """An entry's time, told apart from that of every other entry by its number."""
    return at.milliseconds * 1_000_000 + at.n % 1_000_000


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode(), digest_size=12).hexdigest()
