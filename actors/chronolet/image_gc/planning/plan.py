"""Plan a run: which images to remove, in which order, and why the others stay. Pure.

Input: the state after the scan, the policy, the disk, the current time. Output: `Plan`. Next: `decider`, which carries
it out, and `gc plan`, which shows it. Source: image_gc_manager.go (imagesInEvictionOrder, freeOldImages, freeSpace).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from chronolet.image_gc.planning import ages
from chronolet.image_gc.policy import usage_percent, wanted_bytes
from chronolet.image_gc.signals import Disk
from chronolet.image_gc.state import Record, State
from chronolet_schemas.image_gc import Candidate, Image, Kept, Operation, Policy, Reason

INVALID_CAPACITY = "invalid capacity 0 on image filesystem"
_SHORT = 19
"""Length of the id shown for an image without a name: `sha256:` and twelve digits."""


class Stays(msgspec.Struct, frozen=True, kw_only=True):
    """An image to keep, and why."""

    image: Image
    why: Kept


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a run: remove the images in `going`, in this order, and keep all others.

    `spare`: kept images to remove next, in this order, if a removal fails. `wanted_bytes` is None if every unused image
    is to be removed. `error` says why it is unknown how much to free; then no image is removed to free space.
    """

    disk: Disk = Disk()
    usage_percent: int = 0
    wanted_bytes: int | None = None
    going: Sequence[Candidate] = ()
    spare: Sequence[Candidate] = ()
    staying: Sequence[Stays] = ()
    error: str = ""

    def kept(self) -> Mapping[str, int]:
        """Count the images that stay in any case, by reason."""
        spare = {one.id for one in self.spare}
        return Counter[str](one.why for one in self.staying if one.image.id not in spare)


def name_of(image: Image) -> str:
    """Return the name to show for an image."""
    return image.names[0] if image.names else image.id[:_SHORT]


def judged(state: State, policy: Policy, operation: Operation, disk: Disk, now: int) -> Plan:
    """Return the plan of a run that starts now."""
    records = sorted(state.records.values(), key=lambda one: _order(one, now))
    old = _too_old(state, records, policy, now) if operation == "collect" else {}
    eligible: list[Image] = []
    staying: list[Stays] = []
    for record in records:
        why = _exempt(record, policy, now)
        if record.image.id in old:
            continue
        if why is None:
            eligible.append(record.image)
        else:
            staying.append(Stays(image=record.image, why=why))
    if operation == "remove_unused":
        # The disk usage is only shown; it does not affect this plan.
        found = _need(policy, disk, 0)
        return replace(
            found, wanted_bytes=None, error="", going=_candidates(eligible, "unused"), staying=tuple(staying)
        )
    plan = _need(policy, disk, sum(image.size_bytes for image in old.values()))
    wanted = plan.wanted_bytes or 0
    taken = _enough(eligible, wanted)
    rest: Kept = "enough_freed" if wanted else "below_threshold"
    return replace(
        plan,
        going=(*_candidates(old.values(), "age"), *_candidates(eligible[:taken], "space")),
        spare=_candidates(eligible[taken:], "space") if wanted else (),
        staying=(*(Stays(image=image, why=rest) for image in eligible[taken:]), *staying),
    )


def _order(record: Record, now: int) -> tuple[int, int, str]:
    """Sort key: least recently used first; among images last used at the same time, the one known for longest first."""
    return ages.last_used(record, now), record.first_detected, record.image.id


def _too_old(state: State, records: Sequence[Record], policy: Policy, now: int) -> Mapping[str, Image]:
    """Return the images unused for longer than the maximum age; none until the collector has tracked images for that
    long.

    The kubelet treats an image that was never used as infinitely old, though it may just have been pulled for a
    starting pod. Here its age counts from its first detection.
    """
    most = policy.max_age_milliseconds
    if not most or now - state.began_at <= most:
        return {}
    found = (one for one in records if not (one.used or one.image.pinned))
    return {one.image.id: one.image for one in found if now - max(ages.last_used(one, now), one.first_detected) > most}


def _exempt(record: Record, policy: Policy, now: int) -> Kept | None:
    """Return why an image stays even if space is short; None if it may be removed."""
    if record.used:
        return "in_use"
    if record.image.pinned:
        return "pinned"
    if ages.last_used(record, now) >= now:
        return "just_used"
    if now - record.first_detected < policy.min_age_milliseconds:
        return "young"
    return None


def _need(policy: Policy, disk: Disk, freed_by_age: int) -> Plan:
    """Return a plan that says only how much space has to be freed in addition to the images removed by age."""
    if disk.error:
        return Plan(disk=disk, error=disk.error)
    if not disk.capacity_bytes:
        return Plan(disk=disk, error=INVALID_CAPACITY)
    available = min(disk.available_bytes, disk.capacity_bytes)
    then = min(available + freed_by_age, disk.capacity_bytes)
    return Plan(
        disk=replace(disk, available_bytes=available),
        usage_percent=usage_percent(disk.capacity_bytes, available),
        wanted_bytes=wanted_bytes(policy, disk.capacity_bytes, then),
    )


def _enough(eligible: Sequence[Image], wanted: int) -> int:
    """Return how many of these images to remove, in order, to free `wanted` bytes."""
    freed = 0
    for count, image in enumerate(eligible):
        if freed >= wanted:
            return count
        freed += image.size_bytes
    return len(eligible) if wanted else 0


def _candidates(images: Iterable[Image], reason: Reason) -> tuple[Candidate, ...]:
    return tuple(Candidate(id=one.id, name=name_of(one), size_bytes=one.size_bytes, reason=reason) for one in images)
