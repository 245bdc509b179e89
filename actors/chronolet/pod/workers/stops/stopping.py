"""Stops one container: its stop signal, the grace period, then KILL.

Input: an id and a deadline. Output: the dead container's state. Next: `containers`, `sandboxes`. Source:
pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from chronolet.kernel.kind import EffectContext
from chronolet.pod.workers.known_containers import MainProcess
from chronolet.pod.workers.timing import Timing
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import ContainerState, Refusal

_SLICE_SECONDS = 1.0
"""How often a wait checks for cancellation."""


def stop_container(
    runtime: FencedRuntime,
    context: EffectContext,
    container_id: str,
    *,
    known: MainProcess | None,
    deadline: int,
    longest_seconds: float,
    timing: Timing,
    watched: Callable[[MainProcess], AbstractContextManager[None]] = lambda _: nullcontext(),
    signalled: Callable[[MainProcess], bool] = lambda _: False,
) -> ContainerState | None:
    """Stop the container; return its state once it is dead, or None if it does not exist or never ran.

    `deadline`: milliseconds since the epoch. The wall clock may have jumped since, so no wait is longer than
    `longest_seconds`; if that is 0, KILL is sent immediately. A repeated stop sends the signal again, even after the
    deadline, because an agent process that was killed may not have sent it. Raises `Refusal` if the container survives
    KILL.

    `known`: the main process as recorded at the start; if None, the container is inspected. The stop runs within
    `watched`. `signalled` may send the stop signal itself; if it returns False, the runtime sends it. KILL always goes
    through the runtime, which also resumes a paused container.

    Only the container's state proves its death. Raises `Refusal` as well if something started it again meanwhile.
    """
    if known is None:
        found = runtime.inspect(container_id)
        if found is None or found.state in ("exited", "created"):
            return found if found is not None and found.state == "exited" else None
        known = MainProcess.of(found)
    left = min(max(deadline / 1000 - time.time(), timing.minimum_grace_seconds), longest_seconds)
    with watched(known):
        send = partial(runtime.kill, container_id, known.stop_signal, partial(signalled, known))
        _end(runtime, context, container_id, send, left, after_kill_seconds=timing.after_kill_seconds)
    dead = runtime.inspect(container_id)
    if dead is not None and dead.state == "running":
        raise Refusal("failed", f"container {container_id} is running again after it was stopped")
    return dead


def _end(
    runtime: FencedRuntime,
    context: EffectContext,
    container_id: str,
    send: Callable[[], None],
    grace: float,
    *,
    after_kill_seconds: float,
) -> None:
    if grace > 0:
        send()
        if _died(runtime, context, container_id, grace):
            return
    runtime.kill(container_id, "KILL")
    if not _died(runtime, context, container_id, after_kill_seconds):
        raise Refusal("failed", f"container {container_id} still runs {after_kill_seconds:.0f} s after KILL")


def _died(runtime: FencedRuntime, context: EffectContext, container_id: str, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if runtime.wait(container_id, min(left, _SLICE_SECONDS)):
            return True
        if context.cancelled.is_set():
            # The fence raises, which ends this effect without a result.
            context.fence("docker.kill")
    return False
