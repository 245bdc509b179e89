"""Runs the cases of qos_cgroups.json against the rules of QoS and cgroups, and against qos's tree of cgroups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from chronolet.qos.tree import bearable, classes, pod_values
from chronolet.rules.resources import cgroups
from chronolet.rules.resources.needs import needs
from chronolet.rules.resources.qos_class import NODE_CRITICAL, oom_score_adj, qos_class
from chronolet.rules.resources.resources import pod_requests
from chronolet_schemas.podspec import Container, EphemeralContainer, PodSpec, ResourceRequirements
from chronolet_schemas.qos import Amounts, Node
from tests.conformance.outcome import Case, differences

_UNITS: Final = {
    "cpu_milli": ("cpu", "m"),
    "memory_bytes": ("memory", ""),
    "hugepages_2Mi_bytes": ("hugepages-2Mi", ""),
}


def _quantities(given: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{given[key]}{unit}" for key, (name, unit) in _UNITS.items() if key in given}


def _resources(given: Mapping[str, Any]) -> ResourceRequirements:
    return ResourceRequirements(
        requests=_quantities(given.get("requests", {})), limits=_quantities(given.get("limits", {}))
    )


def _spec(given: Mapping[str, Any]) -> PodSpec:
    """Return the spec of a case's pod."""
    of_role: dict[str, list[Mapping[str, Any]]] = {"app": [], "init": [], "ephemeral": []}
    for one in given["containers"]:
        of_role[one.get("role", "app").removeprefix("restartable_")].append(one)
    return PodSpec(
        containers=tuple(Container(name=one["name"], resources=_resources(one)) for one in of_role["app"]),
        init_containers=tuple(
            Container(
                name=one["name"],
                resources=_resources(one),
                restart_policy="Always" if one["role"] == "restartable_init" else None,
            )
            for one in of_role["init"]
        ),
        ephemeral_containers=tuple(
            EphemeralContainer(name=one["name"], resources=_resources(one)) for one in of_role["ephemeral"]
        ),
        resources=_resources(given["pod_level"]) if "pod_level" in given else None,
        overhead=_quantities(given.get("overhead", {})),
    )


def _node(memory_bytes: int = 1 << 33, **settings: Any) -> Node:
    much = Amounts(cpu_milli=4000, memory_bytes=memory_bytes)
    fields: dict[str, Any] = {"version": 1, "driver": "cgroupfs", "root": ("kubepods",), "max_pods": 110, **settings}
    return Node(capacity=much, enforced=much, allocatable=much, **fields)


def _level(given: Mapping[str, Any], node: Node) -> Sequence[cgroups.Values]:
    """Return the values of three cgroups: the one above all pods, the Burstable class's and the BestEffort class's."""
    pods = [needs(_spec(one)) for one in given["active_pods"]]
    return [one.values for one in classes(node, pods)]


def _set(**values: int | None) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _exactly(expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterable[str]:
    """Compare all values found; a value that is missing from the expectation must be None."""
    return differences({**dict.fromkeys(found), **expected}, found)


def _pod_qos_class(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"qos_class": qos_class(_spec(case["given"]))})


def _milli_cpu_to_shares(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"cpu_shares": cgroups.shares(case["given"]["cpu_milli"])})


def _milli_cpu_to_quota(case: Case) -> Iterable[str]:
    given = case["given"]
    return differences(case["expect"], {"cpu_quota_us": cgroups.quota(given["cpu_milli"], given["period_us"])})


def _shares_to_weight(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"cpu_weight": cgroups.weight(case["given"]["cpu_shares"])})


def _weight_to_shares(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"cpu_shares": cgroups.shares_of_weight(case["given"]["cpu_weight"])})


def _effective_pod_request(case: Case) -> Iterable[str]:
    requested = pod_requests(_spec(case["given"]))
    return differences(
        case["expect"], {"cpu_milli": requested.get("cpu", 0), "memory_bytes": requested.get("memory", 0)}
    )


def _pod_resource_config(case: Case) -> Iterable[str]:
    given = case["given"]
    node = _node(enforce_cpu_limits=given["enforce_cpu_limits"], quota_period_us=given["quota_period_us"])
    need = needs(_spec(given))
    values = pod_values(node, need)
    found = _set(
        cpu_shares=values.cpu_shares,
        cpu_quota_us=values.cpu_quota_us,
        cpu_period_us=values.cpu_period_us,
        memory_limit_bytes=values.memory_limit_bytes,
    )
    return _exactly(case["expect"], {"qos_class": need.qos_class, **found})


def _qos_level_cpu(case: Case) -> Iterable[str]:
    _, burstable, best_effort = _level(case["given"], _node())
    found = {"burstable_cpu_shares": burstable.cpu_shares, "besteffort_cpu_shares": best_effort.cpu_shares}
    return differences(case["expect"], found)


def _qos_level_memory_reserve(case: Case) -> Iterable[str]:
    given = case["given"]
    node = _node(given["node_allocatable_memory_bytes"], memory_reserved_percent=given["reserve_percent"])
    _, burstable, best_effort = _level(given, node)
    found = _set(
        burstable_memory_limit_bytes=burstable.memory_limit_bytes,
        besteffort_memory_limit_bytes=best_effort.memory_limit_bytes,
    )
    return _exactly(case["expect"], found)


def _qos_level_memory_reserve_retry(case: Case) -> Iterable[str]:
    given = case["given"]
    requested, used = given["wanted_limit_bytes"], given["current_usage_bytes"]
    limits = {name: bearable(requested[name], used[name]) for name in requested}
    return differences(case["expect"], {"second_update_limit_bytes": limits})


def _qos_level_memory_min(case: Case) -> Iterable[str]:
    given = case["given"]
    node = _node(version=given["cgroup_version"], memory_reservation=given["memory_reservation_policy"])
    top, burstable, _ = _level(given, node)
    found = _set(
        root_memory_min_bytes=top.memory_min_bytes,
        burstable_memory_low_bytes=burstable.memory_low_bytes,
        burstable_memory_min_bytes=burstable.memory_min_bytes,
    )
    return _exactly(case["expect"], found)


def _oom_score_adj(case: Case) -> Iterable[str]:
    given = case["given"]
    requested = {"memory": str(given["container_memory_request_bytes"])}
    one = Container(name="one", resources=_of_class(given["qos_class"], requested))
    sidecar = given.get("role") == "restartable_init"
    least = {"memory": str(given.get("smallest_app_container_memory_request_bytes", 0))}
    apps = (Container(name="app", resources=ResourceRequirements(requests=least)),) if sidecar else (one,)
    if sidecar:
        one = Container(name="one", resources=one.resources, restart_policy="Always")
    spec = PodSpec(
        containers=apps,
        init_containers=(one,) if sidecar else (),
        priority_class_name=NODE_CRITICAL if given.get("node_critical") else "",
    )
    assert qos_class(spec) == given["qos_class"]
    return differences(case["expect"], {"oom_score_adj": oom_score_adj(spec, one, given["node_memory_bytes"])})


def _of_class(wanted: str, requested: dict[str, str]) -> ResourceRequirements:
    """Return container resources that give a pod with this one container the QoS class `wanted`."""
    match wanted:
        case "Guaranteed":
            both = {**requested, "cpu": "1"}
            return ResourceRequirements(requests=both, limits=both)
        case "Burstable":
            return ResourceRequirements(requests={**requested, "cpu": "1"})
        case _:
            return ResourceRequirements(requests=requested)


KINDS = {
    "pod_qos_class": _pod_qos_class,
    "milli_cpu_to_shares": _milli_cpu_to_shares,
    "milli_cpu_to_quota": _milli_cpu_to_quota,
    "shares_to_weight": _shares_to_weight,
    "weight_to_shares": _weight_to_shares,
    "effective_pod_request": _effective_pod_request,
    "pod_resource_config": _pod_resource_config,
    "qos_level_cpu": _qos_level_cpu,
    "qos_level_memory_reserve": _qos_level_memory_reserve,
    "qos_level_memory_reserve_retry": _qos_level_memory_reserve_retry,
    "qos_level_memory_min": _qos_level_memory_min,
    "oom_score_adj": _oom_score_adj,
}
