"""The agent bench's own tests that have probes: c, and the rows of d with probes each second.

Comes in: an agent. Goes out: figures beside the goals of the anchors' table. Next: `probes`.
"""

from __future__ import annotations

from typing import Any

import redis

from chronolet.kernel.redis_store import RedisStore
from chronolet_schemas import prober, registry
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Keys
from tests.bench.figures import Figure
from tests.bench.pods.agent import NODE, Agent
from tests.bench.pods.parts import cpu, engine_cpu, measured_steady, memory, value
from tests.bench.probes import steps

MEDIAN_GOAL, WORST_GOAL = 0.60, 1.00
CPU_GOALS = {"30:http": 2.5, "30:exec": 5.4, "60:http": 4.5}
ENGINE_GOALS = {"30:exec": 16.0}
_OPTIONS = ("--count-probes", "--steady-fthr", "3")


def broken(agent: Agent, reps: int) -> list[Figure]:
    """From a broken condition to the next container's start, liveness each second, threshold 1."""
    store = RedisStore(agent.url, NODE)
    before = store.last()
    found = agent.measure("c", "--reps", str(reps))
    spent = {kind: steps.medians(store, before, f"an-lv{kind}-") for kind in ("exec", "http")}
    store.close()
    return [figure for kind, times in spent.items() for figure in _broken(kind, found[f"c_{kind}"], times)]


def _broken(kind: str, found: dict[str, Any], times: steps.Steps | None) -> list[Figure]:
    start = found["break_to_new_start"]
    kill = found["break_to_kill"]
    figures = [
        Figure(
            name=f"c. {kind} liveness, break to new start, median",
            ours=value(start, "median"),
            unit="s",
            goal=MEDIAN_GOAL,
            note=f"to the kill: {value(kill, 'median'):.3f}, of which the wait for the next probe is 0.5 on average;"
            f" {found['unexpected_restarts']} unexpected restarts",
        ),
        Figure(name=f"c. {kind} liveness, the same, p99", ours=value(start, "p99"), unit="s", goal=WORST_GOAL),
    ]
    if times is not None:
        parts = ", ".join(f"{name} {value}" for name, value in times._asdict().items())
        without = Figure(
            name=f"c. {kind} liveness, the same without the wait for the probe",
            ours=sum(times) / 1000,
            unit="s",
            note=f"medians in ms, by the log and Docker's clock: {parts}",
        )
        figures.append(without)
    return figures


def steady(agent: Agent, *, quick: bool) -> list[Figure]:
    """CPU and memory with a liveness probe each second in every pod."""
    configurations = ("10:http", "10:exec") if quick else tuple(CPU_GOALS)
    return [figure for one in configurations for figure in _steady(*_counted(agent, one, quick=quick))]


def _counted(agent: Agent, configuration: str, *, quick: bool) -> tuple[dict[str, Any], int]:
    """What test d found, and how many outcomes there were from the pods' start to their end."""
    before = _outcomes(agent)
    (found,) = measured_steady(agent, (configuration,), *_OPTIONS, quick=quick)
    return found, _outcomes(agent) - before


def _outcomes(agent: Agent) -> int:
    """Since the log began."""
    with redis.Redis.from_url(agent.url) as client:
        key = Keys(NODE).probe_results
        return int(client.xinfo_stream(key)["entries-added"]) if client.exists(key) else 0


def _steady(one: dict[str, Any], outcomes: int) -> list[Figure]:
    what, pods, kind = f"{one['pods']}:{one['probe']}", one["pods"], one["probe"]
    figures = [
        cpu(one, f"d. agent and Redis, {pods} pods, {kind} each second", CPU_GOALS.get(what)),
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
            goal=ENGINE_GOALS.get(what),
        )
        figures.append(engine)
    return figures


def overload(agent: Agent, pods: int, *, quick: bool) -> list[Figure]:
    """More exec probes than the machine can run: they are spaced out and it is said, and nobody is restarted for it."""
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
            name="probes that said that they are late",
            ours=delayed,
            unit="",
            goal=None if quick else 1,
            bound="at least",
        ),
        cpu(one, f"agent and Redis meanwhile, {pods} pods", None),
    ]


def _delayed(store: RedisStore, after: Position) -> int:
    name = registry.type_of(prober.ProbeDelayed)
    return sum(entry.type == name for entry in store.scan(after))
