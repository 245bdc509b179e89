"""Plugins register through the socket or are discovered; the newest one of a resource counts."""

from chronolet.devices import signals, wanted
from chronolet.devices.capacity import allocatable, capacity
from chronolet.devices.decider import DECIDER, decider
from chronolet_schemas import devices
from tests.deciders.devices.scene import FOLDER, GPU, PATIENT, STRICT, Devices
from tests.deciders.given import given


def test_registration_discovery_and_pod_resources_always_run() -> None:
    assert set(given(DECIDER).effects) == {"registry", "watcher", "pod-resources"}


def test_skipped_registrations_are_reported() -> None:
    scene = Devices().registers(skipped=41)
    assert scene.only(devices.PluginRegistered).generation == 1
    message = (
        f"Device plugin of {GPU} registered 42 times since its last registration that counted: "
        "at this rate only the newest counts, every 30 seconds"
    )
    assert scene.reasons_and_texts == (("DevicePluginRegistersTooOften", message),)
    assert scene.registers().reasons_and_texts == ()


def test_the_newest_plugin_of_a_resource_counts() -> None:
    scene = Devices().plugged("a")
    scene.registers(endpoint="other.sock")
    assert scene.reasons_and_texts == (
        (
            "DevicePluginReplaced",
            f"Device plugin of {GPU} at {FOLDER}/gpu.sock is replaced by the one at {FOLDER}/other.sock",
        ),
    )
    assert scene.effects[f"watch/{GPU}"].intent == "watch/2"
    assert (capacity(scene.now), allocatable(scene.now)) == ({GPU: 1}, {GPU: ()})
    scene.lists("b")
    assert allocatable(scene.now) == {GPU: ("b",)}
    assert scene.registers(endpoint="other.sock").reasons_and_texts == ()


def test_a_restart_awaits_every_plugin() -> None:
    scene = Devices().plugged("a", "b")
    scene.when(signals.RegistryOpened(), at=9_000)
    scene.then(devices.RegistryOpened(opened_at=9_000))
    assert (capacity(scene.now), allocatable(scene.now)) == ({GPU: 0}, {GPU: ()})
    assert f"watch/{GPU}" not in scene.effects
    assert scene.due == 9_000 + 300_001
    scene.registers()
    assert (capacity(scene.now), scene.due) == ({GPU: 0}, 39_000)
    # The earlier list is remembered: only differences are recorded.
    scene.lists("a", "c")
    assert [one.id for one in scene.only(devices.DevicesListed).devices] == ["c"]
    assert capacity(scene.now) == {GPU: 2}


def test_a_plugin_discovered_by_its_socket_is_asked_for_its_options() -> None:
    scene = Devices().registers(by="watcher", endpoint=f"{FOLDER}/gpu.sock")
    assert scene.only(devices.PluginRegistered).options is None
    asked = scene.effects[f"options/{GPU}"]
    assert isinstance(asked, wanted.AskOptions)
    options = devices.PluginOptions(pre_start_required=True)
    ref = {"subject": asked.subject, "intent": asked.intent}
    assert scene.when(signals.OptionsAnswered(**ref, options=options)).kinds == ["PluginOptionsKnown"]  # type: ignore[arg-type]
    assert scene.now.resources[GPU].options == options
    assert f"options/{GPU}" not in scene.effects
    assert scene.when(signals.OptionsAnswered(**ref)).events == ()  # type: ignore[arg-type]
    assert scene.when(signals.OptionsAnswered(subject=asked.subject, intent="options/9")).events == ()
    # A new registration socket does not affect the discovered plugin; the loss of its own socket does.
    scene.when(signals.RegistryOpened())
    assert f"watch/{GPU}" in scene.effects
    assert scene.when(signals.PluginLeft(socket="/else")).events == ()
    scene.when(signals.PluginLeft(socket=f"{FOLDER}/gpu.sock"))
    assert scene.only(devices.PluginStopped).error == "its socket is gone"


def test_a_policy_affects_decisions_only() -> None:
    assert decider(STRICT).initial == decider(PATIENT).initial
    assert decider(STRICT).evolve is decider(PATIENT).evolve
