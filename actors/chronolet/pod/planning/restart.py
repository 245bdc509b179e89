"""Decides whether a container should be started or restarted. Pure.

Input: the pod's policy and the container's observed state. Output: a bool. Next: `actions`. Source:
pkg/kubelet/container/helpers.go (ShouldContainerBeRestarted).
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.podspec import RestartPolicy

ObservedState = Literal["never_seen", "created", "unknown", "running", "exited"]


def restart_decision(policy: RestartPolicy, seen: ObservedState, exit_code: int = 0) -> bool:
    """Whether a container that is not running should be started now, in a pod that should be running. A container that
    has never run is started under any policy.
    """
    if seen != "exited" or policy == "Always":
        return True
    return policy == "OnFailure" and exit_code != 0
