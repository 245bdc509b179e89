"""The store's contract: what hosts, recovery and keeper rely on, the same for Redis and for the twin in memory."""

import threading
from collections.abc import Callable, Iterator

import pytest

from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import (
    DEAD_LETTERS,
    Acquired,
    Committed,
    Conflict,
    DeadLetter,
    Fenced,
    NotFree,
    Snapshot,
    Step,
    Store,
    StoreBroken,
)
from chronolet_schemas.envelope import START, Position, Record
from chronolet_schemas.keys import Shard
from tests.support.patience import PATIENT
from tests.support.scratch import HANG_SECONDS, wait_until

SHARD = Shard("pod", 0)
OTHER = Shard("pod", 1)
KEEPER = Shard("keeper")
SHARDS = {"pod": 2, "keeper": 1}
TTL = 3_600_000

Another = Callable[[], Store]


def record(number: int) -> Record:
    return Record(
        "pod.Happened@1", "pod/default/web", "", "pod/0#1", f"request-{number}", b"\x81\xa1n" + bytes([number % 128])
    )


STARTED = Record("kernel.LogStarted@1", "node/n", "", "kernel#0", "", b"\x80")


@pytest.fixture(params=["memory", "redis"])
def another(request: pytest.FixtureRequest) -> Iterator[Another]:
    """Makes stores of one and the same node, as each process has its own."""
    made: list[Store] = []
    if request.param == "memory":
        server = MemoryServer()

        def make() -> Store:
            made.append(MemoryStore(server))
            return made[-1]
    else:
        redis = request.getfixturevalue("redis_server")

        def make() -> Store:
            made.append(RedisStore(redis.url, "n", timeouts=PATIENT))
            made[-1].check()
            return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(another: Another) -> Store:
    return another()


@pytest.fixture
def begun(store: Store) -> Store:
    store.begin("run-1", SHARDS, STARTED)
    store.renew("p", "all kinds", TTL)
    return store


def take(store: Store, shard: Shard = SHARD, process: str = "p") -> str:
    token = store.heads([shard])[shard].token
    acquired = store.acquire(shard, token, process, 1, proven_dead=False)
    assert isinstance(acquired, Acquired)
    return acquired.head.token


def step(store: Store, token: str, *, shard: Shard = SHARD, step_id: str = "s", **changes: object) -> Step:
    """The step that fits the shard's hash as it is now."""
    head = store.heads([shard])[shard]
    fields = {
        "version": head.version,
        "log_cursor": head.log_cursor,
        "new_log_cursor": head.log_cursor,
        "mail_cursor": head.mail_cursor,
        "new_mail_cursor": head.mail_cursor,
        "records": (),
    }
    return Step(shard=shard, token=token, step_id=step_id, **{"schema": 1, **fields, **changes})  # type: ignore[arg-type]


def commit(store: Store, token: str, count: int = 1, **changes: object) -> Committed:
    records = tuple(record(number) for number in range(count))
    answer = store.step(step(store, token, records=records, **changes))
    assert isinstance(answer, Committed), answer
    return answer


# -- starting --------------------------------------------------------------------------------------------------------


def test_the_log_begins_once(another: Another) -> None:
    first, second = another(), another()
    assert first.last() == START
    begun = first.begin("run-1", SHARDS, STARTED)
    assert (begun.run, begun.new, begun.shards) == ("run-1", True, SHARDS)
    again = second.begin("run-2", {"pod": 9}, STARTED)
    assert (again.run, again.new, again.shards) == ("run-1", False, SHARDS)
    entries = second.read_log(START, 10)
    assert [entry[1:] for entry in entries] == [tuple(STARTED)]
    assert entries[0].position.n == 1
    assert second.last() == entries[0].position


def test_two_begin_at_once_and_one_wins(another: Another) -> None:
    stores = [another() for _ in range(4)]
    runs = []
    threads = [
        threading.Thread(target=lambda s=s, i=i: runs.append(s.begin(f"run-{i}", SHARDS, STARTED)))
        for i, s in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs) == 4
    assert len({run.run for run in runs}) == 1
    assert sum(run.new for run in runs) == 1
    assert len(stores[0].read_log(START, 10)) == 1


# -- leases and ownership --------------------------------------------------------------------------------------------


def test_a_shard_never_owned(begun: Store) -> None:
    head = begun.heads([SHARD, OTHER])[OTHER]
    assert (head.token, head.version, head.log_cursor, head.at, dict(head.attempts)) == ("", 0, START, START, {})


def test_acquiring_gives_the_next_epoch_and_retiring_frees_at_once(begun: Store) -> None:
    assert take(begun) == "1:p"
    assert take(begun) == "2:p"
    begun.retire("p", [(SHARD, "2:p"), (OTHER, "9:p")])
    head = begun.heads([SHARD])[SHARD]
    assert head.token == ""
    assert head.unowned_since > 0
    assert begun.alive() == {}
    begun.renew("q", "q's kinds", TTL)
    assert take(begun, process="q") == "3:q"
    assert begun.heads([SHARD])[SHARD].unowned_since == 0


def test_a_living_owner_keeps_its_shard(begun: Store) -> None:
    token = take(begun)
    assert begun.alive() == {"p": "all kinds"}
    assert begun.acquire(SHARD, token, "q", 1, proven_dead=False) == NotFree("alive", token)
    assert begun.acquire(SHARD, "0:x", "q", 1, proven_dead=False) == NotFree("changed", token)
    assert begun.heads([SHARD])[SHARD].token == token


def test_an_owner_whose_lease_ran_out_loses_its_shard(begun: Store) -> None:
    begun.renew("short", "", 1)
    token = take(begun, process="short")
    wait_until(lambda: "short" not in begun.alive(), "the end of its lease")
    assert isinstance(begun.acquire(SHARD, token, "p", 1, proven_dead=False), Acquired)


def test_a_server_tells_how_long_it_is_up(begun: Store) -> None:
    before = begun.up_milliseconds()
    assert before >= 0
    wait_until(lambda: begun.up_milliseconds() > before, "a later second")


def test_an_owner_proven_dead_loses_shard_and_lease(begun: Store) -> None:
    token = take(begun)
    acquired = begun.acquire(SHARD, token, "q", 1, proven_dead=True)
    assert isinstance(acquired, Acquired)
    assert acquired.head.token == "2:q"
    assert begun.alive() == {}


def test_the_same_acquisition_again_gets_the_same_answer(begun: Store) -> None:
    first = begun.acquire(SHARD, "", "p", 1, proven_dead=False)
    assert begun.acquire(SHARD, "", "p", 1, proven_dead=False) == first


def test_a_newer_schema_keeps_older_processes_out(begun: Store) -> None:
    token = take(begun)
    commit(begun, token, schema=7)
    commit(begun, token, schema=5, step_id="t")
    assert begun.heads([SHARD])[SHARD].schema == 7
    assert begun.acquire(SHARD, token, "p", 6, proven_dead=False) == NotFree("newer_schema", token)
    assert isinstance(begun.acquire(SHARD, token, "p", 7, proven_dead=False), Acquired)


def test_how_long_a_shard_is_without_owner(begun: Store) -> None:
    token = take(begun)
    assert begun.unowned(SHARD, token) is None
    assert begun.unowned(SHARD, "9:z") is None
    begun.retire("p", [])
    if isinstance(begun, MemoryStore):
        now = begun._server.clock()
        begun._server.clock = lambda: now  # it looks twice, and a millisecond may have passed
    assert begun.unowned(SHARD, token) == 0
    since = begun.heads([SHARD])[SHARD].unowned_since
    assert since > 0
    assert begun.unowned(SHARD, token) is not None
    assert begun.heads([SHARD])[SHARD].unowned_since == since
    begun.renew("p", "", TTL)
    assert begun.unowned(SHARD, token) is None
    assert begun.heads([SHARD])[SHARD].unowned_since == 0


# -- the step --------------------------------------------------------------------------------------------------------


def test_a_step_appends_moves_and_counts(begun: Store) -> None:
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


def test_a_step_without_events_counts_too(begun: Store) -> None:
    token = take(begun)
    done = commit(begun, token, 2, step_id="a")
    empty = commit(begun, token, 0, new_log_cursor=done.at, step_id="b")
    assert empty == Committed(version=2, at=done.at)
    assert begun.heads([SHARD])[SHARD].log_cursor == done.at


def test_the_same_step_again_is_done_once(begun: Store) -> None:
    token = take(begun)
    one = step(begun, token, records=(record(1), record(2)), step_id="one")
    first = begun.step(one)
    assert isinstance(first, Committed)
    assert begun.step(one) == first
    assert len(begun.read_log(START, 10)) == 3


def test_a_stale_version_is_told_what_is_there(begun: Store) -> None:
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


def test_nobody_owns_a_fresh_shard(begun: Store) -> None:
    assert begun.step(step(begun, "", records=(record(1),))) == Fenced("")


@pytest.mark.parametrize("cursor", ["log_cursor", "mail_cursor"])
def test_a_cursor_that_goes_back_is_refused(begun: Store, cursor: str) -> None:
    token = take(begun)
    begun.send(SHARD, "t@1", "e", "r", b"")
    mail = begun.wait(begun.last(), {SHARD: START}, 1, 0).mail[SHARD][0]
    there = begun.last() if cursor == "log_cursor" else mail.id
    commit(begun, token, 0, **{f"new_{cursor}": there})
    with pytest.raises(StoreBroken):
        begun.step(step(begun, token, step_id="t", **{f"new_{cursor}": START}))
    assert begun.heads([SHARD])[SHARD].version == 1


def test_owners_that_compete_leave_no_gap(another: Another) -> None:
    """Four threads with four shards write at once: every event once, n without a gap."""
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


def test_tries_are_counted_and_forgotten(begun: Store) -> None:
    token = take(begun)
    assert begun.count_attempts(SHARD, token, {"log:5-5": 1}) is None
    assert begun.count_attempts(SHARD, token, {"log:5-5": 2}) is None
    assert begun.count_attempts(SHARD, token, {"log:5-5": 2, "log:6-6": 1}) is None
    assert begun.heads([SHARD])[SHARD].attempts == {"log:5-5": 2, "log:6-6": 1}
    commit(begun, token, forget_attempts=("log:5-5", "never counted"))
    assert begun.heads([SHARD])[SHARD].attempts == {"log:6-6": 1}


@pytest.mark.parametrize("cursor", ["log_cursor", "mail_cursor"])
def test_what_a_step_consumes_must_be_there(begun: Store, cursor: str) -> None:
    """A server that lost a tail must not be told that it was consumed."""
    token = take(begun)
    last = begun.last()
    lost = Position(last.milliseconds + 1, last.n + 1)
    assert begun.step(step(begun, token, records=(record(1),), **{f"new_{cursor}": lost})) == Conflict(
        0, START, START, "", START
    )
    assert begun.last() == last


def test_dead_letters_go_with_the_step(begun: Store) -> None:
    token = take(begun)
    letter = DeadLetter("mailbox", "5-5", "pod.Do@1", "pod/default/web", b"\x80", "it failed thrice")
    commit(begun, token, 1, dead=(letter, letter))
    assert begun.sizes()["dead"] == 2


def test_no_more_dead_letters_are_kept_than_somebody_may_look_at(begun: Store) -> None:
    token = take(begun)
    letter = DeadLetter("mailbox", "5-5", "pod.Do@1", "pod/default/web", b"\x80", "it failed thrice")
    for turn in range(11):
        commit(begun, token, step_id=str(turn), dead=(letter,) * 1000)
    assert DEAD_LETTERS <= begun.sizes()["dead"] < DEAD_LETTERS + 500


# -- reading ---------------------------------------------------------------------------------------------------------


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


def test_a_scan_may_be_given_up(begun: Store) -> None:
    token = take(begun)
    for turn in range(12):
        commit(begun, token, 100, step_id=str(turn))
    scan = begun.scan(START)
    assert next(scan).position.n == 1
    scan.close()  # type: ignore[attr-defined]
    assert begun.last().n == 1201


def test_waiting_returns_what_is_there(begun: Store) -> None:
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
def test_waiting_for_nothing_ends(begun: Store, block: int) -> None:
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
    """Who is about to wait has looked at its own affairs before: what came since then must not be slept through."""
    token = take(begun)
    before = begun.last()
    begun.wake()
    # Slept through, it would end this test by its time-out.
    assert not begun.wait(before, {}, 10, 3_600_000).log
    commit(begun, token)
    assert len(begun.wait(before, {}, 10, 1000).log) == 1


# -- commands --------------------------------------------------------------------------------------------------------


def mailed(store: Store, shard: Shard = SHARD, after: Position = START) -> list[str]:
    return [mail.request for mail in store.wait(store.last(), {shard: after}, 20_000, 0).mail.get(shard, ())]


def test_a_request_is_taken_once_even_when_consumed(begun: Store) -> None:
    token = take(begun)
    assert begun.send(SHARD, "t@1", "e", "r1", b"") == "sent"
    assert begun.send(SHARD, "t@1", "e", "r1", b"") == "duplicate"
    assert begun.send(OTHER, "t@1", "e", "r1", b"") == "sent"
    assert begun.send(SHARD, "t@1", "e", "r2", b"") == "sent"
    mails = begun.wait(begun.last(), {SHARD: START}, 10, 0).mail[SHARD]
    assert [mail.request for mail in mails] == ["r1", "r2"]
    assert mails[0].id < mails[1].id
    commit(begun, token, 1, new_mail_cursor=mails[1].id)
    assert begun.send(SHARD, "t@1", "e", "r1", b"") == "duplicate"
    assert mailed(begun, after=mails[1].id) == []
    assert begun.send(SHARD, "t@1", "e", "r3", b"") == "sent"
    assert mailed(begun, after=mails[1].id) == ["r3"]


def test_waiting_commands_are_read_in_pages(begun: Store) -> None:
    assert begun.read_mail(SHARD, START, 10) == []
    for number in range(5):
        begun.send(SHARD, "t@1", "e", f"r{number}", b"\x00")
    first = begun.read_mail(SHARD, START, 3)
    assert list(first) == list(begun.wait(begun.last(), {SHARD: START}, 3, 0).mail[SHARD])
    assert [mail.request for mail in begun.read_mail(SHARD, first[-1].id, 3)] == ["r3", "r4"]


def test_a_command_without_request_id_is_refused(begun: Store) -> None:
    with pytest.raises(StoreBroken):
        begun.send(SHARD, "t@1", "e", "", b"")


def test_a_step_trims_the_mailbox_to_its_cursor(begun: Store) -> None:
    token = take(begun)
    for number in range(5):
        begun.send(SHARD, "t@1", "e", f"r{number}", b"")
    mails = begun.wait(begun.last(), {SHARD: START}, 10, 0).mail[SHARD]
    commit(begun, token, 0, new_mail_cursor=mails[2].id)
    assert mailed(begun, after=mails[2].id) == ["r3", "r4"]
    assert mailed(begun) == ["r2", "r3", "r4"]


def test_a_full_mailbox_is_busy_and_the_consumed_entry_does_not_count(begun: Store) -> None:
    token = take(begun)
    for number in range(10_000):
        assert begun.send(SHARD, "t@1", "e", f"r{number}", b"") == "sent"
    assert begun.send(SHARD, "t@1", "e", "one more", b"") == "busy"
    assert begun.send(SHARD, "t@1", "e", "r0", b"") == "duplicate"
    first = begun.wait(begun.last(), {SHARD: START}, 1, 0).mail[SHARD][0]
    commit(begun, token, 0, new_mail_cursor=first.id)
    assert begun.send(SHARD, "t@1", "e", "one more", b"") == "sent"
    assert begun.send(SHARD, "t@1", "e", "and another", b"") == "busy"


# -- snapshots, archive, trimming ------------------------------------------------------------------------------------


def test_a_snapshot_only_grows(begun: Store) -> None:
    token = take(begun)
    assert begun.read_snapshots([SHARD]).get(SHARD) is None
    commit(begun, token, 3)
    first, second, third = (entry.position for entry in list(begun.scan(START))[1:])
    one = Snapshot(second, 1, b"\x00one")
    assert begun.snapshot(SHARD, token, one)
    assert not begun.snapshot(SHARD, token, Snapshot(first, 1, b"earlier"))
    assert not begun.snapshot(SHARD, token, Snapshot(first, 2, b"earlier, in another format"))
    assert not begun.snapshot(SHARD, token, Snapshot(second, 1, b"no later"))
    assert begun.read_snapshots([SHARD]).get(SHARD) == one
    assert begun.snapshot(SHARD, token, Snapshot(second, 2, b"two"))
    assert begun.snapshot(SHARD, token, Snapshot(third, 2, b"later"))


def test_a_snapshot_of_what_the_log_has_not_is_refused(begun: Store) -> None:
    token = take(begun)
    last = begun.last()
    assert not begun.snapshot(SHARD, token, Snapshot(Position(last.milliseconds, last.n + 1), 1, b""))
    assert begun.read_snapshots([SHARD]).get(SHARD) is None


def test_the_archive_mark_only_grows(begun: Store) -> None:
    token = take(begun, KEEPER)
    assert begun.archived() == (START, START)
    assert begun.mark_archived(KEEPER, token, Position(10, 5))
    assert begun.mark_archived(KEEPER, token, Position(10, 4))
    assert begun.archived() == (Position(10, 5), START)
    assert not begun.mark_archived(KEEPER, "9:stale", Position(11, 5))
    assert begun.archived() == (Position(10, 5), START)


@pytest.fixture
def long_log(begun: Store) -> tuple[Store, str, list[Position]]:
    """1,001 entries, all consumed, covered by a snapshot and archived; the keeper's token."""
    token = take(begun)
    for turn in range(10):
        commit(begun, token, 100, step_id=str(turn))
    commit(begun, token, 0, new_log_cursor=begun.last(), step_id="moved")
    assert begun.snapshot(SHARD, token, Snapshot(begun.last(), 1, b""))
    keeper = take(begun, KEEPER)
    assert begun.mark_archived(KEEPER, keeper, begun.last())
    return begun, keeper, [entry.position for entry in begun.scan(START)]


def test_trimming_goes_as_far_as_it_may(long_log: tuple[Store, str, list[Position]]) -> None:
    store, keeper, positions = long_log
    removed = store.trim(KEEPER, keeper, positions[499], [SHARD])
    # A server removes whole nodes of its stream only, 100 entries each by default.
    assert isinstance(removed, int)
    assert 400 <= removed <= 500
    left = [entry.position for entry in store.scan(START)]
    assert left == positions[removed:]
    _, trimmed = store.archived()
    assert positions[removed - 1] <= trimmed < positions[removed]
    assert store.trim(KEEPER, keeper, positions[499], [SHARD]) == 0
    assert store.last() == positions[-1]


def test_trimming_stops_at_the_archive_cursors_and_snapshots(long_log: tuple[Store, str, list[Position]]) -> None:
    store, keeper, positions = long_log
    token = take(store, OTHER)
    assert store.trim(KEEPER, keeper, positions[-1], [SHARD, OTHER]) == 0
    store.step(step(store, token, shard=OTHER, new_log_cursor=positions[700]))
    assert store.trim(KEEPER, keeper, positions[-1], [SHARD, OTHER]) == 0
    store.snapshot(OTHER, token, Snapshot(positions[300], 1, b""))
    removed = store.trim(KEEPER, keeper, positions[-1], [SHARD, OTHER])
    assert isinstance(removed, int)
    assert 201 <= removed <= 301
    store.snapshot(OTHER, token, Snapshot(positions[900], 1, b""))
    more = store.trim(KEEPER, keeper, positions[-1], [SHARD, OTHER])
    assert isinstance(more, int)
    assert 601 <= removed + more <= 701


def test_trimming_stops_at_the_archive(begun: Store) -> None:
    token = take(begun)
    for turn in range(5):
        commit(begun, token, 100, step_id=str(turn))
    keeper = take(begun, KEEPER)
    positions = [entry.position for entry in begun.scan(START)]
    assert begun.trim(KEEPER, keeper, positions[-1], []) == 0
    begun.mark_archived(KEEPER, keeper, positions[299])
    removed = begun.trim(KEEPER, keeper, positions[-1], [])
    assert isinstance(removed, int)
    assert 200 <= removed <= 300


def test_trimming_by_a_stale_keeper_is_fenced(long_log: tuple[Store, str, list[Position]]) -> None:
    store, keeper, positions = long_log
    assert store.trim(KEEPER, "9:stale", positions[-1], []) == Fenced(keeper)
    assert len(list(store.scan(START))) == len(positions)


def test_a_trimmed_log_counts_on(long_log: tuple[Store, str, list[Position]]) -> None:
    store, keeper, positions = long_log
    store.trim(KEEPER, keeper, positions[-1], [])
    last = store.last()
    token = store.heads([SHARD])[SHARD].token
    assert commit(store, token, step_id="after").at.n == last.n + 1


def test_sizes(long_log: tuple[Store, str, list[Position]]) -> None:
    store, _, positions = long_log
    sizes = store.sizes()
    assert sizes["entries"] == len(positions)
    assert sizes["first_milliseconds"] == positions[0].milliseconds
    assert sizes["last_milliseconds"] == positions[-1].milliseconds
    assert sizes["bytes"] > 0
