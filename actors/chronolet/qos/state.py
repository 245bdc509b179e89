"""What the node has and who got of it: folded from qos' own events.

Comes in: nothing. Goes out: the frozen State. Next: `decider`, `tree`; `get cgroups` and the metrics read it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import immutables
import msgspec

from chronolet_schemas.qos import Node
from chronolet_schemas.resources import PodNeeds

Phase = Literal["waiting", "admitted", "ready"]
"""Nothing is known of the node yet, or a port is held; there is room, and the cgroup is being made; the cgroup is as it
should be."""


class Share(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one pod has of the node. `since` is the revision of the tree that has what it needs; `running`: it ran
    before it asked. `containers` are those, by name, with their ids, whose own cgroups are kept. One that waits for a
    port since `asked_at` was told of it by `message`.
    """

    pod: str
    needs: PodNeeds
    phase: Phase
    running: bool = False
    since: int = 0
    parent: str = ""
    containers: Mapping[str, str] = {}
    asked_at: int = 0
    message: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`shares` by uid. `revision` counts the changes of the wanted tree. `failing` cgroups, by path, with the error."""

    node: Node | None = None
    shares: immutables.Map[str, Share] = immutables.Map()
    revision: int = 0
    failing: immutables.Map[str, str] = immutables.Map()
