"""Decides which pods the node admits and which cgroups it needs. Pure.

Input: the requests and ends of pods and the starts of their containers (`pod`), the machine's resources and the state
of the cgroups (`signals`). Output: events of `qos`, and KubeEvents about lost abilities and failing cgroups. Next:
`pod` handles CgroupReady, HostPortsAwaited and PodRefused; the worker of KeepTree keeps the tree that `outstanding`
names. Source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/cm.

    a pod:  unknown -> waiting -> admitted -> ready -> released       a refused pod is not stored
            unknown ------------> admitted;  ready -> admitted (its needs changed)
            ready -> waiting (it needs a port that another pod holds)

Host ports go to waiting pods in the order of their requests. A waiting pod holds no resources.

In a running container's cgroup, the values that the runtime cannot set are reconciled until another container with the
same name starts.

A pod that is already running is never refused, even if it was running before the log began or if changed settings leave
too little room.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from msgspec.structs import replace

from chronolet.kernel.decider import Decider, Effect
from chronolet.qos import signals, wanted
from chronolet.qos.admission import refusal
from chronolet.qos.state import Share, State
from chronolet.qos.tree import container_values, pod_path
from chronolet.qos.tree import wanted as wanted_tree
from chronolet.rules.names.host_ports import Taken, taken
from chronolet.rules.resources.cgroups import Path, Values, parent_argument, uid_of
from chronolet_schemas import kube_events, pod, qos
from chronolet_schemas.envelope import Event
from chronolet_schemas.resources import PodNeeds

NODE_PORTS = "NodePorts"
"""The kubelet's reason for a pod whose host port is taken (pkg/scheduler/framework/plugins/nodeports)."""

QosMessage = (
    pod.CgroupRequested | pod.ContainerStarted | pod.CgroupReleased | pod.PodEnded | signals.NodeSeen | signals.TreeKept
)
"""Every message that qos handles."""


def decide(state: State, message: QosMessage, now: int) -> Sequence[Event]:
    """Return the events that follow from one message, including those for waiting pods that can now be admitted."""
    found = _facts(state, message, now)
    if not any(isinstance(event, qos.PodReleased | qos.PodAdmitted | qos.NodeDescribed) for event in found):
        return found
    return (*found, *_waiting_admitted(functools.reduce(evolve, found, state), now))


def _facts(state: State, message: QosMessage, now: int) -> Sequence[Event]:
    match message:
        case pod.CgroupRequested():
            return _requested(state, message, now)
        case pod.ContainerStarted():
            return tuple(_started(state, message))
        case pod.CgroupReleased() | pod.PodEnded():
            known = message.uid in state.shares
            return (qos.PodReleased(pod=message.pod, uid=message.uid),) if known else ()
        case signals.NodeSeen():
            return tuple(_described(state, message.node, now)) if message.node != state.node else ()
        case signals.TreeKept():
            return tuple(_tree_kept(state, message))
        case _:
            assert_never(message)


def _requested(state: State, asked: pod.CgroupRequested, now: int) -> Sequence[Event]:
    share = state.shares.get(asked.uid)
    if share is not None and share.needs == asked.needs and not share.asked_at:
        # A repeated request: the first answer may have been lost.
        ready = share.phase == "ready"
        return (qos.CgroupReady(pod=asked.pod, uid=asked.uid, parent=share.parent),) if ready else ()
    if state.node is None:
        return (qos.PodAwaited(pod=asked.pod, uid=asked.uid, needs=asked.needs, running=asked.running),)
    since = share.asked_at if share is not None else 0
    new = Share(pod=asked.pod, needs=asked.needs, phase="waiting", running=asked.running, asked_at=since)
    return tuple(_admitted(state, state.node, asked.uid, new, now))


def _admitted(state: State, node: qos.Node, uid: str, share: Share, now: int) -> Iterator[Event]:
    """Admit or refuse the pod, or let it wait for a port. Without cgroups, it is ready immediately."""
    others = [one.needs for other, one in state.shares.items() if other != uid and one.phase != "waiting"]
    refused = None if share.running else refusal(node, others, share.needs)
    if refused is not None:
        yield qos.PodRefused(pod=share.pod, uid=uid, reason=refused.reason, message=refused.message)
        return
    held = None if share.running else port_held(state, uid, share.needs)
    if held is not None:
        yield _port_held(node, uid, share, held, now)
        return
    yield qos.PodAdmitted(pod=share.pod, uid=uid, needs=share.needs)
    if not node.version:
        yield qos.CgroupReady(pod=share.pod, uid=uid)


def port_held(state: State, uid: str, needs: PodNeeds) -> Taken | None:
    """Return the first host port that this pod needs and another pod holds; None if there is none."""
    others = ((one.pod, one.needs.host_ports) for other, one in sorted(state.shares.items()) if _holds(uid, other, one))
    return taken(needs.host_ports, others)


def _holds(uid: str, other: str, share: Share) -> bool:
    return other != uid and share.phase != "waiting"


def _port_held(node: qos.Node, uid: str, share: Share, held: Taken, now: int) -> Event:
    if not node.wait_for_host_ports:
        return qos.PodRefused(pod=share.pod, uid=uid, reason=NODE_PORTS, message=f"Predicate {NODE_PORTS} failed")
    return qos.HostPortsAwaited(
        pod=share.pod,
        uid=uid,
        needs=share.needs,
        holder=held.holder,
        message=f"host port {held.wanted} is held by pod {held.holder}",
        asked_at=share.asked_at or now,
    )


def _waiting_admitted(state: State, now: int) -> Iterator[Event]:
    """Admit or refuse pods that wait for ports, oldest request first. A pod that waits for a different port or holder
    than before is reported again.
    """
    if state.node is None:
        return
    waiting = ((one.asked_at, uid) for uid, one in state.shares.items() if one.asked_at)
    for _, uid in sorted(waiting):
        share = state.shares[uid]
        for event in _admitted(state, state.node, uid, share, now):
            if not isinstance(event, qos.HostPortsAwaited) or event.message != share.message:
                yield event
                state = evolve(state, event)


def _started(state: State, started: pod.ContainerStarted) -> Iterator[Event]:
    """Record that the container's cgroup must be reconciled from now on, if it has values to enforce or the node is not
    described yet.
    """
    share = state.shares.get(started.uid)
    if share is None or share.containers.get(started.container) == started.id:
        return
    if state.node is None or container_values(state.node, share.needs, started.container) != Values():
        yield qos.ContainerKept(pod=share.pod, uid=started.uid, container=started.container, id=started.id)


def _described(state: State, node: qos.Node, now: int) -> Iterator[Event]:
    """Record the node, report each new entry of its `lost` in a KubeEvent, and decide on the pods that waited for it.
    Without cgroups, admitted pods become ready.
    """
    described = qos.NodeDescribed(node=node)
    yield described
    known = state.node.lost if state.node is not None else ()
    yield from (_of_node(node, lost) for lost in node.lost if lost not in known)
    state = evolve(state, described)
    for uid, share in sorted(state.shares.items()):
        if share.phase == "waiting" and not share.asked_at:
            for event in _admitted(state, node, uid, share, now):
                yield event
                state = evolve(state, event)
        elif share.phase == "admitted" and not node.version:
            yield qos.CgroupReady(pod=share.pod, uid=uid)


def _tree_kept(state: State, kept: signals.TreeKept) -> Iterator[Event]:
    for restored in kept.restored:
        yield qos.CgroupRestored(cgroup=_name(restored.path), changes=restored.changes)
    for removed in kept.removed:
        yield qos.CgroupRemoved(cgroup=_name(removed.path), killed=removed.killed)
    yield from _failures(state, {_name(one.path): one.error for one in kept.failed})
    failed = {one.path for one in kept.failed}
    for uid, share in sorted(state.shares.items()):
        if state.node is None or share.phase != "admitted" or share.since > kept.revision:
            continue
        path = pod_path(state.node, uid, share.needs.qos_class)
        if not any(path[:depth] in failed for depth in range(1, len(path) + 1)):
            parent = parent_argument(path, state.node.driver)
            yield qos.CgroupReady(pod=share.pod, uid=uid, parent=parent)


def _failures(state: State, failed: Mapping[str, str]) -> Iterator[Event]:
    """Report each new error once, and once when it has ended."""
    for cgroup, error in sorted(failed.items()):
        if state.failing.get(cgroup) != error:
            yield qos.CgroupFailing(cgroup=cgroup, error=error)
            yield from _failure_reported(state, cgroup, error)
    for cgroup in sorted(state.failing):
        if cgroup not in failed:
            yield qos.CgroupWorking(cgroup=cgroup)


def _failure_reported(state: State, cgroup: str, error: str) -> Iterator[Event]:
    """Report the error on the pod or the node that owns the cgroup. Source: pkg/kubelet/kubelet.go (syncPod)."""
    if state.node is not None and cgroup == _name(state.node.root):
        yield _of_node(state.node, f'Failed to update Node Allocatable Limits "{cgroup}": {error}')
    uid = uid_of(cgroup.rpartition("/")[2])
    share = state.shares.get(uid or "")
    if uid is not None and share is not None:
        namespace, _, name = share.pod.partition("/")
        yield kube_events.Recorded(
            object_kind="Pod",
            namespace=namespace,
            name=name,
            uid=uid,
            severity="Warning",
            reason="FailedCreatePodContainer",
            message=f"unable to ensure pod container exists: {error}",
        )


def _of_node(node: qos.Node, message: str) -> Event:
    """Return the KubeEvent FailedNodeAllocatableEnforcement for the node.

    Source: pkg/kubelet/cm/node_container_manager_linux.go.
    """
    return kube_events.Recorded(
        object_kind="Node",
        name=node.name,
        uid=node.name,
        severity="Warning",
        reason="FailedNodeAllocatableEnforcement",
        message=message,
    )


def _name(path: Path) -> str:
    return "/".join(path)


def evolve(state: State, event: Event) -> State:  # noqa: C901, PLR0911 - a table, one line for each event
    """Return the state after `event`; events of other kinds change nothing."""
    match event:
        case qos.NodeDescribed():
            return _node_described(state, event.node)
        case qos.PodAwaited():
            new = Share(pod=event.pod, needs=event.needs, phase="waiting", running=event.running)
            return replace(state, shares=state.shares.set(event.uid, new))
        case qos.PodAdmitted():
            revision = state.revision + 1
            known = state.shares.get(event.uid)
            kept = known.containers if known is not None else {}
            new = Share(pod=event.pod, needs=event.needs, phase="admitted", since=revision, containers=kept)
            return replace(state, shares=state.shares.set(event.uid, new), revision=revision)
        case qos.CgroupReady():
            known = state.shares.get(event.uid)
            ready = replace(known, phase="ready", parent=event.parent) if known is not None else None
            return state if ready is None else replace(state, shares=state.shares.set(event.uid, ready))
        case qos.ContainerKept():
            return _with_container(state, event)
        case qos.HostPortsAwaited():
            return _waiting_for_port(state, event)
        case qos.PodRefused():
            known = state.shares.get(event.uid)
            # An admitted pod keeps its share until it ends.
            return _without(state, event.uid) if known is not None and known.phase == "waiting" else state
        case qos.PodReleased():
            return replace(_without(state, event.uid), revision=state.revision + 1)
        case qos.CgroupFailing():
            return replace(state, failing=state.failing.set(event.cgroup, event.error))
        case qos.CgroupWorking():
            failing = state.failing.delete(event.cgroup) if event.cgroup in state.failing else state.failing
            return replace(state, failing=failing)
        case _:
            return state


def _node_described(state: State, node: qos.Node) -> State:
    """Store the node. If its cgroups moved or disappeared, every pod's cgroup is created again."""
    revision, shares = state.revision + 1, state.shares
    if state.node is None or _where(state.node) != _where(node):
        for uid, one in state.shares.items():
            if one.phase != "waiting":
                shares = shares.set(uid, replace(one, phase="admitted", since=revision))
    return replace(state, node=node, revision=revision, shares=shares)


def _waiting_for_port(state: State, event: qos.HostPortsAwaited) -> State:
    """Store the pod as waiting. It gives up any resources that it held, because no part of it is running."""
    known = state.shares.get(event.uid)
    had = known is not None and known.phase != "waiting"
    new = Share(pod=event.pod, needs=event.needs, phase="waiting", asked_at=event.asked_at, message=event.message)
    return replace(state, shares=state.shares.set(event.uid, new), revision=state.revision + had)


def _with_container(state: State, event: qos.ContainerKept) -> State:
    known = state.shares.get(event.uid)
    if known is None:
        return state
    new = replace(known, containers={**known.containers, event.container: event.id})
    return replace(state, shares=state.shares.set(event.uid, new), revision=state.revision + 1)


def _where(node: qos.Node) -> object:
    return (node.version, node.driver, node.root)


def _without(state: State, uid: str) -> State:
    return replace(state, shares=state.shares.delete(uid)) if uid in state.shares else state


def due(_state: State) -> int | None:
    """Return None: no decision depends on the time, because the standing effects poll."""
    return None


def outstanding(state: State) -> Sequence[Effect]:
    """Return the two standing effects; KeepTree only once the location of the tree is known."""
    look = wanted.LookAtNode(subject="node", intent="look")
    node = state.node
    if node is None or not node.version:
        return (look,)
    ready = ((uid, one) for uid, one in state.shares.items() if one.phase == "ready")
    tree = wanted.KeepTree(
        subject="tree",
        intent=f"keep/{state.revision}",
        revision=state.revision,
        driver=node.driver,
        root=node.root,
        tree=tuple(wanted_tree(state)),
        settled=frozenset(pod_path(node, uid, one.needs.qos_class) for uid, one in ready),
    )
    return (look, tree)


DECIDER = Decider(initial=State(), decide=decide, evolve=evolve, due=due, outstanding=outstanding)
