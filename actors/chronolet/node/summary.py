"""The page /stats/summary: what the node and its pods use. Pure.

Comes in: the machine and each running container's usage. Goes out: a v1alpha1 Summary as plain data. Next: `pages`.
Source: pkg/kubelet/server/stats, k8s.io/kubelet/pkg/apis/stats/v1alpha1. What a pod uses is what its cgroup says: that
counts on when a container begins anew. Without one it is the sum of what its containers use, its sandbox included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from chronolet.adapters.machine import Machine
from chronolet.pod.status import rfc3339
from chronolet.ports import labels
from chronolet.ports.runtime import ContainerState, Interface, Usage
from chronolet.rules.names import SANDBOX

Object = dict[str, Any]

_NODE = ""
_AROUND = "pod of "


class Sample(NamedTuple):
    """One running container. `around`: what its pod's cgroup says, known of sandboxes."""

    container: ContainerState
    usage: Usage
    around: Usage | None = None

    @property
    def pod(self) -> tuple[str, str, str]:
        """Namespace, name, uid."""
        known = self.container.labels
        return known.get(labels.POD_NAMESPACE, ""), known.get(labels.POD_NAME, ""), known.get(labels.POD_UID, "")

    @property
    def name(self) -> str:
        return self.container.labels.get(labels.CONTAINER_NAME, "")


class Rates:
    """How busy each has been since it was looked at before. Used by one thread at a time."""

    def __init__(self) -> None:
        self._before: Mapping[str, Usage] = {}

    def since(self, now: Mapping[str, Usage]) -> dict[str, int]:
        """Billionths of a processor, by id; nothing for what is seen for the first time."""
        found = {}
        for name, usage in now.items():
            before = self._before.get(name)
            if before is not None and usage.at > before.at and usage.cpu_nanoseconds >= before.cpu_nanoseconds:
                found[name] = (usage.cpu_nanoseconds - before.cpu_nanoseconds) * 1000 // (usage.at - before.at)
        self._before = now
        return found


def summary(node: str, machine: Machine, samples: Sequence[Sample], rates: Rates) -> Object:
    """The whole page."""
    used = {_NODE: machine.usage, **{one.container.id: one.usage for one in samples}}
    used |= {f"{_AROUND}{one.container.id}": one.around for one in samples if one.around is not None}
    busy = rates.since(used)
    in_order = sorted(samples, key=lambda one: (*one.pod, one.name))
    return {
        "node": _node(node, machine, busy),
        "pods": [_pod(pod, list(of_pod), busy) for pod, of_pod in groupby(in_order, lambda one: one.pod)],
    }


def _node(name: str, machine: Machine, busy: Mapping[str, int]) -> Object:
    usage = machine.usage
    at = rfc3339(usage.at)
    return {
        "nodeName": name,
        "startTime": rfc3339(machine.booted_at),
        "cpu": _cpu(usage, busy.get(_NODE)),
        "memory": _memory(usage),
        "network": _network(usage, machine.default_interface),
        "fs": {
            "time": at,
            "availableBytes": machine.available_bytes,
            "capacityBytes": machine.capacity_bytes,
            "usedBytes": machine.capacity_bytes - machine.available_bytes,
            "inodesFree": machine.inodes_free,
            "inodes": machine.inodes,
            "inodesUsed": machine.inodes - machine.inodes_free,
        },
        "rlimit": {"time": at, "maxpid": machine.most_processes, "curproc": usage.processes},
    }


def _pod(pod: tuple[str, str, str], samples: Sequence[Sample], busy: Mapping[str, int]) -> Object:
    namespace, name, uid = pod
    sandboxes = [one for one in samples if one.name == SANDBOX]
    total, rate = _whole(sandboxes[-1], busy) if sandboxes else (None, None)
    if total is None:
        total, rate = _together(samples, busy)
    found: Object = {
        "podRef": {"name": name, "namespace": namespace, "uid": uid},
        "startTime": rfc3339(min(one.container.created_at for one in samples)),
        "containers": [_container(one, busy) for one in samples if one.name != SANDBOX],
        "cpu": _cpu(total, rate),
        "memory": _memory(total),
        "process_stats": {"process_count": total.processes},
    }
    if sandboxes and sandboxes[-1].usage.interfaces:
        usage = sandboxes[-1].usage
        found["network"] = _network(usage, usage.interfaces[0].name)
    return found


def _whole(sandbox: Sample, busy: Mapping[str, int]) -> tuple[Usage | None, int | None]:
    """By the pod's own cgroup."""
    return sandbox.around, busy.get(f"{_AROUND}{sandbox.container.id}")


def _together(samples: Sequence[Sample], busy: Mapping[str, int]) -> tuple[Usage, int | None]:
    """By its containers' cgroups; a rate where it is known of all of them."""
    rates = [busy[one.container.id] for one in samples if one.container.id in busy]
    return _sum([one.usage for one in samples]), sum(rates) if len(rates) == len(samples) else None


def _container(one: Sample, busy: Mapping[str, int]) -> Object:
    return {
        "name": one.name,
        "startTime": rfc3339(one.container.created_at),
        "cpu": _cpu(one.usage, busy.get(one.container.id)),
        "memory": _memory(one.usage),
    }


def _sum(usages: Sequence[Usage]) -> Usage:
    return Usage(
        at=max(one.at for one in usages),
        cpu_nanoseconds=sum(one.cpu_nanoseconds for one in usages),
        memory_bytes=sum(one.memory_bytes for one in usages),
        working_set_bytes=sum(one.working_set_bytes for one in usages),
        rss_bytes=sum(one.rss_bytes for one in usages),
        page_faults=sum(one.page_faults for one in usages),
        major_page_faults=sum(one.major_page_faults for one in usages),
        processes=sum(one.processes for one in usages),
    )


def _cpu(usage: Usage, busy: int | None) -> Object:
    rate = {} if busy is None else {"usageNanoCores": busy}
    return {"time": rfc3339(usage.at), **rate, "usageCoreNanoSeconds": usage.cpu_nanoseconds}


def _memory(usage: Usage) -> Object:
    """What is available is known only where there is a limit."""
    limit = usage.memory_limit_bytes
    available = {"availableBytes": max(0, limit - usage.working_set_bytes)} if limit else {}
    return {
        "time": rfc3339(usage.at),
        **available,
        "usageBytes": usage.memory_bytes,
        "workingSetBytes": usage.working_set_bytes,
        "rssBytes": usage.rss_bytes,
        "pageFaults": usage.page_faults,
        "majorPageFaults": usage.major_page_faults,
    }


def _network(usage: Usage, default: str) -> Object:
    """The default interface's counts stand at the top as well."""
    interfaces = [_interface(one) for one in usage.interfaces]
    own = next((one for one in interfaces if one["name"] == default), {})
    return {"time": rfc3339(usage.at), **own, "interfaces": interfaces}


def _interface(one: Interface) -> Object:
    return {
        "name": one.name,
        "rxBytes": one.rx_bytes,
        "rxErrors": one.rx_errors,
        "txBytes": one.tx_bytes,
        "txErrors": one.tx_errors,
    }


def without_limit_of(machine: Machine, samples: Iterable[Sample]) -> list[Sample]:
    """An engine gives the machine's memory as the limit of what has none."""
    return [
        one
        if one.usage.memory_limit_bytes < machine.usage.memory_limit_bytes
        else one._replace(usage=_unlimited(one.usage))
        for one in samples
    ]


def _unlimited(usage: Usage) -> Usage:
    return msgspec.structs.replace(usage, memory_limit_bytes=0)
