"""What the settings of the collection of containers may say. Pure. Source: pkg/kubelet/container/container_gc.go."""

from __future__ import annotations

from chronolet_schemas.container_gc import Policy


def problem(policy: Policy) -> str:
    """Why the policy cannot be used; empty if it can."""
    if policy.min_age_milliseconds < 0:
        return f"minimum age: found {policy.min_age_milliseconds} ms, expected 0 or more"
    return ""
