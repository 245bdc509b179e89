"""KubeEvents that deciders recorded, as people read them: the same words once, counted.

Comes in: log entries. Goes out: rows for `describe`. Next: `cli`. Source: client-go's event correlator, as far as equal
events become one with a count; the log itself keeps every one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.kube_events import Recorded

RECORDED = registry.type_of(Recorded).partition("@")[0]


@dataclass(frozen=True, slots=True)
class Told:
    """One thing told about an object, `count` times from `first` to `last` (milliseconds)."""

    object_kind: str
    namespace: str
    name: str
    field_path: str
    severity: str
    reason: str
    message: str
    source: str
    """The actor kind that told it."""
    count: int
    first: int
    last: int


def about(log: Iterable[Entry], object_kind: str, namespace: str, name: str, uid: str = "") -> tuple[Told, ...]:
    """What was told about one object, in the order of last times; of one `uid` only where that is given."""
    rows: dict[tuple[str, ...], Told] = {}
    for entry in log:
        if not entry.type.startswith(RECORDED):
            continue
        try:
            event = codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable:
            continue  # a newer release's words; `log` shows them as they are
        if not isinstance(event, Recorded) or (event.object_kind, event.namespace, event.name) != (
            object_kind,
            namespace,
            name,
        ):
            continue
        if not uid or event.uid in ("", uid):
            _count(rows, event, entry)
    return tuple(sorted(rows.values(), key=lambda told: (told.last, told.first)))


def _count(rows: dict[tuple[str, ...], Told], event: Recorded, entry: Entry) -> None:
    source = entry.actor.partition("#")[0].partition("/")[0]
    same = (event.field_path, event.severity, event.reason, event.message, source)
    earlier = rows.get(same)
    at = entry.position.milliseconds
    rows[same] = Told(
        object_kind=event.object_kind,
        namespace=event.namespace,
        name=event.name,
        field_path=event.field_path,
        severity=event.severity,
        reason=event.reason,
        message=event.message,
        source=source,
        count=earlier.count + 1 if earlier else 1,
        first=earlier.first if earlier else at,
        last=at,
    )
