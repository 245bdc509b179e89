"""The KubeEvents of a pod's life on a real engine, as shown by commands and sinks: the same reasons, order and counts
as the kubelet's.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator

import pytest

from chronolet_schemas import kube_events, manifests, prober
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.proxy import DockerProxy, docker_proxy
from tests.support.scratch import wait_until

RUNS = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
PRESENT = 'Container image "chronolet/busybox:1" already present on machine and can be accessed by the pod'


@pytest.fixture
def proxy(docker_engine: PrivateDocker) -> Iterator[DockerProxy]:
    """A proxy between the agent and its engine."""
    with docker_proxy(docker_engine.host) as found:
        yield found


@pytest.fixture
def node(own_node: Node, proxy: DockerProxy) -> Node:
    own_node.agent_environ = {"DOCKER_HOST": proxy.host}
    own_node.start()
    own_node.journal.wait_for_event(manifests.FolderRead)
    return own_node


class Watch:
    """Collects the objects that `events -w -o json` prints, as they arrive."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.seen: list[dict[str, object]] = []
        self._process = process
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        text, decoder = "", json.JSONDecoder()
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text += line.decode()
            if line.rstrip() == b"}":
                event, end = decoder.raw_decode(text)
                self.seen.append(event)
                text = text[end:].lstrip()

    def counts(self) -> list[tuple[object, object]]:
        return [(event["reason"], event["count"]) for event in self.seen]


def wait_for_attempt(node: Node, attempt: int) -> None:
    node.journal.wait_for(f"attempt {attempt}", lambda: node.restarts("web") == [attempt] and node.all_run("web"))


def kill_between_probes(node: Node, proxy: DockerProxy) -> None:
    """Send SIGKILL to the container between two probes: a probe interrupted by the death would fail and be recorded."""
    container = node.running("web")["app"]["Id"]
    held = proxy.hang("/exec")
    wait_until(lambda: proxy.under_way("/exec") == len(held.met), "the end of the current probe")
    node.kill_process("web", "app")
    node.journal.wait_for_event(prober.ProbingPaused, id=container)
    held.lift()


def third_attempt_is_delayed(node: Node) -> bool:
    """Return whether the third attempt was delayed: an agent that stalled during the whole wait records no back-off."""
    scheduled = node.journal.wait_for_event(pods.RestartScheduled, pod="default/web", attempt=1)
    exited = node.journal.wait_for_event(pods.ContainerExited, pod="default/web", attempt=1)
    written = next(line.entry.position.milliseconds for line in node.journal.lines if line.event is scheduled)
    assert scheduled.back_off_seconds == 10 or written >= exited.finished_at + 10_000, scheduled
    return scheduled.back_off_seconds > 0


def test_the_events_from_apply_through_a_liveness_restart_and_a_crash_loop_to_delete(
    node: Node, proxy: DockerProxy
) -> None:
    probe = {"exec": {"command": ["test", "!", "-e", "/tmp/sick"]}, "periodSeconds": 1, "failureThreshold": 2}
    probe["timeoutSeconds"] = 60
    with node.running_command("events", "-w", "-o", "json", "--for", "pod/web") as process:
        watch = Watch(process)
        web = pod("web", shell("app", RUNS, livenessProbe=probe), terminationGracePeriodSeconds=1)
        assert node.chronolet("apply", "-f", node.write_unwatched("web.yaml", web)).status == 0
        wait_for_attempt(node, 0)
        # A watch that begins later would show only the current count of a repeated event.
        node.journal.wait_for("the watch", lambda: ("Started", 1) in watch.counts())
        node.docker.exec_start(node.docker.exec_create(node.running("web")["app"]["Id"], ["touch", "/tmp/sick"])["Id"])
        wait_for_attempt(node, 1)
        kill_between_probes(node, proxy)
        wait_for_attempt(node, 2)
        assert node.chronolet("delete", "pod", "web").status == 0
        node.wait_until_gone("web")
        node.journal.wait_for("the last event", lambda: watch.counts().count(("Killing", 1)) == 2)
    delayed = third_attempt_is_delayed(node)
    assert watch.counts() == [
        *(("Pulled", 1), ("Created", 1), ("Started", 1)),
        *(("Unhealthy", 1), ("Unhealthy", 2), ("Killing", 1)),
        *(("Pulled", 2), ("Created", 2), ("Started", 2)),
        *([("BackOff", 1)] if delayed else []),
        *(("Pulled", 3), ("Created", 3), ("Started", 3)),
        ("Killing", 1),
    ]
    messages = {str(event["message"]): event["type"] for event in watch.seen}
    uid = watch.seen[0]["involvedObject"]["uid"]  # type: ignore[index]
    assert messages == {
        PRESENT: "Normal",
        "Container created": "Normal",
        "Container started": "Normal",
        "Liveness probe failed: ": "Warning",
        "Container app failed liveness probe, will be restarted": "Normal",
        **({f"Back-off restarting failed container app in pod web_default({uid})": "Warning"} if delayed else {}),
        "Stopping container app": "Normal",
    }
    shown = node.chronolet("get", "events", "--no-headers", "--field-selector", "involvedObject.name=web").out
    reasons = ["Unhealthy", "Killing", *(["BackOff"] if delayed else []), "Pulled", "Created", "Started", "Killing"]
    assert [line.split()[2] for line in shown.splitlines()] == reasons
    warnings = node.chronolet("events", "--all", "--types", "Warning", "--for", "pod/web", "--no-headers").out
    assert [line.split()[-1] for line in warnings.splitlines()] == [
        "failed:",
        *([f"web_default({uid})"] if delayed else []),
    ]
    of_node = json.loads(node.chronolet("events", "--for", f"node/{node.name}", "-o", "json").out)["items"]
    assert {(event["reason"], event["message"]) for event in of_node} >= {
        ("Starting", "Starting chronolet."),
        ("NodeReady", f"Node {node.name} status is now: NodeReady"),
    }


@pytest.mark.long
def test_a_crash_loop_is_recorded_as_often_as_by_a_kubelet(node: Node) -> None:
    """After waits of 10, 20 and 40 s comes one of 80 s, during which the back-off is recorded twice."""
    assert (
        node.chronolet("apply", "-f", node.write_unwatched("loop.yaml", pod("loop", shell("app", "exit 1")))).status
        == 0
    )
    node.journal.wait_for_event(pods.ContainerStarted, 240, pod="default/loop", attempt=5)
    found: list[str] = []
    for line in node.journal.lines:
        match line.event:
            case kube_events.Recorded(name="loop", reason="BackOff"):
                found.append("BackOff")
            case pods.ContainerStarted(pod="default/loop", attempt=attempt):
                found.append(f"{attempt}")
    assert found[: found.index("5") + 1] == [
        *("0", "1", "BackOff", "2", "BackOff", "3", "BackOff", "4", "BackOff", "BackOff", "5"),
    ]
