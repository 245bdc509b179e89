"""What qos wants to have running: two standing effects, for as long as the node lives.

Comes in: nothing. Goes out: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers send
`signals` until they are cancelled.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet.rules.resources.cgroups import Cgroup, Path
from chronolet_schemas.qos import Driver


class LookAtNode(Effect, frozen=True, kw_only=True):
    """See what the machine has and how it may be shared out; one NodeSeen, and another one when that changes."""


class KeepTree(Effect, frozen=True, kw_only=True):
    """Bring the cgroups into the state of `tree`, now and again every `period_seconds`, and remove those of pods that
    are not in it. One TreeKept for the first time and whenever something had to be done, or could not be.

    `settled`: the paths that were as they should be once. What is amiss there was done by somebody else.
    """

    revision: int
    driver: Driver
    root: Path
    tree: tuple[Cgroup, ...]
    settled: frozenset[Path] = frozenset()
    period_seconds: int = 60
