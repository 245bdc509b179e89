"""Build the events about a claim. Pure.

Input: Context, a claim, what happened. Output: one event. Next: the other modules of this folder, which return the
events.
"""

from __future__ import annotations

from chronolet.devices.claims.allocation import Problem
from chronolet.devices.context import Context
from chronolet.devices.state import Claim
from chronolet.rules.refs import ContainerOfPod
from chronolet_schemas import devices


class _Request(ContainerOfPod):
    role: devices.Role
    wants: dict[str, int]
    at: int


def ref(claim: Claim) -> ContainerOfPod:
    """Return a reference to the claim's container."""
    return ContainerOfPod(pod=claim.pod, uid=claim.uid, container=claim.container)


def request(context: Context, claim: Claim) -> _Request:
    """Return the event fields that identify the claim's container, its request and the time."""
    return _Request(**ref(claim), role=claim.role, wants=claim.wants, at=context.now)


def pending(
    context: Context, claim: Claim, resource: str, reason: str, message: str, *, retry_at: int = 0
) -> devices.DevicesPending:
    """Return the event that reports why this claim cannot be allocated yet."""
    return devices.DevicesPending(
        **request(context, claim), resource=resource, reason=reason, message=message, retry_at=retry_at
    )


def chosen(context: Context, claim: Claim, resource: str, ids: tuple[str, ...]) -> devices.DevicesChosen:
    """Return the event that assigns these devices to the container. The plugin is then asked to allocate them."""
    return devices.DevicesChosen(**request(context, claim), resource=resource, devices=ids)


def refused(claim: Claim, resource: str, problem: Problem) -> devices.DevicesRefused:
    """Return the event that refuses the claim, with the problem's text."""
    return devices.DevicesRefused(**ref(claim), resource=resource, reason=problem.error, message=problem.message)
