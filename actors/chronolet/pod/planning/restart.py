"""Whether a container is to be (re)started. Pure.

Comes in: the pod's policy and what the container is. Goes out: yes or no. Next: `actions`. Source:
pkg/kubelet/container/ helpers.go (ShouldContainerBeRestarted).
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.podspec import RestartPolicy

ObservedState = Literal["never_seen", "created", "unknown", "running", "exited"]


def restart_decision(policy: RestartPolicy, seen: ObservedState, exit_code: int = 0) -> bool:
    """True if a container that does not run, of a pod that is to run, should be started now. One that never came to
    run is started under any policy.
    """
    if seen != "exited" or policy == "Always":
        return True
    return policy == "OnFailure" and exit_code != 0
