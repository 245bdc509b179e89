"""Selects the run of a container whose output is to be printed.

Input: a pod's container. Output: the runtime's id of the run, or a Failure with the kubelet's wording. Next: `logs`.
Source: pkg/kubelet (validateContainerLogStatus).
"""

from __future__ import annotations

from typing import Any

from chronolet.cli.containers.parts import Part
from chronolet.cli.errors import Failure
from chronolet.cli.get import pod_rows

Object = dict[str, Any]

_UNPULLED = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def run_of(part: Part, pod: str, *, previous: bool) -> str:
    """Return the container id of the current run, or of the previous run if `previous` is set or no run is current.
    Raises Failure if there is no such run.
    """
    about = f'container "{part.name}" in pod "{pod}"'
    if not part.status:
        raise Failure(f"{about} is not available")
    state, last = part.status.get("state", {}), _last(part.status)
    if previous:
        if not last:
            raise Failure(f"previous terminated {about} not found")
        return last
    own = _own(part.status, state)
    if own or last:
        return own or last
    if "terminated" in state or "terminated" in part.status.get("lastState", {}):
        raise Failure(f"{about} is terminated")
    raise Failure(_why(about, state.get("waiting", {}).get("reason", "")))


def _own(status: Object, state: Object) -> str:
    if "running" in state:
        return pod_rows.bare_id(status.get("containerID", ""))
    return pod_rows.bare_id(state.get("terminated", {}).get("containerID", ""))


def _last(status: Object) -> str:
    return pod_rows.bare_id(status.get("lastState", {}).get("terminated", {}).get("containerID", ""))


def _why(about: str, reason: str) -> str:
    if not reason:
        return f"{about} is waiting to start - no logs yet"
    return f"{about} is waiting to start: {_UNPULLED.get(reason, reason)}"
