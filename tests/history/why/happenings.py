"""What happens to pods in the stories, for `states` and the tests: events with their usual fields, and beginnings.

Input: none. Output: events, stories. Next: `states`, `test_present`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from chronolet_schemas import devices, image_gc, kernel, manifests, pod
from chronolet_schemas.envelope import Event
from tests.cli.support.written_node import manifest
from tests.history.why.stories import APP, FILE, NAME, NOON, SECOND, UID, Story

POD: dict[str, Any] = {"pod": NAME, "uid": UID}
FIRST: dict[str, Any] = {**APP, "attempt": 0}
PROBED = [{"name": "app", "image": "busybox:1", "readinessProbe": {"tcpSocket": {"port": 80}}}]
INIT = [{"name": "init", "image": "busybox:1"}]
GPU = "example.com/gpu"


LOST = kernel.LogLost(node="n", former_run="r", had="5-5", found="0-0", entries=5)


def adopted(attempt: int = 0) -> pod.PodAdopted:
    """The pod is found with this attempt of its container running."""
    found = pod.FoundContainer(
        container="app", attempt=attempt, id=f"app{attempt}", state="running", started_at=NOON - SECOND
    )
    return pod.PodAdopted(
        **POD,
        source=FILE,
        digest="d",
        manifest=manifest(),
        accepted_at=NOON,
        sandbox_hash="s",
        container_hashes={},
        containers=(found,),
    )


def ends(reason: pod.EndReason = "Deleted", grace: int = 30) -> pod.TerminationRequested:
    return pod.TerminationRequested(**POD, reason=reason, grace_period_seconds=grace, deadline=NOON)


def withdrawn(source: str, grace: int | None = None) -> manifests.PodWithdrawn:
    return manifests.PodWithdrawn(**POD, source=source, grace_period_seconds=grace)


def deleted(source: str = FILE, grace: int | None = None) -> Story:
    return (
        Story().runs().add("manifests/node", withdrawn(source, grace)).has(ends(grace=30 if grace is None else grace))
    )


def hook(name: pod.HookName) -> pod.HookRequested:
    handler = {"exec": {"command": ("sleep", "100")}}
    plain = {**FIRST, "id": "app0", "hook": name, "handler": handler, "requested_at": NOON}
    return msgspec.convert(plain, pod.HookRequested)


def hook_ended(name: pod.HookName, outcome: pod.HookOutcome) -> pod.HookEnded:
    return pod.HookEnded(**FIRST, id="app0", hook=name, outcome=outcome)


def image_failed(reason: str = "ErrImagePull") -> pod.ImageFailed:
    return pod.ImageFailed(
        **FIRST, image="busybox:1", reason=reason, message="no such host", failures=3, waits_from=NOON, retry_at=NOON
    )


def image_ready(*, pulled: bool) -> pod.ImageReady:
    return pod.ImageReady(**FIRST, image="busybox:1", image_id="sha256:1", pulled=pulled)


def listed(*some: tuple[str, str], gone: tuple[str, ...] = ()) -> devices.DevicesListed:
    found = tuple(devices.DeviceInfo(id=name, health=health) for name, health in some)
    return devices.DevicesListed(resource=GPU, generation=1, devices=found, gone=gone, count=len(found))


def awaited() -> list[Event]:
    return [pod.DevicesAwaited(**APP, reason="unregistered_resource", message="waiting for a plugin", said_at=NOON)]


def with_gpu() -> Story:
    registered = devices.PluginRegistered(resource=GPU, generation=1, socket="/s", registered_at=NOON)
    story = Story().add("devices/node", registered, listed(("gpu-0", "Healthy"), ("gpu-1", "Healthy")))
    return story.has(pod.DevicesGranted(**APP, devices={GPU: ("gpu-0",)})).runs()


def rejected(reason: str, message: str) -> Story:
    return Story().has(pod.PodFailed(**POD, reason=reason, message=f"Pod was rejected: {message}"))


def waits_for_port() -> Story:
    return Story().has(pod.HostPortsAwaited(**POD, holder="default/first", message="host port 80 is held"))


def image_removed(event: Event) -> Story:
    story = Story().has(image_ready(pulled=True)).runs().dies(1)
    return story.add("image_gc/node", event).waits(0).has(image_failed("ErrImageNeverPull"))


def collected_image(reason: image_gc.Reason) -> image_gc.ImageRemoved:
    return image_gc.ImageRemoved(run=1, id="sha256:1", name="busybox:1", size_bytes=1, reason=reason)
