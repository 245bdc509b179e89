"""Which devices a claim gets: the plugin's preference and NUMA nodes."""

from chronolet.devices import signals, wanted
from chronolet.devices.context import Policy
from chronolet_schemas import devices
from tests.deciders.devices.scene import FOLDER, GPU, NIC, Devices


def test_preferred_devices_are_chosen_first() -> None:
    scene = Devices().plugged("a", "b", "c").offers_preference().asks({GPU: 2})
    assert scene.question() == wanted.Prefer(
        subject="claim/u1/app",
        intent="preferring/3",
        resource=GPU,
        socket=f"{FOLDER}/gpu.sock",
        available=("a", "b", "c"),
        must_include=(),
        size=2,
    )
    # No other claim chooses devices of the resource in the meantime.
    assert scene.asks({GPU: 1}, uid="u2").pending.reason == "in_turn"
    scene.prefers("c", "nonsense", "c")
    assert scene.has() == {GPU: ("c", "a")}
    assert scene.question("u2").available == ("b",)


def test_devices_that_vanish_while_the_plugin_is_asked_are_not_chosen() -> None:
    scene = Devices().plugged("a", "b").offers_preference().asks({GPU: 2})
    scene.lists("a")
    assert scene.question().available == ("a",)
    assert scene.prefers("a", "b").only(devices.DevicesRefused).message.endswith("Requested: 2, Available: 1")


def test_a_plugin_that_stops_while_it_is_asked_is_waited_for() -> None:
    scene = Devices().plugged("a").offers_preference().asks({GPU: 1}).stops()
    assert scene.prefers("a").pending.reason == "plugin_away"
    scene = Devices().plugged("a").offers_preference().asks({GPU: 1}).stops()
    scene.wake()
    assert scene.question().socket == ""
    assert scene.question().available == ()
    assert scene.prefers("a").pending.reason == "plugin_away"
    scene = Devices().plugged("a").offers_preference().asks({GPU: 1})
    scene.when(signals.PreferenceAnswered(**scene.about(), error="gone", away=True))  # type: ignore[arg-type]
    assert scene.pending.reason == "plugin_away"


def test_a_preference_that_arrives_before_the_first_list_is_asked_for_again() -> None:
    """This happens after a restart of the agent, which asks again before the plugin has sent its first list."""
    scene = Devices().plugged("a").offers_preference().asks({GPU: 1})
    scene.when(signals.RegistryOpened())
    scene.registers(options=devices.PluginOptions(preferred_allocation=True))
    assert scene.prefers("a").pending.reason == "no_healthy_devices"
    scene.lists("a")
    assert scene.question().available == ("a",)
    assert scene.prefers("a").has() == {GPU: ("a",)}


def test_devices_that_become_unhealthy_while_the_plugin_is_asked_are_not_chosen() -> None:
    scene = Devices().plugged("a").offers_preference().asks({GPU: 1})
    scene.lists(ill=["a"])
    assert scene.prefers("a").pending.reason == "no_healthy_devices"
    scene = Devices(Policy(wait_for_resources=False)).plugged("a").offers_preference().asks({GPU: 1})
    scene.lists(ill=["a"])
    assert scene.prefers("a").only(devices.DevicesRefused).reason == "no_healthy_devices"


def test_a_plugin_with_unknown_options_is_not_called() -> None:
    scene = Devices().registers(by="watcher").lists("a").asks({GPU: 1})
    assert scene.pending.reason == "options_unknown"
    scene.when(signals.OptionsAnswered(subject=f"options/{GPU}", intent="options/1"))
    assert scene.has() == {GPU: ("a",)}


NEAR = Policy(topology="best-effort")


def test_devices_of_one_numa_node_are_chosen_together() -> None:
    scene = Devices(NEAR).registers().lists("a", "b", "c", nodes={"a": 0, "b": 1, "c": 1}).asks({GPU: 2})
    assert scene.has() == {GPU: ("b", "c")}


def test_several_resources_get_devices_of_the_same_numa_node() -> None:
    scene = Devices(NEAR).registers().lists("a", "b", nodes={"a": 0, "b": 1})
    scene.registers(NIC).lists("n", resource=NIC, nodes={"n": 1})
    scene.asks({GPU: 1, NIC: 1})
    assert scene.has() == {GPU: ("b",)}
    scene.allocates()
    assert scene.has() == {GPU: ("b",), NIC: ("n",)}


def test_the_plugin_chooses_among_the_devices_of_one_numa_node() -> None:
    scene = Devices(NEAR).registers(options=devices.PluginOptions(preferred_allocation=True))
    scene.lists("a", "b", "c", nodes={"a": 0, "b": 1, "c": 1}).asks({GPU: 1})
    # Both nodes are suitable; the first is taken, and it has exactly the needed number of devices.
    assert scene.has() == {GPU: ("a",)}
    scene.asks({GPU: 1}, uid="u2")
    assert scene.only(devices.PreferenceAsked).near == (1,)
    assert scene.question("u2").available == ("b", "c")
    assert scene.prefers("c", uid="u2").has("u2") == {GPU: ("c",)}


def test_reused_devices_determine_the_numa_node() -> None:
    nodes = {"a": 0, "b": 0, "c": 1, "d": 1}
    scene = Devices(NEAR).registers().lists("c", "d", nodes=nodes)
    scene.asks({GPU: 1}, container="i", role="init").allocates(container="i")
    scene.lists("a", "b", "c", "d", nodes=nodes).asks({GPU: 2})
    assert scene.has() == {GPU: ("c", "d")}


def test_devices_without_numa_nodes_have_no_affinity() -> None:
    assert Devices(NEAR).plugged("a").asks({GPU: 1}).has() == {GPU: ("a",)}
    assert Devices(NEAR).plugged("a").asks({GPU: 1, NIC: 1}).has() == {GPU: ("a",)}
