"""Reads KubeEvents as recorded in the log, before correlation.

Input: log entries. Output: `Recorded` events with their positions and times. Next: the caller, which correlates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from chronolet.history.derived.wanted import Wanted
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.kube_events import Recorded
from chronolet_schemas.times import Stamp, stamp_of

RECORDED = registry.type_of(Recorded).partition("@")[0]
WANTED = Wanted(type=lambda name: name.startswith(RECORDED))
"""The entries that `recorded` takes from the log."""


def recorded(log: Iterable[Entry], wanted: Callable[[Recorded], bool]) -> Iterator[tuple[Stamp, Recorded]]:
    """Yield the recorded KubeEvents for which `wanted` is true, with their positions and times, in log order."""
    for entry in log:
        if not entry.type.startswith(RECORDED):
            continue
        try:
            event = codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable:
            continue  # written by a newer release; `log` shows it undecoded
        if isinstance(event, Recorded) and wanted(event):
            yield stamp_of(entry), event


def about(object_kind: str, namespace: str, name: str, uid: str = "") -> Callable[[Recorded], bool]:
    """Build a predicate that tests whether an event is about this object. If both have a uid, the uids must match."""

    def wanted(event: Recorded) -> bool:
        same = (event.object_kind, event.namespace, event.name) == (object_kind, namespace, name)
        return same and (not uid or event.uid in ("", uid))

    return wanted
