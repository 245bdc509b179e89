"""The reasons shown for pods and containers that wait for admission or were rejected. Pure.

Input: State. Output: reason and message. Next: `status`. CLI commands load this module too, so it imports
`device_claims` only when it needs it.
"""

from __future__ import annotations

from chronolet.pod.state import Container, State

REJECTED = "Pod was rejected: "
"""Prefix of the message of a rejected pod."""
WAITING = "WaitingForDevices"
"""The reason shown for a container that waits for devices. The kubelet has no such reason: it rejects the pod."""
WAITING_FOR_PORTS = "WaitingForHostPorts"
"""The reason shown for a pod that waits for host ports held by another pod. The kubelet has no such reason: it rejects
the pod."""

_NO_DEVICES_KIND = "this node cannot allocate devices: it does not host the kind `devices`"


def waiting_reason(state: State, one: Container) -> tuple[str, str]:
    """Return why a container waits for admission, alone or with its pod: reason and message, both empty if it does not
    wait.
    """
    if one.alive or state.over:
        return "", ""
    if state.share.phase == "awaited":
        return WAITING_FOR_PORTS, state.share.message
    devices_wait = _device_wait(state, one)
    return (WAITING, devices_wait) if devices_wait else ("", "")


def _device_wait(state: State, one: Container) -> str:
    if state.admission is not None and "devices" not in state.admission and _needs_devices(state, one):
        return _NO_DEVICES_KIND
    own = state.wishes.get(one.name)
    if own is not None and own.phase == "awaited":
        return own.message
    if state.sandbox.phase == "running":
        return ""
    others = ((name, claim) for name, claim in state.wishes.items() if claim.phase == "awaited")
    return next((f"container {name} is {claim.message}" for name, claim in others), "")


def _needs_devices(state: State, one: Container) -> bool:
    from chronolet.pod.admission import device_claims  # noqa: PLC0415 - few pods wait

    return one.name in device_claims.needs(state)
