"""The pages /metrics/resource and /metrics/cadvisor, rendered from a snapshot."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from chronolet.node.stats.cadvisor_page import cadvisor_metrics
from chronolet.node.stats.resource_page import resource_metrics
from chronolet.node.stats.samples import ContainerSample, Measured, PodSample, Snapshot
from chronolet.ports.machine.usage import DiskUse, FileSystem, Limits, Pressure, Pressures, Stall, Transfers, Usage
from tests.node.stats.nodes import machine, state
from tests.support.machine.cgroup_trees import ETH0

SECOND = 10**9
POD_PATH = "/kubepods/burstable/poduid-0"
PRESSURE = Pressure(Stall(total_microseconds=3_000_000), Stall(total_microseconds=1_000_000))
USED = Usage(
    at=60_000,
    cpu_nanoseconds=2 * SECOND,
    periods=5,
    throttled_periods=4,
    throttled_nanoseconds=3 * SECOND,
    memory_bytes=90,
    most_memory_bytes=95,
    working_set_bytes=20,
    rss_bytes=10,
    cache_bytes=6,
    swap_bytes=1,
    memory_failures=11,
    oom_kills=7,
    threads=3,
    processes=2,
    limits=Limits(cpu_shares=512, cpu_quota_us=50_000, cpu_period_us=100_000, memory_bytes=4096),
    pressures=Pressures(PRESSURE, PRESSURE, PRESSURE),
    transfers=(Transfers(device="/dev/sda", read_bytes=4096, written_bytes=8192, reads=1, writes=2),),
)
IMAGES = FileSystem(device="/dev/sda1", capacity_bytes=100, available_bytes=40, inodes=9, inodes_free=5)


def snapshot(*, errors: int = 0) -> Snapshot:
    app = ContainerSample(
        state(0, "app"), Measured(USED, None, f"{POD_PATH}/a"), DiskUse(at=1, used_bytes=7, inodes=3), log_bytes=11
    )
    quiet = Usage(at=60_000, cpu_nanoseconds=SECOND, working_set_bytes=5, interfaces=(ETH0,))
    box = ContainerSample(state(0, "POD"), Measured(quiet, None, f"{POD_PATH}/b"))
    whole = Measured(replace(USED, cpu_nanoseconds=3 * SECOND, working_set_bytes=30, processes=0), None, POD_PATH)
    node = machine(60_000, 9 * SECOND)
    return Snapshot(
        node, Measured(node.usage), (PodSample("default", "web-0", "uid-0", box, (app,), whole),), IMAGES, errors
    )


def samples(text: str) -> Mapping[tuple[str, ...], float]:
    """Parse a page; returns values by name and labels, without empty labels."""
    return {
        (one.name, *sorted(f"{key}={value}" for key, value in one.labels.items() if value)): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_the_resource_page_shows_node_pods_and_containers() -> None:
    whose = ("namespace=default", "pod=web-0")
    app = ("container=app", *whose)
    assert samples(resource_metrics(snapshot())) == {
        ("node_cpu_usage_seconds_total",): 9,
        ("node_memory_working_set_bytes",): 400,
        ("pod_cpu_usage_seconds_total", *whose): 3,
        ("pod_memory_working_set_bytes", *whose): 30,
        ("container_cpu_usage_seconds_total", *app): 2,
        ("container_memory_working_set_bytes", *app): 20,
        ("container_start_time_seconds", *app): 5,
        ("resource_scrape_error",): 0,
    }
    assert samples(resource_metrics(snapshot(errors=1)))[("resource_scrape_error",)] == 1


@pytest.fixture(scope="module")
def page() -> Mapping[tuple[str, ...], float]:
    return samples(cadvisor_metrics(snapshot()).decode())


def labels_of(what: str) -> tuple[str, ...]:
    path = {"app": f"{POD_PATH}/a", "POD": f"{POD_PATH}/b"}.get(what, POD_PATH)
    own = (f"container={what}", f"name=k8s_{what}_web-0", "image=busybox:1") if what else ()
    return (f"id={path}", "namespace=default", "pod=web-0", *own)


def value(page: Mapping[tuple[str, ...], float], name: str, what: str, *more: str) -> float | None:
    return page.get((name, *sorted((*labels_of(what), *more))))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("container_cpu_cfs_periods_total", 5),
        ("container_cpu_cfs_throttled_periods_total", 4),
        ("container_cpu_cfs_throttled_seconds_total", 3),
        ("container_memory_usage_bytes", 90),
        ("container_memory_max_usage_bytes", 95),
        ("container_memory_working_set_bytes", 20),
        ("container_memory_rss", 10),
        ("container_memory_cache", 6),
        ("container_memory_swap", 1),
        ("container_memory_failcnt", 11),
        ("container_oom_events_total", 7),
        ("container_threads", 3),
        ("container_threads_max", 0),
        ("container_processes", 2),
        ("container_pressure_cpu_stalled_seconds_total", 1),
        ("container_pressure_cpu_waiting_seconds_total", 3),
        ("container_pressure_memory_stalled_seconds_total", 1),
        ("container_pressure_memory_waiting_seconds_total", 3),
        ("container_pressure_io_stalled_seconds_total", 1),
        ("container_pressure_io_waiting_seconds_total", 3),
        ("container_spec_cpu_shares", 512),
        ("container_spec_cpu_period", 100_000),
        ("container_spec_cpu_quota", 50_000),
        ("container_spec_memory_limit_bytes", 4096),
        ("container_spec_memory_reservation_limit_bytes", 0),
        ("container_start_time_seconds", 5),
        ("container_last_seen", 60),
    ],
)
def test_the_cadvisor_page_shows_each_value_under_its_name(
    page: Mapping[tuple[str, ...], float], name: str, expected: float
) -> None:
    assert value(page, name, "app") == expected


def test_cpu_time_is_shown_for_pod_containers_and_sandbox(page: Mapping[tuple[str, ...], float]) -> None:
    name = "container_cpu_usage_seconds_total"
    assert [value(page, name, what, "cpu=total") for what in ("", "app", "POD")] == [3, 2, 1]
    assert page[(name, "cpu=total", "id=/")] == 9


def test_without_a_quota_there_are_no_throttling_series(page: Mapping[tuple[str, ...], float]) -> None:
    names = ("container_cpu_cfs_periods_total", "container_spec_cpu_quota")
    assert [value(page, name, "POD") for name in names] == [None, None]
    assert value(page, "container_pressure_cpu_waiting_seconds_total", "POD") is None, "no values, no series"


def test_network_series_belong_to_the_sandbox(page: Mapping[tuple[str, ...], float]) -> None:
    found = {
        (way, what): value(page, f"container_network_{way}_{what}_total", "POD", "interface=eth0")
        for way in ("receive", "transmit")
        for what in ("bytes", "packets", "errors", "packets_dropped")
    }
    assert list(found.values()) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert value(page, "container_network_receive_bytes_total", "", "interface=eth0") is None, "counted once"


def test_file_systems_and_transfers_name_their_device(page: Mapping[tuple[str, ...], float]) -> None:
    assert value(page, "container_fs_usage_bytes", "app", "device=/dev/sda1") == 18
    assert value(page, "container_fs_limit_bytes", "app", "device=/dev/sda1") == 100
    assert value(page, "container_fs_usage_bytes", "POD", "device=/dev/sda1") is None, "unknown so far"
    names = ("reads_bytes", "writes_bytes", "reads", "writes")
    found = [value(page, f"container_fs_{one}_total", "app", "device=/dev/sda") for one in names]
    assert found == [4096, 8192, 1, 2]


def test_the_machines_series(page: Mapping[tuple[str, ...], float]) -> None:
    assert (page[("machine_cpu_cores",)], page[("machine_memory_bytes",)]) == (2, 1_000)
    assert page[("container_scrape_error",)] == 0


def test_every_series_has_the_same_labels_and_every_sample_its_time() -> None:
    text = cadvisor_metrics(snapshot()).decode()
    lines = [one for one in text.splitlines() if one.startswith("container_memory_rss{")]
    assert len(lines) == 4
    labels = ("container=", "id=", "image=", "name=", "namespace=", "pod=")
    assert all(all(f"{label}" in line for label in labels) and line.endswith(" 60000") for line in lines)
    assert text.count("# TYPE container_memory_rss gauge\n") == 1


def test_label_values_are_escaped() -> None:
    odd = replace(state(0, "app"), image='a"b\\c\nd')
    whole = snapshot()
    (pod,) = whole.pods
    pod = pod._replace(containers=(pod.containers[0]._replace(container=odd),))
    text = cadvisor_metrics(whole._replace(pods=(pod,))).decode()
    assert r'image="a\"b\\c\nd"' in text
    found = {
        one.labels["image"]
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if "image" in one.labels
    }
    assert 'a"b\\c\nd' in found
