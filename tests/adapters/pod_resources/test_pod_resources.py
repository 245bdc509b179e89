"""PodResources, read by a client in another process whose code was generated only from the interface definition."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from chronolet.adapters.pod_resources.server import GrpcPodResources
from chronolet.adapters.sockets import unix_sockets
from chronolet.ports.devices.pod_resources import (
    ContainerResources,
    NodeResources,
    PodResources,
    ResourceDevice,
    UnreadableError,
)
from chronolet_schemas.protos import podresources_pb2
from tests.support import scratch
from tests.support.devices.pod_resources_client import PodResourcesClient
from tests.support.scratch import HANG_SECONDS

VIEW = NodeResources(
    pods=(
        PodResources(
            name="trainer",
            namespace="default",
            containers=(
                ContainerResources(
                    name="app",
                    devices=(
                        ResourceDevice(resource="a.test/gpu", id="gpu-0", nodes=(1, 2)),
                        ResourceDevice(resource="a.test/nic", id="nic-3"),
                    ),
                ),
                ContainerResources(name="sidecar"),
            ),
        ),
        PodResources(name="trained", namespace="default", active=False, containers=(ContainerResources(name="app"),)),
    ),
    allocatable=(ResourceDevice(resource="a.test/gpu", id="gpu-0", nodes=(1, 2)),),
)


class Server:
    """A server whose view can be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.view: NodeResources | UnreadableError = VIEW
        self.counted: list[tuple[str, str, bool]] = []
        timing = unix_sockets.Timing(check_seconds=0.05, grace_seconds=0.05)
        self.server = GrpcPodResources(folder, self._look, lambda *call: self.counted.append(call), timing)

    def _look(self) -> NodeResources:
        if isinstance(self.view, UnreadableError):
            raise self.view
        return self.view


@pytest.fixture
def server() -> Iterator[Server]:
    folder = scratch.create("devices")
    stop, made = threading.Event(), Server(folder / "pod-resources")
    thread = threading.Thread(target=made.server.serve, args=(stop,), daemon=True)
    thread.start()
    scratch.wait_until(lambda: unix_sockets.identity(made.folder / "kubelet.sock") is not None, "the socket")
    yield made
    stop.set()
    thread.join(HANG_SECONDS)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def client() -> Iterator[PodResourcesClient]:
    with PodResourcesClient.generated() as made:
        yield made


def test_a_device_is_listed_once_per_numa_node(server: Server, client: PodResourcesClient) -> None:
    gpu = {"resource_name": "a.test/gpu", "device_ids": ["gpu-0"]}
    on_nodes = [gpu | {"topology": {"nodes": [{"ID": node}]}} for node in ("1", "2")]
    listed = client.ask(server.folder, "List")
    assert listed == {
        "pod_resources": [
            {
                "name": "trainer",
                "namespace": "default",
                "containers": [
                    {
                        "name": "app",
                        "devices": [*on_nodes, {"resource_name": "a.test/nic", "device_ids": ["nic-3"]}],
                    },
                    {"name": "sidecar"},
                ],
            }
        ]
    }
    one = client.ask(server.folder, "Get", pod_name="trainer", pod_namespace="default")
    assert one == {"pod_resources": listed["pod_resources"][0]}
    assert client.ask(server.folder, "GetAllocatableResources") == {"devices": on_nodes}
    assert server.counted == [("v1", "list", False), ("v1", "get", False), ("v1", "get_allocatable", False)]


def test_an_ended_pod_is_not_listed_but_can_be_requested(server: Server, client: PodResourcesClient) -> None:
    (listed,) = client.ask(server.folder, "List")["pod_resources"]
    assert listed["name"] == "trainer"
    one = client.ask(server.folder, "Get", pod_name="trained", pod_namespace="default")
    assert one == {"pod_resources": {"name": "trained", "namespace": "default", "containers": [{"name": "app"}]}}


def test_old_agents_use_v1alpha1(server: Server) -> None:
    with grpc.insecure_channel(f"unix:{server.folder}/kubelet.sock") as channel:
        raw = channel.unary_unary("/v1alpha1.PodResourcesLister/List")(b"", timeout=HANG_SECONDS, wait_for_ready=True)
        with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
            channel.unary_unary("/v1alpha1.PodResourcesLister/Get")(b"", timeout=HANG_SECONDS)
    pod, over = podresources_pb2.ListPodResourcesResponse.FromString(raw).pod_resources
    assert over.name == "trained"
    assert (pod.namespace, pod.name) == ("default", "trainer")
    assert [one.device_ids[:] for one in pod.containers[0].devices] == [["gpu-0"], ["gpu-0"], ["nic-3"]]
    assert server.counted == [("v1alpha1", "list", False)]


def test_an_unknown_pod_and_an_unreadable_view_are_errors(server: Server, client: PodResourcesClient) -> None:
    found = client.ask(server.folder, "Get", pod_name="nobody", pod_namespace="default")
    assert found == {"error": "NOT_FOUND: pod nobody in namespace default not found"}
    server.view = UnreadableError("Redis does not answer")
    assert client.ask(server.folder, "List") == {"error": "UNAVAILABLE: Redis does not answer"}
    assert server.counted == [("v1", "get", True), ("v1", "list", True)]


def test_concurrent_calls_are_limited(server: Server) -> None:
    go_on, lock, running, most = threading.Event(), threading.Lock(), [0], [0]
    look = server.server._view

    def slow() -> NodeResources:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        assert go_on.wait(HANG_SECONDS)
        with lock:
            running[0] -= 1
        return look()

    server.server._view = slow
    with grpc.insecure_channel(f"unix:{server.folder}/kubelet.sock") as channel:
        ask = channel.unary_unary("/v1.PodResourcesLister/List")
        calls = [ask.future(b"", timeout=HANG_SECONDS, wait_for_ready=True) for _ in range(300)]
        refused = [one for one in calls if one not in set(_unanswered(calls, at_least=300 - 64))]
        assert {one.code() for one in refused} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        go_on.set()
        answered = [one for one in calls if one.exception(timeout=HANG_SECONDS) is None]
        assert len(answered) == len(calls) - len(refused) == 64
        assert 1 <= most[0] <= 8
        assert ask(b"", timeout=HANG_SECONDS), "calls are accepted again"


def _unanswered(calls: list[grpc.Future], at_least: int) -> list[grpc.Future]:
    """Wait until at least `at_least` calls have been refused; return the calls that are still in progress."""
    scratch.wait_until(lambda: sum(one.done() for one in calls) >= at_least, f"{at_least} refusals")
    return [one for one in calls if not one.done()]
