"""Churn: pods start and end, round after round; resources of the agent and its Redis must not grow with the number of
ended pods.

Input: an agent, a duration. Output: figures: the number of pods; threads, files and memory at the end compared with
those after the warm-up; and leftovers. Next: `pods`; `tests/e2e/pods/test_churn.py`, which runs the same loop in less
time.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import redis

from chronolet.pleg.effects import STEADY_SECONDS
from chronolet.ports.runtime import labels
from tests.bench.agent_bench import Docker
from tests.bench.figures import Figure
from tests.bench.pods.agent import NODE, Agent
from tests.support import scratch
from tests.support.docker.images import BUSYBOX

PODS = 10
WARM_UP_ROUNDS = 3
WARM_UP_PODS = 40
LOOKS = 10
LAST_LINES = 40
THREAD_SLACK, FILE_SLACK, MIB_SLACK = 2, 4, 2
PACE = 560 / 180
"""Minimum number of pods per second."""

SLEEPS = "trap 'exit 0' TERM; sleep 1000000 & wait"
WORDS = {"ends": "exit 0", "crashes": "sleep 0.1; exit 3"}


class Held(NamedTuple):
    """Resources of the agent and its Redis while no pod exists."""

    agent_threads: int
    agent_files: int
    redis_threads: int
    redis_files: int
    agent_mib: float
    redis_mib: float


class Churned(NamedTuple):
    """Results of a churn benchmark."""

    pods: int
    rounds: int
    warm: Held
    """Maximum of each value over the warm-up rounds."""
    end: Held
    """Maximum of each value over the same number of rounds at the end."""
    agent_mib: list[float]
    """Resident memory of the agent after each round, excluding the warm-up."""
    left: list[str]
    """Containers, mounts, files and keys that did not exist after the warm-up."""


def figures(agent: Agent, seconds: float) -> list[Figure]:
    """Return the figures of one churn. Redis's memory has no goal: it grows with the log, up to the log's bound."""
    found = churn(agent, seconds)
    warm, end = found.warm, found.end
    return [
        Figure(
            name=f"churn: pods in {seconds:g} s",
            ours=found.pods - WARM_UP_PODS - (WARM_UP_ROUNDS - 1) * PODS,
            unit="pods",
            goal=round(seconds * PACE),
            bound="at least",
            note=f"{found.pods} pods and {found.rounds} rounds with the warm-up",
        ),
        _grown("threads of the agent", "", warm.agent_threads, end.agent_threads, THREAD_SLACK),
        _grown("open files of the agent", "", warm.agent_files, end.agent_files, FILE_SLACK),
        _grown("threads of Redis", "", warm.redis_threads, end.redis_threads, THREAD_SLACK),
        _grown("open files of Redis", "", warm.redis_files, end.redis_files, FILE_SLACK),
        _grown("resident memory of the agent", "MiB", warm.agent_mib, end.agent_mib, MIB_SLACK),
        _by_quarters(found.agent_mib),
        _grown("resident memory of Redis", "MiB", warm.redis_mib, end.redis_mib, None),
        Figure(name="churn: left behind", ours=len(found.left), unit="things", goal=0, note=", ".join(found.left[:5])),
    ]


def _grown(what: str, unit: str, warm: float, end: float, slack: float | None) -> Figure:
    note = f"{warm:g} after the warm-up, {end:g} at the end"
    return Figure(name=f"churn: {what}, growth", ours=end - warm, unit=unit, goal=slack, note=note)


def _by_quarters(mib: list[float]) -> Figure:
    """Return a figure that shows a leak: bounded caches fill in the first half, a leak continues in the second."""
    ends = [
        max(mib[max(quarter * len(mib) // 4 - WARM_UP_ROUNDS, 0) : quarter * len(mib) // 4 or 1])
        for quarter in range(5)
    ]
    note = ", ".join(f"{one:.1f}" for one in ends) + " MiB after each quarter of the rounds, from the first round on"
    name = "churn: resident memory of the agent, growth in the second half"
    return Figure(name=name, ours=ends[4] - ends[2], unit="MiB", goal=MIB_SLACK, note=note)


def churn(agent: Agent, seconds: float, least_rounds: int = WARM_UP_ROUNDS) -> Churned:
    """Run the warm-up, then rounds for `seconds`, but at least `least_rounds`."""
    rounds = Rounds(agent)
    # Begin with many pods: the agent keeps as many connections to the engine as were ever used concurrently. The pods
    # stay until they are listed: the threads that inspect them are only created then, and are kept, too.
    warm = [rounds.one(WARM_UP_PODS, STEADY_SECONDS + 1), *(rounds.one() for _ in range(WARM_UP_ROUNDS - 1))]
    before = set(leavings(agent))
    deadline = time.monotonic() + seconds
    seen: list[Held] = []
    while time.monotonic() < deadline or len(seen) < least_rounds:
        seen.append(rounds.one())
    left = sorted(set(leavings(agent)) - before)
    return Churned(
        rounds.pods, rounds.number, _most(warm), _most(seen[-WARM_UP_ROUNDS:]), [held.agent_mib for held in seen], left
    )


class Rounds:
    """Starts and removes pods in rounds. In each round most pods are long-lived; one completes, one crashes, and one
    lacks its image.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._docker = Docker(agent.docker.host.removeprefix("unix://"))
        self._stage = agent.folder / "stage"
        self._stage.mkdir(exist_ok=True)
        self.number = 0
        self.pods = 0

    def one(self, pods: int = PODS, stay_seconds: float = 0.0) -> Held:
        """Run a round: start the pods, kill one long-lived container, remove the pods `stay_seconds` after its restart.
        Return the resources held after all of them are gone.
        """
        self.number += 1
        names = {f"churn-{self.number}-{index}": _kind(index) for index in range(pods)}
        for name, kind in names.items():
            self._write(name, kind)
        long_lived = [name for name, kind in names.items() if kind == "runs"]
        scratch.wait_until(lambda: self._runs(long_lived), f"the start of {long_lived}", 120)
        before = self._apps()[long_lived[0]]
        self._docker.kill(before)
        scratch.wait_until(lambda: self._apps().get(long_lived[0], before) != before, "the next attempt", 60)
        time.sleep(stay_seconds)
        for name in names:
            (self._agent.manifests / f"{name}.json").unlink()
        self._wait_for_the_end()
        scratch.wait_until(lambda: not list((self._agent.state / "pods").iterdir()), "the end of all pods' folders", 60)
        self.pods += len(names)
        return held(self._agent)

    def _wait_for_the_end(self) -> None:
        """Wait until all containers are gone. An error names those that remain and shows the end of the agent's log."""
        try:
            scratch.wait_until(lambda: not containers(self._agent, everyone=True), "the end of all containers", 60)
        except TimeoutError as error:
            left = [(one["Names"], one["State"], one["Status"]) for one in containers(self._agent, everyone=True)]
            lines = self._agent.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
            raise TimeoutError("\n".join([f"{error}; left in round {self.number}: {left}", *lines])) from error

    def _write(self, name: str, kind: str) -> None:
        staged = self._stage / name
        staged.write_text(json.dumps(_manifest(name, kind)))
        staged.rename(self._agent.manifests / f"{name}.json")

    def _runs(self, names: list[str]) -> bool:
        return self._apps().keys() >= set(names)

    def _apps(self) -> dict[str, str]:
        """Return the ids of running app containers by pod name."""
        return {
            one["Labels"][labels.POD_NAME]: one["Id"]
            for one in containers(self._agent)
            if one["Labels"][labels.CONTAINER_NAME] == "app"
        }


def _kind(index: int) -> str:
    return {0: "ends", 1: "crashes", 2: "starves"}.get(index, "runs")


def _manifest(name: str, kind: str) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "app",
        "image": "nowhere/none:1" if kind == "starves" else f"{BUSYBOX.repository}:{BUSYBOX.tag}",
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", WORDS.get(kind, SLEEPS)],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "restartPolicy": "Never" if kind == "ends" else "Always",
        "terminationGracePeriodSeconds": 2,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def containers(agent: Agent, *, everyone: bool = False) -> list[dict[str, Any]]:
    """Return the agent's running containers; with `everyone`, also the dead ones."""
    found: list[dict[str, Any]] = Docker(agent.docker.host.removeprefix("unix://")).ps(all=everyone)
    return [one for one in found if one["Labels"].get(labels.NODE) == NODE]


# -- resources ---------------------------------------------------------------------------------------------------------


def held(agent: Agent) -> Held:
    """Return the minimum of each resource in several samples within a second, which excludes threads that are about to
    end.
    """
    looks = []
    for _ in range(LOOKS):
        looks.append(_look(agent.pid, agent.redis()[0]))
        time.sleep(0.1)
    return Held(*map(min, zip(*looks, strict=True)))


def _look(agent: int, server: int) -> Held:
    return Held(
        *(_status(agent, "Threads"), _files(agent), _status(server, "Threads"), _files(server)),
        *(_status(agent, "VmRSS") / 1024, _status(server, "VmRSS") / 1024),
    )


def _status(pid: int, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None, f"{name} of {pid}"
    return int(found[1])


def _files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def _most(looks: list[Held]) -> Held:
    return Held(*map(max, zip(*looks, strict=True)))


def leavings(agent: Agent) -> Iterator[str]:
    """Yield objects that pods may leave behind: containers, mounts, entries of the state folder, keys of Redis."""
    yield from (f"container {one['Names']}" for one in containers(agent, everyone=True))
    for pid in (agent.pid, agent.docker.pid):
        for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
            if str(agent.docker.folder) in line or str(agent.folder) in line:
                yield f"mount {line.split()[4]}"
    for path in agent.state.rglob("*"):
        if "redis" not in path.parts and "archive" not in path.parts:
            yield f"file {path}"
    client = redis.Redis.from_url(agent.url)
    try:
        # Each shard writes its snapshot at a different time, so snapshots are ignored.
        yield from (f"key {key.decode()}" for key in client.scan_iter() if b":snapshot:" not in key)
    finally:
        client.close()
