"""Device plugins and a real node: real sockets, real containers, plugins that behave and plugins that do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chronolet_schemas import devices, kube_events
from tests.e2e.node import Node
from tests.support.pod_resources_client import PodResourcesClient
from tests.support.sample_plugin import SamplePlugin, sample_plugin


def folder(node: Node, name: str = "device-plugins") -> Path:
    return node.root / "kubelet" / name


@contextmanager
def plugin(node: Node, resource: str, *options: str) -> Iterator[SamplePlugin]:
    """A plugin of that resource, once it is listed."""
    before = len(node.journal.events(devices.DevicesListed, resource=resource))
    with sample_plugin("--resource", resource, *options, folder=folder(node)) as found:
        listed(node, resource, before + 1)
        yield found


def listed(node: Node, resource: str, times: int = 1) -> devices.DevicesListed:
    """The last list of a resource, when there are so many."""
    found: list[devices.DevicesListed] = node.journal.wait_for(
        f"{times} lists of {resource}",
        lambda: (said := node.journal.events(devices.DevicesListed, resource=resource))[times - 1 :] and said,
    )
    return found[-1]


@pytest.fixture(scope="module")
def client() -> Iterator[PodResourcesClient]:
    with PodResourcesClient.generated() as made:
        yield made


def allocatable(node: Node, client: PodResourcesClient, resource: str) -> list[str]:
    """What pods may have of a resource, by PodResources."""
    said = client.ask(folder(node, "pod-resources"), "GetAllocatableResources")
    return [one["device_ids"][0] for one in said.get("devices", ()) if one["resource_name"] == resource]


# -- plugins -----------------------------------------------------------------------------------------------------------


def test_a_plugin_comes_changes_its_mind_dies_and_comes_back(node: Node, client: PodResourcesClient) -> None:
    name = "comes.test/thing"
    with plugin(node, name, "--devices", "3") as first:
        assert allocatable(node, client, name) == ["thing-0", "thing-1", "thing-2"]
        first.do("unhealthy thing-1")
        assert listed(node, name, 2).devices == (devices.DeviceInfo(id="thing-1", health="Unhealthy"),)
        first.do("remove thing-2")
        assert listed(node, name, 3).gone == ("thing-2",)
        assert allocatable(node, client, name) == ["thing-0"]
        first.kill()
        node.journal.wait_for_event(devices.PluginStopped, resource=name)
        assert allocatable(node, client, name) == []
    with plugin(node, name, "--devices", "2", "--socket", "another.sock"):
        assert allocatable(node, client, name) == ["thing-0", "thing-1"]
        registered = node.journal.events(devices.PluginRegistered, resource=name)
        assert [Path(one.socket).name for one in registered] == ["comes_test_thing.sock", "another.sock"]


def test_a_second_plugin_of_a_resource_takes_its_place(node: Node) -> None:
    name = "second.test/thing"
    with plugin(node, name), plugin(node, name, "--socket", "second.sock", "--devices", "9"):
        said = node.journal.wait_for_event(kube_events.Recorded, reason="DevicePluginReplaced")
        assert "second_test_thing.sock is replaced by the one at" in said.message
        assert listed(node, name, 2).count == 9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--resource", "old.test/x", "--api-version", "v1alpha"], 'requested API version "v1alpha" is not supported'),
        (["--resource", "cpu"], 'the ResourceName "cpu" is invalid'),
        (["--resource", "away.test/x", "--endpoint", "../away.sock"], 'the endpoint "../away.sock" is invalid'),
        (["--resource", "own.test/x", "--endpoint", "kubelet.sock"], 'the endpoint "kubelet.sock" is invalid'),
    ],
)
def test_a_plugin_that_may_not_register_hears_why(node: Node, options: list[str], words: str) -> None:
    with sample_plugin(*options, "--socket", "bad.sock", folder=folder(node)) as bad:
        assert bad.end() == 1
        assert words in bad.wait_for("refused: ")
    refused = node.journal.wait_for_event(devices.RegistrationRefused, resource=options[1])
    assert words in refused.message
    told = node.journal.events(kube_events.Recorded, reason="DevicePluginRefused", object_kind="Node")
    assert words in told[-1].message


def test_a_plugin_is_found_in_the_watched_folder(node: Node) -> None:
    name = "found.test/thing"
    watched = folder(node, "plugins_registry")
    with sample_plugin("--resource", name, "--watched", "--preferred", folder=watched) as found:
        found.wait_for("registered")
        listed(node, name)
        known = node.journal.wait_for_event(devices.PluginOptionsKnown, resource=name)
        assert known.options.preferred_allocation
        found.do("stop")
        node.journal.wait_for_event(devices.PluginStopped, resource=name)


def test_lists_that_make_no_sense_and_lists_without_end(node: Node) -> None:
    twice, many = "twice.test/thing", "many.test/thing"
    with sample_plugin("--resource", twice, "--first-twice", folder=folder(node)):
        said = node.journal.wait_for_event(devices.ListingRefused, resource=twice)
        assert "listed twice: thing-0" in said.message
    with plugin(node, many, "--devices", "10000") as flood:
        assert listed(node, many).count == 10_000
        flood.do("flood 300")
        flood.do("unhealthy thing-9999")
        last = devices.DeviceInfo(id="thing-9999", health="Unhealthy")
        node.journal.wait_for("the last word", lambda: last in listed(node, many).devices)
        assert len(node.journal.events(devices.DevicesListed, resource=many)) < 30


def test_a_killed_agent_finds_its_plugins_again(node: Node, client: PodResourcesClient) -> None:
    name, watched = "again.test/thing", "watched.test/thing"
    registry = folder(node, "plugins_registry")
    with plugin(node, name) as one, sample_plugin("--resource", watched, "--watched", folder=registry) as other:
        listed(node, watched)
        opened = len(node.journal.events(devices.RegistryOpened))
        node.kill9()
        node.start()
        one.wait_for("registered", times=2)
        other.wait_for("registered", times=2)
        node.journal.wait_for("a new socket", lambda: len(node.journal.events(devices.RegistryOpened)) > opened)
        listed(node, name, 2)
        listed(node, watched, 2)
        assert allocatable(node, client, name) == [f"thing-{number}" for number in range(4)]
        assert allocatable(node, client, watched) == [f"thing-{number}" for number in range(4)]
