"""The contract of the store: the beginning of a log, leases and ownership of shards."""

import threading

from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import (
    Acquired,
    Beat,
    NotFree,
    Renewed,
    Store,
)
from chronolet_schemas.envelope import START
from tests.contracts.store.support import (
    OTHER,
    SHARD,
    SHARDS,
    STARTED,
    TTL,
    Another,
    commit,
    take,
)
from tests.support.scratch import wait_until


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


def test_of_concurrent_beginnings_one_wins(another: Another) -> None:
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


def test_a_shard_that_was_never_owned(begun: Store) -> None:
    head = begun.heads([SHARD, OTHER])[OTHER]
    assert (head.token, head.version, head.log_cursor, head.at, dict(head.attempts)) == ("", 0, START, START, {})


def test_a_process_with_the_name_of_a_dead_one_begins_its_own_count(begun: Store) -> None:
    """Else its counter would stand still until it has passed the former one, and others would consider it dead."""
    begun.renew("p", "", TTL, Beat(500, 499))
    seen = [begun.renewals()["p"]]
    for number in (1, 2):
        begun.renew("p", "", TTL, Beat(number, number - 1))
        seen.append(begun.renewals()["p"])
    assert seen == ["500", "1", "2"]


def test_acquiring_increments_the_epoch_and_retiring_frees_immediately(begun: Store) -> None:
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
    assert begun.acquire(SHARD, token, "q", 1) == NotFree("alive", token)
    assert begun.acquire(SHARD, "0:x", "q", 1) == NotFree("changed", token)
    assert begun.heads([SHARD])[SHARD].token == token


def test_the_expiry_of_a_lease_proves_nothing(begun: Store) -> None:
    begun.renew("short", "", 1)
    token = take(begun, process="short")
    wait_until(lambda: "short" not in begun.alive(), "the end of its lease")
    assert begun.acquire(SHARD, token, "q", 1) == NotFree("alive", token)


def test_a_counter_that_has_not_moved_since_it_was_read_proves_the_death(begun: Store) -> None:
    begun.renew("dead", "", TTL, Beat(7, 6))
    token = take(begun, process="dead")
    counter = begun.renewals()["dead"]
    acquired = begun.acquire(SHARD, token, "q", 1, proof="counter", counter=counter)
    assert isinstance(acquired, Acquired)
    assert acquired.head.token == "2:q"
    assert begun.alive().keys() == begun.renewals().keys() == {"p"}, "the dead owner is still listed"


def test_a_counter_that_has_moved_proves_life(begun: Store) -> None:
    token = take(begun)
    counter = begun.renewals()["p"]
    begun.renew("p", "", TTL, Beat(2, 1))
    assert begun.acquire(SHARD, token, "q", 1, proof="counter", counter=counter) == NotFree("alive", token)


def test_a_renewal_that_arrives_after_a_later_one_moves_no_counter_back(begun: Store) -> None:
    begun.renew("p", "", TTL, Beat(3, 1))
    begun.renew("p", "", TTL, Beat(2, 1))
    assert begun.renewals()["p"] == "3"
    assert begun.renew("p", "", TTL, Beat(4, 3)).known


def test_an_owner_that_is_no_longer_listed_is_taken_over_by_its_last_counter(begun: Store) -> None:
    """The takeover of another shard has removed it from the list."""
    begun.renew("dead", "", TTL, Beat(7, 6))
    first, second = take(begun, process="dead"), take(begun, OTHER, process="dead")
    counter = begun.renewals()["dead"]
    for shard, token in ((SHARD, first), (OTHER, second)):
        assert isinstance(begun.acquire(shard, token, "q", 1, proof="counter", counter=counter), Acquired)


def test_a_renewal_reads_the_tokens_of_shards(begun: Store) -> None:
    token = take(begun)
    renewed = begun.renew("p", "", TTL, Beat(2, 1, (SHARD, OTHER)))
    assert renewed == Renewed(known=True, tokens={SHARD: token, OTHER: ""})


def test_a_renewal_is_not_known_after_a_takeover(begun: Store) -> None:
    token = take(begun)
    assert begun.renew("p", "", TTL, Beat(2, 1)).known
    assert isinstance(begun.acquire(SHARD, token, "q", 1, proof="lock"), Acquired)
    renewed = begun.renew("p", "", TTL, Beat(3, 2, (SHARD,)))
    assert renewed == Renewed(known=False, tokens={SHARD: "2:q"})
    assert begun.renew("p", "", TTL, Beat(4, 3)).known


def test_a_renewal_whose_reply_was_lost_is_known_to_the_next(begun: Store) -> None:
    begun.renew("p", "", TTL, Beat(2, 1))
    assert begun.renew("p", "", TTL, Beat(3, 1)).known


def test_an_owner_proven_dead_loses_shard_and_lease(begun: Store) -> None:
    token = take(begun)
    acquired = begun.acquire(SHARD, token, "q", 1, proof="lock")
    assert isinstance(acquired, Acquired)
    assert acquired.head.token == "2:q"
    assert begun.alive() == {}


def test_a_repeated_acquisition_has_the_same_result(begun: Store) -> None:
    first = begun.acquire(SHARD, "", "p", 1)
    assert begun.acquire(SHARD, "", "p", 1) == first


def test_a_newer_schema_keeps_older_processes_out(begun: Store) -> None:
    token = take(begun)
    commit(begun, token, schema=7)
    commit(begun, token, schema=5, step_id="t")
    assert begun.heads([SHARD])[SHARD].schema == 7
    assert begun.acquire(SHARD, token, "p", 6) == NotFree("newer_schema", token)
    assert isinstance(begun.acquire(SHARD, token, "p", 7), Acquired)


def test_the_time_without_an_owner_is_recorded(begun: Store) -> None:
    token = take(begun)
    assert begun.unowned(SHARD, token) is None
    assert begun.unowned(SHARD, "9:z") is None
    begun.retire("p", [])
    if isinstance(begun, MemoryStore):
        now = begun._server.clock()
        begun._server.clock = lambda: now  # the store reads the clock twice, and a millisecond may pass in between
    assert begun.unowned(SHARD, token) == 0
    since = begun.heads([SHARD])[SHARD].unowned_since
    assert since > 0
    assert begun.unowned(SHARD, token) is not None
    assert begun.heads([SHARD])[SHARD].unowned_since == since
    begun.renew("p", "", TTL)
    assert begun.unowned(SHARD, token) is None
    assert begun.heads([SHARD])[SHARD].unowned_since == 0
