"""A pod's deadline (activeDeadlineSeconds). Pure.

Input: State, now. Output: the deadline, and the kubelet's texts. Next: `plan`, `waits`. Source:
pkg/kubelet/active_deadline.go.
"""

from __future__ import annotations

from chronolet.pod.state import State

DEADLINE_EXCEEDED = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def deadline(state: State) -> int:
    """Return when the pod exceeds its deadline (milliseconds), counted from its acceptance; 0 if it has none or has
    failed.
    """
    seconds = state.manifest.spec.active_deadline_seconds
    return state.accepted_at + seconds * 1000 if seconds is not None and state.failure is None else 0


def deadline_passed(state: State, now: int) -> bool:
    """Whether the pod has exceeded its deadline."""
    end = deadline(state)
    return bool(end) and now >= end
