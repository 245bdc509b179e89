"""Says which entries of the log a reader needs, so that the others are not read. Pure.

Input: conditions on an entry's entity, its type and the pods that it names. Output: `Wanted`. Next: `index`, which
finds the entries that may meet all conditions; the reader still checks each entry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
from msgspec import Struct

from chronolet_schemas.envelope import Entry

Named = Callable[[str], bool]
"""A condition on a name."""


UNREADABLE = "/"
"""What an entry whose data cannot be decoded names in place of a pod; no pod has this name."""


class Wanted(Struct, frozen=True):
    """Conditions that an entry must all meet; None: no such condition."""

    entity: Named | None = None
    """A condition on the entity, such as `pod/default/web`."""
    type: Named | None = None
    """A condition on the type, with its version, such as `pod.ContainerStarted@1`."""
    pod: str | None = None
    """The pod that the entry is about, by namespace/name (`concerns_pod`)."""
    alternatives: tuple[Wanted, ...] = ()
    """Sets of conditions of which the entry must meet one; empty: no such condition."""

    @property
    def anything(self) -> bool:
        """Whether there is no condition."""
        return self.entity is None and self.type is None and self.pod is None and not self.alternatives

    def meets(self, entry: Entry) -> bool:
        """Return whether the entry meets all conditions."""
        if self.pod is not None and not concerns_pod(entry, self.pod):
            return False
        if self.alternatives and not any(one.meets(entry) for one in self.alternatives):
            return False
        return (self.entity is None or self.entity(entry.entity)) and (self.type is None or self.type(entry.type))


EVERYTHING = Wanted()


def of_kinds(keys: dict[str, Collection[str] | None]) -> Wanted:
    """Return the condition that an entry belongs to one of these entities: the keys of each kind, or all if None."""

    def belongs(entity: str) -> bool:
        kind, _, key = entity.partition("/")
        if kind not in keys:
            return False
        wanted = keys[kind]
        return wanted is None or key in wanted

    return Wanted(entity=belongs)


def pods_named(entry: Entry) -> Collection[str]:
    """Return the pods, by namespace/name, that the entry's data names as its `pod`, or as its `namespace` and `name`;
    UNREADABLE if they cannot be decoded.

    Whatever has a namespace and a name counts as a pod.
    """
    try:
        data: Any = msgspec.msgpack.decode(entry.data)
    # Any program can write to the log: text may be invalid, or values nested too deeply.
    except (ValueError, RecursionError):
        return (UNREADABLE,)
    if not isinstance(data, dict):
        return ()
    pod, name = data.get("pod"), data.get("name")
    found = [pod] if isinstance(pod, str) else []
    if name is not None:
        found.append(f"{data.get('namespace')}/{name}")
    return found


def concerns_pod(entry: Entry, pod: str) -> bool:
    """Return whether an entry is about the pod `namespace/name`: it belongs to the pod, or names the pod."""
    if entry.entity == f"pod/{pod}":
        return True
    if pod.rpartition("/")[2].encode() not in entry.data:
        return False  # fast path for most entries; namespace and name may be two fields
    return pod in pods_named(entry)
