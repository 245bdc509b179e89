"""How long a container that keeps ending, or an image that cannot be had, is waited for. Pure, in milliseconds.

Comes in: the back-off so far and when the last run finished. Goes out: the wait, and the next back-off. Next: `plan`,
which writes both into `pod.RestartScheduled` and `pod.ImageFailed`. Source: client-go's util/flowcontrol/backoff.go and
pkg/kubelet/kuberuntime/kuberuntime_manager.go (doBackOff). A key there is a pod, a container and its definition: here
the back-off lies with the container and is dropped when its definition changes.
"""

from __future__ import annotations

from chronolet.pod.state import BackOff

INITIAL_SECONDS = 10
MAXIMUM_SECONDS = 300
RESYNC_SECONDS = 10
"""What the kubelet's pod worker waits before it tries again what failed without a back-off of its own."""

CRASH_LOOP_REPORT_MS = 75_000
IMAGE_REPORT_MS = 12_500
"""How long after a wait was told of the kubelet tells of it again: whenever its pod worker looks. After 60 s, for the
error of a crash loop says how long it lasts, and 10 s, for that of an image does not, and up to half as much on top,
which it draws: this is the middle (pod_workers.go, completeWork)."""

_FIRST_LOOK_MS = 1_000

FAILED_MOUNT = "FailedMount"
"""The reason why a container could not be started that is its pod's volumes'."""

_FIRST_MOUNT_MS = 500
_LONGEST_MOUNT_MS = 122_000

PULL_FAILED = ("ErrImagePull", "RegistryUnavailable")
"""The reasons why an image cannot be had that have a back-off. Without a pull there is none: the pod worker tries
again at its next sync (images/image_manager.go, EnsureImageExists)."""


def wait_seconds(back_off: BackOff | None, finished_at: int) -> int:
    """How long a restart waits, counted from the end of the last run; 0 the first time and after a long good run."""
    if back_off is None or _expired(back_off, finished_at):
        return 0
    return back_off.seconds


def advanced(back_off: BackOff | None, finished_at: int, now: int) -> BackOff:
    """The back-off after a restart at `now` of what finished at `finished_at`: doubled, or begun anew."""
    if back_off is None or _expired(back_off, finished_at):
        return BackOff(seconds=INITIAL_SECONDS, updated_at=now)
    return BackOff(seconds=min(back_off.seconds * 2, MAXIMUM_SECONDS), updated_at=now)


def image_wait_seconds(failures: int, reason: str = PULL_FAILED[0]) -> int:
    """How long the next try of an image waits after so many failures in a row (at least one): 10, 20, ... 300."""
    if reason not in PULL_FAILED:
        return RESYNC_SECONDS
    doubled = INITIAL_SECONDS << min(failures - 1, 8)
    return min(doubled, MAXIMUM_SECONDS)


def image_failed_milliseconds(failures: int) -> int:
    """How long ErrImagePull stands before ImagePullBackOff: until the kubelet looks again. After the first failure that
    is soon, for the pod's sandbox has just begun.
    """
    return _FIRST_LOOK_MS if failures <= 1 else IMAGE_REPORT_MS


def next_report_at(now: int, until: int, pause_milliseconds: int) -> int:
    """When a wait that is told of now is told of again; 0 where it is over before."""
    again = now + pause_milliseconds
    return again if again < until else 0


def mount_wait_milliseconds(failures: int) -> int:
    """How long the next try of the volumes waits after so many failures in a row (at least one): 500, 1000, ... 122000.

    Source: pkg/util/goroutinemap/exponentialbackoff.
    """
    return min(_FIRST_MOUNT_MS << min(failures - 1, 8), _LONGEST_MOUNT_MS)


def _expired(back_off: BackOff, finished_at: int) -> bool:
    return finished_at - back_off.updated_at > 2 * MAXIMUM_SECONDS * 1000
