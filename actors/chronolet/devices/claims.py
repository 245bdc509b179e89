"""What becomes of a container's wish for devices. Pure.

Comes in: State, a claim that waits. Goes out: what follows for it, nothing if it goes on waiting as before. Next:
`decider`. `allocation` says which devices, or what stands in the way; here it is decided whether that is a refusal or
only "not yet". Source: pkg/kubelet/cm/devicemanager/manager.go (allocateContainerResources).

The kubelet lets in one pod after the other. Here they are let in side by side, so a claim that is short of devices
waits for those of its resource that are being allocated, for they may come back; and the containers of one pod are
served one after the other, for init containers leave their devices to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from chronolet.devices import topology
from chronolet.devices.allocation import Chosen, Problem, Question, Request, Stock, problem_of, selection
from chronolet.devices.state import Claim, Device, Resource, State
from chronolet_schemas import devices

ClaimEvent = devices.ClaimEvent


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How the node is set. `node` is its name, for KubeEvents about it.

    `wait_for_resources`: what a plugin may yet bring is waited for; else the pod is refused, as the kubelet does.
    """

    node: str = ""
    wait_for_resources: bool = True
    topology: Literal["none", "best-effort"] = "none"


WAITED_FOR = frozenset(("unregistered_resource", "no_healthy_devices", "recorded_devices_unhealthy"))
"""The problems that end when a plugin registers, or a device is well again. The others end when a pod does."""


class Desk:
    """One look at the claims: the state with what follows from it so far, and what is healthy, found out once."""

    def __init__(self, state: State, policy: Policy, now: int) -> None:
        self.state = state
        self.policy = policy
        self.now = now
        self._healthy: dict[str, Mapping[str, Device]] = {}

    def healthy(self, name: str) -> Mapping[str, Device] | None:
        """The healthy devices of a resource, None where no plugin is known. Plugins do not change during one look."""
        resource = self.state.resources.get(name)
        if resource is None:
            return None
        if name not in self._healthy:
            self._healthy[name] = resource.healthy()
        return self._healthy[name]


def advance(desk: Desk, claim: Claim) -> Sequence[ClaimEvent]:
    """What follows for a claim that waits."""
    if claim.retry_at > desk.now:
        return ()
    if _others_first(desk.state, claim):
        return _pending(desk, claim, claim.resource, "in_turn", "waiting for the containers before it")
    for name in sorted(claim.wants):
        found = _of_resource(desk, claim, name)
        if found is not None:
            return found
    return (devices.DevicesAllocated(**_who(claim), earlier=claim.held),)


def _others_first(state: State, claim: Claim) -> bool:
    """Containers of the pod that came before it, and are not served yet."""
    for other in state.of_pod(claim.uid):
        if other.container == claim.container:
            return False
        if other.phase != "granted":
            return True
    return False


def _of_resource(desk: Desk, claim: Claim, name: str) -> Sequence[ClaimEvent] | None:
    """What follows of one resource; None if nothing has to be done about it any more."""
    recorded = _recorded(claim, name)
    if recorded is None and not desk.policy.wait_for_resources and not desk.state.known(name):
        return None  # as the kubelet has it: a resource that no plugin ever spoke of is none of the plugins'
    problem = _problem(desk, claim, name, recorded)
    if problem is not None:
        return _troubled(desk, claim, name, problem)
    if name in claim.held or not claim.wants[name]:
        return None
    return _asked(desk, claim, name)


def _problem(desk: Desk, claim: Claim, name: str, recorded: Sequence[str] | None) -> Problem | None:
    request = Request(
        uid=claim.uid,
        container=claim.container,
        resource=name,
        requested=claim.wants[name],
        recorded=recorded,
        running=name in claim.adopted,
    )
    return problem_of(request, desk.healthy(name))


def _recorded(claim: Claim, name: str) -> tuple[str, ...] | None:
    if name in claim.adopted:
        return claim.adopted[name]
    return claim.held[name].devices if name in claim.held else None


def _asked(desk: Desk, claim: Claim, name: str) -> Sequence[ClaimEvent]:
    """What is to be asked of the plugin next."""
    resource = desk.state.resources.get(name)
    if resource is None or not resource.heard:
        return _pending(desk, claim, name, "plugin_away", f"waiting for the device plugin of {name}")
    if resource.options is None:
        return _pending(desk, claim, name, "options_unknown", f"waiting for what the plugin of {name} says of itself")
    if name in claim.adopted:
        return (_chosen(desk, claim, name, claim.adopted[name]),)
    if _under_way(desk.state, claim, name, "preferring"):
        return _in_turn(desk, claim, name)
    return _choice(desk, claim, name, resource)


def preference(desk: Desk, claim: Claim, resource: Resource, preferred: Iterable[str]) -> Sequence[ClaimEvent]:
    """What follows from the devices that the plugin would give, by what is healthy by now.

    A plugin that has registered again meanwhile, and has listed nothing yet, is waited for as one that was never asked.
    """
    name = claim.resource
    problem = _problem(desk, claim, name, _recorded(claim, name))
    if problem is not None:
        return _troubled(desk, claim, name, problem)
    return _choice(desk, claim, name, resource, preferred)


def _choice(
    desk: Desk, claim: Claim, name: str, resource: Resource, preferred: Iterable[str] | None = None
) -> Sequence[ClaimEvent]:
    """Devices for the claim; or the question to the plugin which it prefers, which it may have answered."""
    offers = resource.options is not None and resource.options.preferred_allocation
    stock = _stock(desk, claim, name)
    found = selection(name, claim.wants[name], stock, offers=offers, preferred=preferred)
    match found:
        case Chosen():
            return (_chosen(desk, claim, name, tuple(found.devices)),)
        case Question():
            return (
                devices.PreferenceAsked(
                    **_wish(desk, claim),
                    resource=name,
                    must_include=tuple(found.must_include),
                    size=found.size,
                    near=tuple(sorted(stock.affinity or ())) if found.aligned else (),
                ),
            )
        case _:
            return _troubled(desk, claim, name, found)


def _stock(desk: Desk, claim: Claim, name: str) -> Stock:
    free = available(desk.state, name, desk.healthy(name) or {})
    if desk.policy.topology == "none":
        return Stock(free, reusable(desk.state, claim, name))
    return Stock(free, reusable(desk.state, claim, name), nodes_of(desk.state, name), _affinity(desk, claim))


def available(state: State, name: str, healthy: Iterable[str]) -> list[str]:
    """The healthy devices that nobody holds."""
    held = state.holders(name)
    return [device for device in healthy if device not in held]


def reusable(state: State, claim: Claim, name: str) -> frozenset[str]:
    """What init containers of the pod leave: no sidecar and no app container has it, nor the claim itself."""
    left: set[str] = set()
    taken: set[str] = set()
    for other in state.of_pod(claim.uid):
        own = other.devices().get(name, ())
        (left if other.role == "init" and other.container != claim.container else taken).update(own)
    return frozenset(left - taken)


def nodes_of(state: State, name: str) -> topology.Nodes:
    """The NUMA nodes of every device of a resource."""
    resource = state.resources.get(name)
    return {} if resource is None else {device: one.nodes for device, one in resource.devices.items()}


def _affinity(desk: Desk, claim: Claim) -> frozenset[int] | None:
    nodes = {name: nodes_of(desk.state, name) for name in claim.wants}
    numa = sorted({node for table in nodes.values() for near in table.values() for node in near})
    return topology.best([_hints(desk, claim, name, nodes[name], numa) for name in sorted(nodes)], numa)


def _hints(
    desk: Desk, claim: Claim, name: str, nodes: topology.Nodes, numa: Sequence[int]
) -> Sequence[topology.Hint] | None:
    recorded = _recorded(claim, name)
    left = reusable(desk.state, claim, name) if recorded is None else frozenset()
    usable = recorded if recorded is not None else {*available(desk.state, name, desk.healthy(name) or {}), *left}
    return topology.hints(numa_nodes=numa, nodes=nodes, usable=usable, reusable=left, requested=claim.wants[name])


def _troubled(desk: Desk, claim: Claim, name: str, problem: Problem) -> Sequence[ClaimEvent]:
    """A refusal, or a reason to wait."""
    if problem.error == "insufficient_devices" and _under_way(desk.state, claim, name, "allocating"):
        return _in_turn(desk, claim, name)
    if desk.policy.wait_for_resources and problem.error in WAITED_FOR:
        return _pending(desk, claim, name, problem.error, _waits_for(claim, name, problem))
    return (refused(claim, name, problem),)


def refused(claim: Claim, name: str, problem: Problem) -> devices.DevicesRefused:
    """The end of a wish."""
    return devices.DevicesRefused(**_who(claim), resource=name, reason=problem.error, message=problem.message)


def _waits_for(claim: Claim, name: str, problem: Problem) -> str:
    match problem.error:
        case "unregistered_resource":
            return f"waiting for a device plugin that registers {name}"
        case "no_healthy_devices":
            return f"waiting for a healthy device of {name}"
        case _:
            return f"waiting for its devices of {name} to be healthy again: {', '.join(_recorded(claim, name) or ())}"


def _in_turn(desk: Desk, claim: Claim, name: str) -> Sequence[ClaimEvent]:
    return _pending(desk, claim, name, "in_turn", f"waiting for others that are being given devices of {name}")


def _under_way(state: State, claim: Claim, name: str, phase: str) -> bool:
    """Whether others are in this phase with the resource."""
    mine = claim.id
    others = (state.claims[key] for key in state.open if key != mine)
    return any(other.phase == phase and other.resource == name for other in others)


def _pending(desk: Desk, claim: Claim, name: str, reason: str, message: str) -> Sequence[ClaimEvent]:
    """It waits; said if it is news."""
    known = desk.state.claims.get(claim.id)
    news = (name, reason, message, 0, "waiting")
    if known is not None and (known.resource, known.reason, known.message, known.retry_at, known.phase) == news:
        return ()
    return (pending(desk, claim, name, reason, message),)


def pending(
    desk: Desk, claim: Claim, name: str, reason: str, message: str, *, retry_at: int = 0
) -> devices.DevicesPending:
    """Not yet."""
    return devices.DevicesPending(
        **_wish(desk, claim), resource=name, reason=reason, message=message, retry_at=retry_at
    )


def _chosen(desk: Desk, claim: Claim, name: str, ids: tuple[str, ...]) -> devices.DevicesChosen:
    return devices.DevicesChosen(**_wish(desk, claim), resource=name, devices=ids)


def _who(claim: Claim) -> dict[str, Any]:
    return {"pod": claim.pod, "uid": claim.uid, "container": claim.container}


def _wish(desk: Desk, claim: Claim) -> dict[str, Any]:
    return {**_who(claim), "role": claim.role, "wants": claim.wants, "at": desk.now}


def waiting(state: State) -> Iterator[Claim]:
    """The claims that wait, in the order in which they came."""
    for key in state.open:
        claim = state.claims[key]
        if claim.phase == "waiting":
            yield claim
