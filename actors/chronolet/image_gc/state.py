"""The image collector's state: every image with its age, the settings, the current run.

Folded from the kind's own events. Next: `decider`; `get images` shows it. Times are in milliseconds, 0 if not known.
"""

from __future__ import annotations

import immutables
import msgspec

from chronolet_schemas import image_gc


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One image. `last_used` is the end of its last use; an image that is in use counts as used at every scan."""

    image: image_gc.Image
    first_detected: int
    last_used: int = 0

    @property
    def used(self) -> bool:
        """Whether any container uses the image, running or dead."""
        return self.image.user_count > 0


class RequestedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A requested run that has not started; `number` identifies the scan made for it."""

    number: int
    operation: image_gc.Operation
    trigger: image_gc.Trigger
    request: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The current run. `next` is the index of the next candidate.

    `error` says why it is unknown how much to free; `errors` are those of refused removals. `read_again`: after the
    last candidate, read the disk usage again to find out whether more images must be removed.
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
        """Whether all images over the maximum age are gone and the disk usage must now be read again."""
        return self.read_again and self.next == len(self.candidates) and not self.failed_for_age

    @property
    def over(self) -> bool:
        """Whether nothing is left to remove or read."""
        return self.candidate is None and not self.reading

    @property
    def candidate(self) -> image_gc.Candidate | None:
        """The next image to remove; None if there is none.

        Images over the maximum age are always removed. Images removed for space are skipped once enough is free, or if
        an image over the maximum age could not be removed.
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
    """The state of the node's image collector.

    `began_at` is the time of the first scan, `looked_at` that of the last recorded one. `failures` counts consecutive
    failed periodic runs.
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
