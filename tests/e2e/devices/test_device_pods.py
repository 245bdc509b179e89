"""Pods that use devices of real plugins: allocation, waiting, and devices that survive kills of plugin and agent."""

from __future__ import annotations

from contextlib import ExitStack

from chronolet_schemas import devices, kube_events
from chronolet_schemas import pod as pods
from tests.e2e.devices.device_node import LIVES, folder, ids, listed, plugin, pod_resources, wants
from tests.e2e.node import Node
from tests.e2e.node import pod as a_pod
from tests.support.pod_resources_client import PodResourcesClient
from tests.support.sample_plugin import sample_plugin

OPENS = "(: < /dev/f) && echo may read; (: > /dev/f) && echo may write; true"


FUSE = ("--device-node", "/dev/fuse:/dev/f:r", "--device-node", "/dev/null:/dev/{id}")


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
        node.wait_for_status_column("second", "WaitingForDevices")
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
        node.wait_for_status_column("answers0", "UnexpectedAdmissionError")
        assert refused.message in node.chronolet("describe", "pod", "answers0").out
        one.do("answers 2")
        node.write("answers2.yaml", a_pod("answers2", wants(bad, 1)))
        node.wait_until_running("answers2")
        trimmed = node.journal.wait_for_event(kube_events.Recorded, reason="DeviceAllocationTrimmed")
        assert "container app of default/answers2" in trimmed.message
        one.do("fail allocate out of order")
        node.write("refused.yaml", a_pod("refused", wants(bad, 1)))
        node.wait_for_status_column("refused", "UnexpectedAdmissionError")
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
    own_node.wait_for_status_column("late", "UnexpectedAdmissionError")
    assert f"no healthy devices present; {said}" in own_node.chronolet("describe", "pod", "late").out
    (own_node.folder / "late.yaml").unlink()
    own_node.wait_until_gone("late")
    with plugin(own_node, name, "--devices", "2"):
        own_node.write("late.yaml", a_pod("late", wants(name, 1)))
        own_node.wait_until_running("late")
        assert ids(own_node, name) == {**held, "default/late": ("thing-1",)}
    assert own_node.started_at("holds") == started, "a running container was touched"
