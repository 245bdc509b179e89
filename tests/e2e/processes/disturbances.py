"""What can happen to one of several processes of a node, or to their Redis.

Input: a shared node and its servers. Output: `DISTURBANCES`, by name. Each one returns when its effect is over: the
process owns shards again, or the other processes have the shards. Next: `test_disturbances`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chronolet_schemas import kernel, pod
from tests.e2e.processes.shared_node import SharedNode
from tests.e2e.processes.sockets import SocketWatch
from tests.support.machine.frozen import stopped
from tests.support.redis.replicated import Replicated
from tests.support.scratch import wait_until

NAMES = ("one", "two", "three")
_STEPS = (3600, -3600, 0)
_DELETIONS = 2


@dataclass
class Scene:
    """Three processes of a node, each with its own link to the present primary of a replicated Redis."""

    shared: SharedNode
    servers: Replicated
    sockets: SocketWatch
    choose: random.Random
    accepted: set[tuple[int, str]] = field(default_factory=set)
    """The log's number and the uid of each `pod.SpecAccepted` so far: a pod from a file has the same uid each time that
    the same file is written.
    """

    def read(self) -> None:
        """Read the log, and note the pods that were accepted."""
        journal = self.shared.node.journal
        journal.read()
        for line in journal.lines:
            if isinstance(line.event, pod.SpecAccepted):
                self.accepted.add((line.entry.position.n, line.event.uid))

    def wait_until_lost(self, name: str) -> None:
        """Wait until the process owns no shard."""
        wait_until(lambda: name not in self.shared.owners(), f"the takeover from {name}")

    def takeovers(self) -> list[kernel.ShardTakenOver]:
        """Return the takeovers from processes that were proven dead, according to the log."""
        self.read()
        return self.shared.node.journal.events(kernel.ShardTakenOver)


def _kill(scene: Scene, name: str) -> None:
    """Kill the process, and start it again: at once, or after the others have taken over."""
    process = scene.shared.processes[name]
    process.kill()
    process.wait()
    if scene.choose.random() < 0.5:
        scene.wait_until_lost(name)
    scene.shared.start(name)


def _stop(scene: Scene, name: str) -> None:
    """Stop the process until its lease has ended and the others have its shards, and continue it."""
    pid = scene.shared.processes[name].pid
    with scene.sockets.excused(pid), stopped([pid]):
        scene.wait_until_lost(name)


def _drain(scene: Scene, name: str) -> None:
    drained = scene.shared.node.chronolet("drain", name)
    assert drained.status == 0, drained.err
    scene.shared.wait_until_even(*(other for other in NAMES if other != name))
    assert scene.shared.node.chronolet("undrain", name).status == 0


def _partition(scene: Scene, name: str) -> None:
    """Cut the process off from Redis until the others have its shards. Its last calls arrive afterwards."""
    link = scene.servers.link(name)
    link.cut()
    try:
        scene.wait_until_lost(name)
    finally:
        link.mend()


def _declare_dead(scene: Scene, name: str) -> None:
    """Delete the key of the process's lease after each renewal. That proves nothing, so no shard is taken over."""
    before = scene.takeovers()
    for _ in range(_DELETIONS):
        scene.servers.client().delete(scene.shared.keys.alive(name))
        scene.shared.wait_for_renewals(1)
    assert scene.takeovers() == before


def _step_clock(scene: Scene, _name: str) -> None:
    """Step the clock of the server by an hour, back by two hours, and to the right time. No shard is taken over."""
    before = scene.takeovers()
    for seconds in _STEPS:
        scene.servers.primary.step_clock(seconds)
        scene.shared.wait_for_renewals(1)
    assert scene.takeovers() == before


def _promote(scene: Scene, _name: str) -> None:
    scene.read()
    scene.servers.promote()
    scene.shared.node.reopen_journal(archived=True)


DISTURBANCES: Mapping[str, Callable[[Scene, str], None]] = {
    "killed": _kill,
    "stopped": _stop,
    "drained": _drain,
    "partitioned": _partition,
    "declared dead": _declare_dead,
    "clock stepped": _step_clock,
    "replica promoted": _promote,
}
