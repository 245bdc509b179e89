"""Converts the pods' states to Pod objects of the Kubernetes API.

Input: a `Moment`. Output: v1 Pods with status, as plain data, ordered by namespace and name. Next: the page /pods,
and the CLI. Source: pkg/kubelet/kubelet_pods.go (convertStatusToAPIStatus).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chronolet.history.state import Moment
from chronolet.pod.state import State
from chronolet.pod.status.status import plain_status, rfc3339
from chronolet_schemas import podspec

if TYPE_CHECKING:  # most callers that read pods do not need the devices kind
    from chronolet.devices.state import State as Devices

Object = dict[str, Any]

_NODE = "node"
"""Key of the only entity of the kind `devices`."""


def api_pods(moment: Moment, node: str) -> list[Object]:
    """Return all pods of the moment as API objects, ordered by namespace and name."""
    states = moment.states["pod"]
    return [_api_pod(states[key], node, moment) for key in sorted(states) if states[key].uid]


class PodObjects:
    """Converts the pods of successive moments to API objects, reusing those of unchanged pods. Not thread-safe."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._written: dict[str, tuple[State, Devices | None, Object]] = {}

    def of(self, moment: Moment) -> list[Object]:
        """Return all pods of the moment as API objects, like `api_pods`."""
        devices = moment.states.get("devices", {}).get(_NODE)
        known, self._written = self._written, {}
        for key, state in sorted(moment.states["pod"].items()):
            if state.uid:
                self._written[key] = (state, devices, self._object(known.get(key), state, devices, moment))
        return [written for _, _, written in self._written.values()]

    def _object(
        self, known: tuple[State, Devices | None, Object] | None, state: State, devices: Devices | None, moment: Moment
    ) -> Object:
        if known is None or known[0] is not state or known[1] is not devices:
            return _api_pod(state, self._node, moment)
        return {**known[2], "metadata": {**known[2]["metadata"], "resourceVersion": str(moment.position)}}


def api_pod(moment: Moment, node: str, key: str) -> Object | None:
    """Return the pod whose key (namespace/name) is `key`, as an API object; None if there is none."""
    state = moment.states["pod"].get(key)
    return _api_pod(state, node, moment) if state is not None and state.uid else None


def _api_pod(state: State, node: str, moment: Moment) -> Object:
    plain = podspec.to_plain(state.manifest)
    metadata = {
        **plain.get("metadata", {}),
        "uid": state.uid,
        "creationTimestamp": rfc3339(state.accepted_at),
        "resourceVersion": str(moment.position),
    }
    if state.termination:
        metadata["deletionTimestamp"] = rfc3339(state.termination.deadline)
        metadata["deletionGracePeriodSeconds"] = state.termination.grace_period_seconds
    status = _with_devices(plain_status(state), state.uid, moment)
    return {**plain, "metadata": metadata, "spec": {**plain["spec"], "nodeName": node}, "status": status}


def _with_devices(status: Object, uid: str, moment: Moment) -> Object:
    """Add the health of each container's devices to the status, if the moment includes the devices kind.

    Source: UpdateAllocatedResourcesStatus in pkg/kubelet/cm/devicemanager/manager.go.
    """
    known: Devices | None = moment.states.get("devices", {}).get(_NODE)
    if known is None:
        return status
    held = {claim.container: claim.devices() for claim in known.of_pod(uid)}
    for field in ("containerStatuses", "initContainerStatuses"):
        for one in status.get(field, ()):
            if held.get(one["name"]):
                one["allocatedResourcesStatus"] = [
                    {"name": name, "resources": [_health(known, name, device) for device in ids]}
                    for name, ids in sorted(held[one["name"]].items())
                ]
    return status


def _health(known: Devices, resource: str, device: str) -> Object:
    from chronolet.devices.capacity import health  # noqa: PLC0415 - see above

    return {"resourceID": device, "health": health(known, resource, device)}
