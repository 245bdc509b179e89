"""What the collector of containers knows: the pods that live, its settings, the run at hand.

Folded from its own events. Next: `decider`. Times in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, takewhile

import immutables
import msgspec

from chronolet_schemas import container_gc

WINDOW = 4
"""As many times as many removals are wanted as are made at a time: so many wait while an answer is committed."""

_STAGES: Mapping[container_gc.What, int] = {"container": 0, "sandbox": 1, "log_folder": 2, "log_link": 2}


def stage_of(victim: container_gc.Victim) -> int:
    """Which part of a run it belongs to: the parts come one after the other."""
    return _STAGES[victim.what]


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that was asked for and has not begun; `number` names its look."""

    number: int
    trigger: container_gc.Trigger
    request: str = ""
    left_alone: bool = False


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The run at hand. `next` is the index of the first victim that is not dealt with, `ahead` are those after it that
    are; `occupied` are sandboxes whose containers stayed. `parallel` removals are made at a time.
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
    parallel: int = 1
    ahead: frozenset[int] = frozenset()

    @property
    def over(self) -> bool:
        """Every victim is dealt with."""
        return self.next == len(self.victims)

    def turns(self) -> Sequence[int]:
        """The indexes of the victims whose removal is wanted now.

        A sandbox waits for all containers, and a log for all sandboxes. Behind each removal at work three more wait, so
        that none of the workers is idle while answers are committed, even to a slow disk.
        """
        if self.over:
            return ()
        stage = stage_of(self.victims[self.next])
        most = self.parallel if self.parallel == 1 else WINDOW * self.parallel
        rest = (index for index in range(self.next, len(self.victims)) if index not in self.ahead)
        return list(islice(takewhile(lambda index: stage_of(self.victims[index]) == stage, rest), most))


class Reported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the last RunFinished says of the node: how much stayed, by rule, and why the run failed."""

    kept: dict[str, int] = {}
    error: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`pods` are those that there are, uid to namespace/name; `finished` are over and stay to be looked at.

    `runs` counts all runs that were written down, `requests` all that were asked for.
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
    reported: Reported | None = None
