"""Whether pleg is healthy: it is while listings work. Pure.

Comes in: when the last listing that worked began, now, and how long that may be ago. Goes out: what is wrong, in the
kubelet's words. Next: `decider`, which makes an event of it, and the node's /healthz. Times and spans in milliseconds.
Source: pkg/kubelet/pleg/generic.go (Healthy).
"""

from __future__ import annotations

NEVER = "pleg has yet to be successful"


def illness(listed_at: int | None, now: int, threshold: int) -> str:
    """Why pleg is not healthy, empty if it is. A listing as old as the threshold still counts."""
    if listed_at is None:
        return NEVER
    age = now - listed_at
    if age <= threshold:
        return ""
    return f"pleg was last seen active {go_duration(age)} ago; threshold is {go_duration(threshold)}"


def ill_from(listed_at: int, threshold: int) -> int:
    """The first moment at which a listing is too old."""
    return listed_at + threshold + 1


def go_duration(milliseconds: int) -> str:
    """As Go prints a duration, to the second: 3m0s."""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}s"
