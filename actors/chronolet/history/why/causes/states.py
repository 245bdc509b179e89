"""Causes of a pod's state: why it ends, does not start, or is not ready. Pure data. Next: `present` finds them."""

from __future__ import annotations

from chronolet.history.why.causes.base import Cause
from chronolet_schemas.pod import EndReason, HookName
from chronolet_schemas.prober import ProbeName


class Withdrawn(Cause, frozen=True, kw_only=True):
    """A source no longer requests the pod: `delete`, or its file. `grace_period_seconds`: as requested, None for the
    pod's own.
    """

    source: str
    grace_period_seconds: int | None = None


class Ending(Cause, frozen=True, kw_only=True):
    """Chronolet ends the pod. `replaced`: another pod of its name is requested."""

    reason: EndReason
    grace_period_seconds: int


class Killed(Cause, frozen=True, kw_only=True):
    """A container did not end within its grace period, and was killed."""

    container: str
    grace_period_seconds: int


class Ended(Cause, frozen=True, kw_only=True):
    """Everything of the pod is removed, `milliseconds` after its end began."""

    milliseconds: int


class Failed(Cause, frozen=True, kw_only=True):
    """The whole pod failed, or was rejected (`rejected`)."""

    reason: str
    message: str
    rejected: bool = False


class Blocked(Cause, frozen=True, kw_only=True):
    """The pod, or one container, must not start as specified."""

    container: str
    reason: str
    message: str


class PortTaken(Cause, frozen=True, kw_only=True):
    """The pod waits for a port of the node that another pod holds."""

    holder: str
    message: str


class DevicesMissing(Cause, frozen=True, kw_only=True):
    """A container waits for devices."""

    container: str
    reason: str
    message: str


class PluginGone(Cause, frozen=True, kw_only=True):
    """The device plugin of a resource ended, and has not registered again."""

    resource: str
    error: str = ""


class DeviceLost(Cause, frozen=True, kw_only=True):
    """A device of a container is unhealthy, or its plugin no longer lists it (`health` is empty)."""

    container: str
    resource: str
    device: str
    health: str = ""


class ImageMissing(Cause, frozen=True, kw_only=True):
    """A container's image could not be made available. `retry_at`: when the next attempt is made, 0 for never."""

    container: str
    image: str
    reason: str
    message: str
    failures: int = 0
    retry_at: int = 0


class ImageRemoved(Cause, frozen=True, kw_only=True):
    """The image was removed from the node: by image collection, for this reason, or by someone else (empty)."""

    image: str
    reason: str = ""


class ImagePulledAgain(Cause, frozen=True, kw_only=True):
    """The image was pulled although the node had it before."""

    image: str


class SandboxFailed(Cause, frozen=True, kw_only=True):
    """The pod's sandbox could not be started."""

    message: str


class DiskFull(Cause, frozen=True, kw_only=True):
    """What failed needs space on a disk of the node that is full."""


class HookRunning(Cause, frozen=True, kw_only=True):
    """A hook of the container has not ended. `handler` describes it."""

    container: str
    hook: HookName
    handler: str


class InitWaits(Cause, frozen=True, kw_only=True):
    """The pod's other containers wait for an init container."""

    container: str


class NotReady(Cause, frozen=True, kw_only=True):
    """A readiness or startup probe has not succeeded. `consecutive`: how often it has failed in a row."""

    container: str
    probe: ProbeName
    consecutive: int = 0
    threshold: int = 0
    output: str = ""
    code: int | None = None


class Starting(Cause, frozen=True, kw_only=True):
    """The pod or container is being started: `step` is what was requested last."""

    step: str


class Completed(Cause, frozen=True, kw_only=True):
    """All containers have ended and none is restarted."""

    policy: str
    failed: bool = False


class Running(Cause, frozen=True, kw_only=True):
    """All is well. `since`: when the last container started. `adopted`: the log began later than the pod."""

    since: int
    adopted: bool = False


class LogGap(Cause, frozen=True, kw_only=True):
    """Entries of the log about the time in question are missing, so that what they recorded is not known. The position
    is that of the last entry before them; if the log lacks the start of a run, that of the first entry about it.
    """


class LogLost(Cause, frozen=True, kw_only=True):
    """Redis lost entries of the log, so that what they recorded is not known."""

    entries: int
