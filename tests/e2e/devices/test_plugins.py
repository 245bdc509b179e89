"""Device plugins and a real node: real sockets, real containers, plugins that behave and plugins that do not."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from chronolet.adapters.device_plugins.lists import AT_ONCE
from chronolet_schemas import devices, kube_events
from chronolet_schemas import pod as pods
from chronolet_schemas.protos import deviceplugin_pb2 as api
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.old_plugin import old_plugin
from tests.support.pod_resources_client import PodResourcesClient
from tests.support.sample_plugin import SamplePlugin, sample_plugin
from tests.support.scratch import HANG_SECONDS


def folder(node: Node, name: str = "device-plugins") -> Path:
    return node.root / "kubelet" / name


@contextmanager
def plugin(node: Node, resource: str, *options: str) -> Iterator[SamplePlugin]:
    """A plugin of that resource, once it is listed."""
    before = len(node.journal.events(devices.DevicesListed, resource=resource))
    with sample_plugin("--resource", resource, *options, folder=folder(node)) as found:
        try:
            listed(node, resource, before + 1)
        except TimeoutError as error:
            error.add_note(f"the plugin: {found.said}")
            raise
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


def pod_resources(node: Node, client: PodResourcesClient, method: str) -> dict[str, Any]:
    """An answer of PodResources. An agent that has just begun, or cannot read its log now, does not answer yet."""

    def asked() -> Any:
        said = client.ask(folder(node, "pod-resources"), method)
        return None if "error" in said else [said]

    (said,) = node.journal.wait_for("PodResources", asked)
    answer: dict[str, Any] = said
    return answer


def allocatable(node: Node, client: PodResourcesClient, resource: str) -> list[str]:
    """What pods may have of a resource, by PodResources."""
    said = pod_resources(node, client, "GetAllocatableResources")
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
    with plugin(node, name) as first, plugin(node, name, "--socket", "second.sock", "--devices", "9") as second:
        said = node.journal.wait_for_event(kube_events.Recorded, reason="DevicePluginReplaced")
        assert "second_test_thing.sock is replaced by the one at" in said.message
        assert listed(node, name, 2).count == 9
        first.wait_for("list is over")
        assert second.count("list is over") == 0


def test_plugins_of_the_first_days_work_as_they_are(node: Node) -> None:
    name, dies = "old.test/thing", "dies.test/thing"
    with old_plugin(folder(node), name) as old:
        listed(node, name)
        node.write("old.yaml", a_pod("old", wants(name, 1, f"echo $OLD; test -c /dev/old && {LIVES}")))
        node.wait_until_running("old")
        assert node.wait_for_output("old", "app", "ready").split()[0] == "one"
        opened = len(node.journal.events(devices.RegistryOpened))
        node.kill9()
        node.start()
        old.wait_for("sees it created")
        old.wait_for("registered", times=2)
        node.journal.wait_for("a new socket", lambda: len(node.journal.events(devices.RegistryOpened)) > opened)
        node.write("older.yaml", a_pod("older", wants(name, 1)))
        node.wait_until_running("older")
        assert ids(node, name) == {"default/old": ("one",), "default/older": ("two",)}
        # Some know no other calls, and one dies of such a call: in the end it is not made.
        node.journal.wait_for_event(devices.PluginOptionsKnown, resource=name)
        known = node.journal.events(devices.PluginOptionsKnown, resource=name)
        assert {one.error.partition(" desc")[0] for one in known} == {"rpc error: code = Unimplemented"}
    mortal = ("--no-options", "--do", "crash options")
    for times in (1, 2):
        with sample_plugin("--resource", dies, *mortal, folder=folder(node)) as one:
            assert one.end() == 3
        node.journal.wait_for("that its death is reported", functools.partial(_died_of_options, node, dies, times))
    with plugin(node, dies, *mortal) as one:
        assert one.count("crashes") == 0


def _died_of_options(node: Node, resource: str, times: int) -> bool:
    reported = node.journal.events(kube_events.Recorded, reason="DevicePluginDiedOfOptions")
    return sum(1 for one in reported if resource in one.message) >= times


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


def register(node: Node, version: str, endpoint: str, resource: str) -> None:
    """One call to the registration socket."""
    request = api.RegisterRequest(version=version, endpoint=endpoint, resource_name=resource)
    with grpc.insecure_channel(f"unix:{folder(node)}/kubelet.sock") as channel:
        method = "/v1beta1.Registration/Register"
        call = channel.unary_unary(method, api.RegisterRequest.SerializeToString, api.Empty.FromString)
        call(request, timeout=HANG_SECONDS, wait_for_ready=True)  # the agent may have begun a moment ago


def test_a_plugin_that_registers_before_it_serves_is_answered_and_then_found(node: Node) -> None:
    name = "early.test/thing"
    elsewhere = node.root / "elsewhere"
    elsewhere.mkdir()
    with sample_plugin("--resource", name, "--socket", "early.sock", "--watched", folder=elsewhere) as one:
        one.wait_for("serves")
        register(node, "v1beta1", "early.sock", name)
        # Not by a process that begins only now: the agent waits ten seconds at most.
        (elsewhere / "early.sock").rename(folder(node) / "early.sock")
        assert listed(node, name).count == 4
        assert one.count("registered") == 0, "it did not register by itself"
        assert not node.journal.events(devices.PluginStopped, resource=name)


def test_a_plugin_that_is_refused_without_end_does_not_fill_the_log(node: Node) -> None:
    name = "loops.test/thing"

    def asks(_: int) -> str:
        with pytest.raises(grpc.RpcError) as refused:
            register(node, "v0", "loops.sock", name)
        return str(refused.value)

    with ThreadPoolExecutor(4) as several:
        (said,) = {answer.partition("debug_error_string")[0] for answer in several.map(asks, range(64))}
    assert 'requested API version "v0" is not supported' in said
    node.journal.wait_for_event(devices.RegistrationRefused, resource=name, times=64)
    with pytest.raises(grpc.RpcError, match=r"the ResourceName .x+\.\.\.. is invalid"):
        register(node, "v1beta1", "long.sock", "x" * 1_000_000)
    told = node.journal.events(devices.RegistrationRefused, resource=name)
    assert [(one.times, one.calls) for one in told] == [(1, 1), (2, 1), (4, 2), (8, 4), (16, 8), (32, 16), (64, 32)]


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
        said = node.journal.wait_for_event(devices.ListingCorrected, resource=twice)
        assert said.twice == ("thing-0",)
        assert listed(node, twice).count == 4
    began = time.monotonic()
    with plugin(node, many, "--devices", "10000") as flood:
        assert listed(node, many).count == 10_000
        flood.do("flood 300")
        flood.do("unhealthy thing-9999")
        last = devices.DeviceInfo(id="thing-9999", health="Unhealthy")
        node.journal.wait_for("the last word", lambda: last in listed(node, many).devices)
        # A few pass at once, then one a second: how many there are depends on how slowly the plugin sends them.
        most = AT_ONCE + time.monotonic() - began
        assert len(node.journal.events(devices.DevicesListed, resource=many)) <= most


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


# -- pods --------------------------------------------------------------------------------------------------------------

LIVES = "trap 'exit 0' TERM; echo ready; sleep 3600 & wait"
OPENS = "(: < /dev/f) && echo may read; (: > /dev/f) && echo may write; true"
FUSE = ("--device-node", "/dev/fuse:/dev/f:r", "--device-node", "/dev/null:/dev/{id}")


def wants(resource: str, count: int, script: str = LIVES, name: str = "app", **more: Any) -> dict[str, Any]:
    return shell(name, script, resources={"limits": {resource: str(count)}}, **more)


def ids(node: Node, resource: str) -> dict[str, tuple[str, ...]]:
    """By the log: pod -> the devices of its containers."""
    granted = node.journal.events(pods.DevicesGranted)
    living = {state.uid for state in node.journal.pods.values()}
    return {one.pod: one.devices[resource] for one in granted if one.uid in living and resource in one.devices}


def by_pod_resources(node: Node, client: PodResourcesClient, resource: str) -> dict[str, set[str]]:
    """By PodResources: pod -> the devices of its containers."""
    found: dict[str, set[str]] = {}
    for one in pod_resources(node, client, "List").get("pod_resources", ()):
        held = [each for container in one["containers"] for each in container.get("devices", ())]
        mine = {each["device_ids"][0] for each in held if each["resource_name"] == resource}
        found |= {f"{one['namespace']}/{one['name']}": mine} if mine else {}
    return found


def by_get_devices(node: Node, resource: str) -> dict[str, set[str]]:
    """By `get devices`: pod -> its devices."""
    found: dict[str, set[str]] = {}
    for line in node.chronolet("get", "devices", "--no-headers").out.splitlines():
        name, one, _health, _numa, pod, _container, _since = line.split()
        if name == resource and pod != "<none>":
            found.setdefault(pod, set()).add(one)
    return found


def test_a_container_has_its_devices_as_they_may_be_used(node: Node, client: PodResourcesClient) -> None:
    name = "fuse.test/thing"
    asked = ("--preferred", "--pre-start", "--options-when-asked")
    with plugin(node, name, *FUSE, "--env", "FROM=plugin", *asked) as one:
        node.write(
            "fuse.yaml", a_pod("fuse", wants(name, 2, f"{OPENS}; echo $FUSE_TEST_THING $FROM; ls /dev; {LIVES}"))
        )
        node.wait_until_running("fuse")
        one.wait_for("preferred 2")
        one.wait_for("prestart ")
        said = node.wait_for_output("fuse", "app", "ready")
        assert "may read" in said
        assert "may write" not in said
        assert "can't create /dev/f: Operation not permitted" in said, said
        assert "thing-2" in said
        assert set(ids(node, name)["default/fuse"]) == {"thing-2", "thing-3"}, "what its plugin prefers"
        assert by_pod_resources(node, client, name) == {"default/fuse": {"thing-2", "thing-3"}}
        assert by_get_devices(node, name) == by_pod_resources(node, client, name)
        started = node.running("fuse")["app"]["Id"]
        node.kill_process("fuse", "app")
        one.wait_for("prestart ", times=2)
        node.journal.wait_for(
            "the next attempt", lambda: node.running("fuse").get("app", {}).get("Id") not in (None, started)
        )
        assert set(ids(node, name)["default/fuse"]) == {"thing-2", "thing-3"}, "a restart keeps them"
        (node.folder / "fuse.yaml").unlink()
        node.wait_until_gone("fuse")
        node.journal.wait_for_event(devices.DevicesFreed, pod="default/fuse")
        assert by_pod_resources(node, client, name) == {}


def test_a_pod_waits_for_devices_and_says_so(node: Node) -> None:
    name = "waits.test/thing"
    with plugin(node, name, "--devices", "1") as one:
        node.write("first.yaml", a_pod("first", wants(name, 1)))
        node.wait_until_running("first")
        one.do("unhealthy")
        listed(node, name, 2)
        node.write("second.yaml", a_pod("second", wants(name, 1)))
        waiting = node.journal.wait_for_event(pods.DevicesAwaited, pod="default/second")
        assert name in waiting.message
        node.wait_for_column("second", "WaitingForDevices")
        assert waiting.message in node.chronolet("describe", "pod", "second").out
        assert node.all_run("first"), "a device that turned unhealthy was taken from who has it"
        one.do("healthy thing-0 thing-7")
        node.wait_until_running("second")
        assert ids(node, name)["default/second"] == ("thing-7",)


def test_nothing_is_lost_when_plugin_and_agent_are_killed(node: Node, client: PodResourcesClient) -> None:
    name = "kept.test/thing"
    with plugin(node, name, *FUSE, "--devices", "3") as one:
        node.write("kept.yaml", a_pod("kept", wants(name, 2)))
        node.wait_until_running("kept")
        held, started = ids(node, name)["default/kept"], node.started_at("kept")
        one.kill()
        node.journal.wait_for_event(devices.PluginStopped, resource=name)
        node.kill9()
    node.write("later.yaml", a_pod("later", wants(name, 1)))
    node.start()
    node.journal.wait_for_event(pods.DevicesAwaited, pod="default/later")
    assert by_pod_resources(node, client, name) == {"default/kept": set(held)}
    with plugin(node, name, *FUSE, "--devices", "3", "--socket", "anew.sock") as one:
        node.wait_until_running("later")
        assert not set(ids(node, name)["default/later"]) & set(held)
        assert node.started_at("kept") == started, "a running container was touched"
        assert one.count("allocated") == 1, one.said
        assert by_pod_resources(node, client, name)["default/kept"] == set(held)


def test_what_plugins_do_wrong_is_told_and_harms_no_other(node: Node) -> None:
    bad, good = "bad.test/thing", "good.test/thing"
    with plugin(node, bad, "--do", "hang allocate") as one, plugin(node, good):
        node.write("hangs.yaml", a_pod("hangs", wants(bad, 1)))
        one.wait_for("allocate ")
        node.write("fine.yaml", a_pod("fine", wants(good, 1)))
        node.wait_until_running("fine")
        one.do("usual")
        # Its answer would be none, if it came behind the next command; it may have been given up for its time.
        node.journal.wait_for(
            "the end of the call that hung",
            lambda: node.all_run("hangs") or node.journal.events(devices.DevicesRefused, pod="default/hangs"),
        )
        one.do("answers 0")
        node.write("answers0.yaml", a_pod("answers0", wants(bad, 1)))
        refused = node.journal.wait_for_event(devices.DevicesRefused, pod="default/answers0")
        node.wait_for_column("answers0", "UnexpectedAdmissionError")
        assert refused.message in node.chronolet("describe", "pod", "answers0").out
        one.do("answers 2")
        node.write("answers2.yaml", a_pod("answers2", wants(bad, 1)))
        node.wait_until_running("answers2")
        trimmed = node.journal.wait_for_event(kube_events.Recorded, reason="DeviceAllocationTrimmed")
        assert "container app of default/answers2" in trimmed.message
        one.do("fail allocate out of order")
        node.write("refused.yaml", a_pod("refused", wants(bad, 1)))
        node.wait_for_column("refused", "UnexpectedAdmissionError")
        assert "rpc error: code = Unknown desc = out of order" in node.chronolet("describe", "pod", "refused").out
        assert node.all_run("fine")


def test_a_plugin_that_dies_of_a_question_is_asked_again_when_it_is_back(node: Node) -> None:
    deaths = {"asked": "crash preferred", "told": "crash allocate", "done": "crash-late allocate"}
    about = {name: ("--resource", f"{name}.test/thing", "--preferred", "--devices", "1") for name in deaths}
    with ExitStack() as plugins:
        for name, death in deaths.items():
            one = plugins.enter_context(sample_plugin(*about[name], "--do", death, folder=folder(node)))
            listed(node, f"{name}.test/thing")
            node.write(f"{name}.yaml", a_pod(name, wants(f"{name}.test/thing", 1)))
            assert one.end() == 3
            node.journal.wait_for_event(devices.PluginStopped, resource=f"{name}.test/thing")
            plugins.enter_context(sample_plugin(*about[name], folder=folder(node)))
        node.wait_until_running(*deaths)
        for name in deaths:
            assert ids(node, f"{name}.test/thing") == {f"default/{name}": ("thing-0",)}


def test_a_shrunken_list_takes_nothing_away(node: Node) -> None:
    name = "shrinks.test/thing"
    with plugin(node, name, "--devices", "2") as one:
        node.write("holds.yaml", a_pod("holds", wants(name, 2)))
        node.wait_until_running("holds")
        one.do("remove thing-0 thing-1")
        one.do("healthy thing-5")
        node.write("next.yaml", a_pod("next", wants(name, 1)))
        node.wait_until_running("next")
        assert ids(node, name)["default/next"] == ("thing-5",)
        assert node.all_run("holds")


def test_without_waiting_pods_are_rejected_as_by_a_kubelet(own_node: Node) -> None:
    name, said = "strict.test/thing", "cannot allocate unhealthy devices strict.test/thing, which is unexpected"
    strict = "--wait-for-resources=false"
    own_node.start(0, strict)
    own_node.write("unknown.yaml", a_pod("unknown", wants("nobody.test/thing", 1)))
    own_node.wait_until_running("unknown")
    with plugin(own_node, name, "--devices", "2"):
        own_node.write("holds.yaml", a_pod("holds", wants(name, 1)))
        own_node.wait_until_running("holds")
        held, started = ids(own_node, name), own_node.started_at("holds")
        own_node.kill9()
    own_node.start(0, strict)
    own_node.journal.wait_for("a new socket", lambda: len(own_node.journal.events(devices.RegistryOpened)) > 1)
    own_node.write("late.yaml", a_pod("late", wants(name, 1)))
    own_node.wait_for_column("late", "UnexpectedAdmissionError")
    assert f"no healthy devices present; {said}" in own_node.chronolet("describe", "pod", "late").out
    (own_node.folder / "late.yaml").unlink()
    own_node.wait_until_gone("late")
    with plugin(own_node, name, "--devices", "2"):
        own_node.write("late.yaml", a_pod("late", wants(name, 1)))
        own_node.wait_until_running("late")
        assert ids(own_node, name) == {**held, "default/late": ("thing-1",)}
    assert own_node.started_at("holds") == started, "a running container was touched"
