"""The node's shares: the cost of computing the cgroup tree of a full node, and of verifying it.

Input: options. Output: figures. The tree is created in a separate cgroup on this machine and removed at the end.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import immutables

from chronolet.adapters.cgroups import LinuxCgroups
from chronolet.adapters.cgroups.kernel import LinuxKernel
from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.machine.host import LinuxHost
from chronolet.ports.machine.cgroups import CgroupTree
from chronolet.qos import effects, wanted
from chronolet.qos.decider import outstanding
from chronolet.qos.sharing import Means, Sharing, described
from chronolet.qos.state import Share, State
from chronolet_schemas.envelope import Signal
from chronolet_schemas.qos import Node
from chronolet_schemas.resources import PodNeeds
from tests.bench.figures import Figure
from tests.support.docker.engine import DRIVER

PODS = 110
_MIB = 1 << 20
_NEEDS = (
    PodNeeds(
        qos_class="Guaranteed",
        cpu_request_milli=10,
        cpu_limit_milli=10,
        memory_request_bytes=16 * _MIB,
        memory_limit_bytes=16 * _MIB,
    ),
    PodNeeds(qos_class="Burstable", cpu_request_milli=10, memory_request_bytes=16 * _MIB),
    PodNeeds(qos_class="BestEffort"),
)


class _Counted(LinuxKernel):
    """The kernel's cgroups, with a count of writes."""

    writes = 0

    def write(self, path: str, text: str) -> None:
        self.writes += 1
        super().write(path, text)

    def make(self, path: str) -> None:
        self.writes += 1
        super().make(path)


class _Context:
    """The context of an effect that is never cancelled."""

    entity, cause, token = "node", "", ""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def fence(self, point: str) -> None:
        """Allow every call."""

    def done(self, point: str) -> None:
        """Ignore the call."""

    def send(self, signal: Signal, *, cause: str = "") -> None:
        """Drop the signal."""


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure computing and verifying the tree; return the figures. Raises RuntimeError if cgroups cannot be used."""
    rounds = 5 if options.quick else 50
    with tempfile.TemporaryDirectory() as folder:
        sharing = Sharing(name="bench", above=(f"chronolet-bench-{os.getpid()}",), memory_reserved_percent=100)
        kernel = _Counted()
        cgroups = LinuxCgroups(Path(folder), kernel=kernel)
        if why := cgroups.why_not():
            raise RuntimeError(f"this machine's cgroups cannot be used: {why}")
        host = LinuxHost(Path(folder))
        deps = effects.QosDependencies(sharing, cgroups, FakeRuntime(images=()), host)
        with _tree(cgroups, sharing) as tree:
            means = Means(version=tree.version, driver=DRIVER, lost=())
            state = _state(described(sharing, effects.machine(host, tree), means))
            return [_computed(state, rounds), *_reconciled(deps, state, kernel, rounds)]


@contextmanager
def _tree(cgroups: LinuxCgroups, sharing: Sharing) -> Iterator[CgroupTree]:
    tree = cgroups.tree(DRIVER)
    assert tree is not None
    try:
        yield tree
    finally:
        tree.remove(sharing.above)


def _state(node: Node) -> State:
    shares = {
        f"{number:08x}-0000-4000-8000-000000000000": Share(
            pod=f"default/p{number}", needs=_NEEDS[number % len(_NEEDS)], phase="ready"
        )
        for number in range(PODS)
    }
    return State(node=node, shares=immutables.Map(shares))


def _computed(state: State, rounds: int) -> Figure:
    taken = _seconds(lambda: _check(outstanding(state)), rounds)
    return Figure(
        name=f"the whole tree of {PODS} pods, computed",
        ours=statistics.median(taken) * 1000,
        unit="ms",
        goal=10.0,
        note=f"with what is to be running; the slowest of {rounds}: {max(taken) * 1000:.2f} ms",
    )


def _check(wishes: Sequence[object]) -> None:
    tree = wishes[-1]
    assert isinstance(tree, wanted.KeepTree)
    assert len(tree.tree) == PODS + 3


def _reconciled(deps: effects.QosDependencies, state: State, kernel: _Counted, rounds: int) -> Sequence[Figure]:
    tree = outstanding(state)[-1]
    assert isinstance(tree, wanted.KeepTree)
    keeping, context = effects.TreeKeeper(deps), _Context()
    made = keeping.once(tree, context, whole=True)
    assert not made.failed, made
    written, kernel.writes = kernel.writes, 0
    taken = _seconds(lambda: keeping.once(tree, context, whole=True), rounds)
    again = keeping.once(tree, context, whole=True)
    assert again == effects.Report(), again
    assert written > PODS
    version = state.node.version if state.node is not None else 0
    return [
        Figure(
            name=f"a reconcile of {PODS} pods that changes nothing",
            ours=statistics.median(taken) * 1000,
            unit="ms",
            goal=5.0,
            note=f"on this machine's cgroups v{version}; the slowest of {rounds}: {max(taken) * 1000:.2f} ms",
        ),
        Figure(name="what it writes", ours=kernel.writes, unit=f"files (making it took {written})", goal=0.0),
    ]


def _seconds(work: Callable[[], object], rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return found
