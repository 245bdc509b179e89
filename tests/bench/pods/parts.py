"""Runs tests of `agent_bench`, and returns their results as figures with goals.

Input: an agent, bare calls to compare with. Output: figures. Next: `pods`, which runs the parts.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.node.composition.kinds import SHARDS
from chronolet_schemas import codec, pleg, registry
from chronolet_schemas.envelope import START, Position, Record
from chronolet_schemas.keys import shard_for, shards_of
from tests.bench.bare_docker import MANY_WORKERS, WORKERS, Bare
from tests.bench.figures import Figure
from tests.bench.kernel.child import Writer
from tests.bench.pods.agent import NODE, Agent
from tests.support import scratch

CPU_GOALS = {"0:none": 0.4, "30:none": 0.6, "30:http": 2.0, "30:exec": 4.5, "60:none": 2.0, "60:http": 4.5}
MEMORY_GOALS = {"0:none": 85.0, "30:none": 90.0, "30:http": 95.0, "60:none": 110.0}
"""Goals by `<pods>:<probe>`: CPU seconds per minute and resident MiB of agent and Redis together; the memory goal
includes gRPC if a plugin is connected.
"""
COMEBACK_GOALS = {30: 0.8, 110: 1.0}
ALONE_GOAL = 1.05
STOP_GOAL = 0.9
"""A stop must take at most this fraction of the time of a bare client, which makes the same calls as the kubelet, one
after the other.
"""
TURN = 5
"""Number of consecutive pods that the bare client or the agent starts before the other takes over."""
FIRST_GOAL, MEDIAN_GOAL, LAST_GOAL, REMOVAL_GOAL = 1.5, 0.6, 1.1, 1.0
"""Goals for four ratios: the first start to the start of a single pod, the median start to the last one, the last start
to the same start by bare calls, and the removal to that by bare calls.
"""
MOST_FOR_ONE_WORKER = 30
ENDING_GOAL = 0.5
REST_SECONDS = 2.0


def single(agent: Agent, bare: Bare, reps: int) -> list[Figure]:
    """Measure the start and removal of single pods."""
    starts, stops, bare_starts, bare_stops = [], [], [], []
    # Alternate between the two: the machine's speed drifts by more than the differences measured here.
    for left in range(reps, 0, -TURN):
        turn = min(left, TURN)
        for _ in range(turn):
            time.sleep(
                REST_SECONDS
            )  # the same pauses as in `agent_bench`: an engine that has just created a pod is faster
            bare_starts.append(bare.one())
            time.sleep(REST_SECONDS)
            bare_stops.append(bare.stop_one())
            bare.remove()
        found = agent.measure("a", "--reps", str(turn))
        starts += found["a_single_start"]["all"]
        stops += found["f_single_remove_all_stopped"]["all"]
    start, bare_start = statistics.median(starts), statistics.median(bare_starts)
    return [
        timed("a. manifest to the app's start, one pod, median", start, bare_start, ALONE_GOAL),
        timed("a. the same, the slowest", max(starts), bare_start),
        timed(
            "f. manifest removed to all stopped, one pod",
            statistics.median(stops),
            statistics.median(bare_stops),
            STOP_GOAL,
        ),
    ]


def value(found: dict[str, Any], name: str) -> float:
    """Return a measured value; infinite if the measured event never happened."""
    value = found.get(name)
    return math.inf if value is None else float(value)


def timed(name: str, ours: float, reference: float, goal: float | None = None) -> Figure:
    """Return a time next to that of bare calls; the goal is for their ratio."""
    return Figure(name=name, ours=ours, unit="s", reference=reference, reference_name="s by bare calls", goal=goal)


def restart(agent: Agent, bare: Bare, reps: int) -> list[Figure]:
    """Measure the time from a container's death to the next attempt's start."""
    bares = bare.restarts(reps)
    found = agent.measure("b", "--reps", str(reps))["b_restart_kill_to_start"]
    bares += bare.restarts(reps)
    bare.remove()
    return [
        Figure(
            name="b. docker kill to the new start, median",
            ours=value(found, "median"),
            unit="s",
            reference=statistics.median(bares),
            reference_name="s by bare create and start",
            goal=0.13,
            absolute=True,
        ),
        Figure(name="b. the same, p99", ours=value(found, "p99"), unit="s", goal=0.20),
    ]


def batch(
    agent: Agent, bare: Bare, counts: Sequence[int], workers: Sequence[int] = (), alone: float | None = None
) -> list[Figure]:
    """Measure a batch of pods and its removal, compared with the fastest of several bare clients and with `alone`, the
    seconds for a single pod (measured here if None).
    """
    if alone is None:
        alone = value(agent.measure("a", "--reps", "3")["a_single_start"], "median")
    before = {count: bare_batch(bare, count, workers) for count in counts}
    found = agent.measure("batch", "--batches", ",".join(map(str, counts)))["a_batch"]
    after = {count: bare_batch(bare, count, workers) for count in counts}
    return [figure for one in found for figure in _batched(one, alone, before[one["n"]], after[one["n"]])]


class BareBatch(NamedTuple):
    """Seconds until the last start, and until all apps and sandboxes have stopped; each is the minimum over all worker
    counts.
    """

    started: float
    stopped: float


def bare_batch(bare: Bare, count: int, workers: Sequence[int] = ()) -> BareBatch:
    """Measure a batch of pods by bare calls, once with each number of workers; by default with the usual numbers."""
    found = []
    for at_a_time in workers or (WORKERS if count <= MOST_FOR_ONE_WORKER else MANY_WORKERS):
        started = bare.batch(count, at_a_time)
        time.sleep(REST_SECONDS)
        found.append(BareBatch(started, bare.stop(at_a_time)))
        bare.remove()
        time.sleep(3)  # the engine continues to clean up after its last response
    return BareBatch(*map(min, zip(*found, strict=True)))


def _batched(one: dict[str, Any], alone: float, before: BareBatch, after: BareBatch) -> list[Figure]:
    """Return the figures of one batch."""
    pods, last = f"batch of {one['n']} pods", value(one, "last")
    started, stopped = (before.started + after.started) / 2, (before.stopped + after.stopped) / 2
    return [
        Figure(
            name=f"{pods}, first start",
            ours=value(one, "first"),
            unit="s",
            reference=alone,
            reference_name="s one pod alone",
            goal=FIRST_GOAL,
        ),
        Figure(
            name=f"{pods}, median start",
            ours=value(one, "median"),
            unit="s",
            reference=last,
            reference_name="s the last",
            goal=MEDIAN_GOAL,
        ),
        timed(f"{pods}, last start", last, started, LAST_GOAL),
        timed(f"{pods}, removed to all stopped", value(one["remove"], "all_stopped"), stopped, REMOVAL_GOAL),
    ]


def comeback(agent: Agent, pods: int, reps: int) -> list[Figure]:
    """Measure an agent that is killed and restarted while pods run."""
    found = agent.measure("e", "--restart-reps", str(reps), "--restart-pods", str(pods))
    return [returned(found, f"e. agent started again to acting, {pods} pods, median", COMEBACK_GOALS.get(pods))]


def returned(found: dict[str, Any], name: str, goal: float | None) -> Figure:
    """Return the figure for the results of test e."""
    disturbed = sum(one["disturbed"] for one in found["e_agent_restart"]["reps"])
    return Figure(
        name=name,
        ours=value(found["e_agent_restart"]["ready_to_act"], "median"),
        unit="s",
        goal=goal,
        note=f"killed by kill -9, a container killed meanwhile; from the start of the agent to the container's;"
        f" {disturbed} other containers were disturbed",
    )


def comeback_of_many(agent: Agent, events: int, reps: int) -> list[Figure]:
    """Measure the same as `comeback`, with `events` events in the agent's log and snapshots taken after them."""
    agent.kill()
    store = RedisStore(agent.url, NODE)
    upto = _fill(Writer(store, shard_for("pod", SHARDS["pod"], "default/gone")), events)
    agent.start()
    every = [shard for kind, count in SHARDS.items() for shard in shards_of(kind, count)]
    shards = [shard for shard, head in store.heads(every).items() if head.token]

    def snapshots_taken() -> bool:
        found = store.read_snapshots(shards).values()
        return len(found) == len(shards) and all(snapshot.position >= upto for snapshot in found)

    scratch.wait_until(snapshots_taken, f"the snapshots of {len(shards)} shards; see {agent.log}", 300)
    store.close()
    pods = 2 * reps  # each is killed once: a second restart would be delayed by the back-off
    found = agent.measure("e", "--restart-reps", str(reps), "--restart-pods", str(pods))
    return [returned(found, f"e. the same, {pods} pods, {events:,} events in the log", 2.0)]


def _fill(writer: Writer, events: int) -> Position:
    """Write events about a removed pod, which change no state; return the last position."""
    event = pleg.PodUnreadable(pod="default/gone", uid="5c0ffee5", error="again " * 12)
    name = registry.type_of(pleg.PodUnreadable)
    record = Record(name, "pod/default/gone", event.subject(), writer.actor, "", codec.encode(event))
    at = START
    for _ in range(0, events, 500):
        at = writer.commit([record] * 500).at
    return at


def steady(agent: Agent, counts: Sequence[int], *, quick: bool) -> list[Figure]:
    """Measure CPU and memory of agent and Redis while nothing happens to the pods."""
    return [
        figure
        for one in measured_steady(agent, [f"{count}:none" for count in counts], quick=quick)
        for figure in (
            cpu(one, f"d. agent and Redis, {one['pods']} pods"),
            memory(one, f"d. resident memory of both, {one['pods']} pods"),
        )
    ]


def measured_steady(agent: Agent, configurations: Sequence[str], *options: str, quick: bool) -> list[dict[str, Any]]:
    """Return the result of test d for each configuration `<pods>:<probe>`."""
    timing = ["--window", "15", "--settle", "5"] if quick else []
    found = agent.measure("d", "--steady", ",".join(configurations), *agent.counted(), *timing, *options)
    return list(found["d_steady"])


def configuration(one: dict[str, Any]) -> str:
    """Return the configuration of a result of test d: `<pods>:<probe>`."""
    return f"{one['pods']}:{one['probe']}"


def cpu(one: dict[str, Any], name: str) -> Figure:
    """Return the CPU time of agent and Redis, with the engine's in the note."""
    return Figure(
        name=name,
        ours=one["agent_cpu_s_per_min"],
        unit="CPU s/min",
        goal=CPU_GOALS.get(configuration(one)),
        note=f"dockerd and containerd: {engine_cpu(one):.2f}",
    )


def engine_cpu(one: dict[str, Any]) -> float:
    """Return the CPU seconds per minute of dockerd and containerd."""
    return float(one["dockerd_cpu_s_per_min"] + one["containerd_cpu_s_per_min"])


def memory(one: dict[str, Any], name: str) -> Figure:
    """Return the resident memory of agent and Redis."""
    return Figure(name=name, ours=one["agent_rss_mib"], unit="MiB", goal=MEMORY_GOALS.get(configuration(one)))


class Ending(NamedTuple):
    """How a container of test g must end according to the kubelet's rules: seconds after the removal, and exit code.
    preStop counts against the grace period, and at least two seconds remain after it
    (pkg/kubelet/kuberuntime/kuberuntime_container.go, minimumGracePeriodInSeconds).
    """

    after: float
    exit_code: int


ENDINGS = {
    "no_handler_grace2": Ending(2, 137),
    "prestop2s_handler_grace10": Ending(2, 0),
    "prestop3s_ignoreterm_grace6": Ending(6, 137),
    "prestop20s_ignoreterm_grace4": Ending(6, 137),
    "vol_no_handler_grace2": Ending(2, 137),
    "vol_no_handler_grace5": Ending(5, 137),
    "vol_prestop2s_handler_grace10": Ending(2, 0),
    "vol_prestop3s_ignoreterm_grace6": Ending(6, 137),
    "vol_prestop20s_ignoreterm_grace4": Ending(6, 137),
}


def termination(agent: Agent) -> list[Figure]:
    """Measure how far each container's exit is from the time that its grace period allows; the harness defines the
    cases.
    """
    found = agent.measure("g")["g_termination"]
    return [_ended(case, found[case], ending) for case, ending in ENDINGS.items()]


def _ended(case: str, seen: Sequence[Sequence[Any]], ending: Ending) -> Figure:
    deaths = {who: (at, int(code)) for action, _, code, who, at in seen if action == "die"}
    app, code = deaths.get("app", (math.inf, -1))
    in_order = app <= deaths.get("sandbox", (-math.inf, 0))[0]
    right = in_order and code == ending.exit_code
    return Figure(
        name=f"g. {case}: the app's end, off its time by",
        ours=abs(app - ending.after) if right else math.inf,
        unit="s",
        goal=ENDING_GOAL,
        note=f"at {app:g} s with exit code {code}{'' if in_order else ', not before its sandbox'};"
        f" expected: {ending.after:g} s, {ending.exit_code}",
    )
