"""Plugins register, list, stop and come back."""

from typing import Any

from chronolet.devices import signals, wanted
from chronolet.devices.capacity import allocatable, capacity, health, node_allocatable
from chronolet.devices.decider import DECIDER, decider
from chronolet.devices.plugins import MOST_CORRECTED
from chronolet.devices.registration import counted_as
from chronolet_schemas import devices
from tests.deciders.devices.scene import FOLDER, GPU, NIC, PATIENT, STRICT, Devices
from tests.deciders.given import given, over_the_wire


def test_what_always_runs() -> None:
    assert set(given(DECIDER).effects) == {"registry", "watcher", "pod-resources"}


def test_a_plugin_registers_and_lists() -> None:
    scene = Devices().registers()
    assert scene.kinds == ["PluginRegistered"]
    registered = scene.only(devices.PluginRegistered)
    assert (registered.socket, registered.generation) == (f"{FOLDER}/gpu.sock", 1)
    assert registered.options == devices.PluginOptions()
    watch = scene.effects[f"watch/{GPU}"]
    assert watch == wanted.WatchDevices(
        subject=f"watch/{GPU}", intent="watch/1", resource=GPU, generation=1, socket=f"{FOLDER}/gpu.sock"
    )
    scene.lists("a", "b", ill=["c"])
    listed = scene.only(devices.DevicesListed)
    assert ([one.id for one in listed.devices], listed.count) == (["a", "b", "c"], 3)
    assert scene.due is None
    assert (capacity(scene.now), allocatable(scene.now)) == ({GPU: 3}, {GPU: ("a", "b")})


def test_a_list_tells_only_what_is_new() -> None:
    scene = Devices().plugged("a", "b")
    assert scene.lists("a", "b").kinds == []
    scene.lists("a", ill=["c"])
    assert scene.only(devices.DevicesListed).gone == ("b",)
    assert [one.id for one in scene.only(devices.DevicesListed).devices] == ["c"]
    scene.lists("a", "c", nodes={"a": 1})
    assert {one.id: one.nodes for one in scene.only(devices.DevicesListed).devices} == {"a": (1,), "c": ()}


def test_a_list_without_devices_is_told_once() -> None:
    scene = Devices().registers()
    assert scene.lists().kinds == ["DevicesListed"]
    assert scene.lists().kinds == []


def test_an_id_listed_twice_is_one_device_and_its_last_entry_counts() -> None:
    scene = Devices().registers()
    scene.lists("a", "b", ill=["b"])
    words = "listed more than once: b; the last entry of each counts"
    assert scene.reasons_and_texts == (("DeviceListCorrected", f"Device plugin of {GPU}: {words}"),)
    assert scene.recorded[0].name == "n1"
    corrected = scene.only(devices.ListingCorrected)
    assert (corrected.twice, corrected.unnamed, corrected.message) == (("b",), 0, words)
    assert scene.only(devices.DevicesListed).count == 2
    assert (capacity(scene.now), allocatable(scene.now)) == ({GPU: 2}, {GPU: ("a",)})


def test_a_finding_in_a_list_is_reported_once_per_registration() -> None:
    scene = Devices().registers().lists("a", "a")
    assert scene.kinds == ["ListingCorrected", "DevicesListed"]
    assert scene.lists("a", "a").events == ()
    assert scene.lists("a").events == ()
    assert scene.lists("a", "a").events == (), "a list without the fault does not make it news again"
    assert scene.lists("a", "a", "b", "b").only(devices.ListingCorrected).twice == ("b",)
    assert scene.registers().lists("a", "a").only(devices.ListingCorrected).twice == ("a",)


def test_entries_without_an_id_are_dropped_and_the_others_count() -> None:
    scene = Devices().registers().lists("", "a", "")
    corrected = scene.only(devices.ListingCorrected)
    assert (corrected.unnamed, corrected.message) == (2, "entries without an id: 2; they are ignored")
    assert allocatable(scene.now) == {GPU: ("a",)}
    assert scene.lists("", "a").events == ()
    assert scene.registers().lists("", "a", "a").only(devices.ListingCorrected).message == (
        "listed more than once: a; the last entry of each counts; entries without an id: 1; they are ignored"
    )


def test_findings_in_lists_are_bounded() -> None:
    many = [f"{number:03}" for number in range(100)]
    scene = Devices().registers().lists(*many, *many)
    corrected = scene.only(devices.ListingCorrected)
    assert corrected.twice == tuple(many[:MOST_CORRECTED])
    assert "000, 001, 002, 003, 004 and 95 more" in corrected.message
    assert scene.lists(*many, *many).events == ()
    assert len(allocatable(scene.now)[GPU]) == 100


def test_a_list_refused_by_an_earlier_release_holds_no_more() -> None:
    scene = Devices().plugged("a")
    refused = devices.ListingRefused(resource=GPU, generation=1, message="listed twice: a")
    scene.state = scene.decider.evolve(scene.state, refused)
    assert scene.now.resources[GPU].problem == "listed twice: a"
    assert scene.lists("a").kinds == ["DevicesListed"]
    assert scene.now.resources[GPU].problem == ""


def test_lists_that_were_skipped_are_counted_and_told_of_once() -> None:
    scene = Devices().plugged("a")
    same = (devices.DeviceInfo(id="a", health=devices.HEALTHY),)
    words = f"Device plugin of {GPU} sends lists too fast: only the last list of each second counts"
    for told in ((("DeviceListsSkipped", words),), ()):
        scene.when(signals.DevicesListing(resource=GPU, generation=1, devices=same, skipped=7))
        assert (scene.only(devices.DevicesListed).skipped, scene.reasons_and_texts) == (7, told)
    scene.lists("b").when(signals.DevicesListing(resource=GPU, generation=1, devices=same, skipped=1))
    assert scene.reasons_and_texts == (("DeviceListsSkipped", words),)


def test_a_plugin_that_lists_nothing_is_told_of_and_waited_for() -> None:
    scene = Devices().registers()
    assert scene.due == 31_000
    scene.wake()
    assert scene.only(devices.PluginSilent).generation == 1
    said = f"Device plugin of {GPU} has listed no devices 30 seconds after its registration"
    assert scene.reasons_and_texts == (("DevicePluginSilent", said),)
    assert (scene.due, scene.lists("a").kinds) == (None, ["DevicesListed"])
    assert scene.decider.evolve(Devices().state, devices.PluginSilent(resource=GPU, generation=1, said_at=1))


def test_lists_of_others_are_passed_over() -> None:
    scene = Devices().plugged("a")
    stale = signals.DevicesListing(resource=GPU, generation=7, devices=())
    unknown = signals.DevicesListing(resource=NIC, generation=1, devices=())
    for message in (stale, unknown):
        assert scene.when(message).events == ()
    scene.stops()
    assert scene.lists("a").events == ()


def test_bad_registrations_are_refused() -> None:
    scene = Devices().registers(versions=("v1alpha",))
    refused = scene.only(devices.RegistrationRefused)
    assert (refused.reason, refused.version) == ("unsupported_version", "v1alpha")
    assert scene.reasons_and_texts[0][0] == "DevicePluginRefused"
    assert scene.registers("cpu").only(devices.RegistrationRefused).reason == "invalid_resource_name"
    assert scene.registers(endpoint="../x").only(devices.RegistrationRefused).reason == "invalid_endpoint"
    assert not scene.now.resources


def test_registrations_that_were_skipped_are_counted() -> None:
    scene = Devices().registers(skipped=41)
    assert scene.only(devices.PluginRegistered).generation == 1
    words = (
        f"Device plugin of {GPU} registered 42 times since its last registration that counted: "
        "at this rate only the newest counts, every 30 seconds"
    )
    assert scene.reasons_and_texts == (("DevicePluginRegistersTooOften", words),)
    assert scene.registers().reasons_and_texts == ()


def test_one_plugin_too_many_is_refused() -> None:
    scene = Devices().registers(limit=2)
    assert scene.only(devices.RegistrationRefused).reason == "too_many_plugins"
    assert scene.reasons_and_texts[0][0] == "DevicePluginRefused"
    assert "--max-device-plugins" in scene.reasons_and_texts[0][1]
    assert not scene.now.resources


def refused(scene: Devices, times: int, resource: str = GPU, **said: Any) -> tuple[int, int] | None:
    """One more refusal: how often it came, and how many calls were not told of before; None where it is no news."""
    scene.registers(resource, **({"versions": ("v0",)} | said), times=times)
    if not scene.events:
        return None
    assert [reason for reason, _ in scene.reasons_and_texts] == ["DevicePluginRefused"]
    event = scene.only(devices.RegistrationRefused)
    return event.times, event.calls


def test_a_plugin_that_tries_for_ever_is_told_of_now_and_then() -> None:
    scene = Devices()
    told = [found for times in range(1, 1001) if (found := refused(scene, times))]
    assert told == [(2**n, max(2**n // 2, 1)) for n in range(10)]
    scene.at += 299_999
    assert refused(scene, 1001) is None
    scene.at += 1
    assert refused(scene, 1002) == (1002, 1002 - 512)
    # Whoever counts has begun anew: what it has not told of is not known.
    assert (refused(scene, 3), refused(scene, 3)) == ((3, 3), (3, 3))
    assert len(scene.now.refused) == 1


def test_another_refusal_is_news() -> None:
    scene = Devices()
    assert refused(scene, 40) == (40, 40)
    assert refused(scene, 41, endpoint="../x") is None, "the version is looked at first"
    assert refused(scene, 1, versions=("v1beta1",), endpoint="../x") == (1, 1)
    assert refused(scene, 1, resource=NIC) == (1, 1)
    assert refused(scene, 42) is None
    # One that has registered, and a socket that is new, make a new beginning.
    assert scene.registers(NIC).kinds == ["PluginRegistered"]
    assert len(scene.registers().now.refused) == 0
    assert refused(scene, 1) == (1, 1)
    scene.when(signals.RegistryOpened())
    assert refused(scene, 1) == (1, 1)


def test_of_a_name_that_is_too_long_the_beginning_is_told() -> None:
    scene, long = Devices(), "x" * 1_000_000
    for number, version in enumerate(("v0", "v1beta1"), start=1):
        for times in (1, 2, 3):
            found = refused(scene, times, resource=long, versions=(version, long), endpoint=long)
            assert found == {1: (1, 1), 2: (2, 1)}.get(times)
            assert sum(len(over_the_wire(event).message) for event in scene.events) < 5_000
        assert len(scene.now.refused) == number
    assert scene.now.refused.get(counted_as(long, "invalid_resource_name", scene.now.refused)) is not None


def test_names_without_end_are_bounded_too() -> None:
    scene = Devices()
    told = [refused(scene, 1, resource=f"cpu{number}", versions=("v1beta1",)) for number in range(64)]
    assert set(told) == {(1, 1)}
    others = [refused(scene, times, resource=f"gpu{times}", versions=("v1beta1",)) for times in range(1, 101)]
    assert [one[0] for one in others if one] == [1, 2, 4, 8, 16, 32, 64]
    assert len(scene.now.refused) == 65


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


def test_a_stopped_plugin_is_waited_for_and_then_forgotten() -> None:
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


def test_one_of_two_is_forgotten() -> None:
    scene = Devices().plugged("a").plugged("n", resource=NIC)
    scene.stops()
    assert scene.reasons_and_texts[0][1].endswith("stopped: its stream ended")
    scene.at = 5_000
    scene.stops(NIC)
    scene.wake()
    assert scene.only(devices.ResourceRemoved).resource == GPU
    assert scene.due == 305_001


def test_a_restart_awaits_every_plugin() -> None:
    scene = Devices().plugged("a", "b")
    scene.when(signals.RegistryOpened(), at=9_000)
    scene.then(devices.RegistryOpened(opened_at=9_000))
    assert (capacity(scene.now), allocatable(scene.now)) == ({GPU: 0}, {GPU: ()})
    assert f"watch/{GPU}" not in scene.effects
    assert scene.due == 9_000 + 300_001
    scene.registers()
    assert (capacity(scene.now), scene.due) == ({GPU: 0}, 39_000)
    # What was listed before is remembered: only the difference is told.
    scene.lists("a", "c")
    assert [one.id for one in scene.only(devices.DevicesListed).devices] == ["c"]
    assert capacity(scene.now) == {GPU: 2}


def test_a_plugin_found_by_its_socket() -> None:
    scene = Devices().registers(by="watcher", endpoint=f"{FOLDER}/gpu.sock")
    assert scene.only(devices.PluginRegistered).options is None
    asked = scene.effects[f"options/{GPU}"]
    assert isinstance(asked, wanted.AskOptions)
    options = devices.PluginOptions(pre_start_required=True)
    said = {"subject": asked.subject, "intent": asked.intent}
    assert scene.when(signals.OptionsSaid(**said, options=options)).kinds == ["PluginOptionsKnown"]  # type: ignore[arg-type]
    assert scene.now.resources[GPU].options == options
    assert f"options/{GPU}" not in scene.effects
    assert scene.when(signals.OptionsSaid(**said)).events == ()  # type: ignore[arg-type]
    assert scene.when(signals.OptionsSaid(subject=asked.subject, intent="options/9")).events == ()
    # The registration socket made anew is nothing to it; that its own socket goes is.
    scene.when(signals.RegistryOpened())
    assert f"watch/{GPU}" in scene.effects
    assert scene.when(signals.PluginLeft(socket="/else")).events == ()
    scene.when(signals.PluginLeft(socket=f"{FOLDER}/gpu.sock"))
    assert scene.only(devices.PluginStopped).error == "its socket is gone"


def test_a_plugin_that_does_not_say_what_it_wants_is_asked() -> None:
    scene = Devices().registers(options=None).lists("a").asks({GPU: 1})
    assert scene.pending.reason == "options_unknown"
    scene.when(tells_options(scene, options=devices.PluginOptions(pre_start_required=True), away=False))
    assert scene.allocates().only(devices.DevicesAllocated).allocations()[GPU].pre_start


ENDED = f"Device plugin of {GPU} died while answering GetDevicePluginOptions: "


def test_a_plugin_that_dies_of_that_question_is_not_asked_a_third_time() -> None:
    scene = Devices().registers(options=None)
    answer = tells_options(scene, error="gone")
    assert scene.when(answer).only(devices.PluginOptionsKnown).deaths == 1
    ((reason, words),) = scene.reasons_and_texts
    assert (reason, words.startswith(f"{ENDED}gone; it is asked once more")) == ("DevicePluginDiedOfOptions", True)
    assert scene.stops().only(devices.PluginStopped).deaths == 1
    assert [reason for reason, _ in scene.reasons_and_texts] == ["DevicePluginStopped"], "its death was reported before"
    scene.registers(options=None)
    answer = tells_options(scene, error="gone")
    assert scene.stops().only(devices.PluginStopped).deaths == 2, "its stream told of its death before the answer did"
    assert scene.reasons_and_texts[1] == (
        "DevicePluginDiedOfOptions",
        f"{ENDED}its stream ended; it is not asked again",
    )
    assert scene.when(answer).events == ()
    assert scene.registers(options=None).only(devices.PluginRegistered).options == devices.PluginOptions()
    assert f"options/{GPU}" not in scene.effects
    assert scene.lists("a").asks({GPU: 1}).has() == {GPU: ("a",)}


def test_a_plugin_that_never_served_did_not_die_of_a_question() -> None:
    scene = Devices().registers(options=None)
    scene.when(signals.EndpointStopped(resource=GPU, generation=1, error="nobody answered", reached=False))
    assert scene.only(devices.PluginStopped).deaths == 0
    assert [reason for reason, _ in scene.reasons_and_texts] == ["DevicePluginStopped"]


def test_a_plugin_that_refuses_that_question_is_no_death() -> None:
    scene = Devices().registers(options=None)
    scene.when(tells_options(scene, error="Unimplemented", away=False))
    assert (scene.kinds, scene.reasons_and_texts) == (["PluginOptionsKnown"], ())


def tells_options(scene: Devices, *, away: bool = True, **said: Any) -> signals.OptionsSaid:
    asked = scene.effects[f"options/{GPU}"]
    return signals.OptionsSaid(subject=asked.subject, intent=asked.intent, away=away, **said)


def test_an_answer_of_the_plugin_before_is_asked_of_the_new_one_again() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).registers(options=None, endpoint="other.sock")
    scene.allocates()
    assert (scene.claim().phase, scene.has()) == ("waiting", {})
    scene.lists("a").when(tells_options(scene, away=False))
    assert scene.allocate.socket == f"{FOLDER}/other.sock"
    assert scene.allocates().only(devices.DevicesAllocated).complete


def test_what_is_known_of_plugins_that_are_gone() -> None:
    scene = Devices().registers()
    gone = (
        devices.ResourceRemoved(resource=NIC, removed_at=1),
        devices.PluginStopped(resource=NIC, generation=1, stopped_at=1),
    )
    for event in gone:
        assert scene.decider.evolve(scene.state, event) == scene.state


def test_the_health_that_a_status_tells() -> None:
    scene = Devices().registers().lists("a", ill=["b"])
    found = [health(scene.now, GPU, one) for one in ("a", "b", "gone")]
    assert [*found, health(scene.now, NIC, "a")] == ["Healthy", "Unhealthy", "Unhealthy", "Unhealthy"]


def test_what_is_held_is_allocatable_whatever_the_plugin_says() -> None:
    scene = Devices().plugged("a", "b").asks({GPU: 2}).allocates()
    scene.stops()
    assert (allocatable(scene.now), node_allocatable(scene.now)) == ({GPU: ()}, {GPU: 2})


def test_policies_decide_and_leave_no_trace() -> None:
    assert decider(STRICT).initial == decider(PATIENT).initial
    assert decider(STRICT).evolve is decider(PATIENT).evolve
