"""A command in the container that is to end with 0, or is killed when its time is up.

Comes in: `ExecTarget`. Goes out: a `Reading`; afterwards the command does not run any more. Next: the prober's worker.
Answers to pkg/probe/exec/exec.go, pkg/kubelet/cri/remote (ExecSync).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import structlog

from chronolet.adapters.probes.threads import Asking, Said, Work
from chronolet.ports.pods.probes import MAY_NOT, OUTPUT_LIMIT, ExecTarget, May
from chronolet.ports.runtime.runtime import Refusal, Runtime

log = structlog.get_logger("chronolet.probes")

MARK = "CHRONOLET_PROBE"
"""What names a command's asker in its environment, so that a later process knows it again."""

_KILL_SECONDS = 10.0
"""For so long it is tried to end a command whose time is up, and looked whether it has ended."""
_LOOK_SECONDS = 0.05
_BUSY_SHARE = 0.5
"""Of the time that a command has run: one that used less of the processor, or waited less for it, waits for something
else."""


def exec_work(runtime: Runtime, target: ExecTarget, timeout_seconds: float, who: str) -> Work:
    """What a lane runs."""
    return lambda asking: _run(runtime, target, timeout_seconds, asking, who)


def clearing(runtime: Runtime, target: ExecTarget, who: str, may: May) -> Callable[[], None]:
    """What comes before the first attempts: a process that was killed leaves its commands behind."""

    def clear() -> None:
        if not may():
            return
        try:
            found = runtime.find_execs(target.container_id, (MARK, who))
        except Refusal:
            return  # what comes next says it
        for exec_id in found:
            log.warning("a probe's command was left behind by another process; it is killed", exec=exec_id, who=who)
            _end(runtime, exec_id)

    return clear


def _run(runtime: Runtime, target: ExecTarget, timeout_seconds: float, asking: Asking, who: str) -> None:
    late = f"command {json.dumps(' '.join(target.command))} timed out"
    until = time.monotonic() + timeout_seconds
    if not asking.may():
        asking.tell(Said("error", MAY_NOT))
        return
    try:
        exec_id = runtime.create_exec(target.container_id, target.command, env={MARK: who} if who else {})
    except Refusal as refusal:
        asking.tell(Said("error", str(refusal)))
        return
    left = until - time.monotonic()
    if left <= 0 or asking.cancelled.is_set():
        asking.tell(Said("error", f"the runtime took more than {timeout_seconds:g}s to prepare the command"))
        return  # never started: it goes with its container
    if not asking.may():
        asking.tell(Said("error", MAY_NOT))
        return
    look = _Look(runtime, exec_id, asking, late)
    try:
        result = runtime.run_exec(exec_id, left, cancelled=asking.cancelled, meanwhile=look)
    except Refusal as refusal:
        if refusal.kind != "timeout" and time.monotonic() < until:
            asking.tell(Said("error", str(refusal)))
        elif look.sees_it_run():
            asking.asks_engine()
            unanswered = 0.0 if look.engine_answers() else timeout_seconds
            asking.tell(Said("failure", late, timed_out=True, engine_seconds=unanswered))
        else:
            asking.tell(Said("error", f"the runtime took more than {timeout_seconds:g}s to begin the command"))
        if refusal.kind in ("timeout", "unavailable", "failed"):
            _end(runtime, exec_id)
        return
    output = result.output[:OUTPUT_LIMIT].decode("utf-8", "replace")
    asking.tell(Said("failure" if result.exit_code else "success", output, result.exit_code))


class _Look:
    """Called now and then while a command runs: whether it has begun, and whether it works or only waits."""

    def __init__(self, runtime: Runtime, exec_id: str, asking: Asking, late: str) -> None:
        self._runtime = runtime
        self._exec_id = exec_id
        self._asking = asking
        self._late = late
        self._since = time.monotonic()
        self._runs = False
        self._waits = False

    def __call__(self) -> None:
        """From the first look on that sees it run, it is the container's fault if it takes too long."""
        if self._waits:
            return
        try:
            used = self._runtime.exec_seconds(self._exec_id)
        except Refusal:
            return
        if used is None:
            return
        if not self._runs:
            self._runs = True
            self._asking.begun(self._late)
        if used < _BUSY_SHARE * (time.monotonic() - self._since):
            self._waits = True
            self._asking.waits()

    def sees_it_run(self) -> bool:
        """Now, or before."""
        if not self._runs:
            self()
        return self._runs

    def engine_answers(self) -> bool:
        """One that does not answer may not have said, either, that the command has ended."""
        try:
            self._runtime.inspect_exec(self._exec_id)
        except Refusal as refusal:
            return refusal.kind not in ("timeout", "unavailable")
        return True


def _end(runtime: Runtime, exec_id: str) -> None:
    """Kill it until the runtime says that it has ended, and so was reaped. What has not begun yet may begin still."""
    until = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < until:
        try:
            runtime.kill_exec(exec_id)
            found = runtime.inspect_exec(exec_id)
        except Refusal as refusal:
            log.warning("a probe's command may still run; trying again", exec=exec_id, error=str(refusal))
        else:
            if found is None or found.exit_code is not None:
                return
        time.sleep(_LOOK_SECONDS)
    log.warning("a probe's command still runs", exec=exec_id)
