"""Device plugins on a real node, with real sockets: plugins that follow the protocol and plugins that do not."""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from chronolet.adapters.device_plugins.lists import BURST
from chronolet_schemas import devices, kube_events
from chronolet_schemas.protos import deviceplugin_pb2 as api
from tests.e2e.devices.device_node import STAYS, allocatable, folder, granted_devices, plugin, requesting, wait_for_list
from tests.e2e.node import Node
from tests.e2e.node import pod as a_pod
from tests.support.devices.old_plugin import old_plugin
from tests.support.devices.pod_resources_client import PodResourcesClient
from tests.support.devices.sample_plugin import sample_plugin
from tests.support.scratch import HANG_SECONDS


def test_a_plugin_registers_changes_its_list_dies_and_returns(node: Node, client: PodResourcesClient) -> None:
    name = "comes.test/thing"
    with plugin(node, name, "--devices", "3") as first:
        assert allocatable(node, client, name) == ["thing-0", "thing-1", "thing-2"]
        first.do("unhealthy thing-1")
        assert wait_for_list(node, name, 2).devices == (devices.DeviceInfo(id="thing-1", health="Unhealthy"),)
        first.do("remove thing-2")
        assert wait_for_list(node, name, 3).gone == ("thing-2",)
        assert allocatable(node, client, name) == ["thing-0"]
        first.kill()
        node.journal.wait_for_event(devices.PluginStopped, resource=name)
        assert allocatable(node, client, name) == []
    with plugin(node, name, "--devices", "2", "--socket", "another.sock"):
        assert allocatable(node, client, name) == ["thing-0", "thing-1"]
        registered = node.journal.events(devices.PluginRegistered, resource=name)
        assert [Path(one.socket).name for one in registered] == ["comes_test_thing.sock", "another.sock"]


def test_a_second_plugin_of_a_resource_replaces_the_first(node: Node) -> None:
    name = "second.test/thing"
    with plugin(node, name) as first, plugin(node, name, "--socket", "second.sock", "--devices", "9") as second:
        replaced = node.journal.wait_for_event(kube_events.Recorded, reason="DevicePluginReplaced")
        assert "second_test_thing.sock is replaced by the one at" in replaced.message
        assert wait_for_list(node, name, 2).count == 9
        first.wait_for("list is over")
        assert second.count("list is over") == 0


def test_plugins_of_the_oldest_protocol_work(node: Node) -> None:
    name, dies = "old.test/thing", "dies.test/thing"
    with old_plugin(folder(node), name) as old:
        wait_for_list(node, name)
        node.write("old.yaml", a_pod("old", requesting(name, 1, f"echo $OLD; test -c /dev/old && {STAYS}")))
        node.wait_until_running("old")
        assert node.wait_for_output("old", "app", "ready").split()[0] == "one"
        opened = len(node.journal.events(devices.RegistryOpened))
        node.kill9()
        node.start()
        old.wait_for("sees it created")
        old.wait_for("registered", times=2)
        node.journal.wait_for("a new socket", lambda: len(node.journal.events(devices.RegistryOpened)) > opened)
        node.write("older.yaml", a_pod("older", requesting(name, 1)))
        node.wait_until_running("older")
        assert granted_devices(node, name) == {"default/old": ("one",), "default/older": ("two",)}
        # Some plugins do not implement further calls, and one dies when it gets such a call: the call is not repeated.
        node.journal.wait_for_event(devices.PluginOptionsKnown, resource=name)
        known = node.journal.events(devices.PluginOptionsKnown, resource=name)
        assert {one.error.partition(" desc")[0] for one in known} == {"rpc error: code = Unimplemented"}
    crashes_on_options = ("--no-options", "--do", "crash options")
    for times in (1, 2):
        with sample_plugin("--resource", dies, *crashes_on_options, folder=folder(node)) as one:
            assert one.end() == 3
        node.journal.wait_for("a report of its death", functools.partial(_death_is_reported, node, dies, times))
    with plugin(node, dies, *crashes_on_options) as one:
        assert one.count("crashes") == 0


def _death_is_reported(node: Node, resource: str, times: int) -> bool:
    reported = node.journal.events(kube_events.Recorded, reason="DevicePluginDiedOfOptions")
    return sum(1 for one in reported if resource in one.message) >= times


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--resource", "old.test/x", "--api-version", "v1alpha"], 'requested API version "v1alpha" is not supported'),
        (["--resource", "cpu"], 'the ResourceName "cpu" is invalid'),
        (["--resource", "away.test/x", "--endpoint", "../away.sock"], 'the endpoint "../away.sock" is invalid'),
        (["--resource", "own.test/x", "--endpoint", "kubelet.sock"], 'the endpoint "kubelet.sock" is invalid'),
    ],
)
def test_a_refused_plugin_gets_the_reason(node: Node, options: list[str], text: str) -> None:
    with sample_plugin(*options, "--socket", "bad.sock", folder=folder(node)) as bad:
        assert bad.end() == 1
        assert text in bad.wait_for("refused: ")
    refused = node.journal.wait_for_event(devices.RegistrationRefused, resource=options[1])
    assert text in refused.message
    recorded = node.journal.events(kube_events.Recorded, reason="DevicePluginRefused", object_kind="Node")
    assert text in recorded[-1].message


def register(node: Node, version: str, endpoint: str, resource: str) -> None:
    """Send one call to the registration socket."""
    request = api.RegisterRequest(version=version, endpoint=endpoint, resource_name=resource)
    with grpc.insecure_channel(f"unix:{folder(node)}/kubelet.sock") as channel:
        method = "/v1beta1.Registration/Register"
        call = channel.unary_unary(method, api.RegisterRequest.SerializeToString, api.Empty.FromString)
        call(request, timeout=HANG_SECONDS, wait_for_ready=True)  # the agent may have just started


def test_a_plugin_that_registers_before_it_serves_is_found(node: Node) -> None:
    name = "early.test/thing"
    elsewhere = node.root / "elsewhere"
    elsewhere.mkdir()
    with sample_plugin("--resource", name, "--socket", "early.sock", "--watched", folder=elsewhere) as one:
        one.wait_for("serves")
        register(node, "v1beta1", "early.sock", name)
        # Rename the socket of a running plugin: a plugin that starts now might take longer than the ten seconds that
        # the agent allows.
        (elsewhere / "early.sock").rename(folder(node) / "early.sock")
        assert wait_for_list(node, name).count == 4
        assert one.count("registered") == 0, "it did not register by itself"
        assert not node.journal.events(devices.PluginStopped, resource=name)


def test_a_plugin_that_is_refused_endlessly_does_not_fill_the_log(node: Node) -> None:
    name = "loops.test/thing"

    def attempt(_: int) -> str:
        with pytest.raises(grpc.RpcError) as refused:
            register(node, "v0", "loops.sock", name)
        return str(refused.value)

    with ThreadPoolExecutor(4) as pool:
        (message,) = {answer.partition("debug_error_string")[0] for answer in pool.map(attempt, range(64))}
    assert 'requested API version "v0" is not supported' in message
    node.journal.wait_for_event(devices.RegistrationRefused, resource=name, times=64)
    with pytest.raises(grpc.RpcError, match=r"the ResourceName .x+\.\.\.. is invalid"):
        register(node, "v1beta1", "long.sock", "x" * 1_000_000)
    recorded = node.journal.events(devices.RegistrationRefused, resource=name)
    assert [(one.times, one.calls) for one in recorded] == [(1, 1), (2, 1), (4, 2), (8, 4), (16, 8), (32, 16), (64, 32)]


def test_a_plugin_is_found_in_the_watched_folder(node: Node) -> None:
    name = "found.test/thing"
    watched = folder(node, "plugins_registry")
    with sample_plugin("--resource", name, "--watched", "--preferred", folder=watched) as found:
        found.wait_for("registered")
        wait_for_list(node, name)
        known = node.journal.wait_for_event(devices.PluginOptionsKnown, resource=name)
        assert known.options.preferred_allocation
        found.do("stop")
        node.journal.wait_for_event(devices.PluginStopped, resource=name)


def test_invalid_lists_and_endless_lists(node: Node) -> None:
    twice, many = "twice.test/thing", "many.test/thing"
    with sample_plugin("--resource", twice, "--first-twice", folder=folder(node)):
        corrected = node.journal.wait_for_event(devices.ListingCorrected, resource=twice)
        assert corrected.twice == ("thing-0",)
        assert wait_for_list(node, twice).count == 4
    began = time.monotonic()
    with plugin(node, many, "--devices", "10000") as flood:
        assert wait_for_list(node, many).count == 10_000
        flood.do("flood 300")
        flood.do("unhealthy thing-9999")
        last = devices.DeviceInfo(id="thing-9999", health="Unhealthy")
        node.journal.wait_for("the last change", lambda: last in wait_for_list(node, many).devices)
        # A burst of lists is accepted, then one list per second: their number depends on how slowly the plugin sends
        # them.
        most = BURST + time.monotonic() - began
        assert len(node.journal.events(devices.DevicesListed, resource=many)) <= most


def test_a_killed_agent_finds_its_plugins_again(node: Node, client: PodResourcesClient) -> None:
    name, watched = "again.test/thing", "watched.test/thing"
    registry = folder(node, "plugins_registry")
    with plugin(node, name) as one, sample_plugin("--resource", watched, "--watched", folder=registry) as other:
        wait_for_list(node, watched)
        opened = len(node.journal.events(devices.RegistryOpened))
        node.kill9()
        node.start()
        one.wait_for("registered", times=2)
        other.wait_for("registered", times=2)
        node.journal.wait_for("a new socket", lambda: len(node.journal.events(devices.RegistryOpened)) > opened)
        wait_for_list(node, name, 2)
        wait_for_list(node, watched, 2)
        assert allocatable(node, client, name) == [f"thing-{number}" for number in range(4)]
        assert allocatable(node, client, watched) == [f"thing-{number}" for number in range(4)]
