"""Which optional calls plugins support, and plugins that die when they are asked about them."""

from typing import Any

from chronolet.devices import signals
from chronolet_schemas import devices
from tests.deciders.devices.scene import FOLDER, GPU, Devices


def test_a_plugin_that_sends_no_options_is_asked() -> None:
    scene = Devices().registers(options=None).lists("a").asks({GPU: 1})
    assert scene.pending.reason == "options_unknown"
    scene.when(options_answer(scene, options=devices.PluginOptions(pre_start_required=True), away=False))
    assert scene.allocates().only(devices.DevicesAllocated).allocations()[GPU].pre_start


ENDED = f"Device plugin of {GPU} died while answering GetDevicePluginOptions: "


def test_a_plugin_that_dies_twice_when_asked_is_not_asked_a_third_time() -> None:
    scene = Devices().registers(options=None)
    answer = options_answer(scene, error="gone")
    assert scene.when(answer).only(devices.PluginOptionsKnown).deaths == 1
    ((reason, message),) = scene.reasons_and_texts
    assert (reason, message.startswith(f"{ENDED}gone; it is asked once more")) == ("DevicePluginDiedOfOptions", True)
    assert scene.stops().only(devices.PluginStopped).deaths == 1
    assert [reason for reason, _ in scene.reasons_and_texts] == ["DevicePluginStopped"], "its death was reported before"
    scene.registers(options=None)
    answer = options_answer(scene, error="gone")
    assert scene.stops().only(devices.PluginStopped).deaths == 2, "the end of its stream arrived before the answer"
    assert scene.reasons_and_texts[1] == (
        "DevicePluginDiedOfOptions",
        f"{ENDED}its stream ended; it is not asked again",
    )
    assert scene.when(answer).events == ()
    assert scene.registers(options=None).only(devices.PluginRegistered).options == devices.PluginOptions()
    assert f"options/{GPU}" not in scene.effects
    assert scene.lists("a").asks({GPU: 1}).has() == {GPU: ("a",)}


def test_a_plugin_that_never_served_did_not_die_of_the_options_call() -> None:
    scene = Devices().registers(options=None)
    scene.when(signals.EndpointStopped(resource=GPU, generation=1, error="nobody answered", reached=False))
    assert scene.only(devices.PluginStopped).deaths == 0
    assert [reason for reason, _ in scene.reasons_and_texts] == ["DevicePluginStopped"]


def test_an_error_of_the_options_call_is_not_a_death() -> None:
    scene = Devices().registers(options=None)
    scene.when(options_answer(scene, error="Unimplemented", away=False))
    assert (scene.kinds, scene.reasons_and_texts) == (["PluginOptionsKnown"], ())


def options_answer(scene: Devices, *, away: bool = True, **fields: Any) -> signals.OptionsAnswered:
    effect = scene.effects[f"options/{GPU}"]
    return signals.OptionsAnswered(subject=effect.subject, intent=effect.intent, away=away, **fields)


def test_an_allocation_of_a_replaced_plugin_is_repeated_with_the_new_one() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).registers(options=None, endpoint="other.sock")
    scene.allocates()
    assert (scene.claim().phase, scene.has()) == ("waiting", {})
    scene.lists("a").when(options_answer(scene, away=False))
    assert scene.allocate.socket == f"{FOLDER}/other.sock"
    assert scene.allocates().only(devices.DevicesAllocated).complete
