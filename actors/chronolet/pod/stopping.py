"""Stopping one container: its image's signal, its grace, KILL.

Comes in: an id and a deadline. Goes out: the dead container's state. Next: `effects`. Answers to
pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from chronolet.kernel.kind import EffectContext
from chronolet.pod.recent import Begun
from chronolet.pod.termination import MINIMUM_GRACE_SECONDS
from chronolet.ports.fenced import FencedRuntime
from chronolet.ports.runtime import ContainerState, Refusal

_SLICE_SECONDS = 1.0
"""How long a wait holds on to its thread before it looks whether anybody still wants it."""
_AFTER_KILL_SECONDS = 20.0


def stopped(
    runtime: FencedRuntime,
    context: EffectContext,
    container_id: str,
    *,
    known: Begun | None,
    deadline: int,
    longest_seconds: float,
    watched: Callable[[Begun], AbstractContextManager[None]] = lambda _: nullcontext(),
    signalled: Callable[[Begun], bool] = lambda _: False,
) -> ContainerState | None:
    """The container when it is dead, None if there is none (or it never ran). `deadline` in milliseconds.

    The wall clock may have jumped since the deadline was set, so no wait is longer than `longest_seconds`. A repeat
    sends the signal again, also after the deadline (of a stop in which we were killed): whether the first one came
    through cannot be known. With no seconds at all it is KILL at once. `Refusal` if even KILL did not help.

    `known`: what is known of the container since its start; if nothing is, the runtime is asked. It is stopped within
    `watched`. `signalled` may send the stop signal by itself; if it returns False, the runtime does. KILL is always
    the runtime's, which also resumes a paused container for it.
    """
    if known is None:
        found = runtime.inspect(container_id)
        if found is None or found.state in ("exited", "created"):
            return found if found is not None and found.state == "exited" else None
        known = Begun.of(found)
    left = min(max(deadline / 1000 - time.time(), MINIMUM_GRACE_SECONDS), longest_seconds)
    with watched(known):
        ask = partial(runtime.kill, container_id, known.stop_signal, partial(signalled, known))
        _end(runtime, context, container_id, ask, left)
    return runtime.inspect(container_id)


def _end(
    runtime: FencedRuntime, context: EffectContext, container_id: str, ask: Callable[[], None], grace: float
) -> None:
    if grace > 0:
        ask()
        if _died(runtime, context, container_id, grace):
            return
    runtime.kill(container_id, "KILL")
    if not _died(runtime, context, container_id, _AFTER_KILL_SECONDS):
        raise Refusal("failed", f"container {container_id} still runs {_AFTER_KILL_SECONDS:.0f} s after KILL")


def _died(runtime: FencedRuntime, context: EffectContext, container_id: str, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if runtime.wait(container_id, min(left, _SLICE_SECONDS)):
            return True
        if context.cancelled.is_set():
            # The fence tells the kernel; it is what ends this effect without an answer.
            context.fence("docker.kill")
    return False
