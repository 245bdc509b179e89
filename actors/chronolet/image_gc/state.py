"""What the collector of images knows: every image with its age, its settings, the run at hand. Folded from its own
events.

Next: `decider`; `get images` shows it. Times in milliseconds, 0 for longer ago than anybody knows.
"""

from __future__ import annotations

import immutables
import msgspec

from chronolet_schemas import image_gc


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One image. `last_used` is the end of its last use; of one in use it is whenever somebody looks."""

    image: image_gc.Image
    first_detected: int
    last_used: int = 0

    @property
    def used(self) -> bool:
        """Some container has it, running or dead."""
        return self.image.user_count > 0


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that was asked for and has not begun; `number` names its look."""

    number: int
    operation: image_gc.Operation
    trigger: image_gc.Trigger
    request: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The run at hand; `next` is the index of the candidate whose turn it is.

    `error` is why the disk's need is not known; `errors` are of refused removals. `read_again`: the disk is to be read
    again after the last candidate, for more of them.
    """

    number: int
    operation: image_gc.Operation
    trigger: image_gc.Trigger
    request: str = ""
    at: int
    capacity_bytes: int = 0
    available_bytes: int = 0
    usage_percent: int = 0
    wanted_bytes: int | None = None
    candidates: tuple[image_gc.Candidate, ...] = ()
    kept: dict[str, int] = {}
    error: str = ""
    next: int = 0
    removed: int = 0
    freed_bytes: int = 0
    freed_for_space_bytes: int = 0
    errors: tuple[str, ...] = ()
    failed_for_age: bool = False
    read_again: bool = False

    @property
    def reading(self) -> bool:
        """What was too old has gone, and the disk is to be read again now."""
        return self.read_again and self.next == len(self.candidates) and not self.failed_for_age

    @property
    def over(self) -> bool:
        """Nothing is left to be removed or read."""
        return self.candidate is None and not self.reading

    @property
    def candidate(self) -> image_gc.Candidate | None:
        """Whose turn it is; None when the run is over: enough is free, or nothing is left, or what was too old to stay
        could not be removed.
        """
        if self.next == len(self.candidates):
            return None
        found = self.candidates[self.next]
        if found.reason == "age":
            return found
        enough = self.wanted_bytes is not None and self.freed_for_space_bytes >= self.wanted_bytes
        return None if enough or self.failed_for_age else found


class Reported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the last RunFinished says of the node: how full the disk was, what stayed, by reason, why the run failed."""

    usage_percent: int = 0
    kept: dict[str, int] = {}
    error: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`began_at` is when images were first looked at, `looked_at` the last look that an event tells of.

    `failures` counts periodic runs that failed, in a row.
    """

    node: str = ""
    policy: image_gc.Policy | None = None
    began_at: int = 0
    looked_at: int = 0
    records: immutables.Map[str, Record] = immutables.Map()
    runs: int = 0
    requests: int = 0
    failures: int = 0
    asked: tuple[Asked, ...] = ()
    run: Run | None = None
    reported: Reported | None = None
