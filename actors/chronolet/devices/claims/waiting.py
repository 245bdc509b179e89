"""Advance a container's claim for devices. Pure.

Input: State, a waiting claim. Output: the events that follow; none if it keeps waiting as before. Next: `decider`.
`allocation` picks the devices or names the problem; this module decides whether a problem refuses the claim or only
delays it. Source: pkg/kubelet/cm/devicemanager/manager.go (allocateContainerResources).

The kubelet admits one pod at a time. Here pods are admitted concurrently, so a claim that is short of devices waits for
other allocations of its resource to finish, since those may return devices. The containers of one pod are served in
order, because init containers leave their devices to the next container.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from chronolet.devices.claims import topology
from chronolet.devices.claims.allocation import Chosen, Problem, Question, Request, Stock, problem_of, selection
from chronolet.devices.state import Claim, Device, Resource, State
from chronolet.rules.refs import ContainerOfPod
from chronolet_schemas import devices

ClaimEvent = devices.ClaimEvent


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the node. `node` is its name, for KubeEvents about it.

    `wait_for_resources`: a claim waits for what a plugin may still provide; otherwise the pod is refused, as by the
    kubelet.
    """

    node: str = ""
    wait_for_resources: bool = True
    topology: Literal["none", "best-effort"] = "none"


WAITED_FOR = frozenset(("unregistered_resource", "no_healthy_devices", "recorded_devices_unhealthy"))
"""Problems that end when a plugin registers or a device recovers. The others end when a pod does."""


class ClaimContext:
    """One pass over the claims: the state as advanced so far, and the healthy devices, computed once."""

    def __init__(self, state: State, policy: Policy, now: int) -> None:
        self.state = state
        self.policy = policy
        self.now = now
        self._healthy: dict[str, Mapping[str, Device]] = {}

    def healthy(self, name: str) -> Mapping[str, Device] | None:
        """The healthy devices of a resource, None if no plugin is known. Plugins do not change during one pass."""
        resource = self.state.resources.get(name)
        if resource is None:
            return None
        if name not in self._healthy:
            self._healthy[name] = resource.healthy()
        return self._healthy[name]


def advance(context: ClaimContext, claim: Claim) -> Sequence[ClaimEvent]:
    """Return the events that follow for a waiting claim."""
    if claim.retry_at > context.now:
        return ()
    if _waits_for_earlier(context.state, claim):
        return _pending(context, claim, claim.resource, "in_turn", "waiting for earlier containers of the pod")
    for name in sorted(claim.wants):
        found = _advance_resource(context, claim, name)
        if found is not None:
            return found
    return (devices.DevicesAllocated(**_ref(claim), earlier=claim.held),)


def _waits_for_earlier(state: State, claim: Claim) -> bool:
    """Whether an earlier container of the pod has not been granted its devices yet."""
    for other in state.of_pod(claim.uid):
        if other.container == claim.container:
            return False
        if other.phase != "granted":
            return True
    return False


def _advance_resource(context: ClaimContext, claim: Claim, name: str) -> Sequence[ClaimEvent] | None:
    """Return the events that follow for one resource; None if nothing is left to do for it."""
    recorded = _recorded(claim, name)
    if recorded is None and not context.policy.wait_for_resources and not context.state.known(name):
        return None  # as in the kubelet: a resource that no plugin ever offered is not a plugin resource
    problem = _problem(context, claim, name, recorded)
    if problem is not None:
        return _refuse_or_wait(context, claim, name, problem)
    if name in claim.held or not claim.wants[name]:
        return None
    return _next_step(context, claim, name)


def _problem(context: ClaimContext, claim: Claim, name: str, recorded: Sequence[str] | None) -> Problem | None:
    request = Request(
        uid=claim.uid,
        container=claim.container,
        resource=name,
        requested=claim.wants[name],
        recorded=recorded,
        running=name in claim.adopted,
    )
    return problem_of(request, context.healthy(name))


def _recorded(claim: Claim, name: str) -> tuple[str, ...] | None:
    if name in claim.adopted:
        return claim.adopted[name]
    return claim.held[name].devices if name in claim.held else None


def _next_step(context: ClaimContext, claim: Claim, name: str) -> Sequence[ClaimEvent]:
    """Return the next step for the plugin: a choice of devices, a question, or a reason to wait."""
    resource = context.state.resources.get(name)
    if resource is None or not resource.has_plugin:
        return _pending(context, claim, name, "plugin_away", f"waiting for the device plugin of {name}")
    if resource.options is None:
        return _pending(
            context, claim, name, "options_unknown", f"waiting for the options of the device plugin of {name}"
        )
    if name in claim.adopted:
        return (_chosen(context, claim, name, claim.adopted[name]),)
    if _under_way(context.state, claim, name, "preferring"):
        return _in_turn(context, claim, name)
    return _choice(context, claim, name, resource)


def preference(
    context: ClaimContext, claim: Claim, resource: Resource, preferred: Iterable[str]
) -> Sequence[ClaimEvent]:
    """Return what follows from the plugin's preferred devices, checked against what is healthy now.

    A plugin that has registered again and not listed any device yet is waited for like one that was never asked.
    """
    name = claim.resource
    problem = _problem(context, claim, name, _recorded(claim, name))
    if problem is not None:
        return _refuse_or_wait(context, claim, name, problem)
    return _choice(context, claim, name, resource, preferred)


def _choice(
    context: ClaimContext, claim: Claim, name: str, resource: Resource, preferred: Iterable[str] | None = None
) -> Sequence[ClaimEvent]:
    """Choose devices for the claim, or ask the plugin which it prefers if `preferred` is None and it offers that."""
    offers = resource.options is not None and resource.options.preferred_allocation
    stock = _stock(context, claim, name)
    found = selection(name, claim.wants[name], stock, offers=offers, preferred=preferred)
    match found:
        case Chosen():
            return (_chosen(context, claim, name, tuple(found.devices)),)
        case Question():
            return (
                devices.PreferenceAsked(
                    **_request(context, claim),
                    resource=name,
                    must_include=tuple(found.must_include),
                    size=found.size,
                    near=tuple(sorted(stock.affinity or ())) if found.aligned else (),
                ),
            )
        case _:
            return _refuse_or_wait(context, claim, name, found)


def _stock(context: ClaimContext, claim: Claim, name: str) -> Stock:
    free = available(context.state, name, context.healthy(name) or {})
    if context.policy.topology == "none":
        return Stock(free, reusable(context.state, claim, name))
    return Stock(free, reusable(context.state, claim, name), nodes_of(context.state, name), _affinity(context, claim))


def available(state: State, name: str, healthy: Iterable[str]) -> list[str]:
    """The healthy devices that no claim holds."""
    held = state.holders(name)
    return [device for device in healthy if device not in held]


def reusable(state: State, claim: Claim, name: str) -> frozenset[str]:
    """Devices that the pod's init containers leave behind: no sidecar, app container or the claim itself holds them."""
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


def _affinity(context: ClaimContext, claim: Claim) -> frozenset[int] | None:
    nodes = {name: nodes_of(context.state, name) for name in claim.wants}
    numa = sorted({node for table in nodes.values() for near in table.values() for node in near})
    return topology.best([_hints(context, claim, name, nodes[name], numa) for name in sorted(nodes)], numa)


def _hints(
    context: ClaimContext, claim: Claim, name: str, nodes: topology.Nodes, numa: Sequence[int]
) -> Sequence[topology.Hint] | None:
    recorded = _recorded(claim, name)
    left = reusable(context.state, claim, name) if recorded is None else frozenset()
    usable = recorded if recorded is not None else {*available(context.state, name, context.healthy(name) or {}), *left}
    return topology.hints(numa_nodes=numa, nodes=nodes, usable=usable, reusable=left, requested=claim.wants[name])


def _refuse_or_wait(context: ClaimContext, claim: Claim, name: str, problem: Problem) -> Sequence[ClaimEvent]:
    """Refuse the claim, or keep it waiting."""
    if problem.error == "insufficient_devices" and _under_way(context.state, claim, name, "allocating"):
        return _in_turn(context, claim, name)
    if context.policy.wait_for_resources and problem.error in WAITED_FOR:
        return _pending(context, claim, name, problem.error, _waiting_for(claim, name, problem))
    return (refused(claim, name, problem),)


def refused(claim: Claim, name: str, problem: Problem) -> devices.DevicesRefused:
    """Refuse the claim with the problem's text."""
    return devices.DevicesRefused(**_ref(claim), resource=name, reason=problem.error, message=problem.message)


def _waiting_for(claim: Claim, name: str, problem: Problem) -> str:
    match problem.error:
        case "unregistered_resource":
            return f"waiting for a device plugin that registers {name}"
        case "no_healthy_devices":
            return f"waiting for a healthy device of {name}"
        case _:
            return f"waiting for its devices of {name} to be healthy again: {', '.join(_recorded(claim, name) or ())}"


def _in_turn(context: ClaimContext, claim: Claim, name: str) -> Sequence[ClaimEvent]:
    return _pending(context, claim, name, "in_turn", f"waiting for other allocations of {name} to finish")


def _under_way(state: State, claim: Claim, name: str, phase: str) -> bool:
    """Whether another claim for the resource is in this phase."""
    mine = claim.id
    others = (state.claims[key] for key in state.open if key != mine)
    return any(other.phase == phase and other.resource == name for other in others)


def _pending(context: ClaimContext, claim: Claim, name: str, reason: str, message: str) -> Sequence[ClaimEvent]:
    """Keep the claim waiting; emit an event only if the reason changed."""
    known = context.state.claims.get(claim.id)
    news = (name, reason, message, 0, "waiting")
    if known is not None and (known.resource, known.reason, known.message, known.retry_at, known.phase) == news:
        return ()
    return (pending(context, claim, name, reason, message),)


def pending(
    context: ClaimContext, claim: Claim, name: str, reason: str, message: str, *, retry_at: int = 0
) -> devices.DevicesPending:
    """Report why this claim cannot be allocated yet."""
    return devices.DevicesPending(
        **_request(context, claim), resource=name, reason=reason, message=message, retry_at=retry_at
    )


def _chosen(context: ClaimContext, claim: Claim, name: str, ids: tuple[str, ...]) -> devices.DevicesChosen:
    return devices.DevicesChosen(**_request(context, claim), resource=name, devices=ids)


class _Request(ContainerOfPod):
    role: devices.Role
    wants: dict[str, int]
    at: int


def _ref(claim: Claim) -> ContainerOfPod:
    return ContainerOfPod(pod=claim.pod, uid=claim.uid, container=claim.container)


def _request(context: ClaimContext, claim: Claim) -> _Request:
    return _Request(**_ref(claim), role=claim.role, wants=claim.wants, at=context.now)


def waiting(state: State) -> Iterator[Claim]:
    """The waiting claims, oldest first."""
    for key in state.open:
        claim = state.claims[key]
        if claim.phase == "waiting":
            yield claim
