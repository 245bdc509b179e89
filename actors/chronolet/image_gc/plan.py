"""Which images would go, in which order, and why each other stays. Pure.

Comes in: State after the look, the policy, the disk, now. Goes out: `Plan`. Next: `decider`, which runs it, and
`gc plan`, which shows it. Source: image_gc_manager.go (imagesInEvictionOrder, freeOldImages, freeSpace).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from chronolet.image_gc import ages
from chronolet.image_gc.policy import usage_percent, wanted_bytes
from chronolet.image_gc.signals import Disk
from chronolet.image_gc.state import Record, State
from chronolet_schemas.image_gc import Candidate, Image, Kept, Operation, Policy, Reason

INVALID_CAPACITY = "invalid capacity 0 on image filesystem"
_SHORT = 19
"""What is shown of an id where an image has no name: `sha256:` and twelve digits."""


class Stays(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is not to go, and why."""

    image: Image
    why: Kept


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would do: `going` go in this order, the others stay.

    Of those that stay, `spare` would go next, in this order, if one before them cannot be removed. `wanted_bytes` is
    None where everything that is not used is to go. `error` is why it is not known what the disk needs: then nothing
    goes for want of room.
    """

    disk: Disk = Disk()
    usage_percent: int = 0
    wanted_bytes: int | None = None
    going: Sequence[Candidate] = ()
    spare: Sequence[Candidate] = ()
    staying: Sequence[Stays] = ()
    error: str = ""

    def kept(self) -> Mapping[str, int]:
        """How many stay whatever happens, by reason."""
        spare = {one.id for one in self.spare}
        return Counter[str](one.why for one in self.staying if one.image.id not in spare)


def name_of(image: Image) -> str:
    """What people know it by."""
    return image.names[0] if image.names else image.id[:_SHORT]


def judged(state: State, policy: Policy, operation: Operation, disk: Disk, now: int) -> Plan:
    """The plan of a run that begins now."""
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
        # How full the disk is can be told, and decides nothing.
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
    """The least recently used first; of those the one that is known for longest."""
    return ages.last_used(record, now), record.first_detected, record.image.id


def _too_old(state: State, records: Sequence[Record], policy: Policy, now: int) -> Mapping[str, Image]:
    """What has not been used for longer than the maximum age, once images have been watched for as long.

    To the kubelet, what was never used has not been used for ever, though it came a moment ago for a pod that is about
    to start. Here it has not been used since it came.
    """
    most = policy.max_age_milliseconds
    if not most or now - state.began_at <= most:
        return {}
    found = (one for one in records if not (one.used or one.image.pinned))
    return {one.image.id: one.image for one in found if now - max(ages.last_used(one, now), one.first_detected) > most}


def _exempt(record: Record, policy: Policy, now: int) -> Kept | None:
    """Why an image is not to go, however little room there is."""
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
    """What has to be freed beside what goes for its age."""
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
    """How many of them have to go."""
    freed = 0
    for count, image in enumerate(eligible):
        if freed >= wanted:
            return count
        freed += image.size_bytes
    return len(eligible) if wanted else 0


def _candidates(images: Iterable[Image], reason: Reason) -> tuple[Candidate, ...]:
    return tuple(Candidate(id=one.id, name=name_of(one), size_bytes=one.size_bytes, reason=reason) for one in images)
