"""Reads, filters and formats KubeEvents for commands.

Input: a session, a filter. Output: Event objects of the Kubernetes API, and rows. Next: `events`, `get`.
Source: kubectl's pkg/cmd/events and the printers of pkg/printers/internalversion (printEvent).

The agent's stream in Redis has the newest events; the log has all, including those dropped by the spam filter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chronolet.cli.get import pod_rows
from chronolet.cli.printing import ages
from chronolet.cli.printing.progress import progress
from chronolet.cli.sending import follow
from chronolet.cli.session import Session
from chronolet.history.kube_events import WANTED, recorded
from chronolet.kube_events.actor import NODE
from chronolet.kube_events.state import State
from chronolet.kube_events.view import View
from chronolet.ports.kube_sinks import api_event
from chronolet_schemas.envelope import START, Entry, Position

Object = dict[str, Any]
Predicate = Callable[[Object], bool]

_HEAD = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
_WIDE = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "SUBOBJECT", "SOURCE", "MESSAGE", "FIRST SEEN", "COUNT", "NAME")
REDIS = "redis"
_PLACES = {
    "log": "the node agent's own log output (its standard output, or its service's journal)",
    "webhook": "a webhook",
    "kubernetes": "a Kubernetes API server",
}
_PAGE = 1_000
_SECOND = 1_000
_BLOCK_MILLISECONDS = 5_000


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects Event objects; called with one, it returns whether the object is selected."""

    namespace: str | None = None
    """The events' namespace; None: all namespaces."""
    about: tuple[str, str] | None = None
    """The kind and name of the involved object; None: all objects."""
    types: tuple[str, ...] = ()
    since: int = 0
    """Events whose last occurrence is earlier (in milliseconds since the epoch) are not selected."""

    def __call__(self, event: Object) -> bool:
        involved = event["involvedObject"]
        return (
            self.namespace in (None, event["metadata"]["namespace"])
            and self.about in (None, (involved["kind"], involved["name"]))
            and (not self.types or event["type"] in self.types)
            and last_seen(event) >= self.since
        )


class Source(ABC):
    """A source of a node's Event objects: the existing ones, then new ones.

    `first` is the position of the oldest one, or None until one has been read.
    """

    def __init__(self) -> None:
        self.first: Position | None = None

    @abstractmethod
    def now(self) -> Sequence[Object]:
        """Return the current version of each event, ordered by last occurrence."""

    @abstractmethod
    def changes(self) -> Iterator[Object]:
        """Yield the events that follow those returned by `now`, endlessly."""

    @abstractmethod
    def close(self) -> None:
        """Release the resources that the source has opened."""


class Stream(Source):
    """The events from the stream that the agent writes to Redis."""

    def __init__(self, node: Session) -> None:
        super().__init__()
        self._kept = node.services.kube_events(node.settings)
        self._at = START

    def now(self) -> Sequence[Object]:
        by_name: dict[tuple[str, str], Object] = {}
        while page := self._kept.read(self._at, _PAGE):
            self.first = self.first or page[0][0]
            for at, event in page:
                self._at = at
                key = (event["metadata"]["namespace"], event["metadata"]["name"])
                by_name.pop(key, None)
                by_name[key] = event
        return list(by_name.values())

    def changes(self) -> Iterator[Object]:
        while True:
            for at, event in self._kept.read(self._at, _PAGE, _BLOCK_MILLISECONDS):
                self._at = at
                yield event

    def close(self) -> None:
        self._kept.close()


class WholeLog(Source):
    """All events that the log and its archive have recorded. `suppresses`: without those that the agent dropped."""

    def __init__(self, node: Session, *, suppresses: bool = False) -> None:
        super().__init__()
        self._node = node
        self._at = START
        self._view = View(whole=not suppresses)

    def now(self) -> Sequence[Object]:
        with progress("reading the node's log"):
            for _ in self._taken(self._node.entries(wanted=WANTED, prefer_archive=True)):
                pass
        return [self._shown(post) for post in self._view.posts()]

    def changes(self) -> Iterator[Object]:
        return map(self._shown, self._taken(follow(self._node.store, self._at, look_milliseconds=_BLOCK_MILLISECONDS)))

    def close(self) -> None:
        """Do nothing: the session owns the connection to the log."""

    def _taken(self, entries: Iterable[Entry]) -> Iterator[Any]:
        for at, event in recorded(self._tracking(entries), lambda _: True):
            self.first = self.first or at.position
            yield self._view.take(at, event)

    def _tracking(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            self._at = entry.position
            yield entry

    def _shown(self, post: Any) -> Object:
        return api_event(post, self._node.settings.node)


def elsewhere(node: Session) -> str:
    """Return a note that says where the agent delivers KubeEvents; empty if they go to Redis, or if the destination is
    unknown.
    """
    state: State = node.state("kube_events").states["kube_events"].get(NODE, State())
    if not state.sinks or REDIS in state.sinks:
        return ""
    where = ", ".join(_PLACES.get(name, name) for name in sorted(state.sinks))
    return (
        f"KubeEvents of node {node.settings.node} are delivered to {where}, and not kept in Redis (--event-sinks): "
        "chronolet events --all reads them from the node's event log"
    )


def last_seen(event: Object) -> int:
    """Return the time of the last occurrence in milliseconds. An Event's resource version is its log position. That has
    the time, unless the log's positions were ahead; `lastTimestamp` has whole seconds.
    """
    exact = Position.parse(event["metadata"]["resourceVersion"]).milliseconds
    second = pod_rows.milliseconds(event["lastTimestamp"])
    return exact if 0 <= exact - second < _SECOND else second


# -- columns -----------------------------------------------------------------------------------------------------------
def head(*, namespaced: bool, wide: bool = False) -> tuple[str, ...]:
    """Return the column names."""
    names = _WIDE if wide else _HEAD
    return ("NAMESPACE", *names) if namespaced else names


def row(event: Object, now: int, *, namespaced: bool, wide: bool = False, counted: bool = False) -> tuple[str, ...]:
    """Return the cells of one event, in the format of `events` if `counted` is set, else of `get events`."""
    involved, source, count = event["involvedObject"], event["source"], event["count"]
    last, first = ages.ago(last_seen(event), now), ages.ago(pod_rows.milliseconds(event["firstTimestamp"]), now)
    kind = involved["kind"] if counted else involved["kind"].lower()
    seen = f"{last} (x{count} over {first})" if counted and count > 1 else last
    front: tuple[str, ...] = (seen, event["type"], event["reason"], f"{kind}/{involved['name']}")
    message = event["message"].strip()
    if wide:
        front = (*front, involved.get("fieldPath", ""), f"{source['component']}, {source['host']}")
        return _within(namespaced, event, *front, message, first, str(count), event["metadata"]["name"])
    return _within(namespaced, event, *front, message)


def _within(namespaced: bool, event: Object, *cells: str) -> tuple[str, ...]:
    return (event["metadata"]["namespace"], *cells) if namespaced else cells
