"""The contract of the store: reading the log, and waiting for entries."""

import threading

import pytest

from chronolet.kernel.storage.store import (
    Store,
)
from chronolet_schemas.envelope import START
from tests.contracts.store.support import (
    OTHER,
    SHARD,
    SHARDS,
    STARTED,
    Another,
    commit,
    take,
)
from tests.support.scratch import HANG_SECONDS, wait_until


def test_reading_and_scanning_agree(begun: Store) -> None:
    token = take(begun)
    for turn in range(11):
        commit(begun, token, 100, step_id=str(turn))
    everything = list(begun.scan(START))
    assert [entry.position.n for entry in everything] == list(range(1, 1102))
    assert begun.read_log(START, 2000) == everything
    assert begun.read_log(everything[4].position, 3) == everything[5:8]
    upto = everything[700].position
    assert list(begun.scan(everything[99].position, upto)) == everything[100:701]
    assert begun.read_log(everything[698].position, 100, upto) == everything[699:701]
    assert list(begun.scan(begun.last())) == []
    assert begun.read_log(begun.last(), 5) == []
    assert begun.read_log(upto, 5, everything[3].position) == []


def test_a_scan_may_be_closed_early(begun: Store) -> None:
    token = take(begun)
    for turn in range(12):
        commit(begun, token, 100, step_id=str(turn))
    scan = begun.scan(START)
    assert next(scan).position.n == 1
    scan.close()  # type: ignore[attr-defined]
    assert begun.last().n == 1201


def test_waiting_returns_present_entries(begun: Store) -> None:
    token = take(begun)
    before = begun.last()
    commit(begun, token, 3)
    begun.send(SHARD, "pod.Do@1", "pod/default/web", "r1", b"\x80")
    inputs = begun.wait(before, {SHARD: START, OTHER: START}, 2, 1000)
    assert [entry.position.n for entry in inputs.log] == [2, 3]
    assert list(inputs.mail) == [SHARD]
    mail = inputs.mail[SHARD][0]
    assert (mail.type, mail.entity, mail.request, mail.data) == ("pod.Do@1", "pod/default/web", "r1", b"\x80")


@pytest.mark.parametrize("block", [0, 5])
def test_waiting_ends_after_its_time(begun: Store, block: int) -> None:
    inputs = begun.wait(begun.last(), {SHARD: START}, 10, block)
    assert (list(inputs.log), dict(inputs.mail)) == ([], {})


def test_waiting_ends_with_the_first_entry(another: Another) -> None:
    reader, writer = another(), another()
    writer.begin("run-1", SHARDS, STARTED)
    token = take(writer)
    after = writer.last()
    found = []
    thread = threading.Thread(target=lambda: found.append(reader.wait(after, {SHARD: START}, 10, 3_600_000)))
    thread.start()
    commit(writer, token)
    thread.join(timeout=HANG_SECONDS)
    assert [entry.position.n for entry in found[0].log] == [2]


def test_waking_ends_a_wait(begun: Store) -> None:
    for _ in range(20):
        done: list[object] = []
        thread = threading.Thread(target=lambda done=done: done.append(begun.wait(begun.last(), {}, 10, 3_600_000)))
        thread.start()
        wait_until(lambda begun=begun, done=done: begun.wake() or bool(done), "the end of the wait")  # type: ignore[misc]
        thread.join(timeout=HANG_SECONDS)


def test_a_wake_just_before_a_wait_ends_it(begun: Store) -> None:
    """The caller checks its own work before it waits; a wake-up after that check must not be missed."""
    token = take(begun)
    before = begun.last()
    begun.wake()
    # If the wake-up were missed, this test would time out.
    assert not begun.wait(before, {}, 10, 3_600_000).log
    commit(begun, token)
    assert len(begun.wait(before, {}, 10, 1000).log) == 1
