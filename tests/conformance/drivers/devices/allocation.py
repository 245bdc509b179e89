"""Runs the cases of devices.json about allocation: sequences of requests, and requests of containers with recorded
devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chronolet.devices import capacity, wanted
from chronolet.rules.resources.extended_resources import is_extended
from chronolet_schemas import devices, pod
from tests.conformance.drivers.devices.node import RESOURCE, Node, device_infos
from tests.conformance.outcome import Case, differences


def _with_devices(given: Case) -> Node:
    node = Node(given)
    healthy, unhealthy = given.get("healthy", {}), given.get("unhealthy", {})
    for name in {**healthy, **unhealthy}:
        well = [devices.DeviceInfo(id=one, health="Healthy") for one in healthy.get(name, ())]
        ill = [devices.DeviceInfo(id=one, health="Unhealthy") for one in unhealthy.get(name, ())]
        node.list_devices(name, [*well, *ill])
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
                node.list_devices(step["resource"], device_infos(step["devices"]))
            case "pod_becomes_inactive":
                node.handle(
                    pod.DevicesReleased(pod="default/p", uid=step["pod_uid"], containers=_containers(case, step))
                )
            case "get_run_options":
                found = _run_options(node, step, number)
            case _:  # nothing to do: devices are freed when their pod becomes inactive
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
    events = node.request(step["pod_uid"], step["container"], limits, step["role"])
    refused = [one for one in events if isinstance(one, devices.DevicesRefused)]
    totals = {name: len(capacity.allocated(node.state).get(name, ())) for name in node.state.resources}
    found: dict[str, Any] = {"ok": not refused, "allocated_total": totals}
    if refused:
        return found | {"error": refused[0].reason, "resource": refused[0].resource} | _numbers(refused[0])
    done = next(one for one in reversed(events) if isinstance(one, devices.DevicesAllocated))
    ids = {name: sorted(one.devices) for name, one in done.allocations().items()}
    return found | {"device_ids": ids, "device_counts": {name: len(each) for name, each in ids.items()}}


def _numbers(refused: devices.DevicesRefused) -> dict[str, int]:
    """Return the numbers in the kubelet's error message."""
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
    node.handle(
        pod.PreStartRequested(
            pod=f"default/{uid}", uid=uid, container=container, attempt=attempt, requested_at=node.now
        )
    )
    pre_starts = [one for one in node.calls[calls:] if isinstance(one, wanted.PreStart)]
    return {
        "present": claim is not None,
        "pre_start_called_with": {call.resource: sorted(call.devices) for one in pre_starts for call in one.calls},
    }


def _compared(
    expected: Case, found: dict[str, Any], given_in: Sequence[Mapping[str, set[str]]], where: str
) -> Iterator[str]:
    """Yield the differences from the expectation of one step, including its relations to earlier steps."""
    plain = dict(expected)
    now = given_in[-1]
    if "device_ids" in expected:  # a case names ids only if no other choice is possible
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


def _recorded_device_checks(case: Case) -> Iterable[str]:
    """Compare the result of a request by a container whose devices may already be recorded, or by a container that an
    agent with a new log found running.
    """
    given = case["given"]
    node, recorded = Node(), given["recorded"]
    if given["registered"]:
        node.list_devices(RESOURCE, [devices.DeviceInfo(id=one, health="Healthy") for one in given["healthy"]])
    found_running = given.get("container_running_in_runtime", False) and not given["all_sources_ready"]
    if recorded is not None and not found_running:
        node.record("p1", "c", RESOURCE, recorded)
    held = {RESOURCE: tuple(recorded)} if found_running else {}
    events = node.request("p1", "c", {RESOURCE: given["requested"]}, held=held)
    refused = [one for one in events if isinstance(one, devices.DevicesRefused)]
    chosen = [one for one in events if isinstance(one, devices.DevicesChosen)]
    new = sorted({device for one in chosen for device in one.devices} - set(recorded or ()))
    found: dict[str, Any] = {"ok": not refused, "new_devices": new}
    if refused:
        found["error"] = refused[0].reason
    return differences(case["expect"], found)


KINDS = {
    "allocate_sequence": _allocate_sequence,
    "recorded_device_checks": _recorded_device_checks,
}
