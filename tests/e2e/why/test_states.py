"""`chronolet why` names the reason of a pod's state on real Docker: why it does not start, is not ready, or has ended.

Each is asked about after the dead containers were removed and the agent was restarted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chronolet_schemas import devices, prober
from chronolet_schemas import pod as pods
from tests.e2e.devices.device_node import plugin, requesting
from tests.e2e.node import Node, pod, running_node, shell
from tests.e2e.why.asking import FAILS, HUNG, first_sentence, forget, wrong
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis

GPU, FPGA = "example.com/gpu", "example.com/fpga"
PORT: dict[str, Any] = {"ports": [{"containerPort": 80, "hostPort": 8123}]}
NO_KEY = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k"}}}]


def hooked(name: str, hook: str, script: str, main: str = HUNG) -> dict[str, Any]:
    return pod(name, shell("app", main, lifecycle={hook: {"exec": {"command": ["sh", "-c", script]}}}))


PODS: tuple[dict[str, Any], ...] = (
    pod("deadline", shell("app"), activeDeadlineSeconds=1),
    pod("noimage", shell("app", image="127.0.0.1:1/no/such:1")),
    pod("never", shell("app", image="chronolet/absent:1", imagePullPolicy="Never")),
    pod("config", shell("app", env=NO_KEY)),
    pod("cpu", shell("app", resources={"requests": {"cpu": "5000"}})),
    pod("first", shell("app", **PORT)),
    pod("init", shell("app"), initContainers=[shell("setup", "exit 9")]),
    pod("sidecar", shell("app"), initContainers=[shell("proxy", "sleep 1; exit 6", restartPolicy="Always")]),
    pod("loop", shell("app", "exit 3")),
    pod("done", shell("app", "exit 0"), restartPolicy="Never"),
    pod("unready", shell("app", HUNG, readinessProbe=FAILS)),
    pod("replaced", shell("app")),
    pod("plain", shell("app")),
    pod("noplugin", requesting("example.com/absent", 1)),
    pod("held", requesting(GPU, 1)),
    pod("orphan", requesting(FPGA, 1)),
    hooked("hangs", "postStart", "sleep 1000000"),
    hooked("slowstop", "preStop", "sleep 1000000"),
    hooked("badstop", "preStop", "echo cannot drain; exit 3", "trap 'exit 0' TERM; sleep 1000000 & wait"),
)
ANSWERS: dict[str, tuple[str, ...]] = {
    "deadline": ("failed: DeadlineExceeded", "longer than the specified deadline"),
    "noimage": ("does not start because image 127.0.0.1:1/no/such:1", "connection refused"),
    "never": ("image chronolet/absent:1 of container app is not available: ErrImageNeverPull",),
    "config": ("cannot be started as its manifest defines it: CreateContainerConfigError", "configMapKeyRef"),
    "cpu": ("was rejected by the node: OutOfcpu", "requested: 5000000"),
    "second": ("it waits for default/first", "host port 0.0.0.0:8123/TCP is held by pod default/first"),
    "done": ("all its containers have ended", "restartPolicy Never", "container collection removed its dead container"),
    "unready": ("is not ready because the readiness probe of container app failed", "the queue is stuck"),
    "replaced": ("replaced an earlier pod of its name", "manifest file", "replaced.yaml", "app.command"),
    "plain": ("was deleted because its manifest file", "plain.yaml was removed"),
    "stubborn": ("was deleted because someone requested it with `chronolet delete`", "grace period of 0 s", "killed"),
    "noplugin": ("container app waits for devices", "example.com/absent"),
    "held": ("runs, but device gpu-", "example.com/gpu", "is Unhealthy"),
    "orphan": ("runs, but the device plugin of example.com/fpga ended",),
    "hangs": ("is not ready because the postStart hook of container app has not ended: sh -c sleep 1000000",),
    "slowstop": ("was deleted", "preStop hook took too long"),
    "badstop": ("was deleted", "preStop hook failed", "cannot drain"),
}
RESTARTS: dict[str, tuple[str, ...]] = {
    "init": ("container setup of default/init", "with code 9", "by itself", "waits in a back-off of 10 s"),
    "sidecar": ("container proxy of default/sidecar", "with code 6", "by itself", "waits in a back-off of 10 s"),
    "loop": ("container app of default/loop", "with code 3", "by itself", "waits in a back-off of 10 s"),
}


@pytest.fixture(scope="module")
def settled(docker_engine: PrivateDocker) -> Iterator[Node]:
    """The node, once each pod is in its state, its dead containers are removed, and its agent has been restarted."""
    with (
        private_redis() as server,
        running_node(docker_engine, server.url, "states", server.folder / "agent") as node,
        plugin(node, GPU) as gpu,
    ):
        with plugin(node, FPGA):
            for one in PODS:
                node.write(f"{one['metadata']['name']}.yaml", one)
            stubborn = node.write_unwatched("stubborn.yaml", pod("stubborn", shell("app", HUNG)))
            assert node.chronolet("apply", "-f", stubborn).status == 0
            node.wait_until_running("first", "replaced", "plain", "stubborn", "held", "orphan", "slowstop", "badstop")
        settle(node)
        held = node.journal.events(pods.DevicesGranted, pod="default/held")[-1].devices[GPU]
        gpu.do(f"unhealthy {held[0]}")
        node.journal.wait_for("the unhealthy device", lambda: _is_unhealthy(node, held[0]))
        before = registrations(node)
        forget(node)
        node.journal.wait_for("the plugin", lambda: registrations(node) >= before + 2)
        yield node


def registrations(node: Node) -> int:
    return len(node.journal.events(devices.PluginRegistered, resource=GPU))


def settle(node: Node) -> None:
    """Change and delete pods, and wait until each is in its state."""
    wait = node.journal.wait_for_event
    node.write("second.yaml", pod("second", shell("app", **PORT)))
    node.write("replaced.yaml", pod("replaced", shell("app", "trap 'exit 0' TERM; sleep 2000000 & wait")))
    for name in ("plain", "slowstop", "badstop"):
        (node.folder / f"{name}.yaml").unlink()
    assert node.chronolet("delete", "pod", "stubborn", "--force").status == 0
    wait(pods.HookRequested, pod="default/hangs")
    wait(pods.HostPortsAwaited, pod="default/second")
    wait(pods.DevicesAwaited, pod="default/noplugin")
    wait(devices.PluginStopped, resource=FPGA)
    for name in ("noimage", "never"):
        wait(pods.ImageFailed, pod=f"default/{name}")
    wait(pods.PodFailed, pod="default/deadline")
    for name in ("init", "sidecar", "loop"):
        wait(pods.RestartScheduled, 60, pod=f"default/{name}", attempt=1)
    wait(prober.ProbeFailed, pod="default/unready", consecutive=2)
    wait(pods.ContainerExited, pod="default/done")
    starts = node.journal.events
    node.journal.wait_for("the new pod", lambda: len(starts(pods.ContainerStarted, pod="default/replaced")) > 1)
    for name in ("plain", "slowstop", "badstop", "stubborn"):
        node.wait_until_gone(name)


def _is_unhealthy(node: Node, device: str) -> bool:
    lists = node.journal.events(devices.DevicesListed, resource=GPU)
    return any(one.id == device and one.health == devices.UNHEALTHY for one in lists[-1].devices)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_first_sentence_names_the_reason(settled: Node, name: str) -> None:
    sentence = first_sentence(settled, name)
    assert f"default/{name}" in sentence
    assert wrong(sentence, ANSWERS[name]) == [], sentence


@pytest.mark.parametrize("name", RESTARTS)
def test_the_first_sentence_names_the_cause_of_a_back_off(settled: Node, name: str) -> None:
    wanted = {"pod": f"default/{name}", "attempt": 1}
    (event, *_) = settled.journal.events(pods.RestartScheduled, **wanted)
    began = next(line.entry.position for line in settled.journal.lines if line.event is event)
    sentence = first_sentence(settled, name, "--at", str(began))
    assert wrong(sentence, RESTARTS[name]) == [], sentence
