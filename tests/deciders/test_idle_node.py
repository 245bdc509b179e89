"""On an idle node, the collectors and the keeper inspect repeatedly but write almost nothing."""

from __future__ import annotations

from typing import Any

from chronolet.container_gc import signals as containers
from chronolet.container_gc.decider import DECIDER as CONTAINER_GC
from chronolet.image_gc import signals as images
from chronolet.image_gc.decider import DECIDER as IMAGE_GC
from chronolet.keeper import signals as keeping
from chronolet.keeper.decider import DECIDER as KEEPER
from chronolet_schemas import container_gc, image_gc, keeper
from tests.deciders.given import Scene, given

T0 = 1_700_000_000_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


def written(scene: Scene, every: int, message: Any, hours: int = 1) -> list[str]:
    """Return the class names of the events that are written in the hours after a first inspection."""
    scene.when(message, at=T0)
    assert scene.events, "the first inspection is recorded"
    found: list[str] = []
    for at in range(T0 + every, T0 + hours * HOUR + 1, every):
        found += [type(event).__name__ for event in scene.when(message, at=at).events]
    return found


def test_the_collector_of_containers_writes_nothing() -> None:
    seen = containers.RuntimeObject(
        id="k1", name="web", pod="default/web", uid="u1", container="app", created_at=T0 - HOUR, state="running"
    )
    scan = containers.Looked(node="node", policy=container_gc.Policy(), containers=(seen,))
    known = container_gc.PodNoted(pod="default/web", uid="u1")
    assert written(given(CONTAINER_GC, known, container_gc.SourcesReady()), MINUTE, scan, hours=3) == []


def test_the_collector_of_images_writes_one_scan_an_hour() -> None:
    image = image_gc.Image(id="sha256:a", size_bytes=1, names=("a:1",), users=("default/web/app",), user_count=1)
    scan = images.Looked(node="node", policy=image_gc.Policy(), images=(image,), looked_before=T0)
    usage = given(IMAGE_GC)
    assert written(usage, 30 * SECOND, scan) == []
    disk = images.Disk(capacity_bytes=1_000, available_bytes=900)
    full = images.Looked(node="node", policy=image_gc.Policy(), images=(image,), disk=disk)
    assert written(usage, 5 * MINUTE, full, hours=3) == ["RunFinished"] * 3


def test_the_keeper_writes_nothing() -> None:
    begun = keeper.ShardLetGo(shard="pod/9", unowned_since=1)
    measured = keeping.LogMeasured(last=f"{T0}-50", archived="0-0", begun_at=T0, needed={}, unowned={"pod/9": 1})
    scene = given(KEEPER, begun)
    found = [scene.when(measured, at=T0 + minute * MINUTE).events for minute in range(60)]
    assert [event for events in found for event in events] == []
