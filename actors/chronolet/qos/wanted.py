"""The effects that qos requests: two standing effects for the life of the node.

Input: none. Output: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers send
`signals` until they are cancelled.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet.rules.resources.cgroups import Cgroup, Path
from chronolet_schemas.qos import Driver


class LookAtNode(Effect, frozen=True, kw_only=True):
    """Standing: inspect the machine, and divide its resources as configured. Sends NodeSeen now and periodically."""


class KeepTree(Effect, frozen=True, kw_only=True):
    """Standing: reconcile the cgroups with `tree`, now and every `period_seconds`, and remove cgroups of pods that are
    not in it. Sends TreeKept after the first pass, and after each later one that restored or removed a cgroup or whose
    failures differ from those before.

    `settled`: paths of cgroups that were as desired before, so that any difference is a change by someone else.
    """

    revision: int
    driver: Driver
    root: Path
    tree: tuple[Cgroup, ...]
    settled: frozenset[Path] = frozenset()
    period_seconds: int = 60
