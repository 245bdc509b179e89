"""The cost of sampling 250 pods, of each usage page, and of the page of states, on cgroups that are plain files.

Input: options. Output: figures: CPU times of this process alone, and wall-clock times of pages. Plain files cost the
kernel less than real cgroups, whose values it adds up when they are read; only the number of reads is comparable.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from chronolet.devices.state import State as Devices
from chronolet.history.state import Moment
from chronolet.node.http.api_node import Facts
from chronolet.node.http.pages import usage_pages
from chronolet.node.settings.table import Settings
from chronolet.node.state_page.page import StatePage
from chronolet.pleg.state import State as Pleg
from chronolet.qos.state import State as Qos
from chronolet_schemas.envelope import START
from tests.bench.figures import Figure
from tests.deciders.pod.life import running
from tests.node.stats.nodes import Sampled, state

PODS = 250
USUAL_PODS = 110
"""The kubelet's default for maxPods."""
PERIOD_SECONDS = 10
_ROUNDS = 12
_CORE_PER_CENT = 100
_MILLISECONDS = 1000


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure a node with 250 pods of one container each, first idle, then all busy."""
    rounds = 3 if options.quick else _ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        node = Sampled(Path(folder), "both")
        paths = [node.pod(number) for number in range(PODS)]
        node.sampler.sample()
        idle = [_cost(node, node.sampler.sample) for _ in range(rounds)]
        busy = [_busy_round(node, paths, number) for number in range(rounds)]
        found = [*_sampling("idle", idle), *_sampling("busy", busy)]
        show = usage_pages(Settings(node="n", root_dir=Path(folder)), node.sampler.latest)
        for path, goal in (("/stats/summary", 50), ("/metrics/resource", 50), ("/metrics/cadvisor", 250)):
            found += _page(node, path, lambda page=path: len(show[page]({}).body), goal, rounds)  # type: ignore[misc]
    return [*found, *_state_page(rounds)]


class _Cost(NamedTuple):
    """Times in milliseconds, and the number of files read."""

    cpu: float
    wall: float
    reads: int


def _cost(node: Sampled, work: Callable[[], object]) -> _Cost:
    reads, cpu, wall = node.files.reads, time.process_time(), time.perf_counter()
    work()
    spent = (time.process_time() - cpu) * _MILLISECONDS, (time.perf_counter() - wall) * _MILLISECONDS
    return _Cost(*spent, node.files.reads - reads)


def _busy_round(node: Sampled, paths: Sequence[str], number: int) -> _Cost:
    for index, path in enumerate(paths):
        node.trees.busy(path, cpu=(number + 2) * 1_000_000)
        node.trees.busy(f"{path}/{state(index, 'app').id}", cpu=(number + 2) * 900_000)
    return _cost(node, node.sampler.sample)


def _sampling(what: str, costs: Sequence[_Cost]) -> list[Figure]:
    cpu = statistics.mean(one.cpu for one in costs)
    share = cpu / _MILLISECONDS / PERIOD_SECONDS * _CORE_PER_CENT
    reads = statistics.mean(one.reads for one in costs)
    note = f"{reads:.0f} files read a round, {share:.2f} % of a core at a period of {PERIOD_SECONDS} s"
    goal = 100 if what == "idle" else 200
    return [Figure(name=f"sampling {PODS} {what} pods", ours=cpu, unit="CPU ms", goal=goal, note=note)]


def _page(node: Sampled, path: str, show: Callable[[], int], goal: float, rounds: int) -> list[Figure]:
    """Measure the first request after a sample, which encodes the page; the next requests cost nothing."""
    costs, size = [], 0
    for _ in range(rounds):
        node.sampler.sample()
        costs.append(_cost(node, show))
        size = show()
    cpu, wall = statistics.median(one.cpu for one in costs), statistics.median(one.wall for one in costs)
    note = f"{size:,} bytes"
    return [
        Figure(name=f"{path} of {PODS} pods", ours=cpu, unit="CPU ms", goal=goal, note=note),
        Figure(name=f"{path} of {PODS} pods", ours=wall, unit="ms", goal=goal * 2),
    ]


def _state_page(rounds: int) -> list[Figure]:
    """Measure /metrics/state: all pods are new, then none has changed since the last scrape."""
    about = Facts(Qos(), Pleg(), Devices(), alive=True, listed_by=True, now=0)
    state = running().state
    states = {f"default/{n}": replace(state, pod=f"default/{n}", uid=f"u{n}") for n in range(USUAL_PODS)}
    moment = Moment(START, {"pod": states})
    first, again = [], []
    for _ in range(rounds):
        page = StatePage("n")
        for costs in (first, again):
            cpu = time.process_time()
            size = len(page.of(moment, about))
            costs.append((time.process_time() - cpu) * _MILLISECONDS)
    return [
        Figure(
            name=f"/metrics/state, {USUAL_PODS} {what} pods",
            ours=statistics.median(costs),
            unit="CPU ms",
            goal=50,
            note=f"{size / 1024:.0f} KiB",
        )
        for what, costs in (("new", first), ("unchanged", again))
    ]
