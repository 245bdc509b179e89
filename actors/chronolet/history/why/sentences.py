"""Words causes: one clause for each kind of cause, in one table. Pure.

Input: a cause. Output: a clause without a capital letter or a full stop, about the container as `it`. Next: `answer`,
which builds the first sentence and the chain from these clauses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chronolet.history.why import causes
from chronolet.history.why.causes import KILL, TERM, Cause
from chronolet.history.why.wording import FILE, cut, named, probe_result, quoted, requester, seconds, times


def clause(cause: Cause) -> str:
    """Return what happened, in words, on one line."""
    return " ".join(_CLAUSES[type(cause)](cause).split())


def _probe_failed(one: causes.ProbeFailed) -> str:
    held = f"; the stop was held back for {seconds(one.held_milliseconds)}" if one.held_milliseconds else ""
    result = f"the last result: {probe_result(one.code, one.output)}"
    return (
        f"its {one.probe.lower()} probe failed {times(one.consecutive)} (failureThreshold {one.threshold}; {result}"
        f"{held})"
    )


def _hook_failed(one: causes.HookFailed) -> str:
    name = f"its {one.hook[0].lower()}{one.hook[1:]} hook"
    message = f": {quoted(one.message)}" if one.message else ""
    match one.outcome:
        case "Unfinished":
            return f"{name} took too long: it had not ended after {seconds(one.milliseconds)}, its grace period"
        case "Unknown":
            return f"{name} was started, but how it ended is not known{message}"
        case _:
            return f"{name} failed after {seconds(one.milliseconds)}{message}"


def _manifest(one: causes.ManifestChanged) -> str:
    fields = f" ({'; '.join(one.fields)})" if one.fields else ""
    return f"its manifest was changed by {requester(one.source)}{fields}"


def _out_of_memory(one: causes.OutOfMemory) -> str:
    if one.limit is None:
        limit = "its memory limit is not known"
    else:
        none = "it has no memory limit: the node or the pod ran out"
        limit = f"its memory limit is {one.limit}" if one.limit else none
    what = "its main process" if one.main else "one of its processes, not the main one,"
    return f"the kernel killed {what} for lack of memory (OOM; {limit})"


def _other_signal(one: causes.OtherSignal) -> str:
    names = " and then ".join(named(signal) for signal in dict.fromkeys(one.signals))
    if one.started_again:
        how = " and started it again, as `docker restart` does"
    elif one.removed:
        how = " and removed it, as `docker rm -f` does"
    elif KILL in one.signals and TERM not in one.signals:
        how = ", as `docker kill` does"
    else:
        how = ", as `docker stop` does" if TERM in one.signals else ", as `docker kill --signal` does"
    maybe = "" if one.certain else ", and it may have ended because of that, or for another reason"
    return f"someone sent it {names} through Docker{how}{maybe}; {_not_chronolet(one.others)}"


def _not_chronolet(others: bool) -> str:
    if others:
        return "it was not chronolet"
    return "it may have been chronolet, as entries of the log are missing or it had a reason to stop it"


def _sandbox_died(one: causes.SandboxDied) -> str:
    if one.signals:
        sent = " and ".join(named(signal) for signal in one.signals)
        return f"the pod's sandbox died: someone sent it {sent} through Docker; {_not_chronolet(one.others)}"
    maybe = "" if one.others else f"; {_not_chronolet(one.others)}"
    return f"the pod's sandbox died with exit code {one.exit_code}, and with it all containers of the pod{maybe}"


def _engine_down(one: causes.EngineDown) -> str:
    back = f", and was back after {seconds(one.back_at - one.at)}" if one.back_at else ""
    if one.whole_pod:
        return f"Docker Engine stopped or was killed{back}, and the pod's containers ended with it"
    return (
        f"it ended while Docker Engine was down{back}: either a process of the host killed it, or it exited by itself, "
        "or the engine's end did it"
    )


_MAY_LACK_A_STOP = "the log may lack a stop by chronolet"


def _exited_by_itself(one: causes.ExitedByItself) -> str:
    words = f", after writing {quoted(one.last_words)}" if one.last_words else ""
    signal = one.exit_code - causes.EXIT_BY_SIGNAL
    policy = f" (restartPolicy {one.policy})" if one.policy else ""
    if signal in causes.CRASHES:
        return (
            f"its process ended with exit code {one.exit_code}{words}: it crashed with {named(signal)}, something sent "
            f"it this signal, or it exited with this code by itself{'' if one.others else f'; {_MAY_LACK_A_STOP}'}"
        )
    if not one.others:
        return (
            f"its process exited with code {one.exit_code}{words}: by itself, or because chronolet or someone else "
            f"stopped it through Docker, whose notices of that time the log does not have; {_MAY_LACK_A_STOP}{policy}"
        )
    if not one.not_docker:
        return (
            f"its process exited with code {one.exit_code}{words}: by itself, or because it was stopped through Docker "
            f"(`docker stop`), whose notices of that time the log does not have{policy}"
        )
    return f"its process exited by itself with code {one.exit_code}{words}{policy}"


def _unexplained(one: causes.Unexplained) -> str:
    name = named(one.signal)
    docker = "" if one.not_docker else f", someone sent {name} through Docker (`docker kill`)"
    inside = "" if one.signal == KILL else " or of the container"
    no_other = "sign of an OOM kill" if one.signal == KILL and not one.oom_at else "other cause"
    again = ""
    if one.signal == KILL and one.oom_at:
        before = seconds(max(one.at - one.oom_at, 0))
        again = (
            ", the kernel killed it for lack of memory (it had killed a process of it "
            f"{before} before; later kills of a run may not be recorded)"
        )
    no_stop = "chronolet did not stop it, and the log has" if one.others else f"{_MAY_LACK_A_STOP}, and has"
    return (
        f"its process ended with exit code {one.exit_code}: either a process of the host{inside} sent it {name} "
        f"(`kill -{one.signal}`){docker}{again}, or it exited with this code by itself; {no_stop} no {no_other}"
    )


_STOP_REASONS: Mapping[str, str] = {
    "Deleted": ", whose pod ends,",
    "Replaced": ", whose pod ends,",
    "Superseded": ", which was not the current attempt,",
    "PodCompleted": ", because the pod's other containers were done,",
}
"""Why a container was stopped, for the reasons that have no cause of their own."""
_RECORDED_REASONS: Mapping[str, str] = {
    "SpecChanged": ", because its manifest was changed,",
    "SandboxGone": ", because the pod's sandbox died or had to be replaced,",
    "PodFailed": ", because its pod failed,",
    "FailedPostStartHook": ", because its postStart hook failed,",
    "LivenessFailed": ", because its liveness probe failed,",
    "StartupFailed": ", because its startup probe failed,",
}
"""Why a container was stopped, for the reasons whose cause is mostly in the log, but may be missing."""


def _stopped(one: causes.Stopped) -> str:
    sent = [signal for signal in one.signals or () if signal != KILL]
    first = f"{named(sent[0])} and " if sent else ""
    killed = ", and killed it with SIGKILL at its end" if one.killed else ""
    why = _STOP_REASONS.get(one.reason, "" if one.explained else _RECORDED_REASONS.get(one.reason, ""))
    if one.signals == ():
        return f"chronolet requested its stop{why}, and it ended before Docker sent any signal"
    return f"chronolet stopped it{why} with {first}a grace period of {one.grace_period_seconds} s{killed}"


def _killed_early(one: causes.KilledEarly) -> str:
    begin = "it was killed before the end of its grace period"
    if one.docker:
        return f"{begin}: someone sent it SIGKILL through Docker"
    if one.oom:
        return f"{begin}: the kernel killed it for lack of memory"
    return f"{begin}, or exited with code 137 by itself; the log does not show which, nor what killed it"


def _rebooted(one: causes.Rebooted) -> str:
    if one.near:
        return "the machine was rebooted"
    return (
        "it ended unobserved, and the machine was booted again after that: either the machine went down with it, or "
        "something killed it before, or it exited by itself"
    )


def _noticed_late(one: causes.NoticedLate) -> str:
    why = {
        "agent": ", because the agent was not running",
        "engine": ", because Docker Engine could not be reached",
        "log": "; nothing was written to the log meanwhile: Redis or the agent may have been down",
        "": "",
    }[one.reason]
    return f"chronolet recorded that only {seconds(one.milliseconds)} later{why}"


def _withdrawn(one: causes.Withdrawn) -> str:
    if one.source.startswith(FILE):
        return f"its manifest file {one.source.removeprefix(FILE)} was removed, or no longer defines it"
    grace = "" if one.grace_period_seconds is None else f" with a grace period of {one.grace_period_seconds} s"
    return f"someone requested it with `chronolet delete`{grace}"


def _ending(one: causes.Ending) -> str:
    why = "another pod of its name is to take its place" if one.reason == "Replaced" else "it is no longer requested"
    return f"{why}; its grace period is {one.grace_period_seconds} s"


def _failed(one: causes.Failed) -> str:
    if one.rejected:
        return f"the node rejected it: {one.reason}: {one.message}"
    return f"it failed: {one.reason}: {one.message}"


def _blocked(one: causes.Blocked) -> str:
    what = f"container {one.container}" if one.container else "the pod"
    reason = f"{one.reason}: " if one.reason else ""
    return f"{what} cannot be started as its manifest defines it: {reason}{cut(one.message)}"


def _device_lost(one: causes.DeviceLost) -> str:
    how = f"is {one.health}" if one.health else "is no longer offered"
    return f"device {one.device} of {one.resource}, which container {one.container} uses, {how} according to its plugin"


def _image_missing(one: causes.ImageMissing) -> str:
    again = f" ({one.failures} attempts so far)" if one.failures > 1 else ""
    return f"image {one.image} of container {one.container} is not available: {one.reason}: {cut(one.message)}{again}"


def _image_removed(one: causes.ImageRemoved) -> str:
    reasons = {"age": "it was unused for too long", "space": "the disk was too full", "unused": "on request"}
    by = f"image collection removed it: {reasons.get(one.reason, one.reason)}" if one.reason else "someone removed it"
    return f"the node had image {one.image} before, and {by}"


def _not_ready(one: causes.NotReady) -> str:
    if not one.consecutive:
        return f"the {one.probe.lower()} probe of container {one.container} has not succeeded yet"
    return (
        f"the {one.probe.lower()} probe of container {one.container} failed {times(one.consecutive)} "
        f"(failureThreshold {one.threshold}; the last result: {probe_result(one.code, one.output)})"
    )


def _hook_running(one: causes.HookRunning) -> str:
    return f"the {one.hook[0].lower()}{one.hook[1:]} hook of container {one.container} has not ended: {one.handler}"


def _start_failed(one: causes.StartFailed) -> str:
    again = f" ({one.failures} attempts so far)" if one.failures > 1 else ""
    return f"Docker could not start it: {one.reason}: {cut(one.message)}{again}"


def _collected(one: causes.Collected) -> str:
    return f"container collection removed its dead container (rule {one.rule.replace('_', ' ')})"


def _after(milliseconds: int) -> str:
    return f" after {seconds(milliseconds)}" if milliseconds >= 0 else ""


def _later(milliseconds: int) -> str:
    """Return how long after its end a container was started; nothing if a clock was set back meanwhile."""
    return f" {seconds(milliseconds)} after its end" if milliseconds >= 0 else ""


_CLAUSES: Mapping[type[Cause], Callable[[Any], str]] = {
    causes.ProbeFailed: _probe_failed,
    causes.HookFailed: _hook_failed,
    causes.ManifestChanged: _manifest,
    causes.OutOfMemory: _out_of_memory,
    causes.OtherSignal: _other_signal,
    causes.SandboxDied: _sandbox_died,
    causes.EngineDown: _engine_down,
    causes.Rebooted: _rebooted,
    causes.EndNotRecorded: lambda _: "its end is not recorded in the log",
    causes.KilledEarly: _killed_early,
    causes.Gone: lambda _: (
        "Docker no longer had it when chronolet looked, so its real exit code is not known: someone removed it, as "
        "`docker rm -f` does, or Docker lost it"
    ),
    causes.StartFailed: _start_failed,
    causes.ExitedByItself: _exited_by_itself,
    causes.Unexplained: _unexplained,
    causes.Stopped: _stopped,
    causes.Exited: lambda one: (
        f"container {one.container} ended with exit code {one.exit_code}{_after(one.milliseconds)}"
    ),
    causes.NoticedLate: _noticed_late,
    causes.BackOff: lambda one: f"container {one.container} waits for a back-off of {one.seconds} s",
    causes.Restarted: lambda one: (
        f"container {one.container} was started again{_later(one.milliseconds)} (attempt {one.attempt})"
    ),
    causes.Collected: _collected,
    causes.Withdrawn: _withdrawn,
    causes.Ending: _ending,
    causes.Killed: lambda one: (
        f"container {one.container} did not end within its grace period of {one.grace_period_seconds} s and was killed"
    ),
    causes.Ended: lambda one: f"everything of it was removed, {seconds(one.milliseconds)} after its end began",
    causes.Failed: _failed,
    causes.Blocked: _blocked,
    causes.PortTaken: lambda one: f"it waits for {one.holder}: {one.message}",
    causes.DevicesMissing: lambda one: f"container {one.container} waits for devices: {one.message}",
    causes.PluginGone: lambda one: (
        f"the device plugin of {one.resource} ended{f' ({one.error})' if one.error else ''} and has not come back"
    ),
    causes.DeviceLost: _device_lost,
    causes.ImageMissing: _image_missing,
    causes.ImageRemoved: _image_removed,
    causes.ImagePulledAgain: lambda one: f"image {one.image} had to be pulled again",
    causes.SandboxFailed: lambda one: f"its sandbox cannot be started: {one.message}",
    causes.DiskFull: lambda _: "a disk of the node is full",
    causes.HookRunning: _hook_running,
    causes.InitWaits: lambda one: f"the pod's other containers wait for init container {one.container}",
    causes.NotReady: _not_ready,
    causes.Starting: lambda one: f"it is being started; the last step is {one.step}",
    causes.Completed: lambda one: f"all its containers have ended and restartPolicy {one.policy} restarts none",
    causes.Running: lambda one: (
        "it was running when this log began" if one.adopted else "all its containers run as their manifest wants"
    ),
    causes.LogGap: lambda _: "entries of the log of that time are missing, and may show something else",
    causes.LogLost: lambda one: f"Redis lost {one.entries} entries of the log, what they recorded is unknown",
}
