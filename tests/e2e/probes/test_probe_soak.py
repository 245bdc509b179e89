"""110 probed containers, good ones, bad ones and dying ones: whatever they do, nothing is left behind.

A minute of faults; `--long` goes on for ten, and kills the engine meanwhile. Twice it is looked what is held: with
the pods still there, when all that was broken is well again, and when they are gone.
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
from tests.e2e.probes.agent_resources import Held, held_all_the_time, remembered
from tests.support.docker import PrivateDocker
from tests.support.frozen import stopped
from tests.support.redis import private_redis
from tests.support.scratch import hang_limit

PODS = 11
PORTS = range(8000, 8010)
CRASHING = "c9"
SHORT_SECONDS, LONG_SECONDS = 60.0, 600.0
SHORT_PAUSE, LONG_PAUSE = 1.5, 4.0
"""Between faults, in seconds: a container that is struck too often is held back for minutes, and nothing is probed."""
LEAST_PROBES = 1_000
"""Of those that an idle machine makes, about 100 a second; a busy one is late with them and makes fewer."""
SETTLE_SECONDS = 8.0
"""By then what was broken last has failed its probe often enough to be restarted."""

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
    """Ten containers: servers that answer, hang, hang up, send for ever and crash; commands; no gRPC at all."""

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


class Soak:
    """The pods, and what is done to them."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._chance = random.Random(4)
        self._next: list[tuple[Callable[[str], None], str]] = []
        self.done: Counter[str] = Counter()

    def run(self, names: list[str], seconds: float, pause: float) -> None:
        """Faults, one after the other, each sort to each pod in turn, so that few are held back for long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self._next:
                faults = (self._kill, self._kill, self._freeze, self._break)
                self._next = [(fault, name) for fault in faults for name in names]
                self._chance.shuffle(self._next)
            fault, name = self._next.pop()
            with suppress(FileNotFoundError, ProcessLookupError):  # it has died since it was looked for
                fault(name)
            time.sleep(pause)
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
            with stopped([one]):
                time.sleep(0.5)
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


def soak(node: Node, seconds: float, pause: float, *, kill_engine: bool) -> None:
    warm_up(node)
    without, _ = held_all_the_time(node)
    names = [f"soak-{number}" for number in range(PODS)]
    for number, name in enumerate(names):
        node.write(f"{name}.yaml", probed(name, number))
    settle(node, names)
    before, inside = with_pods(node)
    probes, faults = strike(node, names, seconds, pause, kill_engine=kill_engine)
    settle(node, names)
    wait_for_no_more(before, inside, lambda: with_pods(node))
    assert remembered(node, PORTS[:8]) == 0, "gRPC's connections are closed by gRPC, the others by us"
    assert probes >= LEAST_PROBES, "nothing was proven"
    much_was_done(node, faults)
    for name in names:
        (node.folder / f"{name}.yaml").unlink()
    node.journal.wait_for("the end of all pods", lambda: not node.journal.pods, 120)
    wait_for_no_more(without, {}, lambda: held_all_the_time(node))
    print(f"{probes} probes, {dict(faults)}; without pods {without}, with them {before}")  # noqa: T201


def strike(
    node: Node, names: list[str], seconds: float, pause: float, *, kill_engine: bool
) -> tuple[int, Counter[str]]:
    """Faults for so long; how many probes there were meanwhile, and what was done."""
    counted = outcomes(node)
    faults = Soak(node)
    faults.run(names, seconds / 2, pause)
    if kill_engine:
        node.engine.kill9()
        node.engine.start()
    faults.run(names, seconds / 2, pause)
    until = time.monotonic() + hang_limit(60)
    while (probes := outcomes(node) - counted) < LEAST_PROBES and time.monotonic() < until:
        faults.run(names, pause, pause)  # on a machine that is late with them
    return probes, faults.done


def settle(node: Node, names: list[str]) -> None:
    """Until all run that do not crash by themselves, and have for a while."""
    node.journal.wait_for("all to run", lambda: all(well(node, name) for name in names), 180)
    time.sleep(SETTLE_SECONDS)
    node.journal.wait_for("all to run still", lambda: all(well(node, name) for name in names), 60)


def well(node: Node, name: str) -> bool:
    status = node.journal.status(f"default/{name}")
    if status is None:
        return False
    return all(one.state.running for one in status.container_statuses if one.name != CRASHING)


def with_pods(node: Node) -> tuple[Held, Mapping[str, int]]:
    """What the agent holds, and the most processes in a container by its name in its pod; sandboxes have none. Those
    that crash come and go.
    """
    held, inside = held_all_the_time(node)
    names = {one.id: one.container for one in node.journal.events(pod.ContainerStarted)}
    most: dict[str, int] = {}
    for one, count in inside.items():
        name = names.get(one, "")
        if name != CRASHING:
            most[name] = max(most.get(name, 0), count)
    return held, most


def wait_for_no_more(
    before: Held, inside: Mapping[str, int], look: Callable[[], tuple[Held, Mapping[str, int]]]
) -> None:
    """Until no more is held, and there is no more than before in any sort of container."""
    until = time.monotonic() + hang_limit(60)
    while True:
        now, there = look()
        if now.is_no_more_than(before) and all(count <= inside.get(name, 0) for name, count in there.items()):
            return
        assert time.monotonic() < until, f"{now} and {there}, before {before} and {inside}"


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


@pytest.mark.timeout(3600)
def test_nothing_is_left_of_a_soak(node: Node) -> None:
    soak(node, SHORT_SECONDS, SHORT_PAUSE, kill_engine=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nothing_is_left_of_a_long_soak(node: Node) -> None:
    soak(node, LONG_SECONDS, LONG_PAUSE, kill_engine=True)
