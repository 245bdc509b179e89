"""Computes the allocatable part of a machine: capacity minus reservations minus what must stay free. Pure.

Input: the machine's capacity, the reservations from the settings. Output: amounts for `Node`, or what is wrong with the
settings. Next: the worker that describes the node. Source: pkg/kubelet/cm/node_container_manager_linux.go,
pkg/kubelet/nodestatus/setters.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet_schemas.qos import Amounts


def enforced(capacity: Amounts, *reserved: Amounts) -> Amounts:
    """Return the amounts that all pods together may use. Huge pages are deducted from memory."""
    pages = {
        name: max(0, much - sum(one.huge_pages.get(name, 0) for one in reserved))
        for name, much in capacity.huge_pages.items()
    }
    memory = capacity.memory_bytes - sum(one.memory_bytes for one in reserved)
    return Amounts(
        cpu_milli=max(0, capacity.cpu_milli - sum(one.cpu_milli for one in reserved)),
        memory_bytes=max(0, max(0, memory) - sum(pages.values())),
        pids=max(1, capacity.pids - sum(one.pids for one in reserved)) if capacity.pids else 0,
        huge_pages=pages,
    )


def allocatable(capacity: Amounts, memory_kept_free_bytes: int, *reserved: Amounts) -> Amounts:
    """Return the amounts into which the requests of all pods must fit: `enforced`, less the memory that
    `--eviction-hard` reserves.
    """
    return enforced(capacity, *reserved, Amounts(memory_bytes=memory_kept_free_bytes))


def unlimited_memory(capacity: Amounts, *reserved: Amounts) -> int:
    """Return the memory that a container without a limit may use, as the kubelet computes it: eviction thresholds and
    huge pages are not deducted. Source: pkg/kubelet/kubelet.go (GetNodeAllocatableAbsolute for the runtime manager).
    """
    return max(0, capacity.memory_bytes - sum(one.memory_bytes for one in reserved))


def problem(capacity: Amounts, memory_kept_free_bytes: int, *reserved: Amounts) -> str | None:
    """Return an error text about the first resource that is reserved beyond its capacity; None if there is none."""
    kept = (*reserved, Amounts(memory_bytes=memory_kept_free_bytes))
    for name, has, keeps in _resources(capacity, kept):
        if keeps > has:
            found = f'Resource "{name}" has a reservation of {keeps}, capacity of {has}'
            return f"invalid Node Allocatable configuration. {found}"
    return None


def _resources(capacity: Amounts, kept: tuple[Amounts, ...]) -> Iterator[tuple[str, int, int]]:
    yield "cpu", capacity.cpu_milli, sum(one.cpu_milli for one in kept)
    yield "memory", capacity.memory_bytes, sum(one.memory_bytes for one in kept)
    yield "pid", capacity.pids, sum(one.pids for one in kept)
    for name in sorted({name for one in kept for name in one.huge_pages}):
        yield name, capacity.huge_pages.get(name, 0), sum(one.huge_pages.get(name, 0) for one in kept)
