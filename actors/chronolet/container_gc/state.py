"""The container collector's state: the pods that exist, the settings, the current run.

Folded from the kind's own events. Next: `decider`. Times are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, takewhile

import immutables
import msgspec

from chronolet_schemas import container_gc

WINDOW = 4
"""Number of removals to request for each one that may run concurrently. The surplus keeps workers busy while a result
is committed.
"""

_STAGES: Mapping[container_gc.What, int] = {"container": 0, "sandbox": 1, "log_folder": 2, "log_link": 2}


def stage_of(victim: container_gc.Victim) -> int:
    """Return the stage of a run in which the victim is removed. Stages run one after another."""
    return _STAGES[victim.what]


class RequestedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A requested run that has not started; `number` identifies the scan made for it."""

    number: int
    trigger: container_gc.Trigger
    request: str = ""
    left_alone: bool = False


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The current run.

    `next` is the index of the first victim without an outcome; `ahead` contains the later indexes that already have
    one. `occupied`: ids of sandboxes with a container that could not be removed. `parallel`: limit on the number of
    concurrent removals.
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
        """Whether every victim has an outcome."""
        return self.next == len(self.victims)

    def turns(self) -> Sequence[int]:
        """Return the indexes of the victims to remove now.

        Sandboxes wait for all containers, and logs for all sandboxes. If removals run concurrently, three more are
        requested for each one that may run, so that no worker is idle while results are committed, even to a slow disk.
        """
        if self.over:
            return ()
        stage = stage_of(self.victims[self.next])
        most = self.parallel if self.parallel == 1 else WINDOW * self.parallel
        rest = (index for index in range(self.next, len(self.victims)) if index not in self.ahead)
        return list(islice(takewhile(lambda index: stage_of(self.victims[index]) == stage, rest), most))


class Reported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Content of the last RunFinished: the number of objects kept, by rule, and why the run failed."""

    kept: dict[str, int] = {}
    error: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the node's container collector.

    `pods` maps the uid of each existing pod to namespace/name; those in `finished` have ended, but their containers may
    still be inspected. `runs` counts the recorded runs, `requests` the requested ones.
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
    asked: tuple[RequestedRun, ...] = ()
    run: Run | None = None
    reported: Reported | None = None
