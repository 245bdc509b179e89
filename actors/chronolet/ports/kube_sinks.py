"""Where KubeEvents go: what a sink is, and the Event object that it is given.

Comes in: `kube_events.Post`. Goes out: the `Sink` Protocol, plain data in the form of the Kubernetes API. Next:
`adapters.kube_sinks`, which are such sinks; the CLI, which shows the same objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from chronolet.ports.machine.moments import rfc3339, rfc3339_micro
from chronolet.rules.names.kube_event import COMPONENT, event_namespace, uuid_of
from chronolet_schemas.envelope import Position
from chronolet_schemas.kube_events import Post

POSITION = "chronolet/position"
"""The annotation with the log position of the newest entry that an Event object tells of."""


class Outcome(NamedTuple):
    """What became of the first posts, in order: so many taken, so many that it had already under their names, so many
    refused for good as (name, why); behind those, one that was tried in vain if there is a `failure`.
    """

    delivered: int = 0
    refused: tuple[tuple[str, str], ...] = ()
    failure: str = ""
    known: int = 0

    def and_then(self, other: Outcome) -> Outcome:
        """Both, one after the other."""
        refused = (*self.refused, *other.refused)
        return Outcome(self.delivered + other.delivered, refused, other.failure, self.known + other.known)


class Sink(Protocol):
    """Takes posts, in order. Whether it took them is in the outcome, whatever goes wrong."""

    @property
    def at_once(self) -> int:
        """How many posts it takes by one call."""

    def deliver(self, posts: Sequence[Post]) -> Outcome:
        """Hand over at most `at_once` posts. Returns in bounded time."""


class Kept(Protocol):
    """The Event objects that the sink in the node's Redis keeps for readers, each change of one an entry of its own."""

    def read(
        self, after: Position, count: int, block_milliseconds: int = 0
    ) -> Sequence[tuple[Position, dict[str, Any]]]:
        """Entries after a position, oldest first; waits for the first one at most so long. Raises as the node's store
        does.
        """

    def close(self) -> None:
        """Give back the connection."""


def last_at(post: Post) -> int:
    """When it happened last, in milliseconds."""
    return Position.parse(post.at).milliseconds


def api_event(post: Post, node: str) -> dict[str, Any]:
    """The Event object of core/v1. Like the kubelet's it has no `eventTime`."""
    first, last = rfc3339(post.first), rfc3339(last_at(post))
    involved = {
        "kind": post.object_kind,
        "namespace": post.namespace,
        "name": post.object_name,
        # A node's events are looked for by its name, in the field for the uid.
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
