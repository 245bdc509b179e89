"""Runs the cases of devices.json about the choice of devices: the plugin's preference and NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chronolet.devices.claims import allocation, topology
from tests.conformance.outcome import Case, differences


def _preferred_allocation(case: Case) -> Iterable[str]:
    given, expected = case["given"], dict(case["expect"])
    questions: list[allocation.Question] = []
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
        questions.append(found)
        prefers = given["plugin_prefers"]
        found = allocation.selection("r.test/r", given["needed"], stock, offers=offers, preferred=prefers)
    if not isinstance(found, allocation.Chosen):
        return [f"nothing was chosen: {found}"]
    chosen = set(found.devices)
    shown: dict[str, Any] = {
        "devices": sorted(chosen),
        "device_count": len(chosen),
        "preference_asked": bool(questions),
    }
    if questions:
        (question,) = questions
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


KINDS = {
    "preferred_allocation": _preferred_allocation,
    "filter_by_affinity": _filter_by_affinity,
    "topology_hints": _topology_hints,
    "topology_hints_recorded": _topology_hints_recorded,
}
