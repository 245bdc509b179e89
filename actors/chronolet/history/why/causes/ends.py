"""Causes of the end of a run, what chronolet did about it, and what followed. Pure data. Next: `endings` finds them."""

from __future__ import annotations

from typing import Literal

from chronolet.history.why.causes.base import Cause
from chronolet_schemas.pod import HookName, HookOutcome, StopReason
from chronolet_schemas.prober import ProbeName


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
    the container ended. `limit`: its memory limit when it was started, empty if it had none, None if that is not known.
    """

    main: bool
    limit: str | None = None


class OtherSignal(Cause, frozen=True, kw_only=True):
    """A client of Docker other than chronolet had it send signals to the container.

    `removed`: the container was removed right after its death. `started_again`: something other than chronolet started
    the container again. `certain`: the signals ended it, as its exit code or the time of the last signal shows.
    `others`: it was not chronolet: no entry that would show that can be missing.
    """

    signals: tuple[int, ...]
    removed: bool = False
    started_again: bool = False
    certain: bool = True
    others: bool = True


class SandboxDied(Cause, frozen=True, kw_only=True):
    """The pod's sandbox, the container that holds its network, died; all containers of the pod are replaced with it.
    `signals`: what clients of Docker had it send to the sandbox; None if that is not known. `others`: it was not
    chronolet: no entry that would show that can be missing.
    """

    exit_code: int
    signals: tuple[int, ...] | None = None
    others: bool = True


class EngineDown(Cause, frozen=True, kw_only=True):
    """Docker Engine stopped or was killed; the connection to it broke at `at` with this error. `back_at`: when it was
    reached again, 0 for not yet. `whole_pod`: the pod's sandbox died as well.
    """

    error: str
    back_at: int
    whole_pod: bool


class Rebooted(Cause, frozen=True, kw_only=True):
    """The machine was booted again, as far as the log knows while the container was running. `near`: the container's
    end is not known, or was shortly before chronolet was there again.
    """

    before: str
    after: str
    near: bool = True


class Gone(Cause, frozen=True, kw_only=True):
    """Docker no longer had the container when chronolet looked for it: nothing observed its end."""


class EndNotRecorded(Cause, frozen=True, kw_only=True):
    """The log has no entry about the end of this run, only about the next one."""


class StartFailed(Cause, frozen=True, kw_only=True):
    """Docker could not create or start the container."""

    reason: str
    message: str
    failures: int = 0


class ExitedByItself(Cause, frozen=True, kw_only=True):
    """The process ended, and nothing in the log ended it. `last_words`: its termination message. `policy`: the restart
    policy that applied, empty if that is not known. `not_docker`: Docker's notices show that none of its clients sent a
    signal. `others`: chronolet did not stop it: no entry that would show that can be missing.
    """

    exit_code: int
    policy: str
    last_words: str = ""
    not_docker: bool = True
    others: bool = True


class Unexplained(Cause, frozen=True, kw_only=True):
    """The process ended with an exit code that stands for a signal, and the log does not say who sent the signal.

    `not_docker`: Docker's notices show that none of its clients sent one. `oom_at`: when the kernel first killed a
    process of the container for lack of memory, too long before to explain this; 0 for never. Later kills of the same
    run may not be recorded. `others`: it was not chronolet: no entry that would show that can be missing.
    """

    exit_code: int
    signal: int
    not_docker: bool
    oom_at: int = 0
    others: bool = True


# -- what chronolet did ------------------------------------------------------------------------------------------------
class Stopped(Cause, frozen=True, kw_only=True):
    """Chronolet stopped the container. `signals`: what Docker sent, None if that is not known."""

    container: str
    reason: StopReason
    grace_period_seconds: int
    signals: tuple[int, ...] | None = None
    killed: bool = False
    """Whether the container had not ended within its grace period and was killed."""
    explained: bool = False
    """Whether a cause before this one in the chain is the reason."""


class KilledEarly(Cause, frozen=True, kw_only=True):
    """A container that chronolet was stopping was killed before its deadline, so by something else.

    `oom`: by the kernel, for lack of memory. `docker`: by a client of Docker. Neither: the log does not show by what.
    """

    oom: bool = False
    docker: bool = False


class Exited(Cause, frozen=True, kw_only=True):
    """The container's run ended. `at` is the runtime's time."""

    container: str
    exit_code: int
    milliseconds: int
    """How long the run took; negative if that is not known."""


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
    """The container was started again, `milliseconds` after its end; negative if that is not known."""

    container: str
    attempt: int
    milliseconds: int


class Collected(Cause, frozen=True, kw_only=True):
    """The dead container was removed, by container collection by this rule, or otherwise if the rule is empty."""

    rule: str
