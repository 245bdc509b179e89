"""`chronolet shards` shows shard counts and requests changes; it refuses counts that no log may have."""

import threading

import pytest

from chronolet.kernel.storage.layout import Layout
from chronolet_schemas import kernel
from tests.cli.support.written_node import WrittenNode
from tests.support import scratch


@pytest.fixture
def written(node: WrittenNode) -> WrittenNode:
    """A node whose log has the kinds pod and prober, and a live process that hosts both."""
    for kind in ("pod", "prober"):
        node.store.add_kind(kind, 4, node.record("node/node-1", kernel.KindAdded(kind=kind, shards=4)))
    node.store.renew("p1", "pod,prober 127.0.0.1:10255", 3_600_000)
    return node


def test_without_arguments_the_counts_are_shown(written: WrittenNode) -> None:
    written.store.request_shards("prober", 9)
    written.store.refuse_shards("prober", 9, "too busy")
    written.store.request_shards("pod", 8)
    rows = [line.split() for line in written.run("shards").output.splitlines()]
    assert rows == [
        ["KIND", "SHARDS", "REQUESTED", "LAST", "REFUSAL"],
        ["pod", "4", "8", "<none>"],
        ["prober", "4", "<none>", "too", "busy"],
    ]


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ("pod=0", "shards: pod: found '0', expected a number of shards from 1 to 64"),
        ("pod=65", "expected a number of shards from 1 to 64"),
        ("pod=-1", "expected a number of shards from 1 to 64"),
        ("pod=", "found ''"),
        ("pod=1e1", "found '1e1'"),
        ("pod=\u0663", "expected a number of shards from 1 to 64"),
        ("pleg=2", "found pleg=2, but pleg always has one shard; expected pod or prober"),
        ("keeper=1", "keeper always has one shard"),
        ("pods=4", "found kind 'pods', expected pod or prober"),
        ("pod", "found 'pod', expected KIND=NUMBER such as pod=8."),
    ],
)
def test_what_no_log_may_have_is_refused(written: WrittenNode, argument: str, error: str) -> None:
    for wanted in ([argument], ["prober=8", argument]):
        result = written.run("shards", *wanted)
        assert error in result.errors
        assert result.status == 2
        assert written.store.layout().requested == {}, "nothing is requested if one part is wrong"


def test_a_kind_that_the_log_lacks_is_refused(node: WrittenNode) -> None:
    result = node.run("shards", "pod=8")
    assert result == ("", "error: the log of node node-1 has no kind pod: nothing to change\n", 1)


def test_the_current_count_needs_no_change(written: WrittenNode) -> None:
    assert written.run("shards", "pod=4").output == "pod: has 4 shards already\n"


def test_a_request_need_not_be_awaited(written: WrittenNode) -> None:
    result = written.run("shards", "pod=8", "--wait=false")
    assert result == ("pod: change from 4 to 8 shards requested\n", "", 0)
    assert written.store.layout().requested == {"pod": 8}


def test_without_a_process_that_hosts_the_kind_the_request_remains(written: WrittenNode) -> None:
    written.store.retire("p1", ())
    written.store.renew("p2", "pleg 127.0.0.1:10255", 3_600_000)
    result = written.run("shards", "pod=8")
    assert result.output == (
        "pod: change from 4 to 8 shards requested; no running process hosts this kind: the next one changes it\n"
    )
    assert written.store.layout().requested == {"pod": 8}


@pytest.mark.parametrize("made", [True, False])
def test_the_command_waits_until_a_process_has_made_or_refused_the_change(written: WrittenNode, made: bool) -> None:
    def process() -> None:
        scratch.wait_until(lambda: written.store.layout().requested == {"pod": 8}, "the request")
        if not made:
            written.store.refuse_shards("pod", 8, "pod/1 is still owned")
            return
        with written.server.changed:
            written.server.counts["pod"] = 8
            written.server.requested.clear()

    thread = threading.Thread(target=process)
    thread.start()
    result = written.run("shards", "pod=8")
    thread.join()
    if made:
        assert result == ("pod: changed from 4 to 8 shards\n", "", 0)
        assert written.store.layout() == Layout("r", {"pod": 8, "prober": 4})
    else:
        assert result == ("", "error: pod: not changed from 4 to 8 shards: pod/1 is still owned\n", 1)
