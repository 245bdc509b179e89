"""Selects the containers to inspect after a listing. Pure.

Input: each container as last reported, and a listing. Output: ids. Next: `workers.listings`.
Source: pkg/kubelet/pleg/generic.go (Relist, computeEvents), which also inspects every container of a pod that has an
event or whose last status lookup failed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """A container as listed or as last reported. An empty `state` means that it must be reported again."""

    uid: str
    state: str


def to_inspect(reported: Mapping[str, Glance], listed: Mapping[str, Glance], unread: Collection[str]) -> Sequence[str]:
    """Return the ids of all containers of each pod that changed or is `unread`, and of reported containers that are no
    longer listed.

    Absence from a listing does not prove that a container is gone; an inspect that finds nothing does.
    """
    gone = [known for known in reported if known not in listed]
    changed = {one.uid for known, one in listed.items() if known not in reported or reported[known].state != one.state}
    changed.update((reported[known].uid for known in gone), unread)
    return (*(known for known, one in listed.items() if one.uid in changed), *gone)


def without_running(ids: Sequence[str], listed: Mapping[str, Glance]) -> Sequence[str]:
    """Return `ids` without the containers that the listing shows as running. After missed notices, the remaining ones
    are the most likely to have changed.
    """
    return tuple(known for known in ids if known not in listed or listed[known].state != "running")
