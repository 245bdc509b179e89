"""Docker's statistics as the port's plain usage. Pure.

Comes in: the reply of /containers/<id>/stats. Goes out: `Usage`. The fields of memory are those of the kernel's files,
which differ between cgroup v1 and v2. Answers to cAdvisor's container/libcontainer (setMemoryStats).
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from chronolet.ports.runtime import Interface, Usage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Total(msgspec.Struct, frozen=True):
    total_usage: int = 0


class _Cpu(msgspec.Struct, frozen=True):
    cpu_usage: _Total = _Total()


class _Memory(msgspec.Struct, frozen=True):
    usage: int = 0
    limit: int = 0
    stats: dict[str, int] = {}


class _Pids(msgspec.Struct, frozen=True):
    current: int = 0


class _Network(msgspec.Struct, frozen=True):
    rx_bytes: int = 0
    rx_errors: int = 0
    tx_bytes: int = 0
    tx_errors: int = 0


class _Stats(msgspec.Struct, frozen=True):
    read: datetime
    cpu_stats: _Cpu = _Cpu()
    memory_stats: _Memory = _Memory()
    pids_stats: _Pids = _Pids()
    networks: dict[str, _Network] | None = None


_decoder = msgspec.json.Decoder(_Stats)


def read(body: bytes) -> Usage | None:
    """None of a container that does not run: the engine was never there to look."""
    found = _decoder.decode(body)
    if found.read < _EPOCH:
        return None
    memory = found.memory_stats
    return Usage(
        at=round(found.read.timestamp() * 1000),
        cpu_nanoseconds=found.cpu_stats.cpu_usage.total_usage,
        memory_bytes=memory.usage,
        memory_limit_bytes=memory.limit,
        working_set_bytes=max(0, memory.usage - _of(memory, "total_inactive_file", "inactive_file")),
        rss_bytes=_of(memory, "total_rss", "rss", "anon"),
        page_faults=_of(memory, "total_pgfault", "pgfault"),
        major_page_faults=_of(memory, "total_pgmajfault", "pgmajfault"),
        processes=found.pids_stats.current,
        interfaces=tuple(
            Interface(
                name=name,
                rx_bytes=one.rx_bytes,
                rx_errors=one.rx_errors,
                tx_bytes=one.tx_bytes,
                tx_errors=one.tx_errors,
            )
            for name, one in sorted((found.networks or {}).items())
        ),
    )


def _of(memory: _Memory, *names: str) -> int:
    """The first of these that the kernel has: a v1 group has totals with what is below it."""
    return next((memory.stats[name] for name in names if name in memory.stats), 0)
