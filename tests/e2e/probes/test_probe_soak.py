"""Probed containers that work, fail and crash: the probes leave nothing behind.

A minute of faults in 60 containers; `--long` takes ten minutes with 110 containers and kills the engine halfway. The
threads, files and processes that are held are compared twice: with the pods, after all broken containers have
recovered, and after the pods' removal.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from chronolet.pleg.effects import STEADY_SECONDS
from chronolet_schemas import pod, prober
from chronolet_schemas.keys import Keys
from tests.e2e.node import Node, running_node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.agent_resources import Held, in_time_wait, permanently_held
from tests.support.docker.engine import PrivateDocker
from tests.support.machine.frozen import stopped
from tests.support.redis.server import private_redis
from tests.support.scratch import hang_limit

SHORT_PODS, LONG_PODS = 6, 11
PORTS = range(8000, 8010)
CRASHING = "c9"
BREAKABLE = ("c0", "c1", "c5")
SHORT_SECONDS, LONG_SECONDS = 60.0, 600.0
SHORT_PAUSE, LONG_PAUSE = 1.5, 4.0
"""Seconds between faults: a container with many faults is in back-off for minutes and is not probed then."""
LEAST_PROBES = 1_000
"""Minimum number of probes during the faults. An idle machine makes about 100 a second; a busy one is late and makes
fewer.
"""
SETTLE_PROBES = 70
"""Number of probes per pod to wait for: by then each container has been probed several times since it last changed."""

SERVES = "trap 'exit 0' TERM; echo ok > /tmp/ok; httpd -f -p {port} -h /tmp & wait"
ANSWERS = "trap 'exit 0' TERM; nc -ll -p {port} -e {program} & wait"
STAYS = "trap 'exit 0' TERM; touch /tmp/ok; sleep 3600 & wait"
CRASHES = "httpd -f -p {port} & sleep 7; exit 1"


def every(seconds: int, **handler: Any) -> dict[str, Any]:
    return {**handler, "periodSeconds": seconds, "failureThreshold": 3}


def http(port: int) -> dict[str, Any]:
    return {"httpGet": {"port": port, "path": "/ok"}}


def command(*words: str) -> dict[str, Any]:
    return {"exec": {"command": list(words)}}


def probed(name: str, seed: int) -> dict[str, Any]:
    """Return a pod with ten containers: servers that answer, hang, hang up, send endlessly and crash; commands; and a
    server without gRPC that is probed by gRPC.
    """

    def one(number: int, script: str, **probes: Any) -> dict[str, Any]:
        program = {2: "sleep 2", 3: "true", 4: "sh -c 'echo HTTP/1.1 200; echo; exec yes'"}.get(number, "")
        return shell(f"c{number}", script.format(port=PORTS[number], program=program), **probes)

    return a_pod(
        name,
        one(0, SERVES, livenessProbe=every(1, **http(PORTS[0])), readinessProbe=every(1, **http(PORTS[0]))),
        one(1, SERVES, startupProbe=every(1, **http(PORTS[1])), livenessProbe=every(1, **http(PORTS[1]))),
        one(2, ANSWERS, readinessProbe=every(2, **http(PORTS[2]))),
        one(3, ANSWERS, readinessProbe=every(1, **http(PORTS[3]))),
        one(4, ANSWERS, readinessProbe=every(1, **http(PORTS[4]))),
        one(5, STAYS, livenessProbe=every(2, **command("test", "-f", "/tmp/ok"))),
        one(6, STAYS, readinessProbe=every(10, **command("sleep", "60"))),
        one(7, SERVES, livenessProbe=every(1, tcpSocket={"port": PORTS[7]})),
        one(8, SERVES, readinessProbe=every(3, grpc={"port": PORTS[8]})),
        one(9, CRASHES, readinessProbe=every(1, **http(PORTS[9])), livenessProbe=every(1, **command("sleep", "0.5"))),
    )


@pytest.fixture
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    with private_redis() as server:
        root = server.folder / "agent"
        with running_node(docker_engine, server.url, "soak", root, in_network=True) as node:
            yield node


class FaultInjector:
    """Causes faults in the pods, and counts them by kind."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._random = random.Random(4)
        self._next: list[tuple[Callable[[str], None], str]] = []
        self.counts: Counter[str] = Counter()

    def run(self, names: list[str], seconds: float, pause: float) -> None:
        """For `seconds`, cause one fault every `pause` seconds: two kills, a freeze and a break in each pod, in random
        order, then the same again. The faults are thus spread evenly, and few containers are in back-off for long.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self._next:
                faults = (self._kill, self._kill, self._freeze, self._break)
                self._next = [(fault, name) for fault in faults for name in names]
                self._random.shuffle(self._next)
            fault, name = self._next.pop()
            with suppress(FileNotFoundError, ProcessLookupError):  # the process has ended in the meantime
                fault(name)
            time.sleep(pause)
            self._node.journal.read()

    def _main(self, name: str, *containers: str) -> int:
        """Return the pid of the first process of one of `containers`, chosen at random from those that are running; 0
        if none is.
        """
        running = self._node.running(name)
        found = [running[one]["State"]["Pid"] for one in containers if one in running]
        return int(self._random.choice(found)) if found else 0

    def _kill(self, name: str) -> None:
        if pid := self._main(name, "c0", "c1", "c5", "c6", "c7"):
            os.kill(pid, signal.SIGKILL)
            self.counts["killed"] += 1

    def _freeze(self, name: str) -> None:
        """Pause a server for half a second: its port accepts connections but does not answer."""
        pid = self._main(name, "c0", "c1", "c7")
        servers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if pid else []
        for one in map(int, servers):
            with stopped([one]):
                time.sleep(0.5)
            self.counts["frozen"] += 1

    def _break(self, name: str) -> None:
        pid = self._main(name, *BREAKABLE)
        if pid and ok_file(pid).exists():
            ok_file(pid).unlink()
            self.counts["broken"] += 1


def outcomes(node: Node) -> int:
    """Return the number of probe results that the node has written so far."""
    with redis.Redis.from_url(node.environ["CHRONOLET_REDIS"]) as client:
        return int(client.xinfo_stream(Keys(node.name).probe_results)["entries-added"])


def check_soak(node: Node, pods: int, seconds: float, pause: float, *, kill_engine: bool) -> None:
    warm_up(node)
    without, _ = permanently_held(node)
    names = [f"soak-{number}" for number in range(pods)]
    for number, name in enumerate(names):
        node.write(f"{name}.yaml", probed(name, number))
    settle(node, names)
    before, processes_before = with_pods(node)
    probes, faults = cause_faults(node, names, seconds, pause, kill_engine=kill_engine)
    settle(node, names)
    wait_for_no_more(before, processes_before, lambda: with_pods(node))
    assert in_time_wait(node, PORTS[:8]) == 0, "gRPC's connections are closed by gRPC, the others by us"
    assert probes >= LEAST_PROBES, "nothing was proven"
    check_results(node, faults)
    for name in names:
        (node.folder / f"{name}.yaml").unlink()
    node.journal.wait_for("the end of all pods", lambda: not node.journal.pods, 120)
    wait_for_no_more(without, {}, lambda: permanently_held(node))
    print(f"{probes} probes, {dict(faults)}; without pods {without}, with them {before}")  # noqa: T201


def cause_faults(
    node: Node, names: list[str], seconds: float, pause: float, *, kill_engine: bool
) -> tuple[int, Counter[str]]:
    """Cause faults for `seconds`, and then until there have been LEAST_PROBES probes or a time-out is over. If
    `kill_engine` is set, kill the engine after half of `seconds` and start it again. Return the number of probes during
    the faults, and the number of faults by kind.
    """
    counted = outcomes(node)
    injector = FaultInjector(node)
    injector.run(names, seconds / 2, pause)
    if kill_engine:
        node.engine.kill9()
        node.engine.start()
    injector.run(names, seconds / 2, pause)
    until = time.monotonic() + hang_limit(60)
    while (probes := outcomes(node) - counted) < LEAST_PROBES and time.monotonic() < until:
        injector.run(names, pause, pause)  # a busy machine is late with its probes
    return probes, injector.counts


def settle(node: Node, names: list[str]) -> None:
    """Wait until all containers that do not crash by themselves are running, none is broken, and SETTLE_PROBES probes
    per pod have followed.
    """
    node.journal.wait_for("all to run", lambda: all(all_run(node, name) for name in names), 180)
    node.journal.wait_for("the restart of all that is broken", lambda: all(is_whole(node, name) for name in names), 60)
    more = SETTLE_PROBES * len(names)
    enough = outcomes(node) + more
    node.journal.wait_for(f"{more} probes", lambda: outcomes(node) >= enough, 60)
    node.journal.wait_for("all to run still", lambda: all(all_run(node, name) for name in names), 60)


def is_whole(node: Node, name: str) -> bool:
    """Return whether each container of the pod that `_break` may break is running and has its file."""
    running = node.running(name)
    return all(one in running and ok_file(running[one]["State"]["Pid"]).exists() for one in BREAKABLE)


def ok_file(pid: int) -> Path:
    """Return the file in this process's container without which the container's probe fails."""
    return Path(f"/proc/{pid}/root/tmp/ok")


def all_run(node: Node, name: str) -> bool:
    status = node.journal.status(f"default/{name}")
    if status is None:
        return False
    return all(one.state.running for one in status.container_statuses if one.name != CRASHING)


def with_pods(node: Node) -> tuple[Held, Mapping[str, int]]:
    """Return what the agent holds, and for each container name the largest number of processes in one container of that
    name. Sandboxes have the empty name; crashing containers are omitted.
    """
    held, processes_before = permanently_held(node)
    names = {one.id: one.container for one in node.journal.events(pod.ContainerStarted)}
    most: dict[str, int] = {}
    for one, count in processes_before.items():
        name = names.get(one, "")
        if name != CRASHING:
            most[name] = max(most.get(name, 0), count)
    return held, most


def wait_for_no_more(
    before: Held, processes_before: Mapping[str, int], sample: Callable[[], tuple[Held, Mapping[str, int]]]
) -> None:
    """Wait until the agent holds no more threads, children and descriptors than before, apart from the tolerated
    growth, and the containers of each name have no more processes than before.
    """
    until = time.monotonic() + hang_limit(60)
    while True:
        now, processes = sample()
        if now.is_no_more_than(before) and all(
            count <= processes_before.get(name, 0) for name, count in processes.items()
        ):
            return
        assert time.monotonic() < until, f"{now} and {processes}, before {before} and {processes_before}"


def warm_up(node: Node) -> None:
    """Run two probed pods and remove them, so that what remains after the first use exists: connections to the engine,
    threads of gRPC and of listings.
    """
    names = ("warm-1", "warm-2")
    for number, name in enumerate(names):
        node.write(f"{name}.yaml", probed(name, number))
    for name in names:
        for container in ("c6", "c8"):
            node.journal.wait_for_event(prober.ProbeFailed, seconds=60, pod=f"default/{name}", container=container)
    time.sleep(STEADY_SECONDS + 1)
    for name in names:
        (node.folder / f"{name}.yaml").unlink()
        node.wait_until_gone(name)


def check_results(node: Node, faults: Counter[str]) -> None:
    """Check that containers of every kind reached their expected results, and that the faults led to stops and
    restarts.
    """
    failed = Counter(one.container for one in node.journal.events(prober.ProbeFailed))
    assert {"c2", "c3", "c6", "c8", "c9"} <= failed.keys()
    assert {"c0", "c1", "c4", "c5", "c7"} <= {one.container for one in node.journal.events(prober.ProbeSucceeded)}
    stopped = [one for one in node.journal.events(pod.ContainerStopRequested) if one.reason == "LivenessFailed"]
    # Not every broken container is stopped because of its probe: it may be killed first, or its pod may be removed.
    assert len(stopped) >= faults["broken"] // 3
    assert len(node.journal.events(pod.RestartScheduled)) >= faults["killed"] // 2


@pytest.mark.timeout(3600)
def test_nothing_is_left_of_a_soak(node: Node) -> None:
    check_soak(node, SHORT_PODS, SHORT_SECONDS, SHORT_PAUSE, kill_engine=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nothing_is_left_of_a_long_soak(node: Node) -> None:
    check_soak(node, LONG_PODS, LONG_SECONDS, LONG_PAUSE, kill_engine=True)
