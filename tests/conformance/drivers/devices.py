"""Cases of devices.json, by the decider of devices and the helpers that it calls.

Plugins, requests and the agent's restarts are brought about by signals and events; plugins answer here as a case says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chronolet.adapters.device_plugins.wire import answer_message
from chronolet.devices import capacity, signals, wanted
from chronolet.devices.actor import NODE
from chronolet.devices.checkpoint import exported
from chronolet.devices.claims import allocation, topology
from chronolet.devices.context import Policy
from chronolet.devices.decider import decider
from chronolet.devices.plugins.stops import STOP_GRACE_MILLISECONDS
from chronolet.devices.plugins.validation import SUPPORTED_VERSION
from chronolet.devices.state import State
from chronolet.history.state import Moment
from chronolet.kernel.decider import Decider, Due
from chronolet.kernel.step.snapshots import EntityImage, decode_states, encode_states
from chronolet.node.http.api_pods import api_pods
from chronolet.pod.state import Container
from chronolet.pod.state import State as PodState
from chronolet.rules.device_options import merged
from chronolet.rules.resources.extended_resources import is_extended
from chronolet_schemas import devices, pod, podspec
from chronolet_schemas.envelope import Event, Position
from tests.conformance.outcome import Case, differences

FOLDER = "/plugins"
_ROLES = {"init": "init", "restartable_init": "sidecar", "app": "app"}


class Node:
    """The decider with plugins that answer at once."""

    def __init__(self, given: Case | None = None, policy: Policy = Policy(wait_for_resources=False)) -> None:  # noqa: B008
        self.decider: Decider[State] = decider(policy)
        self.given = given or {}
        self.state = self.decider.initial
        self.now = 0
        self.calls: list[wanted.Wanted] = []
        self.said: list[Event] = []
        self.options = devices.PluginOptions(**self.given.get("plugin_options", {}))

    def tell(self, message: Any) -> list[Event]:
        """One message, and all that plugins answer because of it."""
        found = self._decide(message)
        while (answer := self._answer()) is not None:
            found += self._decide(answer)
        self.said += found
        return found

    def _decide(self, message: Any) -> list[Event]:
        events = list(self.decider.decide(self.state, message, self.now))
        for event in events:
            self.state = self.decider.evolve(self.state, event) or self.decider.initial
        return events

    def _answer(self) -> signals.Answered | None:
        for effect in self.decider.outstanding(self.state):
            said: dict[str, Any] = {"subject": effect.subject, "intent": effect.intent}
            match effect:
                case wanted.Allocate():
                    self.calls.append(effect)
                    count = sum(1 for one in self.calls if isinstance(one, wanted.Allocate))
                    if count in self.given.get("plugin_allocate_fails_on_call", ()):
                        return signals.AllocateRefused(**said, error="it fails")
                    return signals.AllocateAnswered(**said, answers=(devices.Answer(),))
                case wanted.Prefer():
                    self.calls.append(effect)
                    prefers = tuple(self.given.get("plugin_prefers", ()))
                    return signals.PreferenceAnswered(**said, devices=prefers)
                case wanted.PreStart():
                    self.calls.append(effect)
                    return signals.PreStartAnswered(**said)
                case _:
                    continue
        return None

    def lists(self, resource: str, listed: Iterable[devices.DeviceInfo]) -> None:
        """The plugin is there, and lists these."""
        known = self.state.resources.get(resource)
        if known is None or not known.has_plugin:
            self.register(resource)
        generation = self.state.resources[resource].generation
        self.tell(signals.DevicesListing(resource=resource, generation=generation, devices=tuple(listed)))

    def register(self, resource: str, version: str = SUPPORTED_VERSION) -> list[Event]:
        """The plugin registers."""
        return self.tell(
            signals.PluginRegistering(
                resource=resource, versions=(version,), endpoint="p.sock", folder=FOLDER, options=self.options
            )
        )

    def stops(self, resource: str) -> None:
        """The plugin's stream ends."""
        generation = self.state.resources[resource].generation
        self.tell(signals.EndpointStopped(resource=resource, generation=generation))

    def restart(self) -> None:
        """The agent is another process: it has what a snapshot gives it, and opens its socket."""
        image = encode_states({"node": EntityImage(state=self.state)})
        self.state = decode_states(State, image)["node"].state
        self.tell(signals.RegistryOpened())

    def asks(
        self, uid: str, container: str, resources: Mapping[str, int], role: str = "app", **more: Any
    ) -> list[Event]:
        """A container wants devices."""
        return self.tell(
            pod.DevicesRequested(
                pod=f"default/{uid}",
                uid=uid,
                container=container,
                role=_ROLES[role],  # type: ignore[arg-type]
                resources=dict(resources),
                requested_at=self.now,
                **more,
            )
        )

    def holds(self, uid: str, container: str, resource: str, ids: Sequence[str]) -> None:
        """A container has got these."""
        event = devices.DevicesChosen(
            pod=f"default/{uid}",
            uid=uid,
            container=container,
            role="app",
            wants={resource: len(ids)},
            at=self.now,
            resource=resource,
            devices=tuple(ids),
        )
        claim = self.state.claims.get(f"{uid}/{container}")
        done = devices.DevicesAllocated(
            pod=event.pod,
            uid=uid,
            container=container,
            resource=resource,
            allocation=devices.Allocation(devices=tuple(ids)),
            earlier=claim.held if claim else {},
        )
        for one in (event, done):
            self.state = self.decider.evolve(self.state, one) or self.decider.initial

    def passes_to(self, seconds: int) -> None:
        """The time comes, and with it whatever was due."""
        self.now = seconds * 1000
        while (due := self.decider.due(self.state)) is not None and due <= self.now:
            self.tell(Due(at=due))


def _listed(said: Iterable[Mapping[str, str]]) -> list[devices.DeviceInfo]:
    return [devices.DeviceInfo(id=one["id"], health=one["health"].capitalize()) for one in said]


def _capacity_sequence(case: Case) -> Iterable[str]:
    node = Node()
    told = 0
    for number, step in enumerate(case["steps"]):
        node.passes_to(step["t_seconds"])
        match step["op"]:
            case "plugin_lists_devices":
                node.lists(step["resource"], _listed(step["devices"]))
            case "plugin_stops":
                node.stops(step["resource"])
            case "kubelet_restarts":
                node.restart()
            case _:
                removed = [one.resource for one in node.said[told:] if isinstance(one, devices.ResourceRemoved)]
                told = len(node.said)
                found = {
                    "capacity": capacity.capacity(node.state),
                    "allocatable": {name: len(ids) for name, ids in capacity.allocatable(node.state).items()},
                    "deleted_resources": removed,
                }
                yield from differences(step["expect"], found, f"step {number}: ")


def _allocatable_devices(case: Case) -> Iterable[str]:
    node = Node()
    for name, listed in case["given"]["devices"].items():
        node.lists(name, _listed(listed))
    found = {name: list(ids) for name, ids in capacity.allocatable(node.state).items()}
    return differences(case["expect"], {"allocatable": found})


def _registration(case: Case) -> Iterable[str]:
    (event, *_) = Node().register(case["given"]["resource_name"], case["given"]["api_version"])
    found: dict[str, Any] = {"accepted": isinstance(event, devices.PluginRegistered)}
    if isinstance(event, devices.RegistrationRefused):
        found["reason"] = event.reason
    return differences(case["expect"], found)


def _extended_resource_name(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"valid": is_extended(case["given"]["name"])})


# -- allocation ----------------------------------------------------------------------------------------------------
def _with_devices(given: Case) -> Node:
    node = Node(given)
    healthy, unhealthy = given.get("healthy", {}), given.get("unhealthy", {})
    for name in {**healthy, **unhealthy}:
        well = [devices.DeviceInfo(id=one, health="Healthy") for one in healthy.get(name, ())]
        ill = [devices.DeviceInfo(id=one, health="Unhealthy") for one in unhealthy.get(name, ())]
        node.lists(name, [*well, *ill])
    return node


def _allocate_sequence(case: Case) -> Iterable[str]:
    node = _with_devices(case["given"])
    given_in: list[dict[str, set[str]]] = []
    for number, step in enumerate(case["steps"]):
        calls = len(node.calls)
        found: dict[str, Any] = {}
        match step["op"]:
            case "allocate":
                found = _allocated(node, step)
            case "plugin_lists_devices":
                node.lists(step["resource"], _listed(step["devices"]))
            case "pod_becomes_inactive":
                node.tell(pod.DevicesReleased(pod="default/p", uid=step["pod_uid"], containers=_containers(case, step)))
            case "get_run_options":
                found = _run_options(node, step, number)
            case _:  # what is free was freed with its pod
                continue
        given_in += [{}] * (number - len(given_in))
        given_in.append({name: set(ids) for name, ids in found.get("device_ids", {}).items()})
        found["plugin_calls"] = len(node.calls) - calls
        yield from _compared(step.get("expect", {}), found, given_in, f"step {number}: ")


def _containers(case: Case, step: Case) -> tuple[str, ...]:
    uid = step["pod_uid"]
    return tuple({one["container"] for one in case["steps"] if one.get("pod_uid") == uid and "container" in one})


def _allocated(node: Node, step: Case) -> dict[str, Any]:
    limits = {name: count for name, count in step["limits"].items() if is_extended(name)}
    said = node.asks(step["pod_uid"], step["container"], limits, step["role"])
    refused = [one for one in said if isinstance(one, devices.DevicesRefused)]
    totals = {name: len(capacity.allocated(node.state).get(name, ())) for name in node.state.resources}
    found: dict[str, Any] = {"ok": not refused, "allocated_total": totals}
    if refused:
        return found | {"error": refused[0].reason, "resource": refused[0].resource} | _numbers(refused[0])
    done = next(one for one in reversed(said) if isinstance(one, devices.DevicesAllocated))
    ids = {name: sorted(one.devices) for name, one in done.allocations().items()}
    return found | {"device_ids": ids, "device_counts": {name: len(each) for name, each in ids.items()}}


def _numbers(refused: devices.DevicesRefused) -> dict[str, int]:
    """The numbers in the kubelet's words."""
    words = refused.message.replace(",", " ").split()
    if refused.reason == "insufficient_devices":
        return {"requested": int(words[words.index("Requested:") + 1]), "available": int(words[-1])}
    if refused.reason == "request_changed":
        return {"recorded": int(words[-3]), "requested": int(words[-1])}
    return {}


def _run_options(node: Node, step: Case, attempt: int) -> dict[str, Any]:
    uid, container = step["pod_uid"], step["container"]
    calls = len(node.calls)
    claim = node.state.claims.get(f"{uid}/{container}")
    node.tell(
        pod.PreStartRequested(
            pod=f"default/{uid}", uid=uid, container=container, attempt=attempt, requested_at=node.now
        )
    )
    told = [one for one in node.calls[calls:] if isinstance(one, wanted.PreStart)]
    return {
        "present": claim is not None,
        "pre_start_called_with": {call.resource: sorted(call.devices) for one in told for call in one.calls},
    }


def _compared(
    expected: Case, found: dict[str, Any], given_in: Sequence[Mapping[str, set[str]]], where: str
) -> Iterator[str]:
    """What a case says about this step, and about what it shares with steps before."""
    plain = dict(expected)
    now = given_in[-1]
    if "device_ids" in expected:  # only where forced
        found["device_ids"] = {name: now.get(name) and sorted(now[name]) for name in expected["device_ids"]}
    if (same := plain.pop("same_devices_as_step", None)) is not None and given_in[same] != now:
        yield f"{where}same_devices_as_step {same}: expected {given_in[same]!r}, found {now!r}"
    shares = plain.pop("shares_count_with_step", {})
    for name, (step, count) in shares.items():
        if len(now[name] & given_in[step][name]) != count:
            yield f"{where}{name}: expected {count} shared with step {step}, found {now[name]!r}"
    for relation, holds in _RELATIONS.items():
        for name, steps in plain.pop(relation, {}).items():
            for step in steps:
                if not holds(now[name], given_in[step][name]):
                    yield f"{where}{name}: {relation} {step}: found {now[name]!r} and {given_in[step][name]!r}"
    yield from differences(plain, found, where)


_RELATIONS = {
    "subset_of_step": set.issubset,
    "superset_of_step": set.issuperset,
    "disjoint_from_step": set.isdisjoint,
    "same_set_as_step": set.__eq__,
}


_RESOURCE = "r.test/r"


def _recorded_device_checks(case: Case) -> Iterable[str]:
    """A container that the log knows devices of asks again, or one that an agent with a new log found running."""
    given = case["given"]
    node, recorded = Node(), given["recorded"]
    if given["registered"]:
        node.lists(_RESOURCE, [devices.DeviceInfo(id=one, health="Healthy") for one in given["healthy"]])
    found_running = given.get("container_running_in_runtime", False) and not given["all_sources_ready"]
    if recorded is not None and not found_running:
        node.holds("p1", "c", _RESOURCE, recorded)
    held = {_RESOURCE: tuple(recorded)} if found_running else {}
    said = node.asks("p1", "c", {_RESOURCE: given["requested"]}, held=held)
    refused = [one for one in said if isinstance(one, devices.DevicesRefused)]
    chosen = [one for one in said if isinstance(one, devices.DevicesChosen)]
    new = sorted({device for one in chosen for device in one.devices} - set(recorded or ()))
    found: dict[str, Any] = {"ok": not refused, "new_devices": new}
    if refused:
        found["error"] = refused[0].reason
    return differences(case["expect"], found)


def _checkpoint(case: Case) -> Iterable[str]:
    """The log is the checkpoint; what a restart keeps of it is compared in the form of the kubelet's file."""
    given = case["given"]
    node = Node()
    for name, ids in given.get("registered_healthy", {_RESOURCE: ["d1"]}).items():
        node.lists(name, [devices.DeviceInfo(id=one, health="Healthy") for one in ids])
    for one in given.get("allocations", [{"pod": "p1", "container": "c", "resource": _RESOURCE, "devices": ["d1"]}]):
        node.holds(one["pod"], one["container"], one["resource"], one["devices"])
    before, known = _entries(node.state), sorted(capacity.capacity(node.state))
    node.restart()
    if "new_request" in given:
        said = node.asks("p9", "c", given["new_request"])
        refused = [one for one in said if isinstance(one, devices.DevicesRefused)]
        return differences(case["expect"], {"ok": not refused, "error": refused[0].reason if refused else ""})
    after = _entries(node.state)
    found = {
        "after_restart_allocations_equal": bool(before) and after == before,
        "allocated": {name: list(ids) for name, ids in capacity.allocated(node.state).items()},
        "healthy_after_restart": {name: list(ids) for name, ids in capacity.allocatable(node.state).items()},
        "still_known_plugin_resources": sorted(one for one in known if node.state.known(one)),
        "extended_resource_capacity_reset": after != before or sorted(capacity.capacity(node.state)) != known,
    }
    return differences(case["expect"], found)


def _entries(state: State) -> list[Any]:
    """Who has what, by the file that `chronolet checkpoint` prints."""
    text = exported(state, lambda answer: answer_message(answer).SerializeToString(deterministic=True))
    entries: list[Any] = json.loads(text)["Data"]["PodDeviceEntries"] or []
    return entries


# -- choice --------------------------------------------------------------------------------------------------------
def _preferred_allocation(case: Case) -> Iterable[str]:
    given, expected = case["given"], dict(case["expect"])
    asked: list[allocation.Question] = []
    used = {*given.get("allocated", ()), *given.get("reusable", ())}
    stock = allocation.Stock(
        free=[one for one in given["healthy"] if one not in used],
        reusable=given.get("reusable", ()),
        nodes=_nodes(given.get("device_numa_nodes", {})),
        affinity=given.get("affinity_numa_nodes"),
    )
    offers = given["plugin_offers_preference"]
    found = allocation.selection("r.test/r", given["needed"], stock, offers=offers)
    if isinstance(found, allocation.Question):
        asked.append(found)
        prefers = given["plugin_prefers"]
        found = allocation.selection("r.test/r", given["needed"], stock, offers=offers, preferred=prefers)
    if not isinstance(found, allocation.Chosen):
        return [f"nothing was chosen: {found}"]
    chosen = set(found.devices)
    shown: dict[str, Any] = {"devices": sorted(chosen), "device_count": len(chosen), "preference_asked": bool(asked)}
    if asked:
        (question,) = asked
        shown["preference_asked_with"] = {
            "available": list(question.available),
            "must_include": list(question.must_include),
            "size": question.size,
        }
    problems = [f"without {one}" for one in expected.pop("must_contain", ()) if one not in chosen]
    problems += [f"with {one}" for one in expected.pop("must_not_contain", ()) if one in chosen]
    return [*problems, *differences(expected, shown)]


def _nodes(of: Mapping[str, Sequence[int] | None]) -> topology.Nodes:
    return {name: tuple(nodes or ()) for name, nodes in of.items()}


def _filter_by_affinity(case: Case) -> Iterable[str]:
    given = case["given"]
    nodes = _nodes(given["device_numa_nodes"])
    groups = topology.grouped(given["available"], nodes, given["affinity_numa_nodes"])
    return differences(case["expect"], {name: sorted(ids) for name, ids in groups._asdict().items()})


def _topology_hints(case: Case) -> Iterable[str]:
    given = case["given"]
    nodes = _nodes(given["device_numa_nodes"])
    free = [one for one in nodes if one not in given["allocated"]]
    found = topology.hints(numa_nodes=given["numa_nodes"], nodes=nodes, usable=free, requested=given["requested"])
    return _hints_differ(case, found)


def _topology_hints_recorded(case: Case) -> Iterable[str]:
    given = case["given"]
    recorded = given["recorded_for_this_container"]
    found = topology.hints(
        numa_nodes=given["numa_nodes"],
        nodes=_nodes(given["device_numa_nodes"]),
        usable=recorded,
        requested=given["requested"],
    )
    return _hints_differ(case, found)


def _hints_differ(case: Case, found: Sequence[topology.Hint] | None) -> Iterable[str]:
    shown = None if found is None else [{"numa_nodes": sorted(one.nodes), "preferred": one.preferred} for one in found]
    return differences(case["expect"], {"hints": shown})


# -- what is shown of it -------------------------------------------------------------------------------------------
def _sanitize(case: Case) -> Iterable[str]:
    given = case["given"]
    held = {name: tuple(str(one) for one in range(count)) for name, count in given["allocated_counts"].items()}
    found = capacity.at_least(given["node_allocatable"], held)
    return differences(case["expect"], {"node_allocatable": found})


def _run_container_options(case: Case) -> Iterable[str]:
    answers = [
        devices.Answer(
            envs=one["envs"],
            mounts=tuple(devices.Mount(container_path=inside, host_path=host) for inside, host in one["mounts"]),
            devices=tuple(devices.DeviceNode(container_path=inside, host_path=host) for inside, host in one["devices"]),
        )
        for one in case["given"]["answers"].values()
    ]
    found = merged(answers)
    counts = {"env_count": len(found.envs), "mount_count": len(found.mounts), "device_count": len(found.devices)}
    return differences(case["expect"], counts)


def _allocated_resource_status(case: Case) -> Iterable[str]:
    """As the pod's status in /pods shows it."""
    given = case["given"]
    node = Node()
    node.lists(_RESOURCE, _listed([{"id": name, "health": word} for name, word in given["health"].items()]))
    node.holds("p1", "c", _RESOURCE, given["recorded"])
    manifest = podspec.Pod(
        metadata=podspec.ObjectMeta(name="p1"), spec=podspec.PodSpec(containers=(podspec.Container(name="c"),))
    )
    one = PodState(pod="default/p1", uid="p1", manifest=manifest, containers=(Container(name="c", kind="app"),))
    moment = Moment(position=Position(1, 1), states={"pod": {"default/p1": one}, "devices": {NODE: node.state}})
    (shown,) = api_pods(moment, "node")
    (container,) = shown["status"]["containerStatuses"]
    (resource,) = container["allocatedResourcesStatus"]
    status = [{"id": each["resourceID"], "health": each["health"]} for each in resource["resources"]]
    return differences(case["expect"], {"status": status})


def _default_value(case: Case) -> Iterable[str]:
    values: dict[str, Any] = {
        "endpoint_stop_grace_period_seconds": STOP_GRACE_MILLISECONDS // 1000,
        "supported_api_version": SUPPORTED_VERSION,
    }
    option = case["given"]["option"]
    return differences(case["expect"], {"value": values[option]} if option in values else {})


KINDS = {
    "capacity_sequence": _capacity_sequence,
    "allocatable_devices": _allocatable_devices,
    "registration": _registration,
    "extended_resource_name": _extended_resource_name,
    "allocate_sequence": _allocate_sequence,
    "recorded_device_checks": _recorded_device_checks,
    "checkpoint": _checkpoint,
    "preferred_allocation": _preferred_allocation,
    "filter_by_affinity": _filter_by_affinity,
    "topology_hints": _topology_hints,
    "topology_hints_recorded": _topology_hints_recorded,
    "sanitize_node_allocatable": _sanitize,
    "run_container_options": _run_container_options,
    "allocated_resource_status": _allocated_resource_status,
    "default_value": _default_value,
}
