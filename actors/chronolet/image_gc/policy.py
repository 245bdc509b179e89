"""Validates the settings of image collection, and computes how much has to be freed. Pure.

Source: pkg/kubelet/images/image_gc_manager.go (NewImageGCManager), pkg/kubelet/kubelet.go (StartGarbageCollection).
"""

from __future__ import annotations

from chronolet_schemas.image_gc import Policy

_ALL = 100


def problem(policy: Policy) -> str:
    """Return why the policy is invalid; empty if it is valid."""
    high, low = policy.high_threshold_percent, policy.low_threshold_percent
    for name, found in (("high threshold", high), ("low threshold", low)):
        if not 0 <= found <= _ALL:
            return f"{name}: found {found}, expected a percentage from 0 to 100"
    if low >= high:
        return f"low threshold: found {low}, expected less than the high threshold, {high}"
    if policy.min_age_milliseconds < 0:
        return f"minimum age: found {policy.min_age_milliseconds} ms, expected 0 or more"
    if policy.max_age_milliseconds < 0:
        return f"maximum age: found {policy.max_age_milliseconds} ms, expected 0 (none) or more"
    if 0 < policy.max_age_milliseconds <= policy.min_age_milliseconds:
        return f"maximum age: found {policy.max_age_milliseconds} ms, expected more than the minimum age"
    return ""


def collects(policy: Policy) -> bool:
    """Whether there are periodic runs: a high threshold of 100 disables them, unless a maximum age is set."""
    return policy.high_threshold_percent != _ALL or policy.max_age_milliseconds > 0


def usage_percent(capacity_bytes: int, available_bytes: int) -> int:
    """Return the disk usage in percent, rounded up."""
    return _ALL - available_bytes * _ALL // capacity_bytes


def wanted_bytes(policy: Policy, capacity_bytes: int, available_bytes: int) -> int:
    """Return the number of bytes to free to reach the low threshold; 0 while usage is below the high threshold."""
    if usage_percent(capacity_bytes, available_bytes) < policy.high_threshold_percent:
        return 0
    return max(capacity_bytes * (_ALL - policy.low_threshold_percent) // _ALL - available_bytes, 0)
