"""What the collector of containers knows: the pods that live, its settings, the run at hand.

Folded from its own events. Next: `decider`. Times in milliseconds.
"""

from __future__ import annotations

import immutables
import msgspec

from chronolet_schemas import container_gc


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that was asked for and has not begun; `number` names its look."""

    number: int
    trigger: container_gc.Trigger
    request: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The run at hand. `next` is the index of the victim whose turn it is; `occupied` are sandboxes whose containers
    stayed.
    """

    number: int
    trigger: container_gc.Trigger
    request: str = ""
    at: int
    victims: tuple[container_gc.Victim, ...]
    kept: dict[str, int] = {}
    error: str = ""
    next: int = 0
    removed: int = 0
    failed: int = 0
    occupied: frozenset[str] = frozenset()

    @property
    def victim(self) -> container_gc.Victim | None:
        """Whose turn it is; None when the run is over."""
        return self.victims[self.next] if self.next < len(self.victims) else None


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`pods` are those that there are, uid to namespace/name; `finished` are over and stay to be looked at.

    `runs` counts all runs, `requests` all that were asked for.
    """

    node: str = ""
    policy: container_gc.Policy | None = None
    log_folder: str = ""
    log_run: str = ""
    pods: immutables.Map[str, str] = immutables.Map()
    finished: frozenset[str] = frozenset()
    sources_ready: bool = False
    runs: int = 0
    requests: int = 0
    asked: tuple[Asked, ...] = ()
    run: Run | None = None
