"""Pods in each state that `why` explains, each with the causes in the answer and words of the first sentence.

Input: none. Output: `STATES` and what they are built from. Next: `test_present`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause
from chronolet_schemas import devices, image_gc, manifests, pod
from chronolet_schemas.envelope import Event
from tests.history.why.stories import APP, FILE, NAME, NOON, UID, Story

POD: dict[str, Any] = {"pod": NAME, "uid": UID}
FIRST: dict[str, Any] = {**APP, "attempt": 0}
PROBED = [{"name": "app", "image": "busybox:1", "readinessProbe": {"tcpSocket": {"port": 80}}}]
INIT = [{"name": "init", "image": "busybox:1"}]
GPU = "example.com/gpu"


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


STATES: list[tuple[str, Callable[[], Story], list[type[Cause]], tuple[str, ...]]] = [
    ("healthy", lambda: Story().runs(), [causes.Running], ("all its containers run as their manifest wants",)),
    (
        "deleted by its file",
        deleted,
        [causes.Withdrawn, causes.Ending],
        ("is being deleted because its manifest file /pods/web.yaml was removed",),
    ),
    (
        "deleted by a person",
        lambda: deleted("apply", 0),
        [causes.Withdrawn, causes.Ending],
        ("someone requested it with `chronolet delete` with a grace period of 0 s",),
    ),
    (
        "gone",
        lambda: deleted().stop("Deleted").dies(0, sent=(15,)).has(pod.PodEnded(**POD)),
        [causes.Withdrawn, causes.Ending, causes.Ended],
        ("was deleted because", "everything of it was removed"),
    ),
    (
        "gone, killed",
        lambda: deleted().stop("Deleted").dies(137, sent=(15, 9)).has(pod.PodEnded(**POD)),
        [causes.Withdrawn, causes.Ending, causes.Killed, causes.Ended],
        ("did not end within its grace period of 2 s and was killed",),
    ),
    (
        "preStop hangs",
        lambda: deleted().stop("Deleted").has(hook("PreStop")),
        [causes.Withdrawn, causes.Ending, causes.HookRunning],
        ("the preStop hook of container app has not ended: sleep 100",),
    ),
    (
        "preStop too long",
        lambda: deleted().stop("Deleted").has(hook("PreStop"), hook_ended("PreStop", "Unfinished")).dies(0, sent=(15,)),
        [causes.Withdrawn, causes.Ending, causes.HookFailed],
        ("its preStop hook took too long",),
    ),
    (
        "replaced",
        lambda: Story().runs().has(ends("Replaced")),
        [causes.Ending],
        ("is being replaced because another pod of its name is to take its place",),
    ),
    (
        "not enough cpu",
        lambda: rejected("OutOfcpu", "not enough cpu"),
        [causes.Failed],
        ("was rejected by the node: OutOfcpu: not enough cpu",),
    ),
    (
        "deadline",
        lambda: Story().runs().has(pod.PodFailed(**POD, reason="DeadlineExceeded", message="too long")),
        [causes.Failed],
        ("failed: DeadlineExceeded: too long",),
    ),
    (
        "evicted",
        lambda: (
            Story().runs().has(pod.PodFailed(**POD, reason="Evicted", message="The node was low on resource: memory."))
        ),
        [causes.Failed],
        ("failed: Evicted: The node was low on resource: memory.",),
    ),
    (
        "sandbox blocked",
        lambda: Story().has(pod.SandboxBlocked(**POD, message="spec.hostUsers")),
        [causes.Blocked],
        ("the pod cannot be started as its manifest defines it: spec.hostUsers",),
    ),
    (
        "config error",
        lambda: Story().has(pod.ContainerBlocked(**FIRST, reason="CreateContainerConfigError", message="env")),
        [causes.Blocked],
        ("container app cannot be started", "CreateContainerConfigError: env"),
    ),
    ("port taken", waits_for_port, [causes.PortTaken], ("it waits for default/first: host port 80 is held",)),
    (
        "sandbox fails",
        lambda: Story().has(pod.SandboxStartFailed(**POD, attempt=0, message="no address left", retry_at=NOON)),
        [causes.SandboxFailed],
        ("no address left",),
    ),
    (
        "image missing",
        lambda: Story().has(image_failed()),
        [causes.ImageMissing],
        ("image busybox:1 of container app is not available: ErrImagePull: no such host (3 attempts so far)",),
    ),
    (
        "image collected",
        lambda: image_removed(collected_image("space")),
        [causes.ImageMissing, causes.ImageRemoved],
        ("image collection removed it: the disk was too full",),
    ),
    (
        "image removed by a person",
        lambda: image_removed(image_gc.ImagesChanged(at=NOON, used_until=NOON, gone=("sha256:1",))),
        [causes.ImageMissing, causes.ImageRemoved],
        ("someone removed it",),
    ),
    (
        "start fails",
        lambda: Story().has(
            pod.ContainerStartFailed(
                **FIRST, reason="FailedMount", message="no such folder", failed_at=NOON, failures=2, retry_at=NOON
            )
        ),
        [causes.StartFailed],
        ("FailedMount: no such folder (2 attempts so far)",),
    ),
    (
        "back-off",
        lambda: Story().runs().dies(3).waits(0),
        [causes.ExitedByItself, causes.Exited, causes.BackOff],
        ("waits in a back-off of 10 s", "exited by itself with code 3"),
    ),
    (
        "init fails",
        lambda: Story(initContainers=INIT).runs(container="init").dies(9, container="init").waits(0, container="init"),
        [causes.ExitedByItself, causes.Exited, causes.BackOff, causes.InitWaits],
        (
            "container init of default/web waits in a back-off",
            "code 9",
            "other containers wait for init container init",
        ),
    ),
    (
        "init failed for good",
        lambda: Story(initContainers=INIT, restartPolicy="Never").runs(container="init").dies(9, container="init"),
        [causes.ExitedByItself, causes.Exited, causes.InitWaits],
        ("does not start because init container init failed", "code 9"),
    ),
    (
        "init runs",
        lambda: Story(initContainers=INIT).runs(container="init"),
        [causes.InitWaits],
        ("wait for init container init",),
    ),
    (
        "postStart hangs",
        lambda: Story().runs().has(hook("PostStart")),
        [causes.HookRunning],
        ("is not ready because the postStart hook of container app has not ended: sleep 100",),
    ),
    (
        "no readiness yet",
        lambda: Story(containers=PROBED).runs(),
        [causes.NotReady],
        ("the readiness probe of container app has not succeeded yet",),
    ),
    (
        "not ready",
        lambda: Story(containers=PROBED).runs().probe_fails("Readiness", 3),
        [causes.NotReady],
        (
            "the readiness probe of container app failed 3 times in a row (failureThreshold 3; ",
            'the last result: code 7, "stuck")',
        ),
    ),
    (
        "no plugin",
        lambda: Story().has(*awaited()),
        [causes.DevicesMissing],
        ("container app waits for devices: waiting for a plugin",),
    ),
    (
        "device unhealthy",
        lambda: with_gpu().add("devices/node", listed(("gpu-0", "Unhealthy"))),
        [causes.DeviceLost],
        ("runs, but device gpu-0 of example.com/gpu, which container app uses, is Unhealthy",),
    ),
    (
        "device gone",
        lambda: with_gpu().add("devices/node", listed(gone=("gpu-0",))),
        [causes.DeviceLost],
        ("is no longer offered",),
    ),
    (
        "plugin gone",
        lambda: with_gpu().add(
            "devices/node", devices.PluginStopped(resource=GPU, generation=1, stopped_at=NOON, error="EOF")
        ),
        [causes.PluginGone],
        ("the device plugin of example.com/gpu ended (EOF) and has not come back",),
    ),
    (
        "completed",
        lambda: Story(restartPolicy="Never").runs().dies(0),
        [causes.Completed],
        ("all its containers have ended and restartPolicy Never restarts none",),
    ),
    (
        "completed and collected",
        lambda: Story(restartPolicy="Never").runs().dies(0).collected(rule="terminated_pod"),
        [causes.Completed, causes.Collected],
        ("container collection removed its dead container (rule terminated pod)",),
    ),
    (
        "being stopped",
        lambda: Story().runs().probe_fails("Liveness", 3).stop("LivenessFailed"),
        [causes.ProbeFailed, causes.Stopped],
        ("container app of default/web is being stopped because its liveness probe failed 3 times",),
    ),
    (
        "just ended",
        lambda: Story().runs().dies(3),
        [causes.ExitedByItself, causes.Exited],
        ("container app of default/web waits for its restart because its process exited by itself with code 3",),
    ),
    (
        "being started",
        lambda: Story().has(pod.SandboxStartRequested(**POD, attempt=0, spec_hash="s", requested_at=NOON)),
        [causes.Starting],
        ("is being started; the last step is SandboxStartRequested",),
    ),
]
