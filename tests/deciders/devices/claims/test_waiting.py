"""Which claims wait, which are refused, and which one gets a device first."""

from chronolet.devices import signals
from chronolet_schemas import devices
from tests.deciders.devices.scene import GPU, NIC, STRICT, Devices


def test_two_containers_never_get_the_same_device() -> None:
    scene = Devices(STRICT).plugged("a").asks({GPU: 1}).asks({GPU: 1}, uid="u2")
    # The devices of the first claim may still be returned.
    assert scene.pending.reason == "in_turn"
    scene.allocates()
    refused = scene.only(devices.DevicesRefused)
    assert refused.uid == "u2"
    assert refused.message == (f"requested number of devices unavailable for {GPU}. Requested: 1, Available: 0")
    assert sorted(scene.now.claims) == ["u1/app"]


def test_the_devices_of_a_refused_claim_go_to_a_waiting_one() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).asks({GPU: 1}, uid="u2")
    scene.refuses("rpc error: code = Unknown desc = no")
    refused = scene.only(devices.DevicesRefused)
    assert (refused.uid, refused.reason, refused.message) == (
        "u1",
        "plugin_error",
        "rpc error: code = Unknown desc = no",
    )
    assert scene.only(devices.DevicesChosen).uid == "u2"


def test_a_claim_waits_for_a_plugin_then_for_a_healthy_device() -> None:
    scene = Devices().asks({GPU: 1})
    assert (scene.pending.reason, scene.pending.message) == (
        "unregistered_resource",
        f"waiting for a device plugin that registers {GPU}",
    )
    assert scene.due is None
    # A repeated request gets the same answer.
    assert scene.asks({GPU: 1}).pending.reason == "unregistered_resource"
    scene.registers()
    assert (scene.pending.reason, scene.pending.message) == (
        "no_healthy_devices",
        f"waiting for a healthy device of {GPU}",
    )
    assert scene.lists("a").only(devices.DevicesChosen).devices == ("a",)


def test_a_restarted_container_waits_for_its_own_devices() -> None:
    scene = Devices().plugged("a", "b").asks({GPU: 1}).allocates()
    scene.when(signals.RegistryOpened())
    assert scene.asks({GPU: 1}, uid="u2").pending.reason == "no_healthy_devices"
    # A container that is started again waits for the devices that it holds.
    assert scene.asks({GPU: 1}).pending.message == f"waiting for a healthy device of {GPU}"
    scene.registers().lists("b")
    assert scene.claim().message == f"waiting for its devices of {GPU} to be healthy again: a"
    assert scene.has("u2") == {GPU: ("b",)}
    scene.lists("a", "b")
    assert scene.only(devices.DevicesAllocated).uid == "u1"
    assert scene.claim().phase == "granted"


def test_without_waiting_unhealthy_devices_refuse_the_claim() -> None:
    scene = Devices(STRICT).plugged("a").asks({GPU: 1}).allocates()
    scene.when(signals.RegistryOpened())
    refused = scene.asks({GPU: 1}, uid="u2").only(devices.DevicesRefused)
    assert refused.message == f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
    scene.registers().lists("b")
    refused = scene.asks({GPU: 1}).only(devices.DevicesRefused)
    assert refused.reason == "recorded_devices_unhealthy"
    assert not scene.now.claims
    assert not scene.now.used


def test_without_waiting_a_resource_that_no_plugin_offered_is_ignored() -> None:
    scene = Devices(STRICT).asks({NIC: 1})
    assert scene.only(devices.DevicesAllocated).allocations() == {}
    scene.plugged("a").asks({GPU: 1, NIC: 1}, uid="u2")
    done = scene.allocates("u2").only(devices.DevicesAllocated)
    assert (done.complete, sorted(done.allocations())) == (True, [GPU])


def test_a_removed_resource_with_held_devices_is_still_known() -> None:
    scene = Devices(STRICT).plugged("a").asks({GPU: 1}).allocates().stops()
    scene.wake()
    assert scene.asks({GPU: 1}, uid="u2").only(devices.DevicesRefused).message == (
        f"cannot allocate unregistered device {GPU}"
    )


def test_init_containers_leave_their_devices_to_later_containers() -> None:
    scene = Devices().plugged("a", "b", "c", "d")
    scene.asks({GPU: 3}, container="i1", role="init").asks({GPU: 1}, container="s1", role="sidecar")
    assert scene.pending.message == "waiting for earlier containers of the pod"
    scene.asks({GPU: 2}, container="i2", role="init").asks({GPU: 2})
    for name in ("i1", "s1", "i2", "app"):
        scene.allocates(container=name)
    assert [scene.has(container=name)[GPU] for name in ("i1", "s1", "i2", "app")] == [
        ("a", "b", "c"),
        ("a",),
        ("b", "c"),
        ("b", "c"),
    ]
    assert scene.now.used[GPU]["b"] == ("u1/i1", "u1/i2", "u1/app")
    assert scene.asks({GPU: 2}, uid="u2").only(devices.DevicesRefused).message.endswith("Requested: 2, Available: 1")
    scene.releases("i1", "i2")
    assert scene.now.used[GPU]["b"] == ("u1/app",)
    assert sorted(scene.now.used[GPU]) == ["a", "b", "c"]
