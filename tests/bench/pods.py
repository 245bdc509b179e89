"""The agent as a whole: pods from a folder of manifests on a real Docker Engine, measured from outside.

Comes in: how thoroughly. Goes out: what `agent_bench` finds, beside the goals and what bare Docker calls take in the
same run, made before and after each test. The engine and the agent's Redis are its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chronolet.kernel.redis_store import RedisStore
from chronolet.node.wiring import SHARDS
from chronolet_schemas import codec, kube_events, registry
from chronolet_schemas.envelope import START, Position, Record
from chronolet_schemas.keys import shard_for, shards_of
from tests.bench.bare_docker import Bare
from tests.bench.child import REPOSITORY, Writer
from tests.bench.figures import Figure
from tests.support import scratch
from tests.support.docker import PrivateDocker, private_docker
from tests.support.images import BUSYBOX, PAUSE

NODE = "bench"
CPU_GOALS = {0: 0.75, 30: 1.2, 60: 2.0}
MEMORY_GOALS = {30: 100.0, 60: 110.0}


class Agent:
    """`chronolet run` on a folder, started as an operator would, with all it owns below one folder."""

    def __init__(self, folder: Path, docker: PrivateDocker) -> None:
        self.folder = folder
        self.docker = docker
        self.manifests = folder / "manifests"
        self.pidfile = folder / "pid"
        self.log = folder / "log"
        self.manifests.mkdir()
        words = [
            *(sys.executable, "-m", "chronolet.cli", "run", "--port", "0", "--hostname-override", NODE),
            *("--pod-manifest-path", str(self.manifests), "--root-dir", str(folder / "state"), "--docker", docker.host),
        ]
        # In the background, in a session of its own, its pid in the file: `agent_bench` starts it again by this, too.
        self.start_command = f"setsid {shlex.join(words)} >>{self.log} 2>&1 </dev/null & echo $! >{self.pidfile}"

    def start(self) -> None:
        subprocess.run(["bash", "-c", self.start_command], check=True, cwd=REPOSITORY)
        scratch.wait_until(lambda: bool(self.redis()), f"the agent's redis-server; see {self.log}")

    @property
    def pid(self) -> int:
        return int(self.pidfile.read_text())

    @property
    def url(self) -> str:
        """Of its redis-server."""
        return f"unix://{self.folder}/state/redis/redis.sock"

    def kill(self) -> None:
        """kill -9 of the agent; its redis-server lives on."""
        scratch.kill([self.pid])

    def redis(self) -> list[int]:
        """The redis-server it has started."""
        named = scratch.pids_naming(f"{self.folder}/")
        return [pid for pid in named if "redis-server" in Path(f"/proc/{pid}/comm").read_text()]

    def measure(self, tests: str, *options: str) -> dict[str, Any]:
        """Run tests of `agent_bench`: what it found."""
        out = self.folder / f"{tests}.json"
        command = [sys.executable, str(Path(__file__).with_name("agent_bench.py")), "--tests", tests, "--out", str(out)]
        command += [
            "--manifests",
            str(self.manifests),
            "--pidfile",
            str(self.pidfile),
            "--agent-start",
            self.start_command,
        ]
        command += ["--image", f"{BUSYBOX.repository}:{BUSYBOX.tag}", "--dockerd-pid", str(self.docker.pid)]
        command += ["--docker-sock", self.docker.host.removeprefix("unix://"), *options]
        subprocess.run(command, check=True, stdout=sys.stderr, cwd=REPOSITORY)
        found: dict[str, Any] = json.loads(out.read_text())
        return found

    def destroy(self) -> None:
        """Agent, redis-server and files."""
        scratch.kill(scratch.pids_naming(f"{self.folder}/"))


@contextmanager
def running() -> Iterator[Agent]:
    """An engine with the local images, and an agent on it; both gone at the end, whatever happened."""
    with private_docker() as docker:
        folder = docker.folder / "agent"
        folder.mkdir()
        agent = Agent(folder, docker)
        try:
            agent.start()
            yield agent
        finally:
            agent.destroy()


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Tests a, b, batch, e, and the rows of d without probes."""
    os.environ["PYTHONUNBUFFERED"] = "1"
    reps, batch = (3, 10) if options.quick else (10, 60)
    with running() as agent:
        bare = Bare(agent.docker.host.removeprefix("unix://"), _name(PAUSE), _name(BUSYBOX))
        bare.one()  # the engine's first pod takes longer than any other
        bare.remove()
        parts: list[Callable[[], list[Figure]]] = [
            lambda: _single(agent, bare, reps),
            lambda: _restart(agent, bare, reps),
            lambda: _batch(agent, bare, batch),
            lambda: _comeback(agent, *((5, 1) if options.quick else (30, 3))),
            lambda: _steady(agent, quick=options.quick),
            lambda: _comeback_of_many(agent, *((50_000, 1) if options.quick else (1_000_000, 3))),
        ]
        return [figure for part in parts for figure in _attempted(part)]


def _attempted(part: Callable[[], list[Figure]]) -> list[Figure]:
    """A part that fails is a row that says so; the others are measured all the same."""
    try:
        return part()
    except (TimeoutError, AssertionError, KeyError, subprocess.CalledProcessError) as error:
        return [Figure(name="could not be measured", ours=math.inf, unit="", goal=0, note=repr(error))]


def _name(image: Any) -> str:
    return f"{image.repository}:{image.tag}"


def _single(agent: Agent, bare: Bare, reps: int) -> list[Figure]:
    singles = [bare.one() for _ in range(reps)]
    found = agent.measure("a", "--reps", str(reps))
    singles += [bare.one() for _ in range(reps)]
    bare.remove()
    start, stop = found["a_single_start"], found["f_single_remove_all_stopped"]
    reference = statistics.median(singles)
    return [
        _timed("a. manifest to the app's start, one pod, median", _of(start, "median"), reference, 1.15),
        _timed("a. the same, p99", _of(start, "p99"), reference),
        Figure(name="f. manifest removed to all stopped, one pod", ours=_of(stop, "median"), unit="s", goal=0.089),
    ]


def _of(found: dict[str, Any], name: str) -> float:
    """A value that was measured; infinite where nothing ever happened."""
    value = found.get(name)
    return math.inf if value is None else float(value)


def _timed(name: str, ours: float, reference: float, goal: float | None = None) -> Figure:
    return Figure(name=name, ours=ours, unit="s", reference=reference, reference_name="s by bare calls", goal=goal)


def _restart(agent: Agent, bare: Bare, reps: int) -> list[Figure]:
    bares = bare.restarts(reps)
    found = agent.measure("b", "--reps", str(reps))["b_restart_kill_to_start"]
    bares += bare.restarts(reps)
    bare.remove()
    note = f"bare create and start: {statistics.median(bares):.3f} s"
    return [
        Figure(
            name="b. docker kill to the new start, median", ours=_of(found, "median"), unit="s", goal=0.15, note=note
        ),
        Figure(name="b. the same, p99", ours=_of(found, "p99"), unit="s", goal=0.30),
    ]


def _batch(agent: Agent, bare: Bare, count: int) -> list[Figure]:
    batches = [_bare_batch(bare, count)]
    found = agent.measure("batch", "--batches", f"10,30,{count}" if count > 10 else str(count))["a_batch"]
    batches.append(_bare_batch(bare, count))
    reference = statistics.mean(batches)
    return [
        _timed(f"batch of {count} pods, last start", _of(one, "last"), reference, 1.15)
        if one["n"] == count
        else Figure(name=f"batch of {one['n']} pods, last start", ours=_of(one, "last"), unit="s")
        for one in found
    ]


def _bare_batch(bare: Bare, count: int) -> float:
    seconds = bare.batch(count)
    bare.remove()
    time.sleep(3)  # the engine goes on tidying up after the last answer
    return seconds


def _comeback(agent: Agent, pods: int, reps: int) -> list[Figure]:
    found = agent.measure("e", "--restart-reps", str(reps), "--restart-pods", str(pods))
    return [_returned(found, f"e. agent started again to acting, {pods} pods, median", 1.0)]


def _returned(found: dict[str, Any], name: str, goal: float) -> Figure:
    disturbed = sum(one["disturbed"] for one in found["e_agent_restart"]["reps"])
    return Figure(
        name=name,
        ours=_of(found["e_agent_restart"]["ready_to_act"], "median"),
        unit="s",
        goal=goal,
        note=f"killed by kill -9, a container killed meanwhile; from the start of the agent to the container's;"
        f" {disturbed} other containers were disturbed",
    )


def _comeback_of_many(agent: Agent, events: int, reps: int) -> list[Figure]:
    """The same with so many events in the agent's log, and the snapshots that it took of them itself."""
    agent.kill()
    store = RedisStore(agent.url, NODE)
    upto = _fill(Writer(store, shard_for("pod", SHARDS["pod"], "default/gone")), events)
    agent.start()
    every = [shard for kind, count in SHARDS.items() for shard in shards_of(kind, count)]
    shards = [shard for shard, head in store.heads(every).items() if head.token]

    def snapshots_taken() -> bool:
        found = [store.read_snapshot(shard) for shard in shards]
        return all(snapshot is not None and snapshot.position >= upto for snapshot in found)

    scratch.wait_until(snapshots_taken, f"the snapshots of {len(shards)} shards; see {agent.log}", 300)
    store.close()
    pods = 2 * reps  # each is killed once: the second time a container is held back by its back-off
    found = agent.measure("e", "--restart-reps", str(reps), "--restart-pods", str(pods))
    return [_returned(found, f"e. the same, {pods} pods, {events:,} events in the log", 2.0)]


def _fill(writer: Writer, events: int) -> Position:
    """Events about a pod that is gone, which leave nothing behind; the last one's position."""
    told = kube_events.Recorded(
        object_kind="Pod", namespace="default", name="gone", severity="Normal", reason="Pulled", message="again " * 12
    )
    record = Record(
        registry.type_of(kube_events.Recorded), "pod/default/gone", told.subject(), writer.actor, "", codec.encode(told)
    )
    at = START
    for _ in range(0, events, 500):
        at = writer.commit([record] * 500).at
    return at


def _steady(agent: Agent, *, quick: bool) -> list[Figure]:
    counts = (0, 10) if quick else (0, 30, 60)
    redis = [word for pid in agent.redis() for word in ("--agent-pid", str(pid))]
    timing = ["--window", "15", "--settle", "5"] if quick else []
    steady = ",".join(f"{count}:none" for count in counts)
    found = agent.measure("d", "--steady", steady, *redis, *timing)["d_steady"]
    return [
        figure
        for one in found
        for figure in (
            Figure(
                name=f"d. agent and Redis, {one['pods']} pods",
                ours=one["agent_cpu_s_per_min"],
                unit="CPU s/min",
                goal=CPU_GOALS.get(one["pods"]),
            ),
            Figure(
                name=f"d. resident memory of both, {one['pods']} pods",
                ours=one["agent_rss_mib"],
                unit="MiB",
                goal=MEMORY_GOALS.get(one["pods"]),
            ),
        )
    ]
