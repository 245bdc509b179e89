"""The rows of the harness's test d: with probes each second, and with more exec probes than the machine can run.

Input: an agent. Output: figures next to the goals. Next: `probes`.
"""

from __future__ import annotations

from typing import Any

import redis

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import prober, registry
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Keys
from tests.bench.figures import Figure
from tests.bench.pods.agent import NODE, Agent
from tests.bench.pods.parts import configuration, cpu, engine_cpu, measured_steady, memory

CONFIGURATIONS = ("30:http", "30:exec", "60:http")
ENGINE_GOALS = {"30:exec": 16.0}
_OPTIONS = ("--count-probes", "--steady-fthr", "3")


def steady(agent: Agent, *, quick: bool) -> list[Figure]:
    """Measure CPU and memory with a liveness probe each second in every pod."""
    configurations = ("10:http", "10:exec") if quick else CONFIGURATIONS
    return [figure for one in configurations for figure in _steady(*_counted(agent, one, quick=quick))]


def _counted(agent: Agent, wanted: str, *, quick: bool) -> tuple[dict[str, Any], int]:
    """Return the results of test d, and the number of outcomes that were recorded during it."""
    before = _outcomes(agent)
    (found,) = measured_steady(agent, (wanted,), *_OPTIONS, quick=quick)
    return found, _outcomes(agent) - before


def _outcomes(agent: Agent) -> int:
    """Return the number of outcomes since the log began."""
    with redis.Redis.from_url(agent.url) as client:
        key = Keys(NODE).probe_results
        return int(client.xinfo_stream(key)["entries-added"]) if client.exists(key) else 0


def _steady(one: dict[str, Any], outcomes: int) -> list[Figure]:
    pods, kind = one["pods"], one["probe"]
    figures = [
        cpu(one, f"d. agent and Redis, {pods} pods, {kind} each second"),
        memory(one, f"d. resident memory of both, {pods} pods, {kind} each second"),
        Figure(
            name=f"d. restarts of healthy containers, {pods} pods, {kind}",
            ours=one["containers_started_in_window"],
            unit="",
            goal=0,
            note=f"{outcomes} outcomes were recorded from the pods' start to their end; load {one['load_start'][0]}",
        ),
    ]
    if kind == "exec":
        engine = Figure(
            name=f"d. dockerd and containerd, {pods} pods, exec each second",
            ours=engine_cpu(one),
            unit="CPU s/min",
            goal=ENGINE_GOALS.get(configuration(one)),
        )
        figures.append(engine)
    return figures


def overload(agent: Agent, pods: int, *, quick: bool) -> list[Figure]:
    """Measure more exec probes than the machine can run: they are delayed and reported as late, and no container
    restarts.
    """
    store = RedisStore(agent.url, NODE)
    before = store.last()
    (one,) = measured_steady(agent, (f"{pods}:exec",), *_OPTIONS, quick=quick)
    delayed = _delayed(store, before)
    store.close()
    return [
        Figure(
            name=f"more exec probes than fit, {pods} pods: restarts of healthy containers",
            ours=one["containers_started_in_window"],
            unit="",
            goal=0,
            note=f"{pods} commands a second were wanted, {one['execs_started_per_s'] or 0:.1f} were run;"
            f" load {one['load_start'][0]}",
        ),
        Figure(
            name="probes reported as late",
            ours=delayed,
            unit="",
            goal=None if quick else 1,
            bound="at least",
        ),
        cpu(one, f"agent and Redis meanwhile, {pods} pods"),
    ]


def _delayed(store: RedisStore, after: Position) -> int:
    name = registry.type_of(prober.ProbeDelayed)
    return sum(entry.type == name for entry in store.scan(after))
