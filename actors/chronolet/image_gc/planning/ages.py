"""Computes the changes that a scan makes to the state, and the age of images. Pure. Source: image_gc_manager.go
(detectImages).

Input: State, a scan, the current time. Output: ImagesChanged. Next: `decider`. The log records when the use of an image
begins and ends; in between, the image counts as used at every scan.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from chronolet.image_gc.signals import Looked
from chronolet.image_gc.state import Record, State
from chronolet_schemas.image_gc import Image, ImagesChanged

_MOST = 500
"""Maximum number of images per event."""


def changes(state: State, scan: Looked, now: int) -> Iterator[ImagesChanged]:
    """Yield the differences from the state, split into events of bounded size. The very first scan yields an event even
    if there are no images.
    """
    records, present = state.records, {image.id for image in scan.images}
    seen = [image for image in scan.images if not _is_known(records.get(image.id), image)]
    gone = sorted(known for known in records if known not in present)
    # The last time at which images that are no longer used are known to have been in use.
    until = min(max(state.looked_at, scan.looked_before), now)
    for start in range(0, max(len(seen), len(gone)), _MOST):
        part = slice(start, start + _MOST)
        yield ImagesChanged(at=now, used_until=until, seen=tuple(seen[part]), gone=tuple(gone[part]))
    if not state.began_at and not seen:
        yield ImagesChanged(at=now, used_until=until)


def _is_known(record: Record | None, image: Image) -> bool:
    return record is not None and record.image == image


def ahead(state: State, now: int) -> bool:
    """Whether a recorded time lies in the future because the clock was set back."""
    return any(max(one.first_detected, one.last_used) > now for one in state.records.values())


def clamped(state: State, now: int) -> State:
    """Return the state with all future times set to now, so that nothing waits for the clock to reach them."""
    records = state.records.mutate()
    for known, one in state.records.items():
        records[known] = replace(one, first_detected=min(one.first_detected, now), last_used=min(one.last_used, now))
    return replace(
        state, records=records.finish(), began_at=min(state.began_at, now), looked_at=min(state.looked_at, now)
    )


def recorded(record: Record | None, image: Image, event: ImagesChanged) -> Record:
    """Return the image's record after a scan that found `image`, which replaces the recorded image."""
    if record is None:
        return Record(image=image, first_detected=event.at)
    ended = record.used and not image.user_count
    return Record(
        image=image,
        first_detected=record.first_detected,
        last_used=event.used_until if ended else record.last_used,
    )


def last_used(record: Record, looked_at: int) -> int:
    """Return when the image was last in use, according to a scan at `looked_at`; 0 if it was never in use."""
    return looked_at if record.used else record.last_used
