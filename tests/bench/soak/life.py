"""One soak: a node that is killed and overloaded, then an undisturbed control node.

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
from tests.support.devices.sample_plugin import sample_plugin
from tests.support.docker.engine import PrivateDocker, private_docker

SEED = 2027
PORT = 10255
PACE = 5
"""Number of pods applied together: hundreds of concurrent container starts would stall the machine."""
QUARTER, OVERLOAD = 900.0, 300.0
KILL_EVERY = 60.0
SETTLE_SECONDS = 30.0
LONGEST = 900.0
"""Time limit in seconds for reaching a state: only a hang takes longer."""
BREAKS = 6


class Plan(NamedTuple):
    """Duration in seconds, number of pods, and number of busy loops while the machine is overloaded."""

    seconds: float
    pods: int
    loops: int


class Held(NamedTuple):
    """Resources of the idle agent, and its Redis's memory: `history_mib` for the history, `redis_mib` for everything
    else.
    The history is bounded: the newest part of the log, the newest probe results and KubeEvents.
    """

    mib: float
    files: int
    threads: int
    redis_mib: float
    history_mib: float


class Result(NamedTuple):
    """Results of a soak. `restarted` and `differences` contain one line per case."""

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
    """Run the soak and then the control node, on the same engine."""
    with private_docker() as engine:
        with node_of(engine, "soak") as node:
            soak = Soak(node, plan)
            soak.live()
            after = states(node, soak.kinds)
        with node_of(engine, "control") as control:
            undisturbed = Soak(control, plan)
            undisturbed.begin()
            undisturbed.break_all()
            expected = states(control, undisturbed.kinds)
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
    """Run a node with a separate Redis and a device plugin; everything is removed afterwards."""
    folder = scratch.create("soak")
    root = folder / "agent"
    node = Node(engine, f"unix://{root}/redis/redis.sock", name, root)
    del node.environ["CHRONOLET_REDIS"]
    del node.environ["CHRONOLET_PROBE_OVERLOAD_PROTECTION"]  # other tests turn the protection off; here it is tested
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
    """Applies the pods to one node, disturbs the node according to the plan, and checks its containers."""

    def __init__(self, node: Node, plan: Plan) -> None:
        self.node = node
        self.plan = plan
        self.kinds = kinds(plan.pods)
        breakable = [name for name, kind in self.kinds.items() if kind in BREAKABLE]
        self.broken = breakable[:: max(1, len(breakable) // BREAKS)][:BREAKS]
        """Pods whose containers are broken during the soak; all others are healthy."""
        self.kills: Counter[str] = Counter()
        self.restarted: list[str] = []
        self.longest_return = 0.0
        self._random = random.Random(SEED)
        self._before: dict[str, str] = {}
        self.held_at_first = self.held_at_last = Held(0, 0, 0, 0, 0)

    # -- phases ------------------------------------------------------------------------------------------------------

    def live(self) -> None:
        """Run the soak: apply the pods, disturb the node, break containers, measure resources before and after."""
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
        """Apply the pods, and wait until they run."""
        names = list(self.kinds)
        for first in range(0, len(names), PACE):
            for name in names[first : first + PACE]:
                self.node.write(f"{name}.yaml", manifest(name, self.kinds[name]))
            self._wait_for(names[: first + PACE])
        self._before = self._started()

    def break_all(self) -> None:
        """Break the containers of all pods in `broken`, one after the other, without other disturbances. Used on the
        control node.
        """
        for name in self.broken:
            self._break(name)
        self._settled()

    # -- events of each minute ---------------------------------------------------------------------------------------

    def _minute(self, began: float) -> None:
        """Kill agent, Redis and engine once each, at random times in the minute; then check the healthy containers."""
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
        """Wait until the agent is ready, and note the time since its kill if it is the longest so far."""
        scratch.wait_until(lambda: ready(self.node), "an agent that acts again", LONGEST)
        self.longest_return = max(self.longest_return, time.monotonic() - killed_at)

    def _look(self, began: float) -> None:
        """Add a line to `restarted` for each healthy container that was restarted or is gone; each is reported once."""
        now = self._started()
        for container, started in self._before.items():
            if now.get(container) != started:
                self.restarted.append(f"{time.monotonic() - began:.0f} s: {container} of {started}")
        self._before = {one: started for one, started in self._before.items() if now.get(one) == started}

    # -- breaking ----------------------------------------------------------------------------------------------------

    def _break(self, name: str) -> None:
        """Break a container from inside: its probe fails until the container is replaced."""
        command = HOW_TO_BREAK[self.kinds[name]]
        for _ in range(10):
            try:
                found = self.node.running(name)["app"]["Id"]
                self.node.docker.exec_start(self.node.docker.exec_create(found, command)["Id"])
            except (docker.errors.APIError, OSError, KeyError):
                time.sleep(1)  # the engine is restarting
                continue
            return
        raise TimeoutError(f"{name} could not be broken")

    def broken_restarted(self) -> int:
        """Return the number of broken containers that were stopped because of their liveness probe."""
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
        """Return Docker's start time of each healthy container, by `<pod> <id>`."""
        healthy = [name for name, kind in self.kinds.items() if stays(kind) and name not in self.broken]
        return {f"{name} {one}": at for name in healthy for one, at in self.node.started_at(name).items()}


def ready(node: Node) -> bool:
    """Return whether the agent reports that it is ready."""
    try:
        return node.engine.namespace.http(PORT, path="/readyz").status == 200
    except OSError:
        return False


@contextmanager
def busy(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run `count` busy processes while the block runs."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield loops
    finally:
        for one in loops:
            one.kill()
            one.wait()


def held(node: Node) -> Held:
    """Return the resources of the node's agent and Redis: the minimum of each in several samples."""
    looks = []
    for _ in range(20):
        agent, redis = status(node.pid), status(OwnServer(node.root).pid() or 0)
        files = sum(1 for _ in Path(f"/proc/{node.pid}/fd").iterdir())
        past = history_mib(node)
        looks.append(Held(mib(agent), files, int(agent["Threads"]), mib(redis) - past, past))
        time.sleep(0.2)
    return Held(*map(min, zip(*looks, strict=True)))


def status(pid: int) -> dict[str, str]:
    """Return the fields of a process's /proc/<pid>/status."""
    return dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def mib(status: Mapping[str, str]) -> float:
    """Return the resident memory in MiB, given the fields of a process's `status`."""
    return int(status["VmRSS"].split()[0]) / 1024


def history_mib(node: Node) -> float:
    """Return the memory in MiB that Redis uses for the node's log, probe results and KubeEvents."""
    keys = Keys(node.name)
    channel = Channel(Address(node.url), LONGEST)
    usage = [channel.call("MEMORY", "USAGE", key) or 0 for key in (keys.log, keys.probe_results, keys.kube_events)]
    channel.disconnect()
    return float(sum(usage)) / (1 << 20)


def states(node: Node, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the state of each pod from `get pods`, without times, ids and addresses; for a crash-looping pod only its
    phase.
    """
    result = node.chronolet("get", "pods", "-o", "json")
    assert result.status == 0, result
    return {one["metadata"]["name"]: _state(one, kinds) for one in json.loads(result.out)["items"]}


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
