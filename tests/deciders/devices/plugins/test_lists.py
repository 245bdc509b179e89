"""Device lists of plugins: differences, unusable entries, health, missing lists."""

from chronolet.devices import signals, wanted
from chronolet.devices.capacity import allocatable, capacity, health, node_allocatable
from chronolet.devices.plugins.lists import MAX_CORRECTED
from chronolet_schemas import devices
from tests.deciders.devices.scene import FOLDER, GPU, NIC, Devices


def test_a_plugin_registers_and_lists_its_devices() -> None:
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


def test_a_list_records_only_differences() -> None:
    scene = Devices().plugged("a", "b")
    assert scene.lists("a", "b").kinds == []
    scene.lists("a", ill=["c"])
    assert scene.only(devices.DevicesListed).gone == ("b",)
    assert [one.id for one in scene.only(devices.DevicesListed).devices] == ["c"]
    scene.lists("a", "c", nodes={"a": 1})
    assert {one.id: one.nodes for one in scene.only(devices.DevicesListed).devices} == {"a": (1,), "c": ()}


def test_an_empty_list_is_recorded_once() -> None:
    scene = Devices().registers()
    assert scene.lists().kinds == ["DevicesListed"]
    assert scene.lists().kinds == []


def test_an_id_listed_twice_is_one_device_and_its_last_entry_counts() -> None:
    scene = Devices().registers()
    scene.lists("a", "b", ill=["b"])
    message = "listed more than once: b; the last entry of each counts"
    assert scene.reasons_and_texts == (("DeviceListCorrected", f"Device plugin of {GPU}: {message}"),)
    assert scene.recorded[0].name == "n1"
    corrected = scene.only(devices.ListingCorrected)
    assert (corrected.twice, corrected.unnamed, corrected.message) == (("b",), 0, message)
    assert scene.only(devices.DevicesListed).count == 2
    assert (capacity(scene.now), allocatable(scene.now)) == ({GPU: 2}, {GPU: ("a",)})


def test_a_finding_in_a_list_is_reported_once_per_registration() -> None:
    scene = Devices().registers().lists("a", "a")
    assert scene.kinds == ["ListingCorrected", "DevicesListed"]
    assert scene.lists("a", "a").events == ()
    assert scene.lists("a").events == ()
    assert scene.lists("a", "a").events == (), "a correct list in between does not make it news again"
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
    assert corrected.twice == tuple(many[:MAX_CORRECTED])
    assert "000, 001, 002, 003, 004 and 95 more" in corrected.message
    assert scene.lists(*many, *many).events == ()
    assert len(allocatable(scene.now)[GPU]) == 100


def test_the_next_list_clears_a_problem_recorded_by_an_earlier_release() -> None:
    scene = Devices().plugged("a")
    refused = devices.ListingRefused(resource=GPU, generation=1, message="listed twice: a")
    scene.state = scene.decider.evolve(scene.state, refused)
    assert scene.now.resources[GPU].problem == "listed twice: a"
    assert scene.lists("a").kinds == ["DevicesListed"]
    assert scene.now.resources[GPU].problem == ""


def test_skipped_lists_are_counted_and_reported_once() -> None:
    scene = Devices().plugged("a")
    same = (devices.DeviceInfo(id="a", health=devices.HEALTHY),)
    message = f"Device plugin of {GPU} sends lists too fast: only the last list of each second counts"
    for reported in ((("DeviceListsSkipped", message),), ()):
        scene.when(signals.DevicesListing(resource=GPU, generation=1, devices=same, skipped=7))
        assert (scene.only(devices.DevicesListed).skipped, scene.reasons_and_texts) == (7, reported)
    scene.lists("b").when(signals.DevicesListing(resource=GPU, generation=1, devices=same, skipped=1))
    assert scene.reasons_and_texts == (("DeviceListsSkipped", message),)


def test_a_plugin_that_lists_nothing_is_reported_and_waited_for() -> None:
    scene = Devices().registers()
    assert scene.due == 31_000
    scene.wake()
    assert scene.only(devices.PluginSilent).generation == 1
    message = f"Device plugin of {GPU} has listed no devices 30 seconds after its registration"
    assert scene.reasons_and_texts == (("DevicePluginSilent", message),)
    assert (scene.due, scene.lists("a").kinds) == (None, ["DevicesListed"])
    assert scene.decider.evolve(Devices().state, devices.PluginSilent(resource=GPU, generation=1, said_at=1))


def test_lists_of_earlier_or_unknown_plugins_are_ignored() -> None:
    scene = Devices().plugged("a")
    stale = signals.DevicesListing(resource=GPU, generation=7, devices=())
    unknown = signals.DevicesListing(resource=NIC, generation=1, devices=())
    for signal in (stale, unknown):
        assert scene.when(signal).events == ()
    scene.stops()
    assert scene.lists("a").events == ()


def test_a_device_that_is_not_listed_is_unhealthy() -> None:
    scene = Devices().registers().lists("a", ill=["b"])
    found = [health(scene.now, GPU, one) for one in ("a", "b", "gone")]
    assert [*found, health(scene.now, NIC, "a")] == ["Healthy", "Unhealthy", "Unhealthy", "Unhealthy"]


def test_held_devices_stay_allocatable_without_their_plugin() -> None:
    scene = Devices().plugged("a", "b").asks({GPU: 2}).allocates()
    scene.stops()
    assert (allocatable(scene.now), node_allocatable(scene.now)) == ({GPU: ()}, {GPU: 2})
