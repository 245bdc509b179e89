"""Plugins stop, and their resources are removed after a grace period."""

from chronolet.devices.capacity import allocatable, capacity
from chronolet_schemas import devices
from tests.deciders.devices.scene import GPU, NIC, Devices


def test_a_resource_is_removed_after_the_grace_period_of_its_stopped_plugin() -> None:
    scene = Devices().plugged("a")
    scene.stops(error="EOF")
    assert scene.reasons_and_texts == (("DevicePluginStopped", f"Device plugin of {GPU} stopped: EOF"),)
    assert (capacity(scene.now), allocatable(scene.now)) == ({GPU: 1}, {GPU: ()})
    assert f"watch/{GPU}" not in scene.effects
    assert scene.stops().events == ()
    assert scene.due == 1_000 + 300_001
    scene.wake()
    assert scene.kinds == ["ResourceRemoved"]
    assert capacity(scene.now) == {}
    assert scene.due is None


def test_the_grace_period_runs_for_each_resource() -> None:
    scene = Devices().plugged("a").plugged("n", resource=NIC)
    scene.stops()
    assert scene.reasons_and_texts[0][1].endswith("stopped: its stream ended")
    scene.at = 5_000
    scene.stops(NIC)
    scene.wake()
    assert scene.only(devices.ResourceRemoved).resource == GPU
    assert scene.due == 305_001


def test_events_about_unknown_resources_change_nothing() -> None:
    scene = Devices().registers()
    gone = (
        devices.ResourceRemoved(resource=NIC, removed_at=1),
        devices.PluginStopped(resource=NIC, generation=1, stopped_at=1),
    )
    for event in gone:
        assert scene.decider.evolve(scene.state, event) == scene.state
