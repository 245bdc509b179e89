"""KubeEvents as the log has them: every one that was recorded, whatever was made of it since.

Comes in: log entries. Goes out: `Recorded` with positions. Next: whoever correlates them for a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Entry, Event, Position
from chronolet_schemas.kube_events import Recorded

RECORDED = registry.type_of(Recorded).partition("@")[0]


def recorded(log: Iterable[Entry], wanted: Callable[[Recorded], bool]) -> Iterator[tuple[Position, Recorded]]:
    """Those that are wanted, in the log's order."""
    for entry in log:
        if not entry.type.startswith(RECORDED):
            continue
        try:
            event = codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable:
            continue  # a newer release's words; `log` shows them as they are
        if isinstance(event, Recorded) and wanted(event):
            yield entry.position, event


def about(object_kind: str, namespace: str, name: str, uid: str = "") -> Callable[[Recorded], bool]:
    """Whether an event is about this object; of one `uid` only where that is given."""

    def wanted(event: Recorded) -> bool:
        same = (event.object_kind, event.namespace, event.name) == (object_kind, namespace, name)
        return same and (not uid or event.uid in ("", uid))

    return wanted
