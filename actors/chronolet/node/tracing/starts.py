"""Collects the events of pods that are starting, until their start is over. Pure.

Input: the entries of the log, in order. Output: the events of each start that is over. Next: `follower`, which makes
traces of them. Only the start of a new pod is collected, not restarts of its containers.
"""

from __future__ import annotations

from chronolet.history.start_steps import last_start
from chronolet_schemas import manifests, pod, prober
from chronolet_schemas.envelope import Event
from chronolet_schemas.times import Stamp

MOST_EVENTS = 2_000
"""A start with more events, such as one whose image cannot be pulled for days, is not traced."""

TimedEvent = tuple[Stamp, str, Event]
"""An event with its position and time, and its entity, such as `pod/default/web`."""


class Starts:
    """The starts in progress, by pod (namespace/name)."""

    def __init__(self) -> None:
        self._events: dict[str, list[TimedEvent]] = {}

    def __len__(self) -> int:
        return len(self._events)

    def take(self, stamp: Stamp, entity: str, event: Event) -> tuple[str, list[TimedEvent]] | None:
        """Process one entry. Returns the pod and the events of its start if this entry ends the start."""
        name = _pod_of(entity, event)
        if not name:
            return None
        if isinstance(event, pod.SpecAccepted | manifests.PodApplied):
            self._begin(name, event.uid)
        known = self._events.get(name)
        if known is None:
            return None
        known.append((stamp, entity, event))
        if isinstance(event, pod.PodEnded) or len(known) > MOST_EVENTS:
            del self._events[name]
            return None
        if not isinstance(event, pod.ContainerStarted | pod.PodFailed | pod.SandboxBlocked | pod.ContainerBlocked):
            return None  # no other event can end a start
        start = last_start(name, known, ())
        if start is None or not start.over:
            return None
        return name, self._events.pop(name)

    def _begin(self, name: str, uid: str) -> None:
        """Begin collecting a pod's start, unless the events of the pod with this uid are already being collected."""
        known = self._events.get(name)
        first = known[0][2] if known else None
        if getattr(first, "uid", "") != uid:
            self._events[name] = []


def _pod_of(entity: str, event: Event) -> str:
    kind, _, key = entity.partition("/")
    if kind == "pod":
        return key
    if isinstance(event, manifests.PodApplied):
        return event.pod
    return key.rsplit("/", 2)[0] if isinstance(event, prober.ProbeDelayed) else ""
