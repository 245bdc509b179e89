"""The node's resources and each pod's share, folded from qos's own events.

Input: none. Output: the frozen State. Next: `decider`, `tree`; `get cgroups` and the metrics read it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import immutables
import msgspec

from chronolet_schemas.qos import Node
from chronolet_schemas.resources import PodNeeds

Phase = Literal["waiting", "admitted", "ready"]
"""waiting: the node is not described yet, or another pod holds a host port that this pod needs. admitted: there is
room, and the cgroup is being created. ready: the cgroup is as desired.
"""


class Share(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod's share of the node. `since` is the first tree revision that includes its needs; `running`: whether the
    pod was running before it requested its share. `containers`: the ids of containers whose own cgroups are kept, by
    name. For a pod that waits for a port, `asked_at` is when it requested the share and `message` the reason last
    reported.
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
    """The state of the node's qos entity. `shares`: pods' shares by uid. `revision` counts the changes of the desired
    tree. `failing`: the error of each failing cgroup, by path.
    """

    node: Node | None = None
    shares: immutables.Map[str, Share] = immutables.Map()
    revision: int = 0
    failing: immutables.Map[str, str] = immutables.Map()
