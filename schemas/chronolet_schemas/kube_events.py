"""KubeEvents: the Kubernetes API object (type, reason, message) that people and their tools read.

Any decider emits `Recorded` in its own step, so that the event and the change it tells of are one commit.
Reasons and texts are the kubelet's (pkg/kubelet/events/event.go).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Event
from chronolet_schemas.registry import registered


@registered
class Recorded(Event, frozen=True, kw_only=True):
    """Something to tell about an object. The entry's entity is the entity that told it."""

    object_kind: Literal["Pod", "Node"]
    namespace: str = ""
    name: str
    uid: str = ""
    field_path: str = ""
    """`spec.containers{app}` where it is about one container."""
    severity: Literal["Normal", "Warning"]
    """The KubeEvent's `type`; `type` alone would read as the entry's own."""
    reason: str
    message: str

    def subject(self) -> str:
        return f"event/{self.reason}"


class Post(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A KubeEvent as sinks are to have it from now on: a new one (`count` 1), or one that they know, told again."""

    at: str
    """The position of the newest `Recorded` in it; its time is when it happened last."""
    name: str
    """Of the Event object."""
    first: int
    """When it happened first, in milliseconds."""
    count: int = 1
    object_kind: str
    namespace: str = ""
    object_name: str
    uid: str = ""
    field_path: str = ""
    severity: Literal["Normal", "Warning"]
    reason: str
    message: str
    """Cut off where it is very long: the log has the whole."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of events that are alike in every word: the object that they are counted in."""

    name: str
    first: int
    count: int


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """Events that differ in their messages only: digests of different ones, oldest first, and when the last came."""

    last: int
    messages: tuple[str, ...]


@registered
class Correlated(Event, frozen=True, kw_only=True):
    """So many entries of the log were told to the correlator, in their order.

    `posts`, numbered from `first_number` on, is what the sinks are to have; `suppressed` is how many the spam filter
    kept back. The rest is what the correlator remembers from now on, by digests of what makes events the same, the one
    seen last at the end: counts, groups of similar messages, and when each object has all its tokens again.
    """

    heard: int
    upto: str
    """Position of the last of them."""
    suppressed: int = 0
    first_number: int
    posts: tuple[Post, ...] = ()
    known: dict[str, Known]
    similar: dict[str, Similar]
    tokens: dict[str, int]


@registered
class SinksChanged(Event, frozen=True, kw_only=True):
    """The agent was told to deliver to these sinks. A new one begins with what is correlated from now on."""

    sinks: tuple[str, ...]


class SinkEvent(Event, frozen=True, kw_only=True):
    """About one sink."""

    sink: str

    def subject(self) -> str:
        return f"sink/{self.sink}"


@registered
class Delivered(SinkEvent, frozen=True, kw_only=True):
    """The sink has answered for every post up to `upto`; `count` of those that it was not answered for it has taken."""

    upto: int
    count: int


@registered
class DeliveryFailed(SinkEvent, frozen=True, kw_only=True):
    """The sink could not be reached, or gave no answer that says anything: the post is tried again at `retry_at`."""

    number: int
    name: str
    tries: int
    error: str
    retry_at: int


@registered
class DeliveryResumed(SinkEvent, frozen=True, kw_only=True):
    """The pause is over."""

    number: int


@registered
class GivenUp(SinkEvent, frozen=True, kw_only=True):
    """`count` posts of these numbers will not be delivered to the sink. The log keeps what they told of.

    `refused`: the sink has said no, for good. `known`: it has them by their names, from a try whose answer nobody heard
    or lived to write down. `tries`: as many tries as there may be have failed. `backlog`: more were
    waiting than may. `removed`: the agent was told to deliver there no longer.
    """

    first: int
    last: int
    count: int
    reason: Literal["refused", "known", "tries", "backlog", "removed"]
    name: str = ""
    """Of the last of them."""
    error: str = ""
