"""Refused registrations: which are recorded, and how they are counted."""

from typing import Any

from chronolet.devices import signals
from chronolet.devices.plugins.refusals import counter_of
from chronolet_schemas import devices
from tests.deciders.devices.scene import GPU, NIC, Devices
from tests.deciders.given import over_the_wire


def test_invalid_registrations_are_refused() -> None:
    scene = Devices().registers(versions=("v1alpha",))
    refused = scene.only(devices.RegistrationRefused)
    assert (refused.reason, refused.version) == ("unsupported_version", "v1alpha")
    assert scene.reasons_and_texts[0][0] == "DevicePluginRefused"
    assert scene.registers("cpu").only(devices.RegistrationRefused).reason == "invalid_resource_name"
    assert scene.registers(endpoint="../x").only(devices.RegistrationRefused).reason == "invalid_endpoint"
    assert not scene.now.resources


def test_a_registration_above_the_limit_is_refused() -> None:
    scene = Devices().registers(limit=2)
    assert scene.only(devices.RegistrationRefused).reason == "too_many_plugins"
    assert scene.reasons_and_texts[0][0] == "DevicePluginRefused"
    assert "--max-device-plugins" in scene.reasons_and_texts[0][1]
    assert not scene.now.resources


def recorded_refusal(scene: Devices, times: int, resource: str = GPU, **fields: Any) -> tuple[int, int] | None:
    """Send a registration that is refused for the `times`-th time for the same reason; return `times` and `calls` of
    the recorded event, or None if none is recorded.
    """
    scene.registers(resource, **({"versions": ("v0",)} | fields), times=times)
    if not scene.events:
        return None
    assert [reason for reason, _ in scene.reasons_and_texts] == ["DevicePluginRefused"]
    event = scene.only(devices.RegistrationRefused)
    return event.times, event.calls


def test_repeated_refusals_are_recorded_when_their_count_doubles_or_after_five_minutes() -> None:
    scene = Devices()
    recorded = [found for times in range(1, 1001) if (found := recorded_refusal(scene, times))]
    assert recorded == [(2**n, max(2**n // 2, 1)) for n in range(10)]
    scene.at += 299_999
    assert recorded_refusal(scene, 1001) is None
    scene.at += 1
    assert recorded_refusal(scene, 1002) == (1002, 1002 - 512)
    # The counter was reset: how many refusals were not recorded is unknown.
    assert (recorded_refusal(scene, 3), recorded_refusal(scene, 3)) == ((3, 3), (3, 3))
    assert len(scene.now.refused) == 1


def test_each_resource_and_reason_is_counted_separately() -> None:
    scene = Devices()
    assert recorded_refusal(scene, 40) == (40, 40)
    assert recorded_refusal(scene, 41, endpoint="../x") is None, "the version is checked first"
    assert recorded_refusal(scene, 1, versions=("v1beta1",), endpoint="../x") == (1, 1)
    assert recorded_refusal(scene, 1, resource=NIC) == (1, 1)
    assert recorded_refusal(scene, 42) is None
    # A successful registration of the resource, or a new registration socket, resets the counters.
    assert scene.registers(NIC).kinds == ["PluginRegistered"]
    assert len(scene.registers().now.refused) == 0
    assert recorded_refusal(scene, 1) == (1, 1)
    scene.when(signals.RegistryOpened())
    assert recorded_refusal(scene, 1) == (1, 1)


def test_texts_of_refused_plugins_are_shortened() -> None:
    scene, long = Devices(), "x" * 1_000_000
    for number, version in enumerate(("v0", "v1beta1"), start=1):
        for times in (1, 2, 3):
            found = recorded_refusal(scene, times, resource=long, versions=(version, long), endpoint=long)
            assert found == {1: (1, 1), 2: (2, 1)}.get(times)
            assert sum(len(over_the_wire(event).message) for event in scene.events) < 5_000
        assert len(scene.now.refused) == number
    assert scene.now.refused.get(counter_of(long, "invalid_resource_name", scene.now.refused)) is not None


def test_the_number_of_counters_is_bounded() -> None:
    scene = Devices()
    first = [recorded_refusal(scene, 1, resource=f"cpu{number}", versions=("v1beta1",)) for number in range(64)]
    assert set(first) == {(1, 1)}
    others = [recorded_refusal(scene, times, resource=f"gpu{times}", versions=("v1beta1",)) for times in range(1, 101)]
    assert [one[0] for one in others if one] == [1, 2, 4, 8, 16, 32, 64]
    assert len(scene.now.refused) == 65
