"""Back-off for crashing containers, unavailable images and failed mounts. Pure; times are in milliseconds.

Input: the back-off so far and when the last run finished. Output: the wait, and the next back-off. Next: `starting`,
which writes both into `pod.RestartScheduled`; `effect_results`, which writes the wait into `pod.ImageFailed` and
`pod.ContainerStartFailed`. Source: client-go's util/flowcontrol/backoff.go and
pkg/kubelet/kuberuntime/kuberuntime_manager.go (doBackOff). In the kubelet, a back-off belongs to a pod, a container and
its definition; here, the container holds its back-off and drops it when its definition changes.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet.pod.state import BackOff


class Limits(NamedTuple):
    """The first and the longest back-off of a crashing container."""

    initial_seconds: int = 10
    maximum_seconds: int = 300


KUBELET = Limits()
"""The kubelet's limits, for containers and for images."""
RESYNC_SECONDS = 10
"""The kubelet pod worker's delay before it retries a failure that has no back-off."""

CRASH_LOOP_REPORT_MS = 75_000
IMAGE_REPORT_MS = 12_500
"""The interval between two reports of the same wait: the kubelet reports it in each sync of its pod worker. In a
crash loop, whose error carries the end of the back-off, the next sync comes then, but after at most 60 s; after an
image error, which carries none, it comes after 10 s. A random jitter of up to half is added. These values are the mean
with 60 s and 10 s (pod_workers.go, completeWork)."""

_FIRST_SYNC_MS = 1_000

FAILED_MOUNT = "FailedMount"
"""The reason given for a container start that failed because of the pod's volumes."""

_FIRST_MOUNT_MS = 500
_LONGEST_MOUNT_MS = 122_000

PULL_FAILED = ("ErrImagePull", "RegistryUnavailable")
"""The image failures that have a back-off. A failure without a pull has no back-off: the pod worker retries in its next
sync (images/image_manager.go, EnsureImageExists)."""


def limits(maximum_milliseconds: int) -> Limits:
    """Return the limits for this longest back-off. The first one is not above it. Both are whole seconds, at least one.

    Source: pkg/kubelet/kubelet.go (newCrashLoopBackOff).
    """
    seconds = max(maximum_milliseconds // 1000, 1)
    return Limits(min(KUBELET.initial_seconds, seconds), seconds)


def wait_seconds(back_off: BackOff | None, finished_at: int, limits: Limits = KUBELET) -> int:
    """Return the seconds from the end of the last run until the restart; 0 without a back-off, or if it has expired."""
    if back_off is None or _expired(back_off, finished_at, limits):
        return 0
    return back_off.seconds


def advanced(back_off: BackOff | None, finished_at: int, now: int, limits: Limits = KUBELET) -> BackOff:
    """Return the back-off after a restart at `now` of a run that finished at `finished_at`: doubled, or reset if
    expired.
    """
    if back_off is None or _expired(back_off, finished_at, limits):
        return BackOff(seconds=limits.initial_seconds, updated_at=now)
    return BackOff(seconds=min(back_off.seconds * 2, limits.maximum_seconds), updated_at=now)


def image_wait_seconds(failures: int, reason: str = PULL_FAILED[0]) -> int:
    """Return the seconds until an image is retried after `failures` consecutive failures (at least one): 10, 20, ...
    300 if `reason` is in PULL_FAILED, otherwise RESYNC_SECONDS.
    """
    if reason not in PULL_FAILED:
        return RESYNC_SECONDS
    doubled = KUBELET.initial_seconds << min(failures - 1, 8)
    return min(doubled, KUBELET.maximum_seconds)


def image_failed_milliseconds(failures: int) -> int:
    """Return how long ErrImagePull is shown before ImagePullBackOff: until the kubelet's next sync. After a first
    failure the sync follows quickly, because the pod's sandbox has just started.
    """
    return _FIRST_SYNC_MS if failures <= 1 else IMAGE_REPORT_MS


def next_report_at(now: int, until: int, pause_milliseconds: int) -> int:
    """Return when a wait that is reported now is reported again; 0 if the wait ends before that."""
    again = now + pause_milliseconds
    return again if again < until else 0


def mount_wait_milliseconds(failures: int) -> int:
    """Return the milliseconds until the volumes are retried after `failures` consecutive failures (at least one): 500,
    1000, ... 122000.

    Source: pkg/util/goroutinemap/exponentialbackoff.
    """
    return min(_FIRST_MOUNT_MS << min(failures - 1, 8), _LONGEST_MOUNT_MS)


def _expired(back_off: BackOff, finished_at: int, limits: Limits) -> bool:
    return finished_at - back_off.updated_at > 2 * limits.maximum_seconds * 1000
