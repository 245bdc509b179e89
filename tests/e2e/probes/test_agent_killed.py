"""Probe results survive kills of the agent and takeovers by other processes."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from chronolet.pod.decider import DECIDER
from chronolet.pod.state import State
from chronolet.pod.status.status import pod_status
from chronolet_schemas import kernel, pod, prober
from tests.e2e.journal import Line
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.failing_server import FailingServer
from tests.e2e.probes.probed_pods import ENOUGH_SECONDS, NEVER, with_period
from tests.support.machine.frozen import stopped
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import wait_until

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
FAILURES = 4


def probed_pod(name: str, milliseconds: int, **probes: Any) -> dict[str, Any]:
    """Return a pod with these probes and this period."""
    return with_period(milliseconds, a_pod(name, shell("app", STAYS, **probes)))


def cat(path: str, **more: Any) -> dict[str, Any]:
    return {"exec": {"command": ["cat", path]}, "timeoutSeconds": ENOUGH_SECONDS, **more}


@pytest.fixture
def failing() -> Iterator[FailingServer]:
    server = FailingServer()
    yield server
    server.close()


def is_ready(state: State) -> bool:
    return all(one.ready for one in pod_status(state).container_statuses)


def ready_changes(node: Node, name: str) -> list[bool]:
    """Return the pod's readiness over the whole log, with consecutive equal values merged."""
    state, seen = DECIDER.initial, list[bool]()
    for line in node.journal.lines:
        if line.entry.entity == f"pod/default/{name}":
            state = DECIDER.evolve(state, line.event) or DECIDER.initial
            seen.append(is_ready(state))
    return [ready for ready, _ in groupby(seen)]


def failures(node: Node, name: str, **fields: object) -> list[int]:
    """Return the recorded counts of consecutive failures."""
    return [one.consecutive for one in node.journal.events(prober.ProbeFailed, pod=f"default/{name}", **fields)]


def test_a_failure_streak_continues_after_each_kill(
    own_node: Node, redis_server: PrivateRedis, failing: FailingServer
) -> None:
    """The agent is killed after each recorded result, and Redis after every second one: the container is restarted at
    the same count as without kills.
    """
    own_node.start()
    own_node.write("p.yaml", probed_pod("streak", 500, livenessProbe=failing.probe(FAILURES)))
    for count in range(1, FAILURES + 1):
        failing.fail(own_node.pid)
        own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/streak", consecutive=count)
        own_node.kill9()
        own_node.journal.read()
        assert failures(own_node, "streak") == list(range(1, count + 1)), "a probe failed without a request"
        if count % 2 == 0:
            redis_server.kill9()
            redis_server.restart()
        own_node.start()
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/streak", attempt=1)
    first = own_node.journal.events(pod.ContainerStarted, pod="default/streak")[0].id
    assert failures(own_node, "streak", id=first) == [1, 2, 3, 4], "none lost, none twice"
    stops = own_node.journal.events(pod.ContainerStopRequested, pod="default/streak", attempt=0)
    assert [one.reason for one in stops] == ["LivenessFailed"]
    starts = own_node.journal.events(pod.ContainerStarted, pod="default/streak")
    assert [one.attempt for one in starts] == [0, 1], "a restart was repeated"


def test_ready_and_started_survive_kills_of_agent_and_redis(own_node: Node, redis_server: PrivateRedis) -> None:
    """A restart alone makes no container Ready or NotReady and repeats no startup probe."""
    own_node.start()
    probes: dict[str, Any] = {"startupProbe": cat("/etc/passwd"), "readinessProbe": cat("/etc/passwd")}
    liveness = cat("/none", failureThreshold=NEVER)  # a probe whose progress is visible
    own_node.write("p.yaml", probed_pod("ready", 200, livenessProbe=liveness, **probes))
    own_node.write("q.yaml", probed_pod("unready", 200, readinessProbe=cat("/none")))
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/ready")
    own_node.journal.wait_for("it to be ready", lambda: is_ready(own_node.journal.pods["default/ready"]))
    own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/unready", consecutive=3)
    # "ready" may have started later than "unready", so its liveness probe may not have run yet.
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
        # By then the readiness probes have also run again several times.
        own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/ready", consecutive=count + 4)
    counts = failures(own_node, "ready")
    assert counts == list(range(1, len(counts) + 1)), "none lost, none twice"
    assert len(own_node.journal.events(prober.ResultChanged)) == seen
    assert (ready_changes(own_node, "ready"), ready_changes(own_node, "unready")) == ([False, True], [False])
    startup = own_node.journal.events(prober.ProbeCounted, pod="default/ready", probe="Startup")
    assert len(startup) == 1
    assert len(own_node.journal.events(pod.ContainerStarted)) == 2


def commands(node: Node, name: str) -> set[int]:
    """Return the pids of the probe's commands (`sleep 1000`) in the pod's container."""
    main = node.running(name)["app"]["State"]["Pid"]
    here = Path(f"/proc/{main}/ns/pid").readlink()
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "ns/pid").readlink() == here and b"1000" in (process / "cmdline").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found


def test_no_probe_command_outlives_its_agent(own_node: Node) -> None:
    """On SIGTERM the agent ends its commands first; after a kill the next agent ends those that are left."""
    own_node.start()
    hangs = {"exec": {"command": ["sleep", "1000"]}, "timeoutSeconds": 500}
    own_node.write("p.yaml", probed_pod("hangs", 300, readinessProbe=hangs, livenessProbe=cat("/etc/passwd")))
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/hangs")
    wait_until(lambda: len(commands(own_node, "hangs")) == 1, "the command")
    left = commands(own_node, "hangs")
    own_node.kill9()
    assert commands(own_node, "hangs") == left, "it ended without an agent"
    own_node.start()
    wait_until(lambda: len(commands(own_node, "hangs") - left) == 1, "a command of the next agent")
    assert not commands(own_node, "hangs") & left
    own_node.wait_for_log("killing a probe command left behind by another process")
    assert own_node.stop() == 0
    assert not commands(own_node, "hangs")
    assert "left behind" not in own_node.log.rpartition("stopping")[2]
    assert own_node.restarts("hangs") == [0]


class ProbedByTwo:
    """A pod whose liveness probe fails, and the processes that run the probe."""

    THRESHOLD = 20

    def __init__(self, node: Node, failing: FailingServer) -> None:
        self.node = node
        self.failing = failing
        node.write("p.yaml", probed_pod("moved", 250, livenessProbe=failing.probe(self.THRESHOLD)))
        self.first = node.journal.wait_for_event(pod.ContainerStarted, pod="default/moved").id

    def counts(self) -> list[int]:
        return failures(self.node, "moved", id=self.first)

    def fail(self, pid: int, more: int) -> None:
        """Let this process's next `more` probes fail, and wait until they are recorded."""
        before = len(self.counts())
        self.failing.fail(pid, more)
        self.node.journal.wait_for(f"{more} more failures", lambda: len(self.counts()) >= before + more)

    def lines(self, kind: type[Any]) -> Sequence[Line]:
        return [line for line in self.node.journal.lines if isinstance(line.event, kind)]

    def wait_for_takeover(self, since: float) -> int:
        """Wait until each of the four shards has been taken over since `since` (seconds since the epoch); return `n` of
        the last takeover's position.
        """
        self.node.journal.wait_for("the takeover of all shards", lambda: len(self._taken(since)) == 4)
        return max(line.entry.position.n for line in self.takeovers(since))

    def _taken(self, since: float) -> set[str]:
        return {line.entry.actor.partition("#")[0] for line in self.takeovers(since)}

    def takeovers(self, since: float) -> Sequence[Line]:
        found = self.lines(kernel.ShardTakenOver)
        return [line for line in found if line.entry.position.milliseconds >= since * 1000]


PODS_ONLY = ("--actors", "manifests,pod,pleg,keeper", "--admission")


def test_another_process_takes_over_the_probes(own_node: Node, failing: FailingServer) -> None:
    """Two processes can host probers. One hangs in the middle of a probe, and the other continues the streak; when the
    first one resumes, the result of its probe is ignored. Then the other one is killed, and the first one takes over
    again.

    A process that must not take over is paused: on a busy machine the owner may lose its lease at any time.
    """
    own_node.start(0, *PODS_ONLY, "devices")
    probed = ProbedByTwo(own_node, failing)
    own_node.journal.wait_for_event(pod.ProbingSkipped, pod="default/moved")
    own_node.kill9()
    own_node.start(0, *PODS_ONLY, "prober")
    # The request is repeated although nothing has happened to the pod.
    own_node.journal.wait_for_event(pod.ProbingRequested, pod="default/moved")
    one = own_node.start_other("one", "prober")
    probed.fail(one.pid, 1)
    two = own_node.start_other("two", "prober")
    own_node.put_on_standby("two")
    wait_until(lambda: own_node.stands_by("two", "one"), "the second process on standby")

    with stopped([two.pid]):
        probed.fail(one.pid, 1)
        wait_until(lambda: failing.holds_probe_of(one.pid), "a probe that waits for its answer")
        paused, logged = time.time(), len(own_node.log_of_other("one"))
        one.send_signal(signal.SIGSTOP)
    before = failing.failed[one.pid]
    failing.fail(one.pid)
    wait_until(lambda: failing.failed[one.pid] > before, "an answer while it is paused")
    taken = probed.wait_for_takeover(paused)
    probed.fail(two.pid, 1)
    own_node.put_on_standby("one", instead_of="two")
    one.send_signal(signal.SIGCONT)
    wait_until(
        lambda: "another owner" in (new_lines := own_node.log_of_other("one")[logged:]) or "taken over" in new_lines,
        "its report of the takeover",
    )
    one.send_signal(signal.SIGSTOP)
    probed.fail(two.pid, 2)

    killed = time.time()
    two.kill()
    two.wait()
    one.send_signal(signal.SIGCONT)
    probed.wait_for_takeover(killed)
    failing.fail(one.pid, ProbedByTwo.THRESHOLD - len(probed.counts()))
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/moved", attempt=1)

    assert probed.counts() == list(range(1, ProbedByTwo.THRESHOLD + 1)), "none lost, none twice"
    entries = [line.entry for line in probed.lines(prober.ProbeFailed)][: ProbedByTwo.THRESHOLD]
    actors = [actor for actor, _ in groupby(entry.actor for entry in entries)]
    # A stall may have caused one more takeover; no former owner writes under its old epoch.
    assert len(actors) == len(set(actors)) >= 3, actors
    assert all(entry.actor != actors[0] for entry in entries if entry.position.n > taken)
    stops = own_node.journal.events(pod.ContainerStopRequested, pod="default/moved", id=probed.first)
    assert [stop.reason for stop in stops] == ["LivenessFailed"]
    starts = own_node.journal.events(pod.ContainerStarted, pod="default/moved")
    assert [start.attempt for start in starts] == [0, 1], "a restart was repeated"
    assert one.poll() is None
