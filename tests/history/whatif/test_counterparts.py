"""Which events of two decisions are counterparts of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chronolet.history.recorded_decisions import Recorded
from chronolet.history.whatif.counterparts import matched
from chronolet.kernel.recording.reading import RecordedEvents
from chronolet.pod import actor as pods
from chronolet_schemas import codec, pod, registry
from chronolet_schemas.envelope import Entry, Event, Position


def probed(probe: Any, result: Any = "success", container: str = "app") -> Event:
    return pod.ContainerProbed(
        pod="default/web", uid="u1", container=container, attempt=0, id="c1", started_at=5, probe=probe, result=result
    )


STARTUP, READY, NOT_READY, OTHER = (
    probed("Startup"),
    probed("Readiness"),
    probed("Readiness", "failure"),
    probed("Readiness", container="other"),
)


def recorded(events: Sequence[Event]) -> Recorded:
    """Return a decision with these events, which are at the positions 1-1, 1-2 and so on."""
    entries = tuple(
        Entry(Position(1, number), registry.type_of(type(one)), "pod/default/web", one.subject(), "pod/0#1", "", data)
        for number, one in enumerate(events, 1)
        for data in (codec.encode(one),)
    )
    return Recorded(RecordedEvents(entries, ()), pods.kind(), "default/web", None, None, events, None)


@pytest.mark.parametrize(
    ("record", "changed", "only_changed", "counterparts"),
    [
        ((), (), [], {}),
        ((STARTUP, READY), (STARTUP, READY), [], {}),
        ((READY,), (NOT_READY,), [], {"1-1": NOT_READY}),
        ((READY,), (OTHER,), [OTHER], {"1-1": None}),
        ((), (READY,), [READY], {}),
        ((STARTUP, READY), (READY,), [], {"1-1": None}),
        ((STARTUP, READY), (NOT_READY, STARTUP), [], {"1-2": NOT_READY}),
        ((READY, READY), (READY,), [], {"1-2": None}),
    ],
)
def test_equal_events_are_counterparts_before_others_of_the_same_type(
    record: Sequence[Event],
    changed: Sequence[Event],
    only_changed: list[Event],
    counterparts: dict[str, Event | None],
) -> None:
    assert matched(recorded(record), changed) == (only_changed, counterparts)
