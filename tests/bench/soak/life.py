"""One soak: a node that is killed and overloaded, then its twin that is not.

Input: a plan. Output: a `Result`. Next: the figures of `soak`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import docker

from chronolet.adapters.redis_server.server import OwnServer
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet_schemas import pod as pods
from chronolet_schemas.keys import Keys
from tests.bench.soak.pods import BREAKABLE, DEVICE, HOW_TO_BREAK, LOOPING, MOST_DEVICES, kinds, manifest, stays
from tests.e2e.node import Node
from tests.support import scratch
from tests.support.docker import PrivateDocker, private_docker
from tests.support.sample_plugin import sample_plugin

SEED = 2027
PORT = 10255
PACE = 5
"""Pods that come at a time: hundreds of containers started at once stall the machine."""
QUARTER, OVERLOAD = 900.0, 300.0
KILL_EVERY = 60.0
SETTLE_SECONDS = 30.0
LONGEST = 900.0
"""So long it is waited for a state at the most, in seconds: only a hang takes longer."""
BREAKS = 6


class Plan(NamedTuple):
    """For how many seconds, how many pods, and how many busy loops while the machine is overloaded."""

    seconds: float
    pods: int
    loops: int


class Held(NamedTuple):
    """What the agent holds when nothing happens, and its Redis beside its history and for it.

    The history is what is kept up to a bound: the log's newest part, the newest probe results and KubeEvents.
    """

    mib: float
    files: int
    threads: int
    redis_mib: float
    history_mib: float


class Result(NamedTuple):
    """What a soak found. `restarted` and `differences` are a line each."""

    kills: Mapping[str, int]
    restarted: Sequence[str]
    broken: int
    broken_restarted: int
    differences: Sequence[str]
    begin: Held
    end: Held
    longest_return: float
    entries: int


def lived(plan: Plan) -> Result:
    """The soak, then the twin, one after the other on the same engine."""
    with private_docker() as engine:
        with node_of(engine, "soak") as node:
            soak = Soak(node, plan)
            soak.live()
            after = states(node, soak.kinds)
        with node_of(engine, "twin") as twin:
            spared = Soak(twin, plan)
            spared.begin()
            spared.break_all()
            expected = states(twin, spared.kinds)
    differences = [
        f"{name}: expected {expected[name]}, found {after.get(name)}"
        for name in expected
        if after.get(name) != expected[name]
    ]
    return Result(
        kills=soak.kills,
        restarted=soak.restarted,
        broken=len(soak.broken),
        broken_restarted=soak.broken_restarted(),
        differences=differences,
        begin=soak.held_at_first,
        end=soak.held_at_last,
        longest_return=soak.longest_return,
        entries=len(soak.node.journal.lines),
    )


@contextmanager
def node_of(engine: PrivateDocker, name: str) -> Iterator[Node]:
    """A node with a Redis of its own and a device plugin; gone at the end."""
    folder = scratch.create("soak")
    root = folder / "agent"
    node = Node(engine, f"unix://{root}/redis/redis.sock", name, root)
    del node.environ["CHRONOLET_REDIS"]
    del node.environ["CHRONOLET_PROBE_OVERLOAD_PROTECTION"]  # the tests turn it off: here it is what is tested
    try:
        node.start(PORT, in_network=True)
        node.journal.wait_for("the log", lambda: node.journal.lines, LONGEST)
        plugins = root / "kubelet" / "device-plugins"
        node.journal.wait_for("the folder of device plugins", plugins.exists, LONGEST)
        with sample_plugin("--resource", DEVICE, "--devices", str(MOST_DEVICES), folder=plugins):
            yield node
    finally:
        node.close()
        OwnServer(root).stop()
        scratch.unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


class Soak:
    """One node's life."""

    def __init__(self, node: Node, plan: Plan) -> None:
        self.node = node
        self.plan = plan
        self.kinds = kinds(plan.pods)
        breakable = [name for name, kind in self.kinds.items() if kind in BREAKABLE]
        self.broken = breakable[:: max(1, len(breakable) // BREAKS)][:BREAKS]
        """Pods whose containers are broken in the course of the life; all others are healthy."""
        self.kills: Counter[str] = Counter()
        self.restarted: list[str] = []
        self.longest_return = 0.0
        self._random = random.Random(SEED)
        self._before: dict[str, str] = {}
        self.held_at_first = self.held_at_last = Held(0, 0, 0, 0, 0)

    # -- phases ------------------------------------------------------------------------------------------------------

    def live(self) -> None:
        """All of it."""
        self.begin()
        time.sleep(SETTLE_SECONDS)
        self.held_at_first = held(self.node)
        began = time.monotonic()
        breaks = list(self.broken)
        pause = self.plan.seconds / (len(breaks) + 1)
        with ExitStack() as overload:
            loops: list[subprocess.Popen[bytes]] = []
            while (passed := time.monotonic() - began) < self.plan.seconds:
                wanted = passed % min(QUARTER, self.plan.seconds) < min(OVERLOAD, self.plan.seconds / 3)
                if wanted and not loops:
                    loops = overload.enter_context(busy(self.plan.loops))
                elif not wanted and loops:
                    overload.close()
                    loops = []
                if breaks and passed >= pause * (len(self.broken) - len(breaks) + 1):
                    self._break(breaks.pop(0))
                self._minute(began)
        for name in breaks:
            self._break(name)
        self._settled()
        time.sleep(SETTLE_SECONDS)
        self.held_at_last = held(self.node)

    def begin(self) -> None:
        """The pods come, and all that are to run do."""
        names = list(self.kinds)
        for first in range(0, len(names), PACE):
            for name in names[first : first + PACE]:
                self.node.write(f"{name}.yaml", manifest(name, self.kinds[name]))
            self._wait_for(names[: first + PACE])
        self._before = self._started()

    def break_all(self) -> None:
        """For the twin: the same containers break, one after the other."""
        for name in self.broken:
            self._break(name)
        self._settled()

    # -- what happens each minute ------------------------------------------------------------------------------------

    def _minute(self, began: float) -> None:
        """One kill each of agent, Redis and engine, at times of their own within it; then the healthy are looked at."""
        least = min(KILL_EVERY, self.plan.seconds / 4)
        start = time.monotonic()
        at = sorted((self._random.uniform(0, least * 0.7), name) for name in ("agent", "redis", "docker"))
        for moment, name in at:
            time.sleep(max(0.0, start + moment - time.monotonic()))
            self._kill(name)
        self._look(began)
        time.sleep(max(0.0, start + least - time.monotonic()))

    def _kill(self, name: str) -> None:
        killed_at = time.monotonic()
        match name:
            case "agent":
                self.node.kill9()
                self.node.start(PORT, in_network=True)
            case "redis":
                pid = OwnServer(self.node.root).pid()
                if pid is None:
                    return
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            case _:
                self.node.engine.kill9()
                self.node.engine.start()
        self.kills[name] += 1
        if name == "agent":
            self._wait_for_agent(killed_at)

    def _wait_for_agent(self, killed_at: float) -> None:
        """Until it says that it is ready."""
        scratch.wait_until(lambda: ready(self.node), "an agent that acts again", LONGEST)
        self.longest_return = max(self.longest_return, time.monotonic() - killed_at)

    def _look(self, began: float) -> None:
        """Healthy containers must be those that were there at first."""
        now = self._started()
        for container, started in self._before.items():
            if now.get(container) != started:
                self.restarted.append(f"{time.monotonic() - began:.0f} s: {container} of {started}")
        self._before = {one: started for one, started in self._before.items() if now.get(one) == started}

    # -- breaking ----------------------------------------------------------------------------------------------------

    def _break(self, name: str) -> None:
        """From inside: its probe fails from now on, until its container is another one."""
        command = HOW_TO_BREAK[self.kinds[name]]
        for _ in range(10):
            try:
                found = self.node.running(name)["app"]["Id"]
                self.node.docker.exec_start(self.node.docker.exec_create(found, command)["Id"])
            except (docker.errors.APIError, OSError, KeyError):
                time.sleep(1)  # the engine is on its way back
                continue
            return
        raise TimeoutError(f"{name} could not be broken")

    def broken_restarted(self) -> int:
        """How many of the broken ones have been restarted for their probe."""
        stops = self.node.journal.events(pods.ContainerStopRequested, reason="LivenessFailed")
        return len({one.pod.removeprefix("default/") for one in stops} & set(self.broken))

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _settled(self) -> None:
        self.node.journal.wait_for(
            "the restart of all that was broken", lambda: self.broken_restarted() == len(self.broken), LONGEST
        )
        self._wait_for(list(self.kinds))
        self._look(time.monotonic())

    def _wait_for(self, names: Sequence[str]) -> None:
        self.node.journal.wait_for("all pods", lambda: all(map(self._is_there, names)), LONGEST)

    def _is_there(self, name: str) -> bool:
        words = self.node.container_states(name)
        if stays(self.kinds[name]):
            return bool(words) and set(words) == {"running"}
        return bool(words) and not {"ContainerCreating", "PodInitializing"} & set(words)

    def _started(self) -> dict[str, str]:
        """When each healthy container was started, by Docker, by `<pod> <id>`."""
        healthy = [name for name, kind in self.kinds.items() if stays(kind) and name not in self.broken]
        return {f"{name} {one}": at for name in healthy for one, at in self.node.started_at(name).items()}


def ready(node: Node) -> bool:
    """Whether the agent says so."""
    try:
        return node.engine.namespace.http(PORT, path="/readyz").status == 200
    except OSError:
        return False


@contextmanager
def busy(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that compute."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield loops
    finally:
        for one in loops:
            one.kill()
            one.wait()


def held(node: Node) -> Held:
    """The least of some looks."""
    looks = []
    for _ in range(20):
        agent, redis = status(node.pid), status(OwnServer(node.root).pid() or 0)
        files = sum(1 for _ in Path(f"/proc/{node.pid}/fd").iterdir())
        past = history_mib(node)
        looks.append(Held(mib(agent), files, int(agent["Threads"]), mib(redis) - past, past))
        time.sleep(0.2)
    return Held(*map(min, zip(*looks, strict=True)))


def status(pid: int) -> dict[str, str]:
    """Of a process, as the kernel lists it."""
    return dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def mib(status: Mapping[str, str]) -> float:
    """What it has in memory."""
    return int(status["VmRSS"].split()[0]) / 1024


def history_mib(node: Node) -> float:
    """What the streams of its Redis take in memory."""
    keys = Keys(node.name)
    channel = Channel(Address(node.url), LONGEST)
    usage = [channel.call("MEMORY", "USAGE", key) or 0 for key in (keys.log, keys.probe_results, keys.kube_events)]
    channel.disconnect()
    return float(sum(usage)) / (1 << 20)


def states(node: Node, kinds: Mapping[str, str]) -> dict[str, Any]:
    """What `get pods` says of each pod, without times, ids and addresses; of one that loops, only that it does."""
    said = node.chronolet("get", "pods", "-o", "json")
    assert said.status == 0, said
    return {one["metadata"]["name"]: _state(one, kinds) for one in json.loads(said.out)["items"]}


def _state(one: Mapping[str, Any], kinds: Mapping[str, str]) -> Any:
    status = one["status"]
    if kinds[one["metadata"]["name"]] == LOOPING:
        return status["phase"]
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    return {
        "phase": status["phase"],
        "conditions": {each["type"]: each["status"] for each in status["conditions"]},
        "containers": {
            each["name"]: [*each["state"], each["ready"], each.get("started"), each["restartCount"]]
            for each in containers
        },
    }
