"""The causes in an answer: what happened, each with its evidence. Pure data.

Input: none. Output: one Struct for each kind of cause. Next: `endings` and `present` find causes, `sentences` words
them. Times are milliseconds since the epoch; `at` is when the cause was recorded, or happened if that is known, and
`position` the entry of the log that shows it.
"""

from __future__ import annotations

from typing import Literal, TypedDict

import msgspec

from chronolet.history.why.facts import Fact
from chronolet_schemas.pod import EndReason, HookName, HookOutcome, StopReason
from chronolet_schemas.prober import ProbeName

KILL, TERM = 9, 15
"""Numbers of signals."""
SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    KILL: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    TERM: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}
"""The names of Linux's signals. On other systems, where histories can be read, too, Python's module lacks some."""
CRASHES = frozenset((4, 6, 7, 8, 11))
"""Signals by which the kernel ends a program that made an error, or by which a program gives up."""
EXIT_BY_SIGNAL = 128
"""The exit code of a process that was ended by a signal is this, plus the signal's number."""


class Cause(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base class of all causes."""

    at: int
    position: str


class Where(TypedDict):
    """The fields that all causes have."""

    at: int
    position: str


def where(fact: Fact) -> Where:
    """Return the time and position of a fact, for a cause."""
    return Where(at=fact.at, position=str(fact.position))


# -- what ends a run ---------------------------------------------------------------------------------------------------
class ProbeFailed(Cause, frozen=True, kw_only=True):
    """A liveness or startup probe reached its failure threshold. `held_milliseconds`: for how long the kill was held
    back because the machine was overloaded. `code` is an exit code or an HTTP status; None: there was no answer.
    """

    probe: ProbeName
    consecutive: int
    threshold: int
    output: str = ""
    code: int | None = None
    held_milliseconds: int = 0


class HookFailed(Cause, frozen=True, kw_only=True):
    """A hook failed, or had not ended by its deadline."""

    hook: HookName
    outcome: HookOutcome
    message: str = ""
    milliseconds: int = 0


class ManifestChanged(Cause, frozen=True, kw_only=True):
    """A source changed the container's definition. `fields`: which of its fields, if both definitions are known."""

    source: str
    fields: tuple[str, ...] = ()


class OutOfMemory(Cause, frozen=True, kw_only=True):
    """The kernel killed a process of the container for lack of memory. `main`: the container's main process, so that
    the container ended. `limit`: the container's memory limit as in the manifest, empty if it has none.
    """

    main: bool
    limit: str = ""


class OtherSignal(Cause, frozen=True, kw_only=True):
    """A client of Docker other than chronolet had it send signals to the container.

    `removed`: the container was removed right after its death. `started_again`: something other than chronolet started
    the container again.
    """

    signals: tuple[int, ...]
    removed: bool = False
    started_again: bool = False


class SandboxDied(Cause, frozen=True, kw_only=True):
    """The pod's sandbox, the container that holds its network, died; all containers of the pod are replaced with it.
    `signals`: what clients of Docker had it send to the sandbox; None if that is not known.
    """

    exit_code: int
    signals: tuple[int, ...] | None = None


class EngineDown(Cause, frozen=True, kw_only=True):
    """Docker Engine stopped or was killed; the connection to it broke at `at` with this error. `back_at`: when it was
    reached again, 0 for not yet. `whole_pod`: the pod's sandbox died as well.
    """

    error: str
    back_at: int
    whole_pod: bool


class Rebooted(Cause, frozen=True, kw_only=True):
    """The machine was booted again while the container was running."""

    before: str
    after: str


class Gone(Cause, frozen=True, kw_only=True):
    """Docker no longer had the container when chronolet looked for it: nothing observed its end."""


class StartFailed(Cause, frozen=True, kw_only=True):
    """Docker could not create or start the container."""

    reason: str
    message: str
    failures: int = 0


class ExitedByItself(Cause, frozen=True, kw_only=True):
    """The process ended, and nothing in the log ended it. `last_words`: its termination message. `policy`: the restart
    policy that applies.
    """

    exit_code: int
    policy: str
    last_words: str = ""


class Unexplained(Cause, frozen=True, kw_only=True):
    """The process ended with an exit code that stands for a signal, and the log does not say who sent the signal.

    `not_docker`: Docker's notices show that none of its clients sent one.
    """

    exit_code: int
    signal: int
    not_docker: bool


# -- what chronolet did ------------------------------------------------------------------------------------------------
class Stopped(Cause, frozen=True, kw_only=True):
    """Chronolet stopped the container. `signals`: what Docker sent, None if that is not known."""

    reason: StopReason
    grace_period_seconds: int
    signals: tuple[int, ...] | None = None
    killed: bool = False
    """Whether the container had not ended within its grace period and was killed."""


class Exited(Cause, frozen=True, kw_only=True):
    """The container's run ended. `at` is the runtime's time."""

    container: str
    exit_code: int
    milliseconds: int
    """How long the run took."""


class NoticedLate(Cause, frozen=True, kw_only=True):
    """Chronolet recorded the end only `milliseconds` after it. `reason`: why, if the log shows it."""

    milliseconds: int
    reason: Literal["agent", "engine", "log", ""]


class BackOff(Cause, frozen=True, kw_only=True):
    """The container waits before it is started again."""

    container: str
    seconds: int
    until: int


class Restarted(Cause, frozen=True, kw_only=True):
    """The container was started again, `milliseconds` after its end."""

    container: str
    attempt: int
    milliseconds: int


class Collected(Cause, frozen=True, kw_only=True):
    """The dead container was removed, by container collection by this rule, or otherwise if the rule is empty."""

    rule: str


# -- why a pod is as it is ---------------------------------------------------------------------------------------------
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


class LogLost(Cause, frozen=True, kw_only=True):
    """Redis lost entries of the log, so that what they said is not known."""

    entries: int
