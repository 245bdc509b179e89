"""How long a pod may live (activeDeadlineSeconds). Pure.

Comes in: State, now. Goes out: when it ends, and the kubelet's words. Next: `plan`, `waits`. Source:
pkg/kubelet/active_deadline.go.
"""

from __future__ import annotations

from chronolet.pod.state import State

DEADLINE_EXCEEDED = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def deadline(state: State) -> int:
    """When the pod's time is over (milliseconds), counted from when it was accepted; 0 if it has all the time."""
    seconds = state.manifest.spec.active_deadline_seconds
    return state.accepted_at + seconds * 1000 if seconds is not None and state.failure is None else 0


def deadline_passed(state: State, now: int) -> bool:
    """Its time is over."""
    end = deadline(state)
    return bool(end) and now >= end
