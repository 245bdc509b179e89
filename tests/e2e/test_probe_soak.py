"""110 probed containers, good ones, bad ones and dying ones: whatever they do, nothing is left behind.

A short soak; `--long` goes on for ten minutes and kills the engine meanwhile.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from chronolet.pleg.effects import STEADY_SECONDS
from chronolet_schemas import pod, prober
from chronolet_schemas.keys import Keys
from tests.e2e.node import Node, running_node, shell
from tests.e2e.node import pod as a_pod
from tests.support.docker import PrivateDocker
from tests.support.redis import private_redis
from tests.support.scratch import wait_until

PODS = 11
SHORT_SECONDS, LONG_SECONDS = 30.0, 600.0
FAULTS = 40
LEAST_RATE = 25
"""Probes a second: about 120 are wanted, fewer where crashed containers are held back for longer and longer."""
LOOKS = 10

SERVES = "trap 'exit 0' TERM; echo ok > /tmp/ok; httpd -f -p {port} -h /tmp & wait"
ANSWERS = "trap 'exit 0' TERM; nc -ll -p {port} -e {program} & wait"
STAYS = "trap 'exit 0' TERM; touch /tmp/ok; sleep 3600 & wait"
CRASHES = "httpd -f -p {port} & sleep 7; exit 1"


class Held(NamedTuple):
    """What the agent holds, and what runs on its engine. gRPC's threads are counted apart."""

    threads: int
    children: int
    engine: int
    files: int
    grpc: int


SLACK = Held(threads=0, children=0, engine=0, files=6, grpc=4)
"""Idle connections to the engine are kept, more after a busy time; gRPC's pool begins and ends threads as it likes."""


def every(seconds: int, **handler: Any) -> dict[str, Any]:
    return {**handler, "periodSeconds": seconds, "failureThreshold": 3}


def http(port: int) -> dict[str, Any]:
    return {"httpGet": {"port": port, "path": "/ok"}}


def command(*words: str) -> dict[str, Any]:
    return {"exec": {"command": list(words)}}


def probed(name: str, seed: int) -> dict[str, Any]:
    """Ten containers: servers that answer, hang, hang up, send for ever and crash; commands; no gRPC at all."""
    ports = range(8000, 8010)

    def one(number: int, script: str, **probes: Any) -> dict[str, Any]:
        program = {2: "sleep 2", 3: "true", 4: "sh -c 'echo HTTP/1.1 200; echo; exec yes'"}.get(number, "")
        return shell(f"c{number}", script.format(port=ports[number], program=program), **probes)

    return a_pod(
        name,
        one(0, SERVES, livenessProbe=every(1, **http(ports[0])), readinessProbe=every(1, **http(ports[0]))),
        one(1, SERVES, startupProbe=every(1, **http(ports[1])), livenessProbe=every(1, **http(ports[1]))),
        one(2, ANSWERS, readinessProbe=every(2, **http(ports[2]))),
        one(3, ANSWERS, readinessProbe=every(1, **http(ports[3]))),
        one(4, ANSWERS, readinessProbe=every(1, **http(ports[4]))),
        one(5, STAYS, livenessProbe=every(2, **command("test", "-f", "/tmp/ok"))),
        one(6, STAYS, readinessProbe=every(10, **command("sleep", "60"))),
        one(7, SERVES, livenessProbe=every(1, tcpSocket={"port": ports[7]})),
        one(8, SERVES, readinessProbe=every(3, grpc={"port": ports[8]})),
        one(9, CRASHES, readinessProbe=every(1, **http(ports[9])), livenessProbe=every(1, **command("sleep", "0.5"))),
    )


@pytest.fixture
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    with private_redis() as server:
        root = server.folder / "agent"
        with running_node(docker_engine, server.url, "soak", root, in_network=True) as node:
            yield node


def held(node: Node) -> Held:
    """The least of some looks within a second: what is just ending is not held."""
    looks = []
    for _ in range(LOOKS):
        looks.append(_look(node))
        time.sleep(0.1)
    return Held(*map(min, zip(*looks, strict=True)))


def _look(node: Node) -> Held:
    agent = Path(f"/proc/{node.pid}")
    children = [word for listed in agent.glob("task/*/children") for word in listed.read_text().split()]
    ours = (agent / "comm").read_text()
    named = [_name(task) for task in (agent / "task").iterdir()]
    files = sum(1 for _ in (agent / "fd").iterdir())
    engine = sum(map(len, node.engine.processes().values()))
    return Held(named.count(ours), len(children), engine, files, len(named) - named.count(ours))


def _name(task: Path) -> str:
    """Python gives its threads none of their own, gRPC does."""
    try:
        return (task / "comm").read_text()
    except OSError:
        return ""  # it has just ended


class Soak:
    """The pods, and what is done to them."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._chance = random.Random(4)
        self.done: Counter[str] = Counter()

    def run(self, names: list[str], seconds: float) -> None:
        """Faults, one after the other."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            name = self._chance.choice(names)
            fault = self._chance.choice((self._kill, self._kill, self._freeze, self._break))
            fault(name)
            time.sleep(seconds / FAULTS)
            self._node.journal.read()

    def _main(self, name: str, *containers: str) -> int:
        """The pid of a running container's first process, 0 where there is none now."""
        running = self._node.running(name)
        found = [running[one]["State"]["Pid"] for one in containers if one in running]
        return int(self._chance.choice(found)) if found else 0

    def _kill(self, name: str) -> None:
        if pid := self._main(name, "c0", "c1", "c5", "c6", "c7"):
            os.kill(pid, signal.SIGKILL)
            self.done["killed"] += 1

    def _freeze(self, name: str) -> None:
        """Its port takes connections, and nobody answers."""
        pid = self._main(name, "c0", "c1", "c7")
        servers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if pid else []
        for one in map(int, servers):
            os.kill(one, signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(one, signal.SIGCONT)
            self.done["frozen"] += 1

    def _break(self, name: str) -> None:
        pid = self._main(name, "c0", "c1", "c5")
        path = Path(f"/proc/{pid}/root/tmp/ok")
        if pid and path.exists():
            path.unlink()
            self.done["broken"] += 1


def outcomes(node: Node) -> int:
    """How many there were since the beginning."""
    with redis.Redis.from_url(node.environ["CHRONOLET_REDIS"]) as client:
        return int(client.xinfo_stream(Keys(node.name).probe_results)["entries-added"])


def soak(node: Node, seconds: float, *, kill_engine: bool) -> None:
    warm_up(node)
    before = held(node)
    names = [f"soak-{number}" for number in range(PODS)]
    for number, name in enumerate(names):
        node.write(f"{name}.yaml", probed(name, number))
    running = node.journal.wait_for_event
    for name in names:
        running(pod.ContainerStarted, seconds=120, pod=f"default/{name}", container="c9")
    began, counted = time.monotonic(), outcomes(node)
    faults = Soak(node)
    faults.run(names, seconds / 2)
    if kill_engine:
        node.engine.kill9()
        node.engine.start()
    faults.run(names, seconds / 2)
    rate = (outcomes(node) - counted) / (time.monotonic() - began)
    assert rate >= LEAST_RATE, f"{rate:.0f} probes a second: nothing was proven"
    assert min(faults.done[word] for word in ("killed", "frozen", "broken")) >= 1, faults.done
    much_was_done(node, faults.done)
    for name in names:
        (node.folder / f"{name}.yaml").unlink()
    node.journal.wait_for("the end of all pods", lambda: not node.journal.pods, 120)
    try:
        wait_until(lambda: is_no_more(held(node), before), f"no more to be held than {before}", 60)
    except TimeoutError as error:
        error.add_note(f"it holds {held(node)}")
        raise


def is_no_more(now: Held, before: Held) -> bool:
    return all(one <= then + slack for one, then, slack in zip(now, before, SLACK, strict=True))


def warm_up(node: Node) -> None:
    """Threads and connections that come with the first use and stay: the engine's, gRPC's, those that list."""
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


def much_was_done(node: Node, done: Counter[str]) -> None:
    """Every sort of container came to what it must come to."""
    failed = Counter(one.container for one in node.journal.events(prober.ProbeFailed))
    assert {"c2", "c3", "c6", "c8", "c9"} <= failed.keys()
    assert {"c0", "c1", "c4", "c5", "c7"} <= {one.container for one in node.journal.events(prober.ProbeSucceeded)}
    stopped = [one for one in node.journal.events(pod.ContainerStopRequested) if one.reason == "LivenessFailed"]
    # One that is killed meanwhile, or broken when its pod goes, is not stopped for it.
    assert len(stopped) >= done["broken"] // 3
    assert len(node.journal.events(pod.RestartScheduled)) >= done["killed"] // 2


def test_nothing_is_left_of_a_soak(node: Node) -> None:
    soak(node, SHORT_SECONDS, kill_engine=False)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_nothing_is_left_of_a_long_soak(node: Node) -> None:
    soak(node, LONG_SECONDS, kill_engine=True)
