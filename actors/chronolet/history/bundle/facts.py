"""Chooses the events that describe a node for a bundle: versions, engine, machine, settings.

Input: entries of the log, from its beginning if that is available. Output: the newest event of each such type, or
of each process where a process writes it, unless it is large or damaged. Pure. Next: the manifest of a bundle.
"""

from __future__ import annotations

from typing import Any

import msgspec

from chronolet.history.bundle.format import Fact
from chronolet_schemas.envelope import Entry
from chronolet_schemas.times import time_of

TYPES = frozenset(
    {
        "container_gc.PolicySet",
        "image_gc.PolicySet",
        "kernel.KindAdded",
        "kernel.KindResharded",
        "kernel.LogStarted",
        "kernel.ProcessStarted",
        "kernel.SettingsChanged",
        "kernel.SiteRecorded",
        "kube_events.SinksChanged",
        "manifests.FolderRead",
        "pleg.StreamFollowed",
        "qos.NodeDescribed",
    }
)
"""Types without their version. A log that lacks some of them is described by the others."""
_MOST = 100
_LARGEST = 32 * 1024
"""Bytes of data. What is larger describes no node, and would take the manifest's room."""


class Facts:
    """The newest event of each type in `TYPES`, for each actor kind or process that wrote it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Entry] = {}

    def look(self, entry: Entry) -> None:
        """Take an entry into account. Entries come in their order."""
        if entry.type.partition("@")[0] in TYPES and len(entry.data) <= _LARGEST:
            key = entry.type, entry.entity, entry.actor.partition("#")[0]
            self._found.pop(key, None)
            self._found[key] = entry
            if len(self._found) > _MOST:
                del self._found[next(iter(self._found))]

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries, in the order of the log."""
        return tuple(self._found.values())


def fact(entry: Entry) -> Fact | None:
    """Return an entry, whose data has been redacted, as the manifest has it; None if the data has no fields, or is no
    JSON: any program can write maps with other keys than texts and numbers.
    """
    try:
        data = msgspec.msgpack.decode(entry.data, type=dict[str, Any])
        plain = {name: value for name, value in data.items() if not name.startswith("_")}  # those are the kernel's own
        msgspec.json.encode(plain)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return None
    return Fact(position=str(entry.position), at=time_of(entry), type=entry.type, entity=entry.entity, data=plain)
