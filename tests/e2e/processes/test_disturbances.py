"""Three processes share pods, probes and sockets of a node on real Docker, while everything that can make one of them
look dead happens to each in turn: on an idle node, and while pods come and go on a busy machine.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median

import pytest

from chronolet_schemas import kernel
from tests.e2e.chaos.agreement import wait_for_agreement
from tests.e2e.chaos.churn import Churn
from tests.e2e.devices import device_node
from tests.e2e.docker_events import DockerEvents
from tests.e2e.node import Node
from tests.e2e.processes.disturbances import DISTURBANCES, NAMES, Scene
from tests.e2e.processes.shared_node import PODS, SharedNode
from tests.e2e.processes.sockets import SocketWatch
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.replicated import replicated
from tests.support.scratch import HANG_SECONDS

ROUNDS = 2
LONG_ROUNDS = 60
RESOURCE = "example.com/device"
BUSY_PROCESSES = 2


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_disturbed_processes(docker_engine: PrivateDocker, busy: bool) -> None:
    disturb(docker_engine, ROUNDS, busy=busy)


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_processes_disturbed_hundreds_of_times(docker_engine: PrivateDocker, busy: bool) -> None:
    disturb(docker_engine, LONG_ROUNDS, busy=busy)


def disturb(engine: PrivateDocker, rounds: int, *, busy: bool) -> None:
    """Disturb the processes in each way `rounds` times, in random order, and check the node after each of them."""
    with ExitStack() as stack:
        docker_events = DockerEvents(engine)
        stack.callback(docker_events.close)
        scene = stack.enter_context(three_processes(engine, busy=busy))
        node = scene.shared.node
        churn = stack.enter_context(busy_node(node)) if busy else None
        pauses: dict[str, list[float]] = {what: [] for what in DISTURBANCES}
        for number in range(rounds):
            for what in scene.choose.sample(list(DISTURBANCES), len(DISTURBANCES)):
                pauses[what].append(disturbed(scene, what, NAMES[number % len(NAMES)]))
        if churn is not None:
            churn.settle()
            churn.hook_count()
        wait_for_agreement(node, "after the last disturbance")
        scene.shared.check_pods()
        scene.sockets.check(owners=rounds)
        check_commands(scene, docker_events.actions(node.name))
        report(scene, pauses)


@contextmanager
def three_processes(engine: PrivateDocker, *, busy: bool) -> Iterator[Scene]:
    """Run a node whose three processes share its pods, the registration of a device plugin, and PodResources."""
    with ExitStack() as stack:
        folder = scratch.create("shared")
        stack.callback(scratch.remove, folder)
        servers = stack.enter_context(replicated(folder))
        node = Node(engine, servers.link("test").url, folder.name.removeprefix("chronolet-"), folder / "agent")
        stack.callback(node.close)
        shared = SharedNode(node, servers.client, failing=busy, url=lambda name: servers.link(name).url)
        shared.start(NAMES[0])
        node.wait_until_running(*PODS)
        for name in NAMES[1:]:
            shared.start(name)
        shared.wait_until_even(*NAMES)
        stack.enter_context(device_node.plugin(node, RESOURCE))
        sockets = SocketWatch(node.root / "kubelet")
        stack.callback(sockets.close)
        yield Scene(shared, servers, sockets, random.Random(16))


@contextmanager
def busy_node(node: Node) -> Iterator[Churn]:
    """Keep all processors busy, and add, change and remove pods."""
    churn = Churn(node, 16, kills=False)
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)]
    try:
        churn.resume()
        yield churn
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        churn.pause()


def disturbed(scene: Scene, what: str, name: str) -> float:
    """Disturb the process, and wait until the processes share the node evenly and probe all pods. Return for how many
    seconds a pod was not probed although a probe was due; `report` prints this, and only a hang fails the test.
    """
    since = time.clock_gettime(time.CLOCK_BOOTTIME)
    DISTURBANCES[what](scene, name)
    scene.shared.wait_until_even(*NAMES)
    scene.shared.wait_for_probes(1)
    scene.shared.check_times(lost_ms=round(HANG_SECONDS * 1000))
    pause = scene.shared.longest_pause(since)
    assert pause < HANG_SECONDS, f"{name} was {what}: no probe for {pause} s after one was due"
    return pause


def check_commands(scene: Scene, actions: Mapping[str, Sequence[str]]) -> None:
    """Check that each container was created, started, stopped and removed at most once each time its pod was accepted.
    A container's name contains its pod's uid and its attempt, so a repeated restart would appear under the same name.
    """
    assert actions
    scene.read()
    lives = Counter(uid for _, uid in scene.accepted)
    for name, done in actions.items():
        uid = name.split("_")[-2]
        repeated = {
            word: count for word, count in Counter(one.split()[0] for one in done).items() if count > lives[uid]
        }
        history = scene.shared.node.journal.history([uid]) if repeated else ""
        assert not repeated, f"{name}, whose pod was accepted {lives[uid]} times: {done}\n{history}"


def report(scene: Scene, pauses: Mapping[str, Sequence[float]]) -> None:
    """Print what was done, and how long pods were not probed."""
    taken = len(scene.shared.node.journal.events(kernel.ShardTakenOver))
    lines = [
        f"{scene.shared.moves()} shards moved, {taken} of them were taken over from a process that was proven dead"
    ]
    lines += [f"sockets had {[len(inodes) for inodes in scene.sockets.owners.values()]} owners, one at a time"]
    lines += [
        f"{what}: {len(found)} times; longest time without a due probe {max(found):.2f} s, median {median(found):.2f} s"
        for what, found in pauses.items()
    ]
    print("\n".join(lines))  # noqa: T201 - measured times
