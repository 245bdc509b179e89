"""Nothing that probes found out is forgotten: the agent is killed in the middle of it, and others stand in for it."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from chronolet.pod.status import pod_status
from chronolet_schemas import pod, prober
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.redis import PrivateRedis
from tests.support.scratch import wait_until

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
FAILURES = 4
LEASE_MS = 3_000
STARTING_MS = 4_000
"""What a process may take until the first probe of what it took over, on a loaded machine."""


def a_probed(name: str, milliseconds: int, **probes: Any) -> dict[str, Any]:
    """A pod with these probes, so often."""
    one = a_pod(name, shell("app", STAYS, **probes))
    one["metadata"]["annotations"] = {"chronolet/period-milliseconds": str(milliseconds)}
    return one


def cat(path: str, **more: Any) -> dict[str, Any]:
    return {"exec": {"command": ["cat", path]}, **more}


def is_ready(node: Node, name: str) -> bool:
    state = node.journal.pods[f"default/{name}"]
    return all(one.ready for one in pod_status(state).container_statuses)


def test_a_failing_streak_goes_on_after_each_kill(own_node: Node) -> None:
    """Killed after each recorded result: the restart comes at the same count as without."""
    own_node.start()
    own_node.write("p.yaml", a_probed("streak", 1_000, livenessProbe=cat("/none", failureThreshold=FAILURES)))
    for count in range(1, FAILURES + 1):
        own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/streak", consecutive=count)
        own_node.kill9()
        own_node.start()
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/streak", attempt=1)
    failures = own_node.journal.events(prober.ProbeFailed, pod="default/streak")
    of_first = [one for one in failures if one.id == failures[0].id]
    assert [one.consecutive for one in of_first] == [1, 2, 3, 4], "none forgotten, none twice"
    stops = own_node.journal.events(pod.ContainerStopRequested, pod="default/streak", attempt=0)
    assert [one.reason for one in stops] == ["LivenessFailed"]
    starts = own_node.journal.events(pod.ContainerStarted, pod="default/streak")
    assert [one.attempt for one in starts] == [0, 1], "no restart is doubled"


def test_ready_and_started_outlive_the_agent_and_redis(own_node: Node, redis_server: PrivateRedis) -> None:
    """After a restart no container turns Ready or NotReady by itself, and no startup probe is run again."""
    own_node.start()
    probes: dict[str, Any] = {"startupProbe": cat("/etc/passwd"), "readinessProbe": cat("/etc/passwd")}
    liveness = cat("/none", failureThreshold=1_000)  # something that can be seen to go on
    own_node.write("p.yaml", a_probed("ready", 200, livenessProbe=liveness, **probes))
    own_node.write("q.yaml", a_probed("unready", 200, readinessProbe=cat("/none")))
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/ready")
    own_node.journal.wait_for("it to be ready", lambda: is_ready(own_node, "ready"))
    own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/unready", consecutive=3)
    seen = len(own_node.journal.events(prober.ResultChanged))
    for killed in ("agent", "Redis", "both"):
        if killed != "Redis":
            own_node.kill9()
        if killed != "agent":
            redis_server.kill9()
            redis_server.restart()
        count = own_node.journal.events(prober.ProbeFailed, pod="default/ready")[-1].consecutive
        if killed != "Redis":
            own_node.start()
        own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/ready", consecutive=count + 5)
    counts = [one.consecutive for one in own_node.journal.events(prober.ProbeFailed, pod="default/ready")]
    assert counts == list(range(1, len(counts) + 1)), "none forgotten, none twice"
    assert len(own_node.journal.events(prober.ResultChanged)) == seen
    assert is_ready(own_node, "ready")
    assert not is_ready(own_node, "unready")
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
    own_node.wait_for_log("a probe's command was left behind by another process; it is killed")
    assert own_node.stop() == 0
    assert not commands(own_node, "hangs")
    assert "left behind" not in own_node.log.rpartition("stopping")[2]
    assert own_node.restarts("hangs") == [0]


def test_another_process_takes_over(own_node: Node) -> None:
    """Two processes can host probers: one dies in the middle of a streak, the other goes on with it after the lease."""
    own_node.start(0, "--actors", "manifests,pod,pleg,keeper", "--admission", "prober")
    first = own_node.beside("one", "prober")
    own_node.write("p.yaml", a_probed("moved", 1_000, livenessProbe=cat("/none", failureThreshold=6)))
    own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/moved", consecutive=1)
    second = own_node.beside("two", "prober")
    early = own_node.journal.wait_for_event(prober.ProbeFailed, pod="default/moved", consecutive=2)
    first.kill()
    first.wait()
    own_node.journal.wait_for_event(pod.ContainerStarted, pod="default/moved", attempt=1)
    failures = own_node.journal.events(prober.ProbeFailed, pod="default/moved", id=early.id)
    assert [one.consecutive for one in failures] == [1, 2, 3, 4, 5, 6], "none forgotten, none twice"
    gaps = [after.at - before.at for before, after in pairwise(failures)]
    assert max(gaps) < LEASE_MS + 1_000 + STARTING_MS, gaps
    stops = own_node.journal.events(pod.ContainerStopRequested, pod="default/moved", id=early.id)
    assert [one.reason for one in stops] == ["LivenessFailed"]
    epochs = {line.entry.actor for line in own_node.journal.lines if line.event in failures}
    assert len(epochs) == 2, epochs
    assert second.poll() is None
