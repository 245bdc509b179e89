"""Parses what to replay: everything, or the types and pods that `--only` names. Pure.

Input: the values of `--only`. Output: `Wanted`: which kinds to fold, which entries to show. Next: `frames`, `state`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from chronolet.cli.get.query import KINDS
from chronolet.cli.naming import asked_types
from chronolet.history.derived.wanted import concerns_pod
from chronolet_schemas.envelope import Entry

TYPES = ("pods", "devices", "images", "nodes")
"""The types of the objects whose changes are shown."""
_ABOUT_NODE = ("qos", "pleg", "keeper", "node", "shard")
"""The kinds of the entities about the node and its actors."""
_ENTITIES = {"pods": ("pod",), "devices": ("devices",), "images": ("image_gc",), "nodes": _ABOUT_NODE}
"""The kinds of the entities whose entries belong to a type."""


class Wanted(NamedTuple):
    """What to replay. `types`: the types of objects; `pods`: only these, by namespace/name (empty: all of them);
    `everything`: whether to show all entries, also those that belong to no type.
    """

    types: tuple[str, ...] = TYPES
    pods: tuple[str, ...] = ()
    everything: bool = True

    def kinds(self) -> tuple[str, ...]:
        """Return the actor kinds whose states tell these objects."""
        return tuple({kind: None for one in self.types for kind in KINDS[one]})

    def shows(self, entry: Entry) -> bool:
        """Return whether the entry is one of those to show."""
        if self.everything:
            return True
        kind = entry.entity.partition("/")[0]
        if any(kind in _ENTITIES[one] for one in self.types if one != "pods" or not self.pods):
            return True
        return any(concerns_pod(entry, pod) for pod in self.pods)

    def has_pod(self, key: str) -> bool:
        """Return whether the pod `namespace/name` is one of those whose changes are shown."""
        return "pods" in self.types and (not self.pods or key in self.pods)


def wanted(only: Sequence[str], namespace: str) -> Wanted:
    """Parse `--only`: `pod/web` in this namespace, or a type such as `devices`. A usage error for anything else."""
    if not only:
        return Wanted()
    found = [type_names for word in only for type_names in asked_types((word,), TYPES)]
    if any(names and type_ != "pods" for type_, names in found):
        raise click.UsageError(f"found {' '.join(only)!r}, expected pod/NAME, or one of {', '.join(TYPES)}.")
    pods = tuple(f"{namespace}/{name}" for type_, names in found if type_ == "pods" for name in names)
    whole = any(type_ == "pods" and not names for type_, names in found)
    return Wanted(tuple({type_: None for type_, _ in found}), () if whole else pods, everything=False)
