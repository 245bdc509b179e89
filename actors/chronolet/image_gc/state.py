"""State of the image collector: every image with its age, the settings, the current run.

Folded from its own events. Next: `decider`; `get images` shows it. Times in milliseconds, 0 if not known.
"""

from __future__ import annotations

import immutables
import msgspec

from chronolet_schemas import image_gc


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One image. `last_used` is the end of its last use; an image in use counts as used at every look."""

    image: image_gc.Image
    first_detected: int
    last_used: int = 0

    @property
    def used(self) -> bool:
        """Whether any container uses it, running or dead."""
        return self.image.user_count > 0


class RequestedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A requested run that has not started; `number` identifies its look."""

    number: int
    operation: image_gc.Operation
    trigger: image_gc.Trigger
    request: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The current run; `next` is the index of the next candidate.

    `error` says why it is unknown how much to free; `errors` are those of refused removals. `read_again`: after the
    last candidate, read the disk again and look for more.
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
        """Whether all too old images are gone and the disk is to be read again now."""
        return self.read_again and self.next == len(self.candidates) and not self.failed_for_age

    @property
    def over(self) -> bool:
        """Whether nothing is left to remove or read."""
        return self.candidate is None and not self.reading

    @property
    def candidate(self) -> image_gc.Candidate | None:
        """The next image to remove.

        None at the end of the run: enough is free, no candidate is left, or a too old image could not be removed.
        """
        if self.next == len(self.candidates):
            return None
        found = self.candidates[self.next]
        if found.reason == "age":
            return found
        enough = self.wanted_bytes is not None and self.freed_for_space_bytes >= self.wanted_bytes
        return None if enough or self.failed_for_age else found


class Reported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Content of the last RunFinished: disk usage, images kept by reason, why the run failed."""

    usage_percent: int = 0
    kept: dict[str, int] = {}
    error: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`began_at` is the first look, `looked_at` the last recorded look.

    `failures` counts consecutive failed periodic runs.
    """

    node: str = ""
    policy: image_gc.Policy | None = None
    began_at: int = 0
    looked_at: int = 0
    records: immutables.Map[str, Record] = immutables.Map()
    runs: int = 0
    requests: int = 0
    failures: int = 0
    asked: tuple[RequestedRun, ...] = ()
    run: Run | None = None
    reported: Reported | None = None
