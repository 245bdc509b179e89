"""Validates the settings of container collection. Pure. Source: pkg/kubelet/container/container_gc.go."""

from __future__ import annotations

from chronolet_schemas.container_gc import Policy


def problem(policy: Policy) -> str:
    """Return why the policy is invalid; empty if it is valid."""
    if policy.min_age_milliseconds < 0:
        return f"minimum age: found {policy.min_age_milliseconds} ms, expected 0 or more"
    return ""
