"""Collectors: the cost of a plan on a large node, and of a run compared with bare calls to Docker.

Input: options. Output: figures. A run is measured from its request to its end, using the timestamps of the log entries.
The bare calls remove the same number of objects of the same kind: containers eight at a time, each over a separate
connection, images one after the other. Runs and bare calls take turns in alternating order. There is a pause before
each measurement, because Docker still cleans up after containers that have exited.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import docker
import msgspec

from chronolet.container_gc import signals as container_signals
from chronolet.container_gc.decider import DECIDER as CONTAINERS
from chronolet.image_gc import signals as image_signals
from chronolet.image_gc.decider import DECIDER as IMAGES
from chronolet.ports.runtime import labels
from chronolet_schemas import container_gc, image_gc
from tests.bench.figures import Figure
from tests.e2e.node import Node
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.docker.images import BUSYBOX, small_image
from tests.support.redis.server import private_redis

CONTAINER_COUNT = 10_000
IMAGE_COUNT = 5_000
DEAD = 239
_NOW = 1_800_000_000_000
_HOUR = 3_600_000
_AT_ONCE = 4
_SETTLED_SECONDS = 1.0


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure the plans, then the runs; return their figures."""
    return [*_plans(3 if options.quick else 9), *_runs(quick=options.quick)]


# -- the plan ------------------------------------------------------------------------------------------------------


def _plans(rounds: int) -> Sequence[Figure]:
    containers, images = _container_scan(), _image_scan()
    known = CONTAINERS.initial
    for number in range(CONTAINER_COUNT // 10):
        event = container_gc.PodNoted(pod=f"default/pod{number}", uid=f"u{number}")
        known = CONTAINERS.evolve(known, event) or known
    seen = IMAGES.initial
    for event in IMAGES.decide(seen, msgspec.structs.replace(images, disk=None), _NOW - _HOUR):
        seen = IMAGES.evolve(seen, event) or seen
    first = _seconds(lambda: CONTAINERS.decide(known, containers, _NOW), rounds)
    second = _seconds(lambda: IMAGES.decide(seen, images, _NOW), rounds)
    name = f"plan over {CONTAINER_COUNT:,} containers and {IMAGE_COUNT:,} images"
    note = f"containers {first:.3f} s, images {second:.3f} s; the events that follow from it included"
    return [Figure(name=name, ours=first + second, unit="s", goal=0.2, note=note)]


def _seconds(work: Callable[[], Any], rounds: int) -> float:
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        assert work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def _container_scan() -> container_signals.Looked:
    """Return a scan that found ten attempts of each pod's container, one of them running."""
    containers = tuple(
        container_signals.RuntimeObject(
            id=f"{number:064x}",
            name=f"chrono_app_pod{number // 10}_default_u{number // 10}_{number % 10}",
            pod=f"default/pod{number // 10}",
            uid=f"u{number // 10}",
            container="app",
            attempt=number % 10,
            created_at=_NOW - _HOUR + number,
            state="running" if number % 10 == 9 else "exited",
            sandbox_id=f"s{number // 10}",
        )
        for number in range(CONTAINER_COUNT)
    )
    return container_signals.Looked(node="node", policy=container_gc.Policy(max_containers=500), containers=containers)


def _image_scan() -> image_signals.Looked:
    """Return a scan that found a full disk and images of which every second one is in use."""
    images = tuple(
        image_gc.Image(
            id=f"sha256:{number:064x}",
            size_bytes=1_000_000,
            names=(f"registry/team/app{number}:1",),
            users=("default/web/app",) if number % 2 else (),
            user_count=number % 2,
        )
        for number in range(IMAGE_COUNT)
    )
    disk = image_signals.Disk(capacity_bytes=5_000_000_000, available_bytes=1_000_000)
    return image_signals.Looked(node="node", policy=image_gc.Policy(), images=images, disk=disk)


# -- the run -------------------------------------------------------------------------------------------------------


def _runs(*, quick: bool) -> Sequence[Figure]:
    with private_docker() as engine, private_redis() as server, TemporaryDirectory() as folder:
        node = Node(engine, server.url, "bench", Path(folder) / "agent")
        node.environ |= {
            "CHRONOLET_CONTAINER_GC_PERIOD": "1h",
            "CHRONOLET_IMAGE_GC_PERIOD": "1h",
            "CHRONOLET_IMAGE_USAGE_PERIOD": "1h",
            "CHRONOLET_MINIMUM_IMAGE_TTL_DURATION": "0s",
        }
        node.start()
        node.journal.wait_for_event(image_gc.RunFinished)
        node.journal.wait_for_event(container_gc.RunFinished)
        try:
            found = [
                _compared(
                    "dead containers", _Containers(engine, node), 2 if quick else 3, 40 if quick else DEAD, goal=1.1
                ),
                _compared("images", _Images(engine, node), 2 if quick else 5, 10 if quick else 40, goal=1.2),
            ]
        finally:
            node.close()
    return found


def _compared(what: str, case: _Containers | _Images, rounds: int, each: int, *, goal: float) -> Figure:
    bare: list[float] = []
    ours: list[float] = []

    def by_bare_calls() -> None:
        made = case.made(each, mine=False)
        time.sleep(_SETTLED_SECONDS)
        bare.append(case.bare(made))

    def by_a_run() -> None:
        case.made(each, mine=True)
        time.sleep(_SETTLED_SECONDS)
        ours.append(case.run(each))

    for number in range(rounds):
        for measured in (by_bare_calls, by_a_run) if number % 2 else (by_a_run, by_bare_calls):
            measured()
    return Figure(
        name=f"a run that removes {each} {what}",
        ours=statistics.median(ours),
        unit="s",
        reference=statistics.median(bare),
        reference_name=f"s bare, {case.concurrent} at a time",
        goal=goal,
    )


class _Containers:
    concurrent = 8
    """The default of `--container-gc-parallel`."""

    def __init__(self, engine: PrivateDocker, node: Node) -> None:
        self._engine = engine
        self._node = node

    def made(self, count: int, *, mine: bool) -> list[str]:
        """Create dead containers. With `mine`, they belong to the node but to no pod, so that a run removes them
        immediately.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda _: self._one(mine=mine), range(count)))

    def _one(self, *, mine: bool) -> str:
        with closing(self._engine.api()) as api:
            marks = {labels.NODE: self._node.name} if mine else {}
            made = str(api.create_container(BUSYBOX.reference, ["true"], labels=marks)["Id"])
            api.start(made)
            api.wait(made)
            return made

    def bare(self, made: Sequence[str]) -> float:
        shares = [made[number :: self.concurrent] for number in range(self.concurrent)]
        with ThreadPoolExecutor(self.concurrent) as pool, ExitStack() as stack:
            connections = [stack.enter_context(closing(self._engine.api())) for _ in shares]
            list(pool.map(lambda api: api.ping(), connections))
            began = time.perf_counter()
            list(pool.map(_removed, connections, shares))
            return time.perf_counter() - began

    def run(self, count: int) -> float:
        return _run(self._node, "containers", container_gc.RunFinished, container_gc.RunRequested, count)


def _removed(api: docker.APIClient, made: Sequence[str]) -> None:
    for one in made:
        api.remove_container(one, v=True)


class _Images:
    concurrent = 1

    def __init__(self, engine: PrivateDocker, node: Node) -> None:
        self._engine = engine
        self._node = node
        self._made = 0

    def made(self, count: int, *, mine: bool) -> list[str]:
        """Create unused images; the run removes all of them."""
        del mine
        with closing(self._engine.api()) as api:
            self._made += count
            numbers = range(self._made - count, self._made)
            return [small_image(api, [f"bench/image{number}:1"], megabytes=1) for number in numbers]

    def bare(self, made: Sequence[str]) -> float:
        return _timed(self._engine, made, lambda api, one: api.remove_image(one))

    def run(self, count: int) -> float:
        return _run(self._node, "images", image_gc.RunFinished, image_gc.RunRequested, count)


def _timed(engine: PrivateDocker, made: Sequence[str], remove: Callable[[docker.APIClient, str], Any]) -> float:
    with closing(engine.api()) as api:
        api.ping()
        began = time.perf_counter()
        for one in made:
            remove(api, one)
        return time.perf_counter() - began


def _run(node: Node, part: str, finished: Any, requested: Any, count: int) -> float:
    """Run a collector and return the seconds from the request's log entry to that of the run's end."""
    result = node.chronolet("gc", "run", "--unused-images", "-o", "json")
    run = msgspec.json.decode(result.out)[part]
    assert run["removed"] == count, result
    node.journal.read()
    lines = node.journal.lines
    began = next(line for line in lines if isinstance(line.event, requested) and line.event.request == run["request"])
    ended = next(line for line in lines if isinstance(line.event, finished) and line.event.request == run["request"])
    return (ended.entry.position.milliseconds - began.entry.position.milliseconds) / 1000
