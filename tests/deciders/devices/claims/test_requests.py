"""Requests for devices: first, repeated and changed ones, and those of containers that are older than the log."""

from chronolet.devices import wanted
from chronolet_schemas import devices
from tests.deciders.devices.scene import FOLDER, GPU, NIC, Devices


def test_requested_devices_are_chosen_then_allocated_by_the_plugin() -> None:
    scene = Devices().plugged("b", "a", "c").asks({GPU: 2})
    chosen = scene.only(devices.DevicesChosen)
    assert (chosen.devices, chosen.wants) == (("a", "b"), {GPU: 2})
    assert scene.has() == {GPU: ("a", "b")}
    assert scene.allocate == wanted.Allocate(
        subject="claim/u1/app",
        intent="allocating/2",
        resource=GPU,
        socket=f"{FOLDER}/gpu.sock",
        devices=("a", "b"),
    )
    scene.allocates(envs={"X": "1"})
    done = scene.only(devices.DevicesAllocated)
    assert done.complete
    assert done.milliseconds == 7
    assert done.allocations() == {GPU: devices.Allocation(devices=("a", "b"), answer=devices.Answer(envs={"X": "1"}))}
    assert "claim/u1/app" not in scene.effects
    assert scene.now.open == ()


def test_resources_are_allocated_one_after_the_other() -> None:
    scene = Devices().plugged("a").plugged("n", resource=NIC).asks({NIC: 1, GPU: 1})
    assert scene.allocate.resource == GPU
    scene.allocates()
    assert not scene.only(devices.DevicesAllocated).complete
    assert scene.only(devices.DevicesChosen).resource == NIC
    assert scene.has() == {GPU: ("a",), NIC: ("n",)}
    scene.allocates()
    done = scene.only(devices.DevicesAllocated)
    assert (done.complete, sorted(done.allocations())) == (True, [GPU, NIC])


def test_a_repeated_request_gets_the_same_answer() -> None:
    scene = Devices().plugged("a").asks({GPU: 1})
    assert scene.asks({GPU: 1}).events == ()  # it is being allocated
    held = scene.allocates().only(devices.DevicesAllocated).allocations()
    again = scene.asks({GPU: 1}).only(devices.DevicesAllocated)
    assert (again.allocation, again.allocations()) == (None, held)


def test_a_request_for_zero_devices_needs_a_healthy_device_all_the_same() -> None:
    scene = Devices().plugged("a").asks({GPU: 0})
    assert scene.only(devices.DevicesAllocated).allocations() == {}
    assert scene.stops().asks({GPU: 0}, uid="u2").pending.reason == "no_healthy_devices"


def test_a_changed_request_is_refused_and_changes_nothing() -> None:
    scene = Devices().plugged("a", "b", "c").asks({GPU: 2}).allocates()
    refused = scene.asks({GPU: 3}).only(devices.DevicesRefused)
    assert refused.message == f'pod "u1" container "app" changed request for resource "{GPU}" from 2 to 3'
    assert scene.has() == {GPU: ("a", "b")}
    assert scene.asks({}).only(devices.DevicesRefused).message.endswith("from 2 to 0")
    scene.releases("app").asks({GPU: 3})
    assert scene.allocate.devices == ("a", "b", "c")


def test_a_container_from_before_the_log_keeps_its_devices() -> None:
    scene = Devices().asks({GPU: 1}, held={GPU: ("b",)})
    assert scene.kinds == ["DevicesAdopted", "DevicesPending"]
    assert (scene.pending.reason, scene.has()) == ("plugin_away", {GPU: ("b",)})
    scene.plugged("a", "b")
    assert scene.allocate.devices == ("b",)
    assert scene.asks({GPU: 2}, uid="u2").pending.reason == "in_turn"
    # The container is running, so an error from the plugin does not refuse its claim.
    scene.refuses("no")
    assert (scene.claim().reason, scene.has()) == ("plugin_away", {GPU: ("b",)})
    scene.at = 11_000
    scene.wake().allocates()
    assert scene.claim().phase == "granted"
    assert scene.claim().adopted == {}
    assert scene.has() == {GPU: ("b",)}


def test_devices_of_another_pod_are_not_adopted() -> None:
    scene = Devices().plugged("a", "b").asks({GPU: 1}).allocates()
    scene.asks({GPU: 1}, uid="u2", held={GPU: ("a",), NIC: ("n",)})
    assert scene.only(devices.DevicesAdopted).devices == {}
    assert scene.has("u2") == {GPU: ("b",)}


def test_adopted_devices_of_several_resources_are_allocated_one_resource_after_the_other() -> None:
    scene = Devices().asks({GPU: 1, NIC: 1}, held={GPU: ("a",), NIC: ("n",)})
    scene.plugged("a").plugged("n", resource=NIC)
    scene.allocates()
    assert scene.has() == {GPU: ("a",), NIC: ("n",)}
    scene.allocates()
    assert scene.claim().phase == "granted"
