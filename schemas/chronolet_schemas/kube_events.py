"""KubeEvents: the Kubernetes API object (type, reason, message) for people and their tools.

A decider that reports a change emits `Recorded` in the same step, so that the KubeEvent and the change are one commit.
Reasons and texts are the kubelet's (pkg/kubelet/events/event.go).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Event
from chronolet_schemas.registry import registered


@registered
class Recorded(Event, frozen=True, kw_only=True):
    """A KubeEvent about an object. The log entry's entity is the one that recorded it."""

    object_kind: Literal["Pod", "Node"]
    namespace: str = ""
    name: str
    uid: str = ""
    field_path: str = ""
    """If the KubeEvent is about one container: its path in the spec, such as `spec.containers{app}`."""
    severity: Literal["Normal", "Warning"]
    """The KubeEvent's `type`; a field named `type` would be taken for the log entry's type."""
    reason: str
    message: str

    def subject(self) -> str:
        return f"event/{self.reason}"


class Post(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The current form of a KubeEvent for sinks: a new one (`count` 1), or an update of a known one."""

    at: str
    """The position of the newest `Recorded` in it, whose time is the last occurrence."""
    name: str
    """Name of the Event object."""
    first: int
    """First occurrence, in milliseconds."""
    last: int = 0
    """Last occurrence, in milliseconds; 0 if it is the time of the position `at`."""
    count: int = 1
    object_kind: str
    namespace: str = ""
    object_name: str
    uid: str = ""
    field_path: str = ""
    severity: Literal["Normal", "Warning"]
    reason: str
    message: str
    """Truncated if very long; the log has the full text."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The Event object in which identical KubeEvents are counted. `first` is its first occurrence, in milliseconds."""

    name: str
    first: int
    count: int


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """KubeEvents that differ only in their messages: digests of the messages, oldest first, and the time of the last
    one.
    """

    last: int
    messages: tuple[str, ...]


@registered
class Correlated(Event, frozen=True, kw_only=True):
    """A batch of log entries, correlated in their order; `heard` is their number.

    `posts`, numbered from `first_number`, are for the sinks; `suppressed` counts the KubeEvents withheld by the spam
    filter. `known`, `similar` and `tokens` are the entries that the batch added to the correlator's caches or changed
    in them, keyed by digests of KubeEvent identities, most recent last: counts, groups of similar messages, and when
    each object has all its tokens again.
    """

    heard: int
    upto: str
    """Position of the last log entry in the batch."""
    suppressed: int = 0
    first_number: int
    posts: tuple[Post, ...] = ()
    known: dict[str, Known]
    similar: dict[str, Similar]
    tokens: dict[str, int]


@registered
class SinksChanged(Event, frozen=True, kw_only=True):
    """These sinks are configured now. A new sink receives only what is correlated from now on."""

    sinks: tuple[str, ...]


class SinkEvent(Event, frozen=True, kw_only=True):
    """Base class for events about one sink."""

    sink: str

    def subject(self) -> str:
        return f"sink/{self.sink}"


@registered
class Delivered(SinkEvent, frozen=True, kw_only=True):
    """Every post up to `upto` is settled; `count` of the newly settled ones were accepted."""

    upto: int
    count: int


@registered
class DeliveryFailed(SinkEvent, frozen=True, kw_only=True):
    """The sink was unreachable or gave no conclusive answer; the post is retried at `retry_at`."""

    number: int
    name: str
    tries: int
    error: str
    retry_at: int


@registered
class DeliveryResumed(SinkEvent, frozen=True, kw_only=True):
    """The pause after a failed delivery has ended."""

    number: int


@registered
class GivenUp(SinkEvent, frozen=True, kw_only=True):
    """`count` of the posts with numbers from `first` to `last` will not be delivered to the sink. The log retains their
    content.

    `refused`: the sink rejected them permanently. `known`: the sink already has posts of these names, from an attempt
    whose answer was lost. `tries`: the maximum number of attempts failed. `backlog`: more posts were waiting than
    allowed. `removed`: the sink is no longer configured.
    """

    first: int
    last: int
    count: int
    reason: Literal["refused", "known", "tries", "backlog", "removed"]
    name: str = ""
    """Name of the last of these posts; set only for `refused` and `tries`."""
    error: str = ""
