"""The page /stats/summary: usage of the node and its pods. Pure.

Input: a `Snapshot`. Output: a v1alpha1 Summary as plain data. Next: `pages`. Source: pkg/kubelet/server/stats,
k8s.io/kubelet/pkg/apis/stats/v1alpha1. A pod's usage comes from its cgroup, whose counters survive container restarts;
without a cgroup, it is the sum over its containers, including the sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronolet.adapters.machine.usage import Machine
from chronolet.node.stats.samples import ContainerSample, Measured, PodSample, Snapshot
from chronolet.ports.machine.moments import rfc3339
from chronolet.ports.machine.usage import DiskUse, FileSystem, Interface, Pressure, Stall, Usage

Object = dict[str, Any]


def summary(node: str, snapshot: Snapshot) -> Object:
    """Return the page as plain data."""
    return {
        "node": _node(node, snapshot),
        "pods": [_pod(one, snapshot.images) for one in snapshot.pods],
    }


def _node(name: str, snapshot: Snapshot) -> Object:
    machine, usage = snapshot.machine, snapshot.machine.usage
    at = rfc3339(usage.at)
    found: Object = {
        "nodeName": name,
        "startTime": rfc3339(machine.booted_at),
        **_used(snapshot.node, at),
        "network": _network(usage, machine.default_interface, at),
        "fs": _state_disk(machine, at),
        "rlimit": {"time": at, "maxpid": machine.most_processes, "curproc": usage.threads},
    }
    if snapshot.images is not None:
        used = snapshot.images.capacity_bytes - snapshot.images.available_bytes
        images = {"time": at, **_capacity(snapshot.images), "usedBytes": used}
        found["runtime"] = {"imageFs": images, "containerFs": images}
    return found


def _state_disk(machine: Machine, at: str) -> Object:
    return {
        "time": at,
        "availableBytes": machine.available_bytes,
        "capacityBytes": machine.capacity_bytes,
        "usedBytes": machine.capacity_bytes - machine.available_bytes,
        "inodesFree": machine.inodes_free,
        "inodes": machine.inodes,
        "inodesUsed": machine.inodes - machine.inodes_free,
    }


def _pod(pod: PodSample, images: FileSystem | None) -> Object:
    total = pod.whole or sum_of_containers(pod)
    at = rfc3339(total.usage.at)
    found: Object = {
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": rfc3339(min(one.container.created_at for one in pod.all_containers)),
        "containers": [_container(one, images) for one in latest(pod.containers)],
        **_used(total, at),
        "process_stats": {"process_count": total.usage.threads},
    }
    interfaces = pod.sandbox.measured.usage.interfaces if pod.sandbox is not None else ()
    if pod.sandbox is not None and interfaces:
        found["network"] = _network(pod.sandbox.measured.usage, interfaces[0].name, at)
    return found


def latest(containers: Sequence[ContainerSample]) -> list[ContainerSample]:
    """Return the most recently created instance of each container: an earlier one may still be terminating."""
    return list({one.name: one for one in containers}.values())


def sum_of_containers(pod: PodSample) -> Measured:
    """Return the sum over the pod's containers, including the sandbox. Its `nano_cores` is None unless those of all
    containers are known.
    """
    parts = [one.measured for one in pod.all_containers]
    usages, rates = [one.usage for one in parts], [one.nano_cores for one in parts if one.nano_cores is not None]
    total = Usage(
        at=max(one.at for one in usages),
        cpu_nanoseconds=sum(one.cpu_nanoseconds for one in usages),
        memory_bytes=sum(one.memory_bytes for one in usages),
        working_set_bytes=sum(one.working_set_bytes for one in usages),
        rss_bytes=sum(one.rss_bytes for one in usages),
        page_faults=sum(one.page_faults for one in usages),
        major_page_faults=sum(one.major_page_faults for one in usages),
        threads=sum(one.threads for one in usages),
    )
    return Measured(total, sum(rates) if len(rates) == len(parts) else None)


def _container(one: ContainerSample, images: FileSystem | None) -> Object:
    at = rfc3339(one.measured.usage.at)
    found: Object = {"name": one.name, "startTime": rfc3339(one.container.created_at), **_used(one.measured, at)}
    if one.layer is not None and images is not None:
        found["rootfs"] = _layer(one.layer, images)
    if one.log_bytes is not None and images is not None:
        found["logs"] = {"time": at, **_capacity(images), "usedBytes": one.log_bytes, "inodesUsed": 1}
    return found


def _used(measured: Measured, at: str) -> Object:
    """Return the sections cpu, memory and, if the kernel reports I/O pressure, io."""
    usage, waits = measured.usage, measured.usage.pressures
    busy = {} if measured.nano_cores is None else {"usageNanoCores": measured.nano_cores}
    found: Object = {
        "cpu": {"time": at, **busy, "usageCoreNanoSeconds": usage.cpu_nanoseconds, **_psi(waits.cpu)},
        "memory": {**_memory(usage, at), **_psi(waits.memory)},
    }
    if waits.io is not None:
        found["io"] = {"time": at, **_psi(waits.io)}
    return found


def _memory(usage: Usage, at: str) -> Object:
    """Return the memory section; it has `availableBytes` only if there is a limit."""
    limit = usage.limits.memory_bytes
    available = {"availableBytes": max(0, limit - usage.working_set_bytes)} if limit else {}
    return {
        "time": at,
        **available,
        "usageBytes": usage.memory_bytes,
        "workingSetBytes": usage.working_set_bytes,
        "rssBytes": usage.rss_bytes,
        "pageFaults": usage.page_faults,
        "majorPageFaults": usage.major_page_faults,
    }


def _psi(pressure: Pressure | None) -> Object:
    """Return the psi section, nothing if the pressure is unknown; `total` is in microseconds, as the kernel reports it
    and the kubelet passes it on.
    """
    return {} if pressure is None else {"psi": {"full": _stall(pressure.full), "some": _stall(pressure.some)}}


def _stall(stall: Stall) -> Object:
    return {
        "total": stall.total_microseconds,
        "avg10": stall.avg10,
        "avg60": stall.avg60,
        "avg300": stall.avg300,
    }


def _layer(use: DiskUse, images: FileSystem) -> Object:
    return {
        "time": rfc3339(use.at),
        **_capacity(images),
        "usedBytes": use.used_bytes,
        "inodesUsed": use.inodes,
    }


def _capacity(found: FileSystem) -> Object:
    return {
        "availableBytes": found.available_bytes,
        "capacityBytes": found.capacity_bytes,
        "inodesFree": found.inodes_free,
        "inodes": found.inodes,
    }


def _network(usage: Usage, default: str, at: str) -> Object:
    """Return the network section; the counters of the default interface are repeated at its top level."""
    interfaces = [_interface(one) for one in usage.interfaces]
    own = next((one for one in interfaces if one["name"] == default), {})
    return {"time": at, **own, "interfaces": interfaces}


def _interface(one: Interface) -> Object:
    return {
        "name": one.name,
        "rxBytes": one.rx_bytes,
        "rxErrors": one.rx_errors,
        "txBytes": one.tx_bytes,
        "txErrors": one.tx_errors,
    }
