"""The agent as a whole: pods from a folder of manifests on a real Docker Engine, measured from outside.

Input: options. Output: results of `agent_bench`, next to the goals and the times of bare Docker calls in the same run,
made before and after each test. Engine and Redis are private. The agent hosts all kinds of actors and runs in its
engine's network, as on any host, so that it can reach its pods. Next: `agent` (the measured agent), `parts` (the rows),
`profile` (explains a missed goal), `traced` (shows where one start spent its time).
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import StatisticsError

import msgspec

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas.envelope import START
from tests.bench.bare_docker import Bare, warmed_up
from tests.bench.figures import UNMEASURED, Figure
from tests.bench.pods import broken, churn, many, parts, power, profile, traced
from tests.bench.pods.agent import NODE, Agent, running
from tests.support import scratch
from tests.support.ports import free_port

SETTLE_SECONDS = 3.0
"""Seconds after which an agent has completed its start."""

Part = Callable[[Agent, Bare, argparse.Namespace], list[Figure]]

PARTS: dict[str, Part] = {
    "a": lambda agent, bare, given: parts.single(agent, bare, 3 if given.quick else 10),
    "b": lambda agent, bare, given: parts.restart(agent, bare, 3 if given.quick else 10),
    "c": lambda agent, bare, given: broken.figures(agent, bare, 4 if given.quick else 40),
    "batch": lambda agent, bare, given: parts.batch(agent, bare, (5, 10) if given.quick else (10, 30, 60)),
    "g": lambda agent, _, given: parts.termination(agent),
    "e": lambda agent, _, given: parts.comeback(agent, *((5, 1) if given.quick else (30, 3))),
    "d": lambda agent, _, given: parts.steady(agent, (0, 10) if given.quick else (0, 30, 60), quick=given.quick),
    "110": lambda agent, bare, given: many.figures(agent, bare, 12 if given.quick else 110, quick=given.quick),
    "power": lambda _agent, _bare, given: power.figures(5 if given.quick else 110),
    "churn": lambda agent, _, given: churn.figures(agent, given.churn or (30 if given.quick else 180)),
    "log": lambda agent, _, given: parts.comeback_of_many(agent, *((50_000, 1) if given.quick else (1_000_000, 3))),
}
"""The parts of the benchmark in order, named as in `agent_bench`. `log` is `e` with a long log; `110` is the kubelet's
default number of pods; `power` starts the same number of pods after a power cut.
"""


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure the selected parts, by default all, in order; return their figures."""
    os.environ["PYTHONUNBUFFERED"] = "1"
    # `chronolet trace` reads spans from the agent's pages.
    with running(in_network=True, port=free_port() if options.trace else 0) as agent:
        bare = warmed_up(agent.docker.host)
        found: list[Figure] = []
        for name, part in PARTS.items():
            if not options.only or name in options.only:
                print(f"==> pods: {name}", file=sys.stderr, flush=True)  # noqa: T201
                found += _traced(name, part, agent, bare, options)
        return found


def _traced(name: str, part: Part, agent: Agent, bare: Bare, options: argparse.Namespace) -> list[Figure]:
    """Return a part's figures; on request, print the trace of its last start."""
    before = traced.end_of_log(agent) if options.trace else START
    found = _explained(name, part, agent, bare, options)
    if options.trace and (text := traced.last_start(agent, before)):
        print(f"\npods: {name}: the last start\n\n{text}", flush=True)  # noqa: T201
    return found


def _explained(name: str, part: Part, agent: Agent, bare: Bare, options: argparse.Namespace) -> list[Figure]:
    """Return a part's figures; if one misses its goal and profiles are requested, run the part again with a sampled
    agent.
    """
    found = attempted(lambda: part(agent, bare, options))
    if not options.profile or all(figure.met is not False for figure in found):
        return found
    begun = profile.begin(options.profile, name)
    store = RedisStore(agent.url, NODE)
    before = store.last()
    agent.restart(("-m", "tests.bench.pods.sampled", str(begun)))
    scratch.wait_until(lambda: profile.has_samples(begun), "the first samples")
    time.sleep(SETTLE_SECONDS)
    # Discard the samples of the agent's start: a part that measures a start makes one itself.
    profile.begin(options.profile, name)
    attempted(lambda: part(agent, bare, options))
    agent.restart()
    profile_line = profile.summary(begun, store.scan(before))
    store.close()
    return [_noted(figure, profile_line) if figure.met is False else figure for figure in found]


def _noted(figure: Figure, profile_line: str) -> Figure:
    return msgspec.structs.replace(figure, note="; ".join(filter(None, (figure.note, profile_line))))


def attempted(part: Callable[[], list[Figure]]) -> list[Figure]:
    """Run a part and return its figures; if it fails in an expected way, return a row that reports the error, so that
    other parts still run.
    """
    try:
        return part()
    except (TimeoutError, AssertionError, KeyError, StatisticsError, subprocess.CalledProcessError) as error:
        return [Figure(name=UNMEASURED, ours=math.inf, unit="", goal=0, note=repr(error))]
