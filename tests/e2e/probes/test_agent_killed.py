"""Nothing that probes found out is forgotten: the agent is killed in the middle of it, and others stand in for it."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from chronolet.kernel.hosting.supervisor import LOOKS_IN_RENEWAL
from chronolet.kernel.ownership.lease import RENEWALS_IN_TTL, TTL_MILLISECONDS
from chronolet.pod.decider import DECIDER
from chronolet.pod.state import State
from chronolet.pod.status.status import pod_status
from chronolet_schemas import kernel, pod, prober
from tests.e2e.journal import Line
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.failing_server import Failing
from tests.e2e.probes.probed_pods import ENOUGH_SECONDS, NEVER, at_each
from tests.support.frozen import stopped
from tests.support.redis import PrivateRedis
from tests.support.scratch import wait_until

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
FAILURES = 4
LOOK_MS = TTL_MILLISECONDS // RENEWALS_IN_TTL // LOOKS_IN_RENEWAL
"""What a loaded machine may be late by."""


def a_probed(name: str, milliseconds: int, **probes: Any) -> dict[str, Any]:
    """A pod with these probes, so often."""
    return at_each(milliseconds, a_pod(name, shell("app", STAYS, **probes)))


def cat(path: str, **more: Any) -> dict[str, Any]:
    return {"exec": {"command": ["cat", path]}, "timeoutSeconds": ENOUGH_SECONDS, **more}


@pytest.fixture
def failing() -> Iterator[Failing]:
    server = Failing()
    yield server
    server.close()


def is_ready(state: State) -> bool:
    return all(one.ready for one in pod_status(state).container_statuses)


def turns(node: Node, name: str) -> list[bool]:
    """What the pod's containers were by the log from its beginning on: ready, or not; each turn once."""
    state, seen = DECIDER.initial, list[bool]()
    for line in node.journal.lines:
        if line.entry.entity == f"pod/default/{name}":
            state = DECIDER.evolve(state, line.event) or DECIDER.initial
            seen.append(is_ready(state))
    return [ready for ready, _ in groupby(seen)]


def failures(node: Node, name: str, **fields: object) -> list[int]:
    """The counts that were recorded."""
    return [one.consecutive for one in node.journal.events(prober.ProbeFailed, pod=f"default/{name}", **fields)]


def test_a_failing_streak_goes_on_after_each_kill(own_node: Node, redis_server: PrivateRedis, failing: Failing) -> None:
    """Killed after each recorded result, Redis too after every other one: the restart comes at the same count as
    without.
    """
    own_node.start()
    own_node.write("p.yaml", a_probed("streak", 500, livenessProbe=failing.probe(FAILURES)))
    for count in range(1, FAILURES + 1):
        failing.fail(own_node.pid)
        own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/streak", consecutive=count)
        own_node.kill9()
        own_node.journal.read()
        assert failures(own_node, "streak") == list(range(1, count + 1)), "the next one waits for its answer"
        if count % 2 == 0:
            redis_server.kill9()
            redis_server.restart()
        own_node.start()
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/streak", attempt=1)
    first = own_node.journal.events(pod.ContainerStarted, pod="default/streak")[0].id
    assert failures(own_node, "streak", id=first) == [1, 2, 3, 4], "none forgotten, none twice"
    stops = own_node.journal.events(pod.ContainerStopRequested, pod="default/streak", attempt=0)
    assert [one.reason for one in stops] == ["LivenessFailed"]
    starts = own_node.journal.events(pod.ContainerStarted, pod="default/streak")
    assert [one.attempt for one in starts] == [0, 1], "no restart is doubled"


def test_ready_and_started_outlive_the_agent_and_redis(own_node: Node, redis_server: PrivateRedis) -> None:
    """After a restart no container turns Ready or NotReady by itself, and no startup probe is run again."""
    own_node.start()
    probes: dict[str, Any] = {"startupProbe": cat("/etc/passwd"), "readinessProbe": cat("/etc/passwd")}
    liveness = cat("/none", failureThreshold=NEVER)  # something that can be seen to go on
    own_node.write("p.yaml", a_probed("ready", 200, livenessProbe=liveness, **probes))
    own_node.write("q.yaml", a_probed("unready", 200, readinessProbe=cat("/none")))
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/ready")
    own_node.journal.wait_for("it to be ready", lambda: is_ready(own_node.journal.pods["default/ready"]))
    own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/unready", consecutive=3)
    # "ready" may have started later than "unready", so its liveness probe may not have been asked yet.
    own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/ready", consecutive=1)
    seen = len(own_node.journal.events(prober.ResultChanged))
    for killed in ("agent", "Redis", "both"):
        if killed != "Redis":
            own_node.kill9()
        if killed != "agent":
            redis_server.kill9()
            redis_server.restart()
        count = failures(own_node, "ready")[-1]
        if killed != "Redis":
            own_node.start()
        # By then the readiness probes have been asked again as well, several times.
        own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/ready", consecutive=count + 4)
    counts = failures(own_node, "ready")
    assert counts == list(range(1, len(counts) + 1)), "none forgotten, none twice"
    assert len(own_node.journal.events(prober.ResultChanged)) == seen
    assert (turns(own_node, "ready"), turns(own_node, "unready")) == ([False, True], [False])
    startup = own_node.journal.events(prober.ProbeCounted, pod="default/ready", probe="Startup")
    assert len(startup) == 1
    assert len(own_node.journal.events(pod.ContainerStarted)) == 2


def commands(node: Node, name: str) -> set[int]:
    """The pids of the probe's commands in the pod's one container."""
    main = node.running(name)["app"]["State"]["Pid"]
    here = Path(f"/proc/{main}/ns/pid").readlink()
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "ns/pid").readlink() == here and b"1000" in (process / "cmdline").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found


def test_no_command_outlives_the_agent(own_node: Node) -> None:
    """Told to end, it ends its commands first; killed, it leaves them to the next one, which ends them."""
    own_node.start()
    hangs = {"exec": {"command": ["sleep", "1000"]}, "timeoutSeconds": 500}
    own_node.write("p.yaml", a_probed("hangs", 300, readinessProbe=hangs, livenessProbe=cat("/etc/passwd")))
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/hangs")
    wait_until(lambda: len(commands(own_node, "hangs")) == 1, "the command")
    left = commands(own_node, "hangs")
    own_node.kill9()
    assert commands(own_node, "hangs") == left, "nobody else ends it"
    own_node.start()
    wait_until(lambda: len(commands(own_node, "hangs") - left) == 1, "a command of the next agent")
    assert not commands(own_node, "hangs") & left
    own_node.wait_for_log("killing a probe command left behind by another process")
    assert own_node.stop() == 0
    assert not commands(own_node, "hangs")
    assert "left behind" not in own_node.log.rpartition("stopping")[2]
    assert own_node.restarts("hangs") == [0]


class Moved:
    """A pod whose liveness probe fails, and those who probe it."""

    THRESHOLD = 20

    def __init__(self, node: Node, failing: Failing) -> None:
        self.node = node
        self.failing = failing
        node.write("p.yaml", a_probed("moved", 250, livenessProbe=failing.probe(self.THRESHOLD)))
        self.first = node.journal.wait_for_event(pod.ContainerStarted, pod="default/moved").id

    def counts(self) -> list[int]:
        return failures(self.node, "moved", id=self.first)

    def fail(self, pid: int, more: int) -> None:
        """Until so many more of this process's probes have failed, and are recorded."""
        before = len(self.counts())
        self.failing.fail(pid, more)
        self.node.journal.wait_for(f"{more} more failures", lambda: len(self.counts()) >= before + more)

    def lines(self, kind: type[Any]) -> Sequence[Line]:
        return [line for line in self.node.journal.lines if isinstance(line.event, kind)]

    def wait_for_takeover(self, since: float) -> int:
        """The position's number of the last shard's; they are taken within a lease's time, and a look's."""
        self.node.journal.wait_for("the take-over of all shards", lambda: len(self._taken(since)) == 4)
        return max(line.entry.position.n for line in self.takeovers(since))

    def _taken(self, since: float) -> set[str]:
        return {line.entry.actor.partition("#")[0] for line in self.takeovers(since)}

    def takeovers(self, since: float) -> Sequence[Line]:
        found = self.lines(kernel.ShardTakenOver)
        return [line for line in found if line.entry.position.milliseconds >= since * 1000]


PODS_ONLY = ("--actors", "manifests,pod,pleg,keeper", "--admission")


def test_another_process_takes_over(own_node: Node, failing: Failing) -> None:
    """Two processes can host probers. One hangs in the middle of a probe, and the other goes on with the streak; it
    wakes up, and what its probe came to counts no more. Then the other one is killed, and it takes over in its turn.

    Whoever is not to take over is stopped: a busy machine may keep the owner from its lease at any time.
    """
    own_node.start(0, *PODS_ONLY, "devices")
    moved = Moved(own_node, failing)
    own_node.journal.wait_for_event(pod.ProbingSkipped, pod="default/moved")
    own_node.kill9()
    own_node.start(0, *PODS_ONLY, "prober")
    own_node.journal.wait_for_event(pod.ProbingRequested, pod="default/moved")  # though nothing has happened to it
    one = own_node.start_other("one", "prober")
    moved.fail(one.pid, 1)
    began = time.time()
    two = own_node.start_other("two", "prober")
    wait_until(lambda: "standing by" in said(own_node, "two") or bool(moved.takeovers(began)), "the second one")

    with stopped([two.pid]):
        moved.fail(one.pid, 1)
        wait_until(lambda: failing.is_asked_by(one.pid), "a probe that has no answer yet")
        halted, heard = time.time(), len(said(own_node, "one"))
        one.send_signal(signal.SIGSTOP)
    before = failing.answered[one.pid]
    failing.fail(one.pid)
    wait_until(lambda: failing.answered[one.pid] > before, "the answer that comes while it is stopped")
    taken = moved.wait_for_takeover(halted)
    moved.fail(two.pid, 1)
    one.send_signal(signal.SIGCONT)
    wait_until(
        lambda: "another owner" in (news := said(own_node, "one")[heard:]) or "taken over" in news,
        "its fall",
    )
    one.send_signal(signal.SIGSTOP)
    moved.fail(two.pid, 2)

    killed = time.time()
    two.kill()
    two.wait()
    one.send_signal(signal.SIGCONT)
    moved.wait_for_takeover(killed)
    failing.fail(one.pid, Moved.THRESHOLD - len(moved.counts()))
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/moved", attempt=1)

    assert moved.counts() == list(range(1, Moved.THRESHOLD + 1)), "none forgotten, none twice"
    told = [line.entry for line in moved.lines(prober.ProbeFailed)][: Moved.THRESHOLD]
    actors = [actor for actor, _ in groupby(entry.actor for entry in told)]
    # A stall may have moved it once more; who has lost it never comes back under the same epoch.
    assert len(actors) == len(set(actors)) >= 3, actors
    assert all(entry.actor != actors[0] for entry in told if entry.position.n > taken)
    stops = own_node.journal.events(pod.ContainerStopRequested, pod="default/moved", id=moved.first)
    assert [stop.reason for stop in stops] == ["LivenessFailed"]
    starts = own_node.journal.events(pod.ContainerStarted, pod="default/moved")
    assert [start.attempt for start in starts] == [0, 1], "no restart is doubled"
    assert one.poll() is None


def said(node: Node, name: str) -> str:
    """What another process of the node has logged."""
    return (node.root / f"{name}.log").read_text()
