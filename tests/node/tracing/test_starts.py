"""Which events belong to the start of a pod, and when the start is over."""

from __future__ import annotations

from chronolet.node.tracing import starts
from chronolet.node.tracing.starts import Starts, TimedEvent
from chronolet_schemas import manifests, podspec
from chronolet_schemas.envelope import Event, Position
from chronolet_schemas.times import Stamp
from tests.deciders.pod.life import Life, manifest, running

POD = "pod/default/web"


def told(life: Life) -> list[Event]:
    """Return all events of the pod so far."""
    return list(life.history)


def fed(known: Starts, *events: Event, entity: str = POD, n: int = 1) -> list[tuple[str, list[TimedEvent]]]:
    found = [
        known.take(Stamp(Position(1000 + n + i, n + i), 1000 + n + i), entity, event) for i, event in enumerate(events)
    ]
    return [one for one in found if one is not None]


def test_a_start_is_over_with_the_last_container() -> None:
    known = Starts()
    ((name, events),) = fed(known, *told(running()))
    assert name == "default/web"
    assert [type(one).__name__ for _, _, one in events][-1] == "ContainerStarted"
    assert len(known) == 0


def test_a_restart_is_no_start() -> None:
    known = Starts()
    assert len(fed(known, *told(running().dies().waits_out().start()))) == 1
    assert len(known) == 0


def test_a_start_that_is_not_over_is_kept_until_the_pod_ends() -> None:
    known = Starts()
    life = Life().apply(manifest()).sandbox_up()
    assert fed(known, *told(life)) == []
    assert len(known) == 1
    ended = told(life.withdraw().end())
    assert fed(known, *ended) == []
    assert len(known) == 0


def test_the_request_and_late_probes_belong_to_the_start() -> None:
    known = Starts()
    one = manifest()
    applied = manifests.PodApplied(pod=one.key, uid="u1", source="apply", digest=podspec.digest(one), manifest=one)
    assert fed(known, applied, entity="manifests/node") == []
    ((_, events),) = fed(known, *told(running()), n=10)
    assert isinstance(events[0][2], manifests.PodApplied)


def test_other_entities_are_ignored() -> None:
    known = Starts()
    assert fed(known, *told(running()), entity="qos/node") == []
    assert len(known) == 0


def test_an_endless_start_is_given_up() -> None:
    known = Starts()
    accepted, *others = told(Life().apply(manifest()).sandbox_up())
    fed(known, accepted)
    fed(known, *(others[-1:] * starts.MOST_EVENTS))
    assert len(known) == 0
