"""The agent as a whole: pods from a folder of manifests on a real Docker Engine, measured from outside.

Comes in: how thoroughly. Goes out: what `agent_bench` finds, beside the goals and what bare Docker calls take in the
same run, made before and after each test. The engine and the agent's Redis are its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.bare_docker import Bare
from tests.bench.child import REPOSITORY
from tests.bench.figures import Figure
from tests.support import scratch
from tests.support.docker import PrivateDocker, private_docker
from tests.support.images import BUSYBOX, PAUSE

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
            *(sys.executable, "-m", "chronolet.cli", "run", "--port", "0", "--hostname-override", "bench"),
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
        return [
            *_single(agent, bare, reps),
            *_restart(agent, bare, reps),
            *_batch(agent, bare, batch),
            *_comeback(agent, reps),
            *_steady(agent, quick=options.quick),
        ]


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
        _timed("a. manifest to the app's start, one pod, median", start["median"], reference, 1.15),
        _timed("a. the same, p99", start["p99"], reference),
        Figure(name="f. manifest removed to all stopped, one pod", ours=stop["median"], unit="s", goal=0.089),
    ]


def _timed(name: str, ours: float, reference: float, goal: float | None = None) -> Figure:
    return Figure(name=name, ours=ours, unit="s", reference=reference, reference_name="s by bare calls", goal=goal)


def _restart(agent: Agent, bare: Bare, reps: int) -> list[Figure]:
    bares = bare.restarts(reps)
    found = agent.measure("b", "--reps", str(reps))["b_restart_kill_to_start"]
    bares += bare.restarts(reps)
    bare.remove()
    note = f"bare create and start: {statistics.median(bares):.3f} s"
    return [
        Figure(name="b. docker kill to the new start, median", ours=found["median"], unit="s", goal=0.15, note=note),
        Figure(name="b. the same, p99", ours=found["p99"], unit="s", goal=0.30),
    ]


def _batch(agent: Agent, bare: Bare, count: int) -> list[Figure]:
    batches = [_bare_batch(bare, count)]
    found = agent.measure("batch", "--batches", f"10,30,{count}" if count > 10 else str(count))["a_batch"]
    batches.append(_bare_batch(bare, count))
    reference = statistics.mean(batches)
    return [
        _timed(f"batch of {count} pods, last start", one["last"], reference, 1.15)
        if one["n"] == count
        else Figure(name=f"batch of {one['n']} pods, last start", ours=one["last"], unit="s")
        for one in found
    ]


def _bare_batch(bare: Bare, count: int) -> float:
    seconds = bare.batch(count)
    bare.remove()
    time.sleep(3)  # the engine goes on tidying up after the last answer
    return seconds


def _comeback(agent: Agent, reps: int) -> list[Figure]:
    found = agent.measure(
        "e", "--restart-reps", "1" if reps < 10 else "3", "--restart-pods", "5" if reps < 10 else "30"
    )
    ready = found["e_agent_restart"]
    disturbed = sum(one["disturbed"] for one in ready["reps"])
    name = f"e. agent started again to acting, {ready['pods']} pods, median"
    note = f"{disturbed} running containers were disturbed"
    return [Figure(name=name, ours=ready["ready_to_act"]["median"], unit="s", goal=1.0, note=note)]


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
