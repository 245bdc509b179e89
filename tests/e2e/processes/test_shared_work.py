"""Three processes share all shards of a node on real Docker while processes join and leave."""

from __future__ import annotations

import random
import signal
from collections import Counter

import pytest

from chronolet_schemas import kernel
from tests.e2e.node import Node
from tests.e2e.processes.shared_node import ALL, LONGEST_TAKEOVER_MS, PODS, SharedNode
from tests.support.redis.server import PrivateRedis


@pytest.fixture
def shared(own_node: Node, redis_server: PrivateRedis) -> SharedNode:
    """A node whose first process, `one`, has started all pods and probes them."""
    made = SharedNode(own_node, redis_server.client)
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
