"""`chronolet drain` and `undrain`. The test itself acts as the processes of the node."""

import threading

import pytest

from chronolet.kernel.storage.members import Member
from chronolet_schemas.keys import Shard
from tests.cli.support.written_node import WrittenNode
from tests.support import scratch

PODS = [Shard("pod", index) for index in range(4)]


def join(node: WrittenNode, name: str, *kinds: str, leaving: bool = False) -> None:
    node.store.renew(name, "", 3_600_000)
    node.store.publish(name, Member(instance=name, kinds=kinds, leaving=leaving))


@pytest.fixture
def two(node: WrittenNode) -> WrittenNode:
    """A node with two processes: `one` owns all shards of `pod`, `two` owns none but can host them."""
    join(node, "one", "pod", "pleg")
    join(node, "two", "pod", "prober")
    for shard in PODS:
        node.store.acquire(shard, "", "one", 1)
    return node


def carry_out(node: WrittenNode) -> None:
    """Move each shard from `one` to `two` once the drain is requested, as the processes would."""
    scratch.wait_until(lambda: "one" in node.store.survey(()).drained, "the request")
    for shard in PODS:
        token = node.store.heads([shard])[shard].token
        assert node.store.release(shard, token, b"")
        node.store.acquire(shard, "", "two", 1)


def test_drain_prints_each_move_and_ends_when_all_shards_have_moved(two: WrittenNode) -> None:
    processes = threading.Thread(target=carry_out, args=(two,))
    processes.start()
    result = two.run("drain", "one")
    processes.join()
    lines = result.output.splitlines()
    assert sorted(line.partition(",")[0] for line in lines[:4]) == [f"pod/{index} moved to two" for index in range(4)]
    assert [line.partition(", ")[2] for line in lines[:4]] == ["3 left", "2 left", "1 left", "0 left"]
    assert lines[4:] == ["process one is drained; `chronolet undrain one` lets it take shards again"]
    assert result.status == 0


def test_drain_refuses_by_name_what_no_other_process_can_host(two: WrittenNode) -> None:
    two.store.acquire(Shard("pleg"), "", "one", 1)
    result = two.run("drain", "one")
    assert result.status == 1
    assert result.errors.startswith(
        "error: process 'one': cannot be drained, because no other process can host pleg; start one that does"
    )
    assert two.store.survey(()).drained == frozenset()


@pytest.mark.parametrize("state", ["drained", "leaving", "dead"])
def test_a_process_that_drains_leaves_or_is_dead_hosts_nothing(two: WrittenNode, state: str) -> None:
    if state == "drained":
        two.store.drain("two", drains=True)
    elif state == "leaving":
        join(two, "two", "pod", leaving=True)
    else:
        two.store.retire("two", ())
    assert "no other process can host pod" in two.run("drain", "one").errors
    assert "one" not in two.store.survey(()).drained


def test_drain_says_what_was_not_handed_over_in_time(two: WrittenNode) -> None:
    result = two.run("drain", "one", "--timeout", "1ms")
    left = "pod/0, pod/1, pod/2, pod/3"
    assert result.errors == (
        f"error: process 'one': {left} not handed over in time; the request to drain stays in force\n"
    )
    assert two.store.survey(()).drained == {"one"}
    assert two.run("undrain", "one").output == "process one takes its share again\n"
    assert two.store.survey(()).drained == frozenset()
    assert two.run("undrain", "one").output == "process one was not drained\n"


@pytest.mark.parametrize("command", ["drain", "undrain"])
def test_an_unknown_process_is_refused_with_the_names_that_there_are(two: WrittenNode, command: str) -> None:
    result = two.run(command, "three")
    assert result.status == 1
    assert result.errors == "error: process 'three' does not run; found one, two, expected one of these\n"


def test_a_process_of_an_older_release_is_refused(two: WrittenNode) -> None:
    two.store.renew("old", "", 3_600_000)
    assert "'old': it runs a release that cannot be drained" in two.run("drain", "old").errors


def test_a_process_that_ends_meanwhile_is_reported(two: WrittenNode) -> None:
    def end() -> None:
        scratch.wait_until(lambda: "one" in two.store.survey(()).drained, "the request")
        two.store.retire("one", ())

    ending = threading.Thread(target=end)
    ending.start()
    result = two.run("drain", "one")
    ending.join()
    assert result.errors == "error: process 'one' has ended; other processes take over what it owned\n"
