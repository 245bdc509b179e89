"""Power-on: every process of a full machine is killed, then engine and agent start again.

Input: the number of pods. Output: one figure: the time from the agent's start to that of the last pod, next to the
fastest bare client with the same number of pods on the same engine. Next: `pods`.

Engine and agent are private to this part, because no others could survive the kill of their engine. The engine starts
first and is not measured: its containers are dead when the agent starts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from chronolet.ports.runtime import labels
from tests.bench.agent_bench import Docker
from tests.bench.bare_docker import warmed_up
from tests.bench.figures import Figure
from tests.bench.pods import parts, serving
from tests.bench.pods.agent import Agent, running
from tests.bench.pods.churn import containers
from tests.support import scratch

GOAL = parts.LAST_GOAL
_START_SECONDS = 600


def figures(pods: int, workers: Sequence[int] = ()) -> list[Figure]:
    """Measure one power-on; `workers` as for `parts.bare_batch`."""
    with running(in_network=True) as agent:
        best = parts.bare_batch(warmed_up(agent.docker.host), pods, workers).started
        serving.start(agent, pods, lambda _: {})
        cut_power(agent)
        agent.docker.start()
        began = time.time()
        agent.start()
        scratch.wait_until(lambda: len(apps(agent)) == pods, f"{pods} pods; see {agent.log}", _START_SECONDS)
        # A running pod is ready, because the pods have no readiness probe.
        last = max(started_at(agent, app) for app in apps(agent)) - began
    return [parts.timed(f"power-on with {pods} pods, agent's start to the last pod ready", last, best, GOAL)]


def cut_power(agent: Agent) -> None:
    """Send SIGKILL to everything: engine, shims, containers, agent, Redis."""
    agent.docker.kill9()
    while living := living_of(agent):
        scratch.kill(living)


def living_of(agent: Agent) -> list[int]:
    """Return the pids of the engine and of everything that runs on it, including the agent."""
    inside = [pid for pids in agent.docker.processes().values() for pid in pids]
    return [pid for pid in {*inside, *scratch.pids_naming(f"{agent.docker.folder}/")} if scratch.start_time(pid)]


def apps(agent: Agent) -> list[str]:
    """Return the ids of running containers that are not sandboxes."""
    return [one["Id"] for one in containers(agent) if one["Labels"][labels.CONTAINER_NAME] == "app"]


def started_at(agent: Agent, container: str) -> float:
    """Return Docker's start time of a container, in seconds since the epoch."""
    found = Docker(agent.docker.host.removeprefix("unix://")).inspect(container)
    assert found is not None, f"{container} does not exist"
    return datetime.fromisoformat(found["State"]["StartedAt"]).timestamp()
