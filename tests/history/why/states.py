"""Pods in each state that `why` explains, each with the causes in the answer and words of the first sentence.

Input: `happenings`. Output: `STATES`. Next: `test_present`.
"""

from __future__ import annotations

from collections.abc import Callable

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause
from chronolet_schemas import devices, image_gc, pod
from tests.history.why.happenings import (
    FIRST,
    GPU,
    INIT,
    POD,
    PROBED,
    awaited,
    collected_image,
    deleted,
    ends,
    hook,
    hook_ended,
    image_failed,
    image_removed,
    listed,
    rejected,
    waits_for_port,
    with_gpu,
)
from tests.history.why.stories import NOON, Story

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
        "failed for good",
        lambda: Story(restartPolicy="Never").runs().oom().dies(137),
        [causes.OutOfMemory, causes.Exited, causes.Completed],
        (
            "container app of default/web failed because the kernel killed its main process for lack of memory",
            "; all its containers have ended and restartPolicy Never restarts none",
        ),
    ),
    (
        "being started",
        lambda: Story().has(pod.SandboxStartRequested(**POD, attempt=0, spec_hash="s", requested_at=NOON)),
        [causes.Starting],
        ("is being started; the last step is SandboxStartRequested",),
    ),
]
