"""A node in whose history pods, devices, images and the node itself change. The commands about the past show it.

Input: none. Output: a `WrittenNode`, whose clock is ten minutes after the first entry, and the parts of its history.
"""

from typing import Any

from chronolet_schemas import devices, image_gc, pleg, pod, prober
from chronolet_schemas.podspec import Probe
from tests.cli.support.histories import RUN, SECOND, SIDE, UID, WEB, start, web
from tests.cli.support.written_node import NODE, NOON, WrittenNode

GPU = "vendor.test/gpu"
MINUTE = 60 * SECOND
DEVICES, IMAGES, PLEG = "devices/node", "image_gc/node", "pleg/node"
LIVENESS = "prober/default/web/side/Liveness"
ADDED = prober.ProbeAdded(
    pod="default/web",
    uid=UID,
    container="side",
    probe="Liveness",
    definition=Probe(),
    restarts="Always",
    period_milliseconds=10_000,
    field="spec.containers{side}",
)
"""The probe of which `LIVENESS` is the entity. The busy node's log lacks it, so its failures belong to no probe."""


def claim(uid: str, name: str, *ids: str) -> list[devices.ClaimEvent]:
    """Return the events with which the app container of a pod gets devices."""
    about: dict[str, Any] = {"pod": f"default/{name}", "uid": uid, "container": "app"}
    allocation = devices.Allocation(devices=ids)
    return [
        devices.DevicesChosen(**about, role="app", wants={GPU: len(ids)}, at=NOON, resource=GPU, devices=ids),
        devices.DevicesAllocated(**about, resource=GPU, allocation=allocation, milliseconds=3),
    ]


def image(name: str, *users: str) -> image_gc.Image:
    return image_gc.Image(
        id=f"sha256:{name[0] * 64}", size_bytes=400_000_000, names=(name,), users=users, user_count=len(users)
    )


def failed_probe(consecutive: int, at: int) -> prober.ProbeFailed:
    return prober.ProbeFailed(
        pod="default/web",
        uid=UID,
        container="side",
        probe="Liveness",
        id=RUN,
        consecutive=consecutive,
        threshold=3,
        at=at,
        milliseconds=2,
        output="no answer",
    )


def busy() -> WrittenNode:
    """Return the node of `histories.web`, in whose next minutes these things happen: two devices are listed, and pod
    web and then pod db hold one; images are pulled, used and collected; a probe kills container side of web; probe
    kills are held back; pod db ends.
    """
    node = web()
    node.write(
        DEVICES,
        devices.RegistryOpened(opened_at=node.now),
        devices.PluginRegistered(resource=GPU, generation=1, socket="/gpu.sock", registered_at=node.now),
        devices.DevicesListed(resource=GPU, generation=1, devices=(device("a"), device("b")), count=2),
    )
    node.now += 10 * SECOND
    node.write(DEVICES, *claim("u-web", "web", "a"))
    node.write(
        IMAGES,
        image_gc.PolicySet(node=NODE, policy=image_gc.Policy()),
        image_gc.ImagesChanged(at=node.now, used_until=0, seen=(image("app:1", "web_app"), image("old:1"))),
    )
    node.now += MINUTE
    node.write(LIVENESS, failed_probe(1, node.now))
    node.write(DEVICES, freed("u-web", "web", "a"))
    node.now += 10 * SECOND
    node.write(DEVICES, *claim("u-db", "db", "a"))
    node.write(PLEG, held_back(node.now))
    node.write(LIVENESS, failed_probe(3, node.now))
    side: dict[str, Any] = {**SIDE, "attempt": 0, "id": RUN}
    node.write(
        WEB,
        pod.ContainerStopRequested(**side, grace_period_seconds=2, deadline=node.now + 2, reason="LivenessFailed"),
    )
    node.now += 2 * SECOND
    exited = pod.ContainerExited(**side, exit_code=137, reason="Error", started_at=NOON + SECOND, finished_at=node.now)
    node.write(WEB, exited, *start(SIDE, 1, "6f" * 32, node.now))
    node.now += MINUTE
    node.write(PLEG, pleg.ProbeKillsResumed(at=node.now, released=1, dropped=0))
    collect(node)
    node.write("pod/data/db", pod.PodEnded(pod="data/db", uid=UID))
    node.now = NOON + 10 * MINUTE
    return node


def device(name: str, health: str = devices.HEALTHY) -> devices.DeviceInfo:
    return devices.DeviceInfo(id=name, health=health)


def freed(uid: str, name: str, *ids: str) -> devices.DevicesFreed:
    return devices.DevicesFreed(pod=f"default/{name}", uid=uid, devices={"app": {GPU: ids}}, reason="Released")


def held_back(at: int) -> pleg.ProbeKillsHeldBack:
    return pleg.ProbeKillsHeldBack(at=at, pods=3, short_of=("cpu",), kills_per_minute=2)


def collect(node: WrittenNode) -> None:
    """Write a run that removes the image old:1 to free space."""
    named: dict[str, Any] = {"id": image("old:1").id, "name": "old:1", "size_bytes": 400_000_000, "reason": "space"}
    usage: dict[str, Any] = {"capacity_bytes": 10**9, "available_bytes": 10**8, "usage_percent": 90}
    node.write(
        IMAGES,
        image_gc.RunStarted(
            run=1,
            operation="collect",
            trigger="period",
            at=node.now,
            wanted_bytes=10**8,
            candidates=(image_gc.Candidate(**named),),
            **usage,
        ),
        image_gc.ImageRemoved(run=1, **named),
        image_gc.RunFinished(
            run=1, operation="collect", trigger="period", at=node.now, removed=1, freed_bytes=400_000_000, **usage
        ),
    )
