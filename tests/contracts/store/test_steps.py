"""The contract of the store: steps."""

import threading

import pytest

from chronolet.kernel.storage.store import (
    DEAD_LETTERS,
    Committed,
    Conflict,
    DeadLetter,
    Fenced,
    Snapshot,
    Store,
    StoreBroken,
)
from chronolet_schemas.envelope import START, Position, Record
from chronolet_schemas.keys import Shard
from tests.contracts.store.support import (
    SHARD,
    STARTED,
    Another,
    commit,
    record,
    step,
    take,
)


def test_a_step_appends_events_moves_cursors_and_increments_the_version(begun: Store) -> None:
    token = take(begun)
    first = begun.last()
    done = commit(begun, token, 3, new_log_cursor=first, step_id="one")
    assert (done.version, done.at.n) == (1, 4)
    head = begun.heads([SHARD])[SHARD]
    assert (head.version, head.step_id, head.at, head.log_cursor) == (1, "one", done.at, first)
    entries = begun.read_log(first, 10)
    assert [entry.position.n for entry in entries] == [2, 3, 4]
    assert [tuple(entry[1:]) for entry in entries] == [tuple(record(number)) for number in range(3)]
    assert entries[-1].position == done.at == begun.last()


def test_a_step_without_events_increments_the_version(begun: Store) -> None:
    token = take(begun)
    done = commit(begun, token, 2, step_id="a")
    empty = commit(begun, token, 0, new_log_cursor=done.at, step_id="b")
    assert empty == Committed(version=2, at=done.at)
    assert begun.heads([SHARD])[SHARD].log_cursor == done.at


def test_a_repeated_step_is_committed_once(begun: Store) -> None:
    token = take(begun)
    one = step(begun, token, records=(record(1), record(2)), step_id="one")
    first = begun.step(one)
    assert isinstance(first, Committed)
    assert begun.step(one) == first
    assert len(begun.read_log(START, 10)) == 3


def test_a_conflict_returns_the_current_head(begun: Store) -> None:
    token = take(begun)
    late = step(begun, token, records=(record(1),), step_id="late")
    done = commit(begun, token, step_id="first")
    assert begun.step(late) == Conflict(1, START, START, "first", done.at)
    assert len(begun.read_log(START, 10)) == 2


@pytest.mark.parametrize("cursor", ["log_cursor", "mail_cursor"])
def test_a_stale_cursor_conflicts(begun: Store, cursor: str) -> None:
    token = take(begun)
    somewhere = Position(5, 5)
    answer = begun.step(step(begun, token, records=(record(1),), **{cursor: somewhere, f"new_{cursor}": somewhere}))
    assert isinstance(answer, Conflict)
    assert len(begun.read_log(START, 10)) == 1


@pytest.mark.parametrize("token", ["", "1:q", "1:p ", "01:p", "2:p"])
def test_a_stale_token_is_fenced(begun: Store, token: str) -> None:
    held = take(begun)
    assert begun.step(step(begun, token, records=(record(1),))) == Fenced(held)
    assert begun.count_attempts(SHARD, token, {"m": 1}) == Fenced(held)
    assert not begun.snapshot(SHARD, token, Snapshot(begun.last(), 1, b""))
    assert begun.read_snapshots([SHARD]).get(SHARD) is None
    assert not begun.heads([SHARD])[SHARD].attempts
    assert len(begun.read_log(START, 10)) == 1


def test_a_new_shard_has_no_owner(begun: Store) -> None:
    assert begun.step(step(begun, "", records=(record(1),))) == Fenced("")


@pytest.mark.parametrize("cursor", ["log_cursor", "mail_cursor"])
def test_a_cursor_that_moves_back_is_refused(begun: Store, cursor: str) -> None:
    token = take(begun)
    begun.send(SHARD, "t@1", "e", "r", b"")
    mail = begun.wait(begun.last(), {SHARD: START}, 1, 0).mail[SHARD][0]
    there = begun.last() if cursor == "log_cursor" else mail.id
    commit(begun, token, 0, **{f"new_{cursor}": there})
    with pytest.raises(StoreBroken):
        begun.step(step(begun, token, step_id="t", **{f"new_{cursor}": START}))
    assert begun.heads([SHARD])[SHARD].version == 1


def test_concurrent_owners_leave_no_gap(another: Another) -> None:
    """Four threads write to four shards concurrently: each event is appended once, and the numbers n have no gap."""
    stores = [another() for _ in range(4)]
    stores[0].begin("run-1", {"pod": 4}, STARTED)

    def work(store: Store, shard: Shard) -> None:
        token = take(store, shard, f"p{shard.index}")
        for turn in range(20):
            records = tuple(Record("t@1", str(shard), "", "", f"{turn}.{i}", b"") for i in range(3))
            assert isinstance(
                store.step(step(store, token, shard=shard, step_id=f"{turn}", records=records)), Committed
            )

    threads = [threading.Thread(target=work, args=(s, Shard("pod", i))) for i, s in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = list(stores[0].scan(START))
    assert [entry.position.n for entry in entries] == list(range(1, 4 * 60 + 2))
    for index in range(4):
        mine = [entry.cause for entry in entries if entry.entity == f"pod/{index}"]
        assert mine == [f"{turn}.{i}" for turn in range(20) for i in range(3)]


def test_attempts_are_counted_and_forgotten(begun: Store) -> None:
    token = take(begun)
    assert begun.count_attempts(SHARD, token, {"log:5-5": 1}) is None
    assert begun.count_attempts(SHARD, token, {"log:5-5": 2}) is None
    assert begun.count_attempts(SHARD, token, {"log:5-5": 2, "log:6-6": 1}) is None
    assert begun.heads([SHARD])[SHARD].attempts == {"log:5-5": 2, "log:6-6": 1}
    commit(begun, token, forget_attempts=("log:5-5", "never counted"))
    assert begun.heads([SHARD])[SHARD].attempts == {"log:6-6": 1}


@pytest.mark.parametrize("cursor", ["log_cursor", "mail_cursor"])
def test_a_step_can_consume_only_present_entries(begun: Store, cursor: str) -> None:
    """If the server has lost the tail of its log, the tail must not be recorded as consumed."""
    token = take(begun)
    last = begun.last()
    lost = Position(last.milliseconds + 1, last.n + 1)
    assert begun.step(step(begun, token, records=(record(1),), **{f"new_{cursor}": lost})) == Conflict(
        0, START, START, "", START
    )
    assert begun.last() == last


def test_dead_letters_are_stored_by_the_step(begun: Store) -> None:
    token = take(begun)
    letter = DeadLetter("mailbox", "5-5", "pod.Do@1", "pod/default/web", b"\x80", "it failed thrice")
    commit(begun, token, 1, dead=(letter, letter))
    assert begun.sizes()["dead"] == 2


def test_the_number_of_dead_letters_is_limited(begun: Store) -> None:
    token = take(begun)
    letter = DeadLetter("mailbox", "5-5", "pod.Do@1", "pod/default/web", b"\x80", "it failed thrice")
    for turn in range(11):
        commit(begun, token, step_id=str(turn), dead=(letter,) * 1000)
    assert DEAD_LETTERS <= begun.sizes()["dead"] < DEAD_LETTERS + 500
