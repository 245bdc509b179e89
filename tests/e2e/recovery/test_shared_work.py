"""Three processes share all shards of a node on real Docker while processes join and leave."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
from collections import Counter
from typing import Any

import pytest

from chronolet.kernel.storage.redis.replies import text
from chronolet.node.composition.kinds import SHARDS
from chronolet_schemas import kernel, pod, prober
from chronolet_schemas.keys import Keys, shards_of
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.probed_pods import NEVER, with_period
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import PATIENCE, wait_until

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
PERIOD = 1000
PODS = ("a", "b", "c")
LONGEST_TAKEOVER_MS = round(3000 * PATIENCE)
"""The length of a lease, multiplied by `PATIENCE` as all time limits of the tests are on a busy machine."""
ALL = [shard for kind, count in SHARDS.items() for shard in shards_of(kind, count)]


class SharedNode:
    """A node with named processes. The liveness probes of its pods always fail, so that the log records each one."""

    def __init__(self, node: Node, server: PrivateRedis) -> None:
        self.node = node
        self.keys = Keys(node.name)
        self.client = server.client()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        probe = {"exec": {"command": ["cat", "/none"]}, "failureThreshold": NEVER, "timeoutSeconds": 60}
        ready = {"exec": {"command": ["cat", "/etc/passwd"]}, "timeoutSeconds": 60}
        for name in PODS:
            manifest = a_pod(name, shell("app", STAYS, livenessProbe=probe, readinessProbe=ready))
            node.write(f"{name}.yaml", with_period(PERIOD, manifest))

    def start(self, name: str) -> None:
        self.processes[name] = self.node.start_named(name)

    def owners(self) -> Counter[str]:
        """Return how many shards each process owns; shards without an owner are counted under the empty name."""
        tokens = [self.client.hget(self.keys.shard(shard), "token") for shard in ALL]
        return Counter(text(token or b"").partition(":")[2] for token in tokens)

    def wait_until_even(self, *names: str) -> None:
        """Wait until these processes own all shards, and the numbers that they own differ by at most one."""

        def is_even() -> bool:
            found = self.owners()
            return found.keys() == set(names) and max(found.values()) - min(found.values()) <= 1

        wait_until(is_even, f"an even share of {names}; logs: {[self.node.log_of_other(one)[-600:] for one in names]}")

    def wait_for_probes(self, more: int = 2) -> None:
        """Wait for `more` further failures of each pod. Each is recorded once, in order, whichever process probes."""
        self.node.journal.read()
        before = {name: len(self.failures(name)) for name in PODS}
        what = f"{more} more failures of each pod"
        self.node.journal.wait_for(what, lambda: all(len(self.failures(n)) >= before[n] + more for n in PODS))
        for name in PODS:
            counts = self.failures(name)
            assert counts == list(range(1, len(counts) + 1)), f"{name}: a failure was lost or doubled"

    def failures(self, name: str) -> list[int]:
        return [one.consecutive for one in self.node.journal.events(prober.ProbeFailed, pod=f"default/{name}")]

    def results(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the raw results so far of each probe, oldest first."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        entries: Any = self.client.xrange(self.keys.probe_results)
        for _, fields in entries:
            one = {text(name): text(value) for name, value in fields.items()}
            found.setdefault((one["pod"], one["probe"]), []).append(one)
        return found

    def moves(self) -> int:
        return sum(int(self.client.hget(self.keys.shard(shard), "moves") or 0) for shard in ALL)

    def check_times(self, *, lost_ms: int = 0) -> int:
        """Check that no scheduled probe was made twice, and that none was skipped except after a late or slow one.
        `lost_ms`: how many more milliseconds without probes a kill may cause. Returns the number of probe results.
        """
        total = 0
        for who, found in self.results().items():
            results = sorted(found, key=_due)
            total += len(results)
            for one, after in itertools.pairwise(results):
                periods = (_due(after) - _due(one)) / PERIOD
                # Even without moves, a probe that is late or slow by some periods skips that many scheduled times.
                most = 1 + (float(one["late_milliseconds"]) + int(one["milliseconds"]) + lost_ms + 200) // PERIOD
                assert 0.5 < periods < most + 0.5, f"{who}: {periods} periods between {one} and {after}"
        return total

    def check_pods(self) -> None:
        """Check that no container was restarted, that nothing was done by two owners and that the log has no gap."""
        journal = self.node.journal
        journal.read()
        assert [self.node.restarts(name) for name in PODS] == [[0]] * len(PODS)
        assert len(journal.events(pod.ContainerStarted)) == len(PODS)
        assert not journal.events(kernel.MessageDeadLettered)
        failing = [one for one in journal.events(kernel.EffectsFailing) if "in use" in one.error]
        assert not failing, "a socket was held by two owners"
        numbers = [line.entry.position.n for line in journal.lines]
        assert numbers == list(range(1, len(numbers) + 1)), "the log has a gap"


def _due(result: dict[str, Any]) -> float:
    return int(result["at"]) - float(result["late_milliseconds"])


@pytest.fixture
def shared(own_node: Node, redis_server: PrivateRedis) -> SharedNode:
    """A node whose first process, `one`, has started all pods and probes them."""
    made = SharedNode(own_node, redis_server)
    made.start("one")
    own_node.wait_until_running(*PODS)
    made.wait_for_probes(1)
    return made


def test_three_processes_share_a_node_and_no_probe_is_missed_or_doubled(shared: SharedNode) -> None:
    """Processes join, drain, undrain and end by SIGTERM. Nothing is restarted, and each probe keeps its schedule."""
    node = shared.node
    for name in ("two", "three"):
        shared.start(name)
        shared.wait_until_even("one", *("two", "three")[: 1 + (name == "three")])
    shared.wait_for_probes()

    drained = node.chronolet("drain", "one")
    assert drained.status == 0, drained.err
    assert "process one is drained" in drained.out
    shared.wait_until_even("two", "three")
    shared.wait_for_probes()
    assert node.chronolet("undrain", "one").status == 0
    shared.wait_until_even("one", "two", "three")

    shared.processes["two"].send_signal(signal.SIGTERM)
    assert shared.processes["two"].wait(60) == 0
    shared.wait_until_even("one", "three")
    assert "without a clean shutdown" not in node.log_of_other("two")
    shared.wait_for_probes()
    shared.start("two")  # at once, with the same name
    shared.wait_until_even("one", "two", "three")
    shared.wait_for_probes()

    assert shared.check_times() >= 6 * len(PODS)
    shared.check_pods()
    assert not node.journal.events(kernel.ShardTakenOver), "every move was a handover"
    assert shared.moves() >= 2 * len(ALL) // 3
    actors = node.chronolet("get", "actors").out
    assert all(f" {name} " in actors for name in ("one", "two", "three"))


def test_a_killed_process_is_taken_over_from_and_takes_its_share_again(shared: SharedNode) -> None:
    """After kill -9, the probes of the other processes go on; those of the killed one pause for at most the length of a
    lease. A second process with the name of a running one is refused.
    """
    for name in ("two", "three"):
        shared.start(name)
    shared.wait_until_even("one", "two", "three")
    for name in ("one", "three"):
        shared.processes[name].kill()
        shared.processes[name].wait()
        shared.wait_until_even(*({"one", "two", "three"} - {name}))
        shared.wait_for_probes()
        shared.start(name)
        shared.wait_until_even("one", "two", "three")
    refused = shared.node.start_named("two")
    assert refused.wait(60) == 1
    assert "process name 'two' is taken" in shared.node.log_of_other("two")
    assert shared.processes["two"].poll() is None
    shared.wait_for_probes()
    shared.check_times(lost_ms=LONGEST_TAKEOVER_MS)
    shared.check_pods()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_hundreds_of_joins_leaves_and_deaths(shared: SharedNode) -> None:
    """Processes are drained, stopped, killed and restarted at random for hundreds of moves."""
    names, choose = ("one", "two", "three"), random.Random(37)
    for name in names[1:]:
        shared.start(name)
    shared.wait_until_even(*names)
    done: Counter[str] = Counter()
    while done.total() < 120:
        name, what = choose.choice(names), choose.choice(("drain", "stop", "kill"))
        done[what] += 1
        if what == "drain":
            assert shared.node.chronolet("drain", name).status == 0
            shared.wait_until_even(*(other for other in names if other != name))
            assert shared.node.chronolet("undrain", name).status == 0
        else:
            shared.processes[name].send_signal(signal.SIGTERM if what == "stop" else signal.SIGKILL)
            shared.processes[name].wait(60)
            shared.start(name)
        shared.wait_until_even(*names)
        shared.wait_for_probes(1)
        if done.total() % 10 == 0:  # the stream keeps 80 results of each probe
            shared.check_times(lost_ms=LONGEST_TAKEOVER_MS)
    shared.check_pods()
    assert shared.moves() >= 300, done
