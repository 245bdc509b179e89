"""The page /stats/summary, rendered from a snapshot."""

from typing import Any

from msgspec.structs import replace

from chronolet.node.stats.samples import ContainerSample, Measured, PodSample, Snapshot
from chronolet.node.stats.summary import summary
from chronolet.ports.machine.usage import (
    DiskUse,
    FileSystem,
    Interface,
    Limits,
    Pressure,
    Pressures,
    Stall,
    Usage,
)
from tests.node.stats.nodes import machine, state

CALM = Stall()
WAITS = Pressure(Stall(1.5, 2.5, 3.5, 4_000_000), CALM)
PSI = {
    "full": {"total": 0, "avg10": 0.0, "avg60": 0.0, "avg300": 0.0},
    "some": {"total": 4_000_000, "avg10": 1.5, "avg60": 2.5, "avg300": 3.5},
}
IMAGES = FileSystem(device="/dev/sda1", capacity_bytes=100, available_bytes=40, inodes=9, inodes_free=5)
ETH0 = Interface(name="eth0", rx_bytes=1, rx_errors=2, tx_bytes=3, tx_errors=4)


def container(
    name: str, cpu: int = 10, *, attempt: int = 0, nano_cores: int | None = 5, **more: Any
) -> ContainerSample:
    usage = Usage(at=3_000, cpu_nanoseconds=cpu, working_set_bytes=30, threads=1, **more)
    return ContainerSample(state(0, name, attempt=attempt), Measured(usage, nano_cores, f"/kubepods/{name}"))


def pod(*containers: ContainerSample, whole: Measured | None = None, **box: Any) -> PodSample:
    return PodSample("default", "web-0", "uid-0", container("POD", 2, **box), containers, whole)


def shown(*pods: PodSample, images: FileSystem | None = None) -> Any:
    node = machine(3_000, 4_000_000_000)
    return summary("n", Snapshot(node, Measured(node.usage, 2_000_000_000, "/"), pods, images))


def test_the_node() -> None:
    node = shown()["node"]
    assert node["cpu"] == {
        "time": "1970-01-01T00:00:03Z",
        "usageNanoCores": 2_000_000_000,
        "usageCoreNanoSeconds": 4_000_000_000,
    }
    assert (node["nodeName"], node["startTime"]) == ("n", "1970-01-01T00:00:01Z")
    assert (node["memory"]["availableBytes"], node["memory"]["workingSetBytes"]) == (600, 400)
    assert node["fs"]["usedBytes"] == 6
    assert "runtime" not in node
    assert "psi" not in node["cpu"]
    assert "io" not in node


def test_the_usage_of_a_pod_without_a_cgroup_is_the_sum_of_its_containers() -> None:
    (web,) = shown(pod(container("app"), container("side", nano_cores=7)))["pods"]
    assert web["cpu"] == {"time": "1970-01-01T00:00:03Z", "usageNanoCores": 17, "usageCoreNanoSeconds": 22}
    assert web["memory"]["workingSetBytes"] == 90
    assert web["process_stats"] == {"process_count": 3}
    assert web["startTime"] == "1970-01-01T00:00:05Z"
    assert [one["name"] for one in web["containers"]] == ["app", "side"]
    assert "network" not in web
    # The rate of a container that has just restarted is unknown, and so is the rate of its pod.
    (web,) = shown(pod(container("app", nano_cores=None)))["pods"]
    assert "usageNanoCores" not in web["cpu"]
    assert "usageNanoCores" not in web["containers"][0]["cpu"]


def test_the_usage_of_a_pod_is_that_of_its_cgroup_although_a_container_restarted() -> None:
    whole = Measured(Usage(at=3_000, cpu_nanoseconds=2_000_000_700, working_set_bytes=99), 1_000_000_000, "/kubepods/x")
    (web,) = shown(pod(container("app", 2, nano_cores=None), whole=whole))["pods"]
    assert (web["cpu"]["usageCoreNanoSeconds"], web["cpu"]["usageNanoCores"]) == (2_000_000_700, 1_000_000_000)
    assert web["memory"]["workingSetBytes"] == 99
    assert "usageNanoCores" not in web["containers"][0]["cpu"]


def test_the_later_of_two_runs_of_a_container_is_shown() -> None:
    old, new = container("app", 1), container("app", 2, attempt=1)
    (web,) = shown(pod(old, new))["pods"]
    assert [one["cpu"]["usageCoreNanoSeconds"] for one in web["containers"]] == [2]


def test_available_memory_is_counted_up_to_the_limit() -> None:
    limited = container("app", limits=Limits(memory_bytes=100))
    app, side = shown(pod(limited, container("side")))["pods"][0]["containers"]
    assert app["memory"]["availableBytes"] == 70
    assert "availableBytes" not in side["memory"]


def test_the_network_of_a_pod_is_its_sandboxs() -> None:
    (web,) = shown(pod(container("app"), interfaces=(ETH0,)))["pods"]
    counts = {"name": "eth0", "rxBytes": 1, "rxErrors": 2, "txBytes": 3, "txErrors": 4}
    assert web["network"] == {"time": "1970-01-01T00:00:03Z", **counts, "interfaces": [counts]}


def test_pressure_is_shown_under_its_resource() -> None:
    waited = container("app", pressures=Pressures(cpu=WAITS, memory=WAITS, io=WAITS))
    app = shown(pod(waited))["pods"][0]["containers"][0]
    assert (app["cpu"]["psi"], app["memory"]["psi"]) == (PSI, PSI)
    assert app["io"] == {"time": "1970-01-01T00:00:03Z", "psi": PSI}
    node = machine(3_000, 1)
    node = replace(node, usage=replace(node.usage, pressures=Pressures(cpu=WAITS)))
    found = summary("n", Snapshot(node, Measured(node.usage), ()))["node"]
    assert found["cpu"]["psi"] == PSI
    assert "io" not in found


def test_written_bytes_are_shown_if_they_are_known() -> None:
    known = container("app")._replace(layer=DiskUse(at=2_000, used_bytes=7, inodes=3), log_bytes=11)
    found = shown(pod(known, container("side")), images=IMAGES)
    app, side = found["pods"][0]["containers"]
    room = {"availableBytes": 40, "capacityBytes": 100, "inodesFree": 5, "inodes": 9}
    assert app["rootfs"] == {"time": "1970-01-01T00:00:02Z", **room, "usedBytes": 7, "inodesUsed": 3}
    assert app["logs"]["usedBytes"] == 11
    assert "rootfs" not in side
    assert "logs" not in side
    assert found["node"]["runtime"]["imageFs"]["usedBytes"] == 60
