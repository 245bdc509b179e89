"""The metrics of /metrics/cadvisor: names, types, help texts, and how each value is computed from a row. Pure.

Input: `Row`s. Output: values. Next: `cadvisor_page`. Source: cAdvisor's metrics/prometheus.go,
metrics/prometheus_machine.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from chronolet.adapters.machine.usage import Machine
from chronolet.ports.machine.usage import DiskUse, FileSystem, Pressure, Usage

NODE, POD, SANDBOX, CONTAINER = "node", "pod", "sandbox", "container"
_ALL = frozenset({NODE, POD, SANDBOX, CONTAINER})
_CGROUPS = _ALL - {NODE}
_RUN = frozenset({SANDBOX, CONTAINER})

_NANOSECONDS, _MICROSECONDS, _MILLISECONDS = 1e9, 1e6, 1e3
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Row(NamedTuple):
    """A cgroup or the machine. `what`: its kind (`NODE`, `POD`, `SANDBOX` or `CONTAINER`). `labels`: rendered, without
    braces. `created_at`: when it was created (the machine: booted), in milliseconds. `used`: disk usage of the
    container's writable layer, which is on the file system `disk`. `log_bytes`: size of the container's log.
    """

    what: str
    labels: str
    usage: Usage
    created_at: int = 0
    used: DiskUse | None = None
    log_bytes: int = 0
    disk: FileSystem | None = None


class Metric(NamedTuple):
    """A metric with one sample per row. `read` returns the value, or None if there is no sample; `rows`: the kinds of
    rows that have samples; `extra`: a rendered label added to every sample, with a leading comma; `timed`: whether
    samples have a timestamp.
    """

    name: str
    kind: str
    help: str
    read: Callable[[Row], float | None]
    rows: frozenset[str] = _CGROUPS
    extra: str = ""
    timed: bool = True


class Labelled(NamedTuple):
    """A metric with several samples per row. `read` returns, for each sample, a rendered label with a leading comma,
    and the value.
    """

    name: str
    kind: str
    help: str
    read: Callable[[Row], Iterable[tuple[str, float]]]


def escaped(value: str) -> str:
    """Escape a label value for the text format."""
    return value.translate(_ESCAPES)


def _usage(field: str) -> Callable[[Row], float]:
    of: Callable[[Usage], float] = attrgetter(field)
    return lambda row: of(row.usage)


def _seconds(field: str, unit: float) -> Callable[[Row], float]:
    of: Callable[[Usage], float] = attrgetter(field)
    return lambda row: of(row.usage) / unit


def _if_limited(read: Callable[[Row], float]) -> Callable[[Row], float | None]:
    """Return a reader that omits the sample if there is no CPU quota, as cAdvisor does."""
    return lambda row: read(row) if row.usage.limits.cpu_quota_us else None


def _waited(resource: str, line: str) -> Callable[[Row], float | None]:
    of: Callable[[Any], Pressure | None] = attrgetter(resource)
    stall = attrgetter(f"{line}.total_microseconds")

    def read(row: Row) -> float | None:
        pressure = of(row.usage.pressures)
        return None if pressure is None else stall(pressure) / _MICROSECONDS

    return read


def _pressure(resource: str, name: str) -> Iterator[Metric]:
    stalled = f"Total time in which all tasks were stalled waiting for {name}, in seconds"
    waiting = f"Total time in which tasks waited for {name}, in seconds"
    yield Metric(
        f"container_pressure_{resource}_stalled_seconds_total", "counter", stalled, _waited(resource, "full"), _ALL
    )
    yield Metric(
        f"container_pressure_{resource}_waiting_seconds_total", "counter", waiting, _waited(resource, "some"), _ALL
    )


def _spec(name: str, description: str, field: str) -> Metric:
    return Metric(f"container_spec_{name}", "gauge", description, _usage(f"limits.{field}"), timed=False)


def _memory(name: str, description: str, field: str, rows: frozenset[str] = _ALL) -> Metric:
    return Metric(f"container_memory_{name}", "gauge", description, _usage(field), rows)


METRICS: tuple[Metric, ...] = (
    Metric(
        "container_cpu_usage_seconds_total",
        "counter",
        "Cumulative processor time in seconds",
        _seconds("cpu_nanoseconds", _NANOSECONDS),
        _ALL,
        ',cpu="total"',
    ),
    Metric(
        "container_cpu_cfs_periods_total",
        "counter",
        "Number of elapsed periods of the CPU quota",
        _if_limited(_usage("periods")),
    ),
    Metric(
        "container_cpu_cfs_throttled_periods_total",
        "counter",
        "Number of periods in which the CPU quota was used up",
        _if_limited(_usage("throttled_periods")),
    ),
    Metric(
        "container_cpu_cfs_throttled_seconds_total",
        "counter",
        "Total time throttled by the CPU quota, in seconds",
        _if_limited(_seconds("throttled_nanoseconds", _NANOSECONDS)),
    ),
    _memory("usage_bytes", "Memory in use, file pages included, in bytes", "memory_bytes"),
    _memory("working_set_bytes", "Working set: memory that cannot be reclaimed easily, in bytes", "working_set_bytes"),
    _memory("rss", "Anonymous memory in bytes", "rss_bytes"),
    _memory("cache", "Page cache in bytes", "cache_bytes"),
    _memory("swap", "Swap in use in bytes", "swap_bytes"),
    _memory("max_usage_bytes", "Maximum memory usage so far, in bytes", "most_memory_bytes", _CGROUPS),
    # A counter in cAdvisor; untyped here, because the format's checker expects counters to end with _total.
    Metric(
        "container_memory_failcnt", "untyped", "Number of times the memory limit was hit", _usage("memory_failures")
    ),
    Metric("container_oom_events_total", "counter", "Number of out-of-memory kills", _usage("oom_kills"), _CGROUPS),
    Metric("container_threads", "gauge", "Number of threads", _usage("threads")),
    Metric(
        "container_threads_max",
        "gauge",
        "Maximum number of threads, 0 for no limit",
        _usage("limits.threads"),
    ),
    Metric("container_processes", "gauge", "Number of processes", _usage("processes"), _RUN),
    *_pressure("cpu", "a processor"),
    *_pressure("memory", "memory"),
    *_pressure("io", "I/O"),
    _spec("cpu_shares", "CPU shares", "cpu_shares"),
    _spec("cpu_period", "Period of the CPU quota in microseconds", "cpu_period_us"),
    Metric(
        "container_spec_cpu_quota",
        "gauge",
        "CPU quota in microseconds per period",
        _if_limited(_usage("limits.cpu_quota_us")),
        timed=False,
    ),
    _spec("memory_limit_bytes", "Memory limit in bytes, 0 for none", "memory_bytes"),
    _spec("memory_reservation_limit_bytes", "Memory reservation in bytes, 0 for none", "memory_reservation_bytes"),
    Metric(
        "container_start_time_seconds",
        "gauge",
        "Start time since the epoch in seconds",
        lambda row: row.created_at / _MILLISECONDS,
        _ALL,
        timed=False,
    ),
    Metric(
        "container_last_seen",
        "gauge",
        "Time of the last sample since the epoch in seconds",
        lambda row: row.usage.at / _MILLISECONDS,
        _ALL,
    ),
)


def _through(field: str) -> Callable[[Row], Iterable[tuple[str, float]]]:
    of = attrgetter(field)
    return lambda row: [(f',interface="{escaped(one.name)}"', of(one)) for one in row.usage.interfaces]


def _moved(field: str) -> Callable[[Row], Iterable[tuple[str, float]]]:
    of = attrgetter(field)
    return lambda row: [(f',device="{escaped(one.device)}"', of(one)) for one in row.usage.transfers]


def _held(row: Row) -> Iterable[tuple[str, float]]:
    if row.used is None or row.disk is None:
        return ()
    return ((f',device="{escaped(row.disk.device)}"', row.used.used_bytes + row.log_bytes),)


def _room(row: Row) -> Iterable[tuple[str, float]]:
    if row.used is None or row.disk is None:
        return ()
    return ((f',device="{escaped(row.disk.device)}"', row.disk.capacity_bytes),)


def _network(way: str, past: str, prefix: str) -> Iterator[Labelled]:
    for name, description, field in (
        ("bytes", "Bytes", "bytes"),
        ("packets", "Packets", "packets"),
        ("packets_dropped", "Packets dropped while being", "dropped"),
        ("errors", "Packets with errors", "errors"),
    ):
        metric = f"container_network_{way}_{name}_total"
        yield Labelled(metric, "counter", f"{description} {past}", _through(f"{prefix}_{field}"))


LABELLED: tuple[Labelled, ...] = (
    *_network("receive", "received", "rx"),
    *_network("transmit", "transmitted", "tx"),
    Labelled("container_fs_usage_bytes", "gauge", "Writable layer and log in bytes", _held),
    Labelled("container_fs_limit_bytes", "gauge", "Size of the file system in bytes", _room),
    Labelled("container_fs_reads_bytes_total", "counter", "Bytes read from the device", _moved("read_bytes")),
    Labelled("container_fs_writes_bytes_total", "counter", "Bytes written to the device", _moved("written_bytes")),
    Labelled("container_fs_reads_total", "counter", "Reads from the device", _moved("reads")),
    Labelled("container_fs_writes_total", "counter", "Writes to the device", _moved("writes")),
)


class OfMachine(NamedTuple):
    """A metric of the machine. `read` returns its value."""

    name: str
    help: str
    read: Callable[[Machine], float]


MACHINE: tuple[OfMachine, ...] = (
    OfMachine("machine_cpu_cores", "Number of processors", lambda machine: machine.processors),
    OfMachine("machine_memory_bytes", "Memory of the machine in bytes", lambda one: one.usage.limits.memory_bytes),
)
