"""Exec probes: a command in the container must exit with 0; it is killed when its time is up.

Input: `ExecTarget`. Output: a `Reading`, reported when the command is no longer running. Next: the prober's worker.
Corresponds to pkg/probe/exec/exec.go, pkg/kubelet/cri/remote (ExecSync).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import structlog

from chronolet.adapters.probes.scheduling.lanes import AttemptHandle, Outcome, Work
from chronolet.ports.pods.probes import MAY_NOT, OUTPUT_LIMIT, ExecTarget, May
from chronolet.ports.runtime.runtime import Refusal, Runtime

log = structlog.get_logger("chronolet.probes")

MARK = "CHRONOLET_PROBE"
"""Environment variable that holds the probe's name in each command, by which a later process recognizes the command."""

_KILL_SECONDS = 10.0
"""How long to keep trying to kill a timed-out command and to verify that it has exited."""
_LOOK_SECONDS = 0.05
_BUSY_SHARE = 0.5
"""A command that has used a processor for less than this share of its run time is waiting for something else."""


def exec_work(runtime: Runtime, target: ExecTarget, timeout_seconds: float, probe: str) -> Work:
    """Return the work of an exec probe, for a lane."""
    return lambda attempt: _run(runtime, target, timeout_seconds, attempt, probe)


def clearing(runtime: Runtime, target: ExecTarget, probe: str, may: May) -> Callable[[], None]:
    """Return the clean-up to do before the first attempt: it kills commands left behind by an agent process that was
    killed.
    """

    def clear() -> None:
        if not may():
            return
        try:
            found = runtime.find_execs(target.container_id, (MARK, probe))
        except Refusal:
            return  # the attempt itself will report the problem
        for exec_id in found:
            log.warning("killing a probe command left behind by another process", exec=exec_id, probe=probe)
            _end(runtime, exec_id)

    return clear


def _run(runtime: Runtime, target: ExecTarget, timeout_seconds: float, attempt: AttemptHandle, probe: str) -> None:
    late = f"command {json.dumps(' '.join(target.command))} timed out"
    until = time.monotonic() + timeout_seconds
    if not attempt.may():
        attempt.report(Outcome("error", MAY_NOT))
        return
    try:
        exec_id = runtime.create_exec(target.container_id, target.command, env={MARK: probe} if probe else {})
    except Refusal as refusal:
        attempt.report(Outcome("error", str(refusal)))
        return
    left = until - time.monotonic()
    if left <= 0 or attempt.cancelled.is_set():
        attempt.report(Outcome("error", f"the runtime took more than {timeout_seconds:g}s to prepare the command"))
        return  # the exec was never started; it is removed with its container
    if not attempt.may():
        attempt.report(Outcome("error", MAY_NOT))
        return
    look = _Look(runtime, exec_id, attempt, late)
    try:
        result = runtime.run_exec(exec_id, left, cancelled=attempt.cancelled, meanwhile=look)
    except Refusal as refusal:
        if refusal.kind != "timeout" and time.monotonic() < until:
            attempt.report(Outcome("error", str(refusal)))
        elif look.sees_it_run():
            attempt.asks_engine()
            unanswered = 0.0 if look.engine_answers() else timeout_seconds
            attempt.report(Outcome("failure", late, timed_out=True, engine_seconds=unanswered))
        else:
            attempt.report(Outcome("error", f"the runtime took more than {timeout_seconds:g}s to begin the command"))
        if refusal.kind in ("timeout", "unavailable", "failed"):
            _end(runtime, exec_id)
        return
    output = result.output[:OUTPUT_LIMIT].decode("utf-8", "replace")
    attempt.report(Outcome("failure" if result.exit_code else "success", output, result.exit_code))


class _Look:
    """Called periodically while a command runs: detects whether it has started, and whether it uses the processor or
    only waits.
    """

    def __init__(self, runtime: Runtime, exec_id: str, attempt: AttemptHandle, late: str) -> None:
        self._runtime = runtime
        self._exec_id = exec_id
        self._attempt = attempt
        self._late = late
        self._since = time.monotonic()
        self._runs = False
        self._waits = False

    def __call__(self) -> None:
        """Check the command. Once it has been seen running, a time-out is the container's failure; once it is found to
        be only waiting, its slot is released.
        """
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
            self._attempt.begun(self._late)
        if used < _BUSY_SHARE * (time.monotonic() - self._since):
            self._waits = True
            self._attempt.waits()

    def sees_it_run(self) -> bool:
        """Whether the command is running, or has been seen running."""
        if not self._runs:
            self()
        return self._runs

    def engine_answers(self) -> bool:
        """Whether the engine responds. If it does not, it may also have failed to report the command's exit."""
        try:
            self._runtime.inspect_exec(self._exec_id)
        except Refusal as refusal:
            return refusal.kind not in ("timeout", "unavailable")
        return True


def _end(runtime: Runtime, exec_id: str) -> None:
    """Kill the command repeatedly until the runtime reports its exit, which shows that it was reaped, or until
    `_KILL_SECONDS` have passed. A single kill may come too early, because the command may start late.
    """
    until = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < until:
        try:
            runtime.kill_exec(exec_id)
            found = runtime.inspect_exec(exec_id)
        except Refusal as refusal:
            log.warning("cannot kill a probe command; retrying", exec=exec_id, error=str(refusal))
        else:
            if found is None or found.exit_code is not None:
                return
        time.sleep(_LOOK_SECONDS)
    log.warning("probe command still runs", exec=exec_id)
