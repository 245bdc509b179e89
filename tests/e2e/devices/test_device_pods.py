"""Pods that use devices of real plugins: allocation, waiting, and devices that survive kills of plugin and agent."""

from __future__ import annotations

from contextlib import ExitStack

from chronolet_schemas import devices, kube_events
from chronolet_schemas import pod as pods
from tests.e2e.devices.device_node import (
    STAYS,
    folder,
    granted_devices,
    plugin,
    pod_resources,
    requesting,
    wait_for_list,
)
from tests.e2e.node import Node
from tests.e2e.node import pod as a_pod
from tests.support.devices.pod_resources_client import PodResourcesClient
from tests.support.devices.sample_plugin import sample_plugin

OPENS = "(: < /dev/f) && echo may read; (: > /dev/f) && echo may write; true"


FUSE = ("--device-node", "/dev/fuse:/dev/f:r", "--device-node", "/dev/null:/dev/{id}")


def by_pod_resources(node: Node, client: PodResourcesClient, resource: str) -> dict[str, set[str]]:
    """Return the devices of a resource as listed by PodResources: pod -> ids."""
    found: dict[str, set[str]] = {}
    for one in pod_resources(node, client, "List").get("pod_resources", ()):
        held = [each for container in one["containers"] for each in container.get("devices", ())]
        mine = {each["device_ids"][0] for each in held if each["resource_name"] == resource}
        found |= {f"{one['namespace']}/{one['name']}": mine} if mine else {}
    return found


def by_get_devices(node: Node, resource: str) -> dict[str, set[str]]:
    """Return the devices of a resource as shown by `get devices`: pod -> ids."""
    found: dict[str, set[str]] = {}
    for line in node.chronolet("get", "devices", "--no-headers").out.splitlines():
        name, one, _health, _numa, pod, _container, _since = line.split()
        if name == resource and pod != "<none>":
            found.setdefault(pod, set()).add(one)
    return found


def test_a_container_gets_its_devices_with_their_permissions(node: Node, client: PodResourcesClient) -> None:
    name = "fuse.test/thing"
    calls = ("--preferred", "--pre-start", "--options-when-asked")
    with plugin(node, name, *FUSE, "--env", "FROM=plugin", *calls) as one:
        node.write(
            "fuse.yaml", a_pod("fuse", requesting(name, 2, f"{OPENS}; echo $FUSE_TEST_THING $FROM; ls /dev; {STAYS}"))
        )
        node.wait_until_running("fuse")
        one.wait_for("preferred 2")
        one.wait_for("prestart ")
        output = node.wait_for_output("fuse", "app", "ready")
        assert "may read" in output
        assert "may write" not in output
        assert "can't create /dev/f: Operation not permitted" in output, output
        assert "thing-2" in output
        assert set(granted_devices(node, name)["default/fuse"]) == {"thing-2", "thing-3"}, (
            "the devices that the plugin prefers"
        )
        assert by_pod_resources(node, client, name) == {"default/fuse": {"thing-2", "thing-3"}}
        assert by_get_devices(node, name) == by_pod_resources(node, client, name)
        started = node.running("fuse")["app"]["Id"]
        node.kill_process("fuse", "app")
        one.wait_for("prestart ", times=2)
        node.journal.wait_for(
            "the next attempt", lambda: node.running("fuse").get("app", {}).get("Id") not in (None, started)
        )
        assert set(granted_devices(node, name)["default/fuse"]) == {"thing-2", "thing-3"}, "a restart keeps them"
        (node.folder / "fuse.yaml").unlink()
        node.wait_until_gone("fuse")
        node.journal.wait_for_event(devices.DevicesFreed, pod="default/fuse")
        assert by_pod_resources(node, client, name) == {}


def test_a_pod_waits_for_devices_and_reports_it(node: Node) -> None:
    name = "waits.test/thing"
    with plugin(node, name, "--devices", "1") as one:
        node.write("first.yaml", a_pod("first", requesting(name, 1)))
        node.wait_until_running("first")
        one.do("unhealthy")
        wait_for_list(node, name, 2)
        node.write("second.yaml", a_pod("second", requesting(name, 1)))
        waiting = node.journal.wait_for_event(pods.DevicesAwaited, pod="default/second")
        assert name in waiting.message
        node.wait_for_status_column("second", "WaitingForDevices")
        assert waiting.message in node.chronolet("describe", "pod", "second").out
        assert node.all_run("first"), "a device that became unhealthy was taken from its owner"
        one.do("healthy thing-0 thing-7")
        node.wait_until_running("second")
        assert granted_devices(node, name)["default/second"] == ("thing-7",)


def test_allocations_survive_kills_of_plugin_and_agent(node: Node, client: PodResourcesClient) -> None:
    name = "kept.test/thing"
    with plugin(node, name, *FUSE, "--devices", "3") as one:
        node.write("kept.yaml", a_pod("kept", requesting(name, 2)))
        node.wait_until_running("kept")
        held, started = granted_devices(node, name)["default/kept"], node.started_at("kept")
        one.kill()
        node.journal.wait_for_event(devices.PluginStopped, resource=name)
        node.kill9()
    node.write("later.yaml", a_pod("later", requesting(name, 1)))
    node.start()
    node.journal.wait_for_event(pods.DevicesAwaited, pod="default/later")
    assert by_pod_resources(node, client, name) == {"default/kept": set(held)}
    with plugin(node, name, *FUSE, "--devices", "3", "--socket", "anew.sock") as one:
        node.wait_until_running("later")
        assert not set(granted_devices(node, name)["default/later"]) & set(held)
        assert node.started_at("kept") == started, "a running container was touched"
        assert one.count("allocated") == 1, one.lines
        assert by_pod_resources(node, client, name)["default/kept"] == set(held)


def test_errors_of_a_plugin_are_reported_and_harm_no_other(node: Node) -> None:
    bad, good = "bad.test/thing", "good.test/thing"
    with plugin(node, bad, "--do", "hang allocate") as one, plugin(node, good):
        node.write("hangs.yaml", a_pod("hangs", requesting(bad, 1)))
        one.wait_for("allocate ")
        node.write("fine.yaml", a_pod("fine", requesting(good, 1)))
        node.wait_until_running("fine")
        one.do("usual")
        # Wait, because the next command would change the answer to this call; the call may also have timed out.
        node.journal.wait_for(
            "the end of the hanging call",
            lambda: node.all_run("hangs") or node.journal.events(devices.DevicesRefused, pod="default/hangs"),
        )
        one.do("answers 0")
        node.write("answers0.yaml", a_pod("answers0", requesting(bad, 1)))
        refused = node.journal.wait_for_event(devices.DevicesRefused, pod="default/answers0")
        node.wait_for_status_column("answers0", "UnexpectedAdmissionError")
        assert refused.message in node.chronolet("describe", "pod", "answers0").out
        one.do("answers 2")
        node.write("answers2.yaml", a_pod("answers2", requesting(bad, 1)))
        node.wait_until_running("answers2")
        trimmed = node.journal.wait_for_event(kube_events.Recorded, reason="DeviceAllocationTrimmed")
        assert "container app of default/answers2" in trimmed.message
        one.do("fail allocate out of order")
        node.write("refused.yaml", a_pod("refused", requesting(bad, 1)))
        node.wait_for_status_column("refused", "UnexpectedAdmissionError")
        assert "rpc error: code = Unknown desc = out of order" in node.chronolet("describe", "pod", "refused").out
        assert node.all_run("fine")


def test_a_call_of_which_a_plugin_died_is_repeated_after_its_return(node: Node) -> None:
    crashes = {"preferred": "crash preferred", "allocate": "crash allocate", "late": "crash-late allocate"}
    options = {name: ("--resource", f"{name}.test/thing", "--preferred", "--devices", "1") for name in crashes}
    with ExitStack() as plugins:
        for name, crash in crashes.items():
            one = plugins.enter_context(sample_plugin(*options[name], "--do", crash, folder=folder(node)))
            wait_for_list(node, f"{name}.test/thing")
            node.write(f"{name}.yaml", a_pod(name, requesting(f"{name}.test/thing", 1)))
            assert one.end() == 3
            node.journal.wait_for_event(devices.PluginStopped, resource=f"{name}.test/thing")
            plugins.enter_context(sample_plugin(*options[name], folder=folder(node)))
        node.wait_until_running(*crashes)
        for name in crashes:
            assert granted_devices(node, f"{name}.test/thing") == {f"default/{name}": ("thing-0",)}


def test_a_shorter_list_takes_no_device_from_its_owner(node: Node) -> None:
    name = "shrinks.test/thing"
    with plugin(node, name, "--devices", "2") as one:
        node.write("holds.yaml", a_pod("holds", requesting(name, 2)))
        node.wait_until_running("holds")
        one.do("remove thing-0 thing-1")
        one.do("healthy thing-5")
        node.write("next.yaml", a_pod("next", requesting(name, 1)))
        node.wait_until_running("next")
        assert granted_devices(node, name)["default/next"] == ("thing-5",)
        assert node.all_run("holds")


def test_without_waiting_pods_are_rejected_as_by_a_kubelet(own_node: Node) -> None:
    name, error = "strict.test/thing", "cannot allocate unhealthy devices strict.test/thing, which is unexpected"
    strict = "--wait-for-resources=false"
    own_node.start(0, strict)
    own_node.write("unknown.yaml", a_pod("unknown", requesting("nobody.test/thing", 1)))
    own_node.wait_until_running("unknown")
    with plugin(own_node, name, "--devices", "2"):
        own_node.write("holds.yaml", a_pod("holds", requesting(name, 1)))
        own_node.wait_until_running("holds")
        held, started = granted_devices(own_node, name), own_node.started_at("holds")
        own_node.kill9()
    own_node.start(0, strict)
    own_node.journal.wait_for("a new socket", lambda: len(own_node.journal.events(devices.RegistryOpened)) > 1)
    own_node.write("late.yaml", a_pod("late", requesting(name, 1)))
    own_node.wait_for_status_column("late", "UnexpectedAdmissionError")
    assert f"no healthy devices present; {error}" in own_node.chronolet("describe", "pod", "late").out
    (own_node.folder / "late.yaml").unlink()
    own_node.wait_until_gone("late")
    with plugin(own_node, name, "--devices", "2"):
        own_node.write("late.yaml", a_pod("late", requesting(name, 1)))
        own_node.wait_until_running("late")
        assert granted_devices(own_node, name) == {**held, "default/late": ("thing-1",)}
    assert own_node.started_at("holds") == started, "a running container was touched"
