"""`get devices`, `describe device` and `checkpoint`: golden outputs for a history that the decider wrote."""

import json
from base64 import b64encode
from typing import Any

import pytest

from chronolet.devices import signals
from chronolet.devices.checkpoint import Entry, checksum
from chronolet.devices.decider import DECIDER
from chronolet.kernel.decider import Due
from chronolet_schemas import devices, pod
from tests.cli.support.histories import UID, accepted
from tests.cli.support.written_node import NOON, WrittenNode

GPU = "vendor.test/gpu"
SECOND = 1_000


class DeviceNode(WrittenNode):
    """A node whose `devices` decider processes messages and writes its events to the log."""

    def __init__(self) -> None:
        super().__init__()
        self.state = DECIDER.initial

    def process(self, message: Any, *, after: int = 10) -> None:
        self.now += after * SECOND
        events = DECIDER.decide(self.state, message, self.now)
        for event in events:
            self.state = DECIDER.evolve(self.state, event) or DECIDER.initial
        self.write("devices/node", *events)

    def list_devices(self, *ids: str, unhealthy: str = "", after: int = 10) -> None:
        health = dict.fromkeys(ids, "Healthy") | ({unhealthy: "Unhealthy"} if unhealthy else {})
        listed = [
            devices.DeviceInfo(id=one, health=word, nodes=(1,) if one == "b" else ()) for one, word in health.items()
        ]
        generation = self.state.resources[GPU].generation
        self.process(signals.DevicesListing(resource=GPU, generation=generation, devices=tuple(listed)), after=after)

    def register(self) -> None:
        self.process(
            signals.PluginRegistering(
                resource=GPU,
                versions=("v1beta1",),
                endpoint="gpu.sock",
                folder="/plugins",
                options=devices.PluginOptions(),
            )
        )

    def request(self, uid: str, name: str, count: int = 1, *, after: int = 10) -> None:
        self.process(
            pod.DevicesRequested(
                pod=f"default/{name}",
                uid=uid,
                container="app",
                role="app",
                resources={GPU: count},
                requested_at=self.now,
            ),
            after=after,
        )

    def allocate(self, uid: str) -> None:
        claim = self.state.claims[f"{uid}/app"]
        self.process(
            signals.AllocateAnswered(
                subject=f"claim/{uid}/app",
                intent=f"allocating/{claim.serial}",
                answers=(devices.Answer(envs={"A": "1"}),),
            )
        )


@pytest.fixture
def device_node() -> DeviceNode:
    """A node with devices a, b and c. Pod web held a and b and has ended. Now db holds a, b is unhealthy, c is free."""
    node = DeviceNode()
    node.process(signals.RegistryOpened())
    node.register()
    node.list_devices("a", "b", "c")
    node.request("u1", "web", 2)
    node.allocate("u1")
    node.list_devices("a", "c", unhealthy="b")
    node.process(pod.PodEnded(pod="default/web", uid="u1"))
    node.request("u2", "db")
    node.allocate("u2")
    node.now += 60 * SECOND
    return node


def test_devices_are_a_table(device_node: DeviceNode) -> None:
    result = device_node.run("get", "devices")
    assert (result.status, result.errors) == (0, "")
    assert result.output == (
        "RESOURCE          ID   HEALTH      NUMA     POD          CONTAINER   SINCE\n"
        "vendor.test/gpu   a    Healthy     <none>   default/db   app         70s\n"
        "vendor.test/gpu   b    Unhealthy   1        <none>       <none>      <none>\n"
        "vendor.test/gpu   c    Healthy     <none>   <none>       <none>      <none>\n"
    )
    wide = device_node.run("get", "device", f"{GPU}/a", "-o", "wide").output.splitlines()[1]
    assert wide.split() == [GPU, "a", "Healthy", "<none>", "default/db", "app", "70s", "listed", "u2"]


def test_since_is_the_time_of_the_allocation_not_of_the_request() -> None:
    node = DeviceNode()
    node.process(signals.RegistryOpened())
    node.request("u1", "waits")
    node.register()
    node.list_devices("a", after=600)
    node.allocate("u1")
    assert node.run("get", "devices", "--no-headers").output.split()[-1] == "10s"


def test_devices_are_selected_by_id_resource_or_full_name(device_node: DeviceNode) -> None:
    assert device_node.run("get", "devices", "b", f"{GPU}/c", "-o", "name").output == (
        "device/vendor.test/gpu/b\ndevice/vendor.test/gpu/c\n"
    )
    assert len(device_node.run("get", f"device/{GPU}", "-o", "name").output.splitlines()) == 3
    missing = device_node.run("get", "devices", "a", "z", "-o", "name")
    assert missing == ("device/vendor.test/gpu/a\n", 'Error from server (NotFound): devices "z" not found\n', 1)
    assert WrittenNode().run("get", "devices") == ("", "No resources found.\n", 0)
    assert WrittenNode().run("get", "devices", "-l", "a=b").status == 2


def test_devices_as_json(device_node: DeviceNode) -> None:
    (one,) = json.loads(device_node.run("get", "devices", "-o", "json").output)["items"][:1]
    assert one == {
        "resource": GPU,
        "id": "a",
        "health": "Healthy",
        "numaNodes": [],
        "plugin": {"phase": "listed", "socket": "/plugins/gpu.sock"},
        "namespace": "default",
        "pod": "db",
        "uid": "u2",
        "containers": ["app"],
        "since": "2027-01-15T08:01:20Z",
        "allocated": True,
    }


def test_the_health_of_a_device_depends_on_its_plugin(device_node: DeviceNode) -> None:
    device_node.process(signals.EndpointStopped(resource=GPU, generation=1))
    assert _health(device_node) == ["Unhealthy"] * 3
    device_node.process(signals.RegistryOpened())
    assert _health(device_node) == ["Unknown"] * 3
    device_node.register()
    device_node.list_devices("b")
    assert _health(device_node) == ["Gone", "Healthy"]


def _health(node: DeviceNode) -> list[str]:
    found = node.run("get", "devices", "-o", "jsonpath={.items[*].health}").output
    return found.split()


def test_the_page_of_a_device_lists_all_its_owners(device_node: DeviceNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    result = device_node.run("describe", "device", "a")
    assert (result.status, result.errors) == (0, "")
    lines = result.output.splitlines()
    assert [line.split(":", 1)[0] for line in lines[:10]] == [
        "Name",
        "Resource",
        "Health",
        "NUMA Nodes",
        "Plugin",
        "Pod",
        "UID",
        "Containers",
        "Since",
        "History",
    ]
    assert [line.split("   ")[-1].strip() for line in lines[12:]] == [
        "health: Healthy",
        "allocated to default/web (u1) container app",
        "released by default/web (u1) container app: PodEnded",
        "allocated to default/db (u2) container app",
    ]
    unhealthy = device_node.run("describe", "device/b").output
    assert "health: Unhealthy" in unhealthy
    assert "Pod:              <none>" in unhealthy


def test_the_status_of_a_pod_has_the_health_of_its_devices(device_node: DeviceNode) -> None:
    device_node.write("pod/default/db", accepted("db"))
    device_node.request(UID, "db", 2)
    device_node.process(pod.PodEnded(pod="default/db", uid="u2"))
    device_node.request(UID, "db", 2)
    device_node.allocate(UID)
    device_node.list_devices("a", unhealthy="c")
    (status,) = json.loads(device_node.run("get", "pod", "db", "-o", "json").output)["status"]["containerStatuses"]
    assert status["allocatedResourcesStatus"] == [
        {
            "name": GPU,
            "resources": [{"resourceID": "a", "health": "Healthy"}, {"resourceID": "c", "health": "Unhealthy"}],
        }
    ]


def test_a_pod_that_waits_for_devices_names_them(device_node: DeviceNode) -> None:
    spec = {"name": "app", "image": "busybox:1", "resources": {"limits": {GPU: "1"}}}
    who: dict[str, Any] = {"pod": "default/gpu", "uid": UID}
    device_node.write(
        "pod/default/gpu",
        accepted("gpu", containers=[spec]),
        pod.AdmissionBegan(**who, kinds=("devices",)),
        pod.DevicesRequested(**who, container="app", role="app", resources={GPU: 1}, requested_at=1),
        pod.DevicesAwaited(**who, container="app", reason="x", message=f"waiting for {GPU}", said_at=1),
    )
    row = device_node.run("get", "pod", "gpu", "--no-headers").output.split()
    assert row[:3] == ["gpu", "0/1", "WaitingForDevices"]
    page = device_node.run("describe", "pod", "gpu").output
    assert f"      Message:      waiting for {GPU}" in page.splitlines()


def test_the_history_of_a_device_has_failed_allocations_and_its_removal(device_node: DeviceNode) -> None:
    device_node.request("u3", "job")
    claim = device_node.state.claims["u3/app"]
    about = {"subject": "claim/u3/app", "intent": f"allocating/{claim.serial}"}
    device_node.process(signals.AllocateRefused(**about, error="gone", away=True), after=1)
    device_node.request("u4", "late", after=1)
    about = {"subject": "claim/u4/app", "intent": f"allocating/{device_node.state.claims['u4/app'].serial}"}
    device_node.process(signals.AllocateRefused(**about, error="it burns"), after=1)  # type: ignore[arg-type]
    device_node.list_devices("a", after=1)
    assert [
        line.split("   ")[-1].strip()
        for line in device_node.run("describe", "device", f"{GPU}/c").output.splitlines()[-5:]
    ] == [
        "allocated to default/job (u3) container app",
        "released by default/job (u3) container app: its plugin did not allocate it",
        "allocated to default/late (u4) container app",
        "released by default/late (u4) container app: it burns",
        "no longer listed",
    ]


def test_unknown_devices_are_not_found(device_node: DeviceNode) -> None:
    result = device_node.run("describe", "device", "z")
    assert (result.status, result.output, result.errors) == (
        1,
        "",
        'Error from server (NotFound): devices "z" not found\n',
    )
    never = device_node.run("describe", "device", f"{GPU}/z")
    assert (never.status, never.errors) == (1, f'Error from server (NotFound): devices "{GPU}/z" not found\n')
    assert WrittenNode().run("describe", "devices") == ("", "No resources found.\n", 0)
    assert device_node.run("describe", "devices").output.count("History:") == 3


def test_describe_devices_begins_with_the_amounts_of_each_resource(device_node: DeviceNode) -> None:
    assert device_node.run("describe", "devices").output.splitlines()[:3] == [
        "Resources:",
        "  Resource          Capacity   Allocatable   Allocated   Plugin   Since",
        "  --------          --------   -----------   ---------   ------   -----",
    ]
    row = device_node.run("describe", "devices").output.splitlines()[3].split()
    assert row == [GPU, "3", "2", "1", "listed", "2m10s"]
    device_node.process(signals.EndpointStopped(resource=GPU, generation=1))
    device_node.now += 301 * SECOND
    device_node.process(Due(at=device_node.now))
    row = device_node.run("describe", "devices").output.splitlines()[3].split()
    assert row == [GPU, "0", "1", "1", "removed", "<none>"]
    assert device_node.now > NOON


def test_checkpoint_has_the_kubelets_format(device_node: DeviceNode) -> None:
    answer = b"\n\x06\n\x01A\x12\x011"
    result = device_node.run("checkpoint")
    assert (result.status, result.errors) == (0, "")
    assert json.loads(result.output) == {
        "Data": {
            "PodDeviceEntries": [
                {
                    "PodUID": "u2",
                    "ContainerName": "app",
                    "ResourceName": GPU,
                    "DeviceIDs": {"-1": ["a"]},
                    "AllocResp": b64encode(answer).decode(),
                }
            ],
            "RegisteredDevices": {GPU: ["a", "c"]},
        },
        "Checksum": checksum([Entry("u2", "app", GPU, {-1: ["a"]}, answer)], {GPU: ["a", "c"]}),
    }
