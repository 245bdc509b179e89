"""Which containers a listing makes worth an inspect. Pure.

Comes in: what was told of each container, and a listing. Goes out: ids. Next: `relisting`. Source:
pkg/kubelet/pleg/generic.go (Relist, computeEvents), where a pod with any event, or one whose status could not be had,
is inspected as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """A container as a listing has it, or as it was told last. An empty `state` has to be told anew."""

    uid: str
    state: str


def worth_a_look(told: Mapping[str, Glance], listed: Mapping[str, Glance], unread: Collection[str]) -> Sequence[str]:
    """All containers of each pod that changed or is `unread`, and what was told of and is not listed any more.

    That something is not listed is no proof that it is gone: an inspect that finds nothing is.
    """
    gone = [known for known in told if known not in listed]
    changed = {one.uid for known, one in listed.items() if known not in told or told[known].state != one.state}
    changed.update((told[known].uid for known in gone), unread)
    return (*(known for known, one in listed.items() if one.uid in changed), *gone)


def without_running(ids: Sequence[str], listed: Mapping[str, Glance]) -> Sequence[str]:
    """Of those, what does not run, or is gone: there the news is, where everything is to be told anew."""
    return tuple(known for known in ids if known not in listed or listed[known].state != "running")
