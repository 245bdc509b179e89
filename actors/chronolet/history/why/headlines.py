"""Builds the first sentence of an answer from its chain of causes. Pure.

Input: the pod's name, a chain, a restart. Output: one sentence that answers the question. Next: `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause
from chronolet.history.why.records import Restart
from chronolet.history.why.sentences import clause
from chronolet.ports.machine.moments import rfc3339

C = TypeVar("C", bound=Cause)


def of_restart(name: str, restart: Restart, chain: Sequence[Cause], *, counted: bool = True) -> str:
    """Return why a container was restarted, or will be. `counted`: the log has all restarts before this one."""
    what = f"container {restart.before.container} of {name}"
    number = f"restart {restart.number}{'' if counted else ' of those in the log'}"
    if restart.after is None:
        return f"{what} waits {_back_off(chain)}({number}){_because(chain)}{_gap(chain)}."
    at = rfc3339(restart.after.started.at)
    return f"{what} was restarted ({number}, {at}){_because(chain)}{_gap(chain)}."


def _because(chain: Sequence[Cause]) -> str:
    if isinstance(chain[0], causes.EndNotRecorded):
        return f"; why is not known: {reason(chain)}"
    return f" because {reason(chain)}"


def of_state(name: str, chain: Sequence[Cause]) -> str:
    """Return why the pod is in its state."""
    found = [one for one in chain if not isinstance(one, causes.LogGap)]
    return f"{_of_state(name, found)}{_gap(chain)}."


def _gap(chain: Sequence[Cause]) -> str:
    """Return that the answer may lack something, if the log lacks entries."""
    found = _first(chain, causes.LogGap)
    return f"; {clause(found)}" if found is not None else ""


def _of_state(name: str, chain: Sequence[Cause]) -> str:
    exited = _first(chain, causes.Exited)
    if exited is not None:
        return _of_end(name, exited.container, chain)
    stopped = _first(chain, causes.Stopped)
    if stopped is not None:
        return f"container {stopped.container} of {name} is being stopped because {reason(chain)}"
    found = _STATES.get(type(chain[0]))
    return found(name, chain) if found is not None else f"pod {name}: {clause(chain[0])}"


def _of_end(name: str, container: str, chain: Sequence[Cause]) -> str:
    """Return why a container ended, and what its pod does about it."""
    rest = [clause(one) for one in chain if isinstance(one, causes.Completed | causes.Collected | causes.InitWaits)]
    waits = _first(chain, causes.BackOff) is not None
    if waits:
        begin = f"container {container} of {name} waits {_back_off(chain)}because"
    elif _first(chain, causes.InitWaits) is not None:
        begin, rest = f"pod {name} does not start because init container {container} failed:", []
    elif _first(chain, causes.Completed) is not None:
        begin = f"container {container} of {name} failed because"
    else:
        begin = f"container {container} of {name} waits for its restart because"
    return "; ".join((f"{begin} {reason(chain)}", *rest))


def reason(chain: Sequence[Cause]) -> str:
    """Return why a container ended: the root, what chronolet did about it, the exit code, and what came later."""
    root = chain[0]
    words = clause(root)
    exited = _first(chain, causes.Exited)
    itself = _first(chain, causes.ExitedByItself)
    stopped = _first(chain, causes.Stopped)
    if isinstance(root, causes.OutOfMemory) and itself is not None:
        words = f"{clause(itself)} after {clause(root)}"
    elif stopped is not None and root is not stopped:
        words = f"{words}, so {clause(stopped)}"
    early = _first(chain, causes.KilledEarly)
    words += f"; but {clause(early)}" if early is not None else ""
    named = isinstance(root, causes.Gone | causes.ExitedByItself | causes.Unexplained) or itself is not None
    if exited is not None and not named:
        words += f" (exit code {exited.exit_code})"
    extra = [clause(one) for one in chain if isinstance(one, causes.NoticedLate | causes.ImageRemoved)]
    extra += [clause(one) for one in chain if isinstance(one, causes.ImagePulledAgain)]
    return "; ".join((words, *extra))


def _back_off(chain: Sequence[Cause]) -> str:
    found = _first(chain, causes.BackOff)
    return f"in a back-off of {found.seconds} s, until {rfc3339(found.until)}, " if found else "for its restart "


def _first(chain: Sequence[Cause], kind: type[C]) -> C | None:
    return next((one for one in chain if isinstance(one, kind)), None)


def _ending(name: str, chain: Sequence[Cause]) -> str:
    ending = _first(chain, causes.Ending)
    ended = _first(chain, causes.Ended)
    withdrawn = _first(chain, causes.Withdrawn)
    replaced = ending is not None and ending.reason == "Replaced"
    verb = "was replaced" if replaced else "was deleted"
    if ended is None:
        verb = "is being replaced" if replaced else "is being deleted"
    root = withdrawn if withdrawn is not None and not replaced else ending
    because = f" because {clause(root)}" if root is not None else ""
    more = [
        clause(one)
        for one in chain
        if isinstance(one, causes.HookFailed | causes.Killed | causes.KilledEarly | causes.HookRunning)
    ]
    done = [clause(ended)] if ended is not None and not more else []
    return f"pod {name} {verb}{'; '.join((because, *more, *done))}"


def _failed(name: str, chain: Sequence[Cause]) -> str:
    found = _first(chain, causes.Failed)
    collected = [clause(one) for one in chain if isinstance(one, causes.Collected)]
    assert found is not None  # noqa: S101 - the root of this chain
    if found.rejected:
        text = f"pod {name} was rejected by the node: {found.reason}: {found.message}"
    else:
        text = f"pod {name} failed: {found.reason}: {found.message}"
    return "; ".join((" ".join(text.split()).removesuffix("."), *collected))


def _all(name: str, chain: Sequence[Cause]) -> str:
    return f"pod {name}: {'; '.join(map(clause, chain))}"


def _not_started(name: str, chain: Sequence[Cause]) -> str:
    return f"pod {name} does not start because {'; '.join(map(clause, chain))}"


_STATES: Mapping[type[Cause], Callable[[str, Sequence[Cause]], str]] = {
    causes.Withdrawn: _ending,
    causes.Ending: _ending,
    causes.Failed: _failed,
    causes.Blocked: _not_started,
    causes.PortTaken: _not_started,
    causes.DevicesMissing: _not_started,
    causes.SandboxFailed: _not_started,
    causes.ImageMissing: _not_started,
    causes.HookRunning: lambda name, chain: f"pod {name} is not ready because {clause(chain[0])}",
    causes.NotReady: lambda name, chain: f"pod {name} is not ready because {clause(chain[0])}",
    causes.DeviceLost: lambda name, chain: f"pod {name} runs, but {'; '.join(map(clause, chain))}",
    causes.PluginGone: lambda name, chain: f"pod {name} runs, but {'; '.join(map(clause, chain))}",
    causes.ManifestChanged: lambda name, chain: (
        f"pod {name} replaced an earlier pod of its name because {clause(chain[0])}"
    ),
    causes.Completed: _all,
    causes.Running: _all,
    causes.Starting: _all,
    causes.InitWaits: lambda name, chain: f"pod {name} is not started yet: {clause(chain[0])}",
}
