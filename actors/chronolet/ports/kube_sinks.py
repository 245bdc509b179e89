"""The port to KubeEvent sinks, and the Kubernetes Event object that they receive.

Input: `kube_events.Post`. Output: the `Sink` Protocol; Event objects of the Kubernetes API. Next:
`adapters.kube_sinks`, the implementations; the CLI, which shows the same objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from chronolet.ports.machine.moments import rfc3339, rfc3339_micro
from chronolet.rules.names.kube_event import COMPONENT, event_namespace, uuid_of
from chronolet_schemas.envelope import Position
from chronolet_schemas.kube_events import Post

LOCAL_BATCHES = {"redis": 250, "log": 100}
"""Maximum number of posts per call of the sinks that need no server of their own; all others take one at a time."""
POSITION = "chronolet/position"
"""Annotation of an Event object: the log position of the newest `Recorded` event that it includes."""


class Outcome(NamedTuple):
    """The result of a delivery: how many posts, counted from the first one, are settled, and why the delivery stopped.

    `delivered`: number of accepted posts. `known`: number of posts that the sink already had under their names.
    `refused`: permanently rejected posts as (name, reason). `failure`: the error of the next post, if its delivery
    failed; else empty.
    """

    delivered: int = 0
    refused: tuple[tuple[str, str], ...] = ()
    failure: str = ""
    known: int = 0

    def and_then(self, other: Outcome) -> Outcome:
        """Return the combined outcome of this delivery and the next one, `other`."""
        refused = (*self.refused, *other.refused)
        return Outcome(self.delivered + other.delivered, refused, other.failure, self.known + other.known)


class Sink(Protocol):
    """Receives posts in order. Errors are part of the outcome and never raised."""

    @property
    def batch_size(self) -> int:
        """Maximum number of posts per call."""

    def deliver(self, posts: Sequence[Post]) -> Outcome:
        """Deliver at most `batch_size` posts. Returns in bounded time."""


class Kept(Protocol):
    """The Event objects that the Redis sink stores for readers; every change to an object is a new entry."""

    def read(
        self, after: Position, count: int, block_milliseconds: int = 0
    ) -> Sequence[tuple[Position, dict[str, Any]]]:
        """Return at most `count` entries after the position `after`, oldest first; wait up to `block_milliseconds` for
        the first one. Raises the store's errors.
        """

    def close(self) -> None:
        """Close the connection."""


def last_at(post: Post) -> int:
    """Return when the KubeEvent last occurred, in milliseconds since the epoch."""
    return post.last or Position.parse(post.at).milliseconds


def api_event(post: Post, node: str) -> dict[str, Any]:
    """Return the post as a core/v1 Event object. As in the kubelet's events, `eventTime` is null."""
    first, last = rfc3339(post.first), rfc3339(last_at(post))
    involved = {
        "kind": post.object_kind,
        "namespace": post.namespace,
        "name": post.object_name,
        # Clients look up a node's events by its name in the uid field.
        "uid": post.uid or (post.object_name if post.object_kind == "Node" else ""),
        "apiVersion": "v1",
        "fieldPath": post.field_path,
    }
    namespace = event_namespace(post.namespace)
    found: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": post.name,
            "namespace": namespace,
            "uid": uuid_of(f"{node}/{namespace}/{post.name}"),
            "resourceVersion": post.at,
            "creationTimestamp": first,
            "annotations": {POSITION: post.at},
        },
        "involvedObject": {name: value for name, value in involved.items() if value},
        "reason": post.reason,
        "message": post.message,
        "source": {"component": COMPONENT, "host": node},
        "firstTimestamp": first,
        "lastTimestamp": last,
        "count": post.count,
        "type": post.severity,
        "eventTime": None,
        "reportingComponent": COMPONENT,
        "reportingInstance": node,
    }
    if post.count > 1:
        found["series"] = {"count": post.count, "lastObservedTime": rfc3339_micro(last_at(post))}
    return found
