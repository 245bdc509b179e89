"""`get devices` and `describe device`: golden outputs of a history that the decider itself has written."""

import json
from base64 import b64encode
from typing import Any

import pytest

from chronolet.devices import signals
from chronolet.devices.checkpoint import Entry, checksum
from chronolet.devices.decider import DECIDER
from chronolet.kernel.decider import Due
from chronolet_schemas import devices, pod
from tests.cli.histories import UID, accepted
from tests.cli.written import NOON, WrittenNode

GPU = "vendor.test/gpu"
SECOND = 1_000


class Plugged(WrittenNode):
    """A node whose devices are told things."""

    def __init__(self) -> None:
        super().__init__()
        self.state = DECIDER.initial

    def tell(self, message: Any, *, after: int = 10) -> None:
        self.now += after * SECOND
        events = DECIDER.decide(self.state, message, self.now)
        for event in events:
            self.state = DECIDER.evolve(self.state, event) or DECIDER.initial
        self.write("devices/node", *events)

    def lists(self, *ids: str, ill: str = "", after: int = 10) -> None:
        words = dict.fromkeys(ids, "Healthy") | ({ill: "Unhealthy"} if ill else {})
        said = [
            devices.DeviceInfo(id=one, health=word, nodes=(1,) if one == "b" else ()) for one, word in words.items()
        ]
        generation = self.state.resources[GPU].generation
        self.tell(signals.DevicesListing(resource=GPU, generation=generation, devices=tuple(said)), after=after)

    def registers(self) -> None:
        self.tell(
            signals.PluginRegistering(
                resource=GPU,
                versions=("v1beta1",),
                endpoint="gpu.sock",
                folder="/plugins",
                options=devices.PluginOptions(),
            )
        )

    def asks(self, uid: str, name: str, count: int = 1, *, after: int = 10) -> None:
        self.tell(
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

    def allocates(self, uid: str) -> None:
        claim = self.state.claims[f"{uid}/app"]
        self.tell(
            signals.AllocateAnswered(
                subject=f"claim/{uid}/app",
                intent=f"allocating/{claim.serial}",
                answers=(devices.Answer(envs={"A": "1"}),),
            )
        )


@pytest.fixture
def plugged() -> Plugged:
    """a was web's and is db's, b is ill, c is free; web, which has gone, had b too."""
    node = Plugged()
    node.tell(signals.RegistryOpened())
    node.registers()
    node.lists("a", "b", "c")
    node.asks("u1", "web", 2)
    node.allocates("u1")
    node.lists("a", "c", ill="b")
    node.tell(pod.PodEnded(pod="default/web", uid="u1"))
    node.asks("u2", "db")
    node.allocates("u2")
    node.now += 60 * SECOND
    return node


def test_a_table_of_devices(plugged: Plugged) -> None:
    said = plugged.run("get", "devices")
    assert (said.status, said.err) == (0, "")
    assert said.out == (
        "RESOURCE          ID   HEALTH      NUMA     POD          CONTAINER   SINCE\n"
        "vendor.test/gpu   a    Healthy     <none>   default/db   app         70s\n"
        "vendor.test/gpu   b    Unhealthy   1        <none>       <none>      <none>\n"
        "vendor.test/gpu   c    Healthy     <none>   <none>       <none>      <none>\n"
    )
    wide = plugged.run("get", "device", f"{GPU}/a", "-o", "wide").out.splitlines()[1]
    assert wide.split() == [GPU, "a", "Healthy", "<none>", "default/db", "app", "70s", "listed", "u2"]


def test_a_device_is_had_since_it_was_given_and_not_since_it_was_wanted() -> None:
    node = Plugged()
    node.tell(signals.RegistryOpened())
    node.asks("u1", "waits")
    node.registers()
    node.lists("a", after=600)
    node.allocates("u1")
    assert node.run("get", "devices", "--no-headers").out.split()[-1] == "10s"


def test_devices_by_their_names(plugged: Plugged) -> None:
    assert plugged.run("get", "devices", "b", f"{GPU}/c", "-o", "name").out == (
        "device/vendor.test/gpu/b\ndevice/vendor.test/gpu/c\n"
    )
    assert len(plugged.run("get", f"device/{GPU}", "-o", "name").out.splitlines()) == 3
    missing = plugged.run("get", "devices", "a", "z", "-o", "name")
    assert missing == ("device/vendor.test/gpu/a\n", 'Error from server (NotFound): devices "z" not found\n', 1)
    assert WrittenNode().run("get", "devices") == ("", "No resources found.\n", 0)
    assert WrittenNode().run("get", "devices", "-l", "a=b").status == 2


def test_devices_as_objects(plugged: Plugged) -> None:
    (one,) = json.loads(plugged.run("get", "devices", "-o", "json").out)["items"][:1]
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


def test_health_in_a_word(plugged: Plugged) -> None:
    plugged.tell(signals.EndpointStopped(resource=GPU, generation=1))
    assert _health(plugged) == ["Unhealthy"] * 3
    plugged.tell(signals.RegistryOpened())
    assert _health(plugged) == ["Unknown"] * 3
    plugged.registers()
    plugged.lists("b")
    assert _health(plugged) == ["Gone", "Healthy"]


def _health(node: Plugged) -> list[str]:
    found = node.run("get", "devices", "-o", "jsonpath={.items[*].health}").out
    return found.split()


def test_a_device_with_all_its_owners(plugged: Plugged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    said = plugged.run("describe", "device", "a")
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
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
    ill = plugged.run("describe", "device/b").out
    assert "health: Unhealthy" in ill
    assert "Pod:              <none>" in ill


def test_a_pod_as_an_object_has_the_health_of_its_devices(plugged: Plugged) -> None:
    plugged.write("pod/default/db", accepted("db"))
    plugged.asks(UID, "db", 2)
    plugged.tell(pod.PodEnded(pod="default/db", uid="u2"))
    plugged.asks(UID, "db", 2)
    plugged.allocates(UID)
    plugged.lists("a", ill="c")
    (status,) = json.loads(plugged.run("get", "pod", "db", "-o", "json").out)["status"]["containerStatuses"]
    assert status["allocatedResourcesStatus"] == [
        {
            "name": GPU,
            "resources": [{"resourceID": "a", "health": "Healthy"}, {"resourceID": "c", "health": "Unhealthy"}],
        }
    ]


def test_a_pod_that_waits_says_for_what(plugged: Plugged) -> None:
    spec = {"name": "app", "image": "busybox:1", "resources": {"limits": {GPU: "1"}}}
    who: dict[str, Any] = {"pod": "default/gpu", "uid": UID}
    plugged.write(
        "pod/default/gpu",
        accepted("gpu", containers=[spec]),
        pod.AdmissionBegan(**who, kinds=("devices",)),
        pod.DevicesRequested(**who, container="app", role="app", resources={GPU: 1}, requested_at=1),
        pod.DevicesAwaited(**who, container="app", reason="x", message=f"waiting for {GPU}", said_at=1),
    )
    row = plugged.run("get", "pod", "gpu", "--no-headers").out.split()
    assert row[:3] == ["gpu", "0/1", "WaitingForDevices"]
    page = plugged.run("describe", "pod", "gpu").out
    assert f"      Message:      waiting for {GPU}" in page.splitlines()


def test_what_else_may_become_of_a_device(plugged: Plugged) -> None:
    plugged.asks("u3", "job")
    claim = plugged.state.claims["u3/app"]
    about = {"subject": "claim/u3/app", "intent": f"allocating/{claim.serial}"}
    plugged.tell(signals.AllocateRefused(**about, error="gone", away=True), after=1)
    plugged.asks("u4", "late", after=1)
    about = {"subject": "claim/u4/app", "intent": f"allocating/{plugged.state.claims['u4/app'].serial}"}
    plugged.tell(signals.AllocateRefused(**about, error="it burns"), after=1)  # type: ignore[arg-type]
    plugged.lists("a", after=1)
    assert [
        line.split("   ")[-1].strip() for line in plugged.run("describe", "device", f"{GPU}/c").out.splitlines()[-5:]
    ] == [
        "allocated to default/job (u3) container app",
        "released by default/job (u3) container app: its plugin did not allocate it",
        "allocated to default/late (u4) container app",
        "released by default/late (u4) container app: it burns",
        "no longer listed",
    ]


def test_devices_that_are_not_there(plugged: Plugged) -> None:
    said = plugged.run("describe", "device", "z")
    assert (said.status, said.out, said.err) == (1, "", 'Error from server (NotFound): devices "z" not found\n')
    never = plugged.run("describe", "device", f"{GPU}/z")
    assert (never.status, never.err) == (1, f'Error from server (NotFound): devices "{GPU}/z" not found\n')
    assert WrittenNode().run("describe", "devices") == ("", "No resources found.\n", 0)
    assert plugged.run("describe", "devices").out.count("History:") == 3


def test_what_the_node_has_of_each_resource(plugged: Plugged) -> None:
    assert plugged.run("describe", "devices").out.splitlines()[:3] == [
        "Resources:",
        "  Resource          Capacity   Allocatable   Allocated   Plugin   Since",
        "  --------          --------   -----------   ---------   ------   -----",
    ]
    row = plugged.run("describe", "devices").out.splitlines()[3].split()
    assert row == [GPU, "3", "2", "1", "listed", "2m10s"]
    plugged.tell(signals.EndpointStopped(resource=GPU, generation=1))
    plugged.now += 301 * SECOND
    plugged.tell(Due(at=plugged.now))
    row = plugged.run("describe", "devices").out.splitlines()[3].split()
    assert row == [GPU, "0", "1", "1", "removed", "<none>"]
    assert plugged.now > NOON


def test_the_kubelets_checkpoint(plugged: Plugged) -> None:
    answer = b"\n\x06\n\x01A\x12\x011"
    said = plugged.run("checkpoint")
    assert (said.status, said.err) == (0, "")
    assert json.loads(said.out) == {
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
