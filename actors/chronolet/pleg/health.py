"""Pleg's health: it is healthy while listings succeed. Pure.

Input: when the last successful listing began, the current time, and the threshold for its age; all in milliseconds.
Output: the problem, in the kubelet's wording. Next: `decider`, which turns it into an event, and the node's /healthz.
Source: pkg/kubelet/pleg/generic.go (Healthy).
"""

from __future__ import annotations

NEVER = "pleg has yet to be successful"


def illness(listed_at: int | None, now: int, threshold: int) -> str:
    """Return why pleg is unhealthy; empty if it is healthy. A listing exactly as old as the threshold is not yet too
    old.
    """
    if listed_at is None:
        return NEVER
    age = now - listed_at
    if age <= threshold:
        return ""
    return f"pleg was last seen active {go_duration(age)} ago; threshold is {go_duration(threshold)}"


def ill_from(listed_at: int, threshold: int) -> int:
    """Return the first moment at which a listing that began at `listed_at` is too old."""
    return listed_at + threshold + 1


def go_duration(milliseconds: int) -> str:
    """Format a duration as Go prints it, truncated to seconds: 3m0s."""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}s"
