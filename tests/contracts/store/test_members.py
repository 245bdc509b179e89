"""The contract of the store for the members of a node, requests to drain, and graceful moves of shards."""

import threading

import pytest

from chronolet.kernel.storage.members import Handover, Member
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Beat, Inputs, Store
from chronolet_schemas.envelope import START
from chronolet_schemas.keys import Keys, Shard
from tests.contracts.store.support import OTHER, SHARD, SHARDS, STARTED, TTL, Another, take
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS

ONE = Member(instance="i-1", kinds=("pod", "prober"), refused=("pod/3",), host="machine")
TWO = Member(instance="i-2", kinds=("pod",))


def test_a_survey_shows_members_counters_requests_and_owners(begun: Store, another: Another) -> None:
    token = take(begun)
    assert begun.join("p", ONE, seen=None, counter="1")
    begun.renew("p", "", TTL, Beat(7, 0))
    begun.drain("q", drains=True)
    found = another().survey([SHARD, OTHER])
    assert found.run == "run-1"
    assert found.members == {"p": ONE}
    assert found.counters == {"p": "7"}
    assert found.drained == {"q"}
    assert found.tokens == {SHARD: token, OTHER: ""}


def test_only_one_of_two_processes_joins_under_a_name(store: Store, another: Another) -> None:
    assert store.join("web", ONE, seen=None, counter="")
    assert not another().join("web", TWO, seen=None, counter="")
    assert store.join("web", ONE, seen=None, counter=""), "a repeat is not idempotent"
    assert store.survey([]).members == {"web": ONE}


def test_a_name_whose_process_renews_its_lease_is_not_given_away(store: Store) -> None:
    assert store.join("web", ONE, seen=None, counter="")
    store.renew("web", "", TTL, Beat(1, 0))
    store.renew("web", "", TTL, Beat(2, 1))
    assert not store.join("web", TWO, seen=ONE, counter="1"), "its counter has moved since"
    assert store.join("web", TWO, seen=ONE, counter="2")
    assert store.survey([]).counters == {}, "the new process counts from the beginning"


def test_a_request_to_drain_ends_with_the_process_or_is_withdrawn(store: Store) -> None:
    assert store.join("web", ONE, seen=None, counter="")
    store.drain("web", drains=True)
    store.publish("web", ONE)
    assert store.survey([]).drained == {"web"}
    assert store.join("web", TWO, seen=ONE, counter="")
    assert store.survey([]).drained == frozenset()
    store.drain("web", drains=True)
    store.drain("web", drains=False)
    assert store.survey([]).drained == frozenset()


def test_a_live_process_publishes_another_entry(store: Store) -> None:
    assert store.join("web", ONE, seen=None, counter="")
    store.publish("web", TWO)
    assert store.survey([]).members == {"web": TWO}


def test_the_entries_of_dead_processes_are_removed(store: Store) -> None:
    for name in ("dead", "live"):
        assert store.join(name, ONE, seen=None, counter="")
        store.drain(name, drains=True)
    store.renew("live", "", TTL)
    store.forget_dead()
    assert store.survey([]).members == {"live": ONE}
    store.forget_dead()  # the second call removes the request, because the process is no longer listed
    assert store.survey([]).drained == {"live"}


@pytest.mark.parametrize("change", ["join", "publish", "drain", "undrain", "release", "retire", "request", "refuse"])
def test_a_change_of_the_members_ends_a_wait(begun: Store, another: Another, change: str) -> None:
    reader, token = another(), take(begun)
    assert begun.request_shards(SHARD.kind, 7)
    while reader.wait(None, {}, 10, 5, members=True).members_changed:
        pass
    found: list[Inputs] = []
    after = begun.last()
    waiting = lambda: found.append(reader.wait(after, {SHARD: START}, 10, 3_600_000, members=True))  # noqa: E731
    thread = threading.Thread(target=waiting)
    thread.start()
    match change:
        case "join":
            assert begun.join("web", ONE, seen=None, counter="")
        case "publish":
            begun.publish("web", ONE)
        case "drain" | "undrain":
            begun.drain("web", drains=change == "drain")
        case "release":
            assert begun.release(SHARD, token, b"")
        case "request":
            assert begun.request_shards(SHARD.kind, 9)
        case "refuse":
            begun.refuse_shards(SHARD.kind, 7, "in a test")
        case _:
            begun.retire("p", [(SHARD, token)])
    thread.join(HANG_SECONDS)
    assert [(one.members_changed, list(one.log), dict(one.mail)) for one in found] == [(True, [], {})]


def test_a_wait_that_does_not_concern_the_members_outlasts_their_changes(begun: Store) -> None:
    begun.drain("web", drains=True)
    assert not begun.wait(begun.last(), {}, 10, 5).members_changed
    assert begun.wait(begun.last(), {}, 10, 0, members=True).members_changed


def test_a_members_stream_of_the_wrong_type_does_not_end_reading(redis_server: PrivateRedis) -> None:
    store, keys = RedisStore(redis_server.url, "n"), Keys("n")
    store.check()
    redis_server.client().set(keys.membership, "of the wrong type")
    store.begin("run-1", SHARDS, STARTED)
    store.drain("web", drains=True)
    assert store.survey(()).drained == {"web"}
    found = store.wait(START, {}, 10, 1000, members=True)
    assert (len(found.log), found.members_changed) == (1, False)
    thread = threading.Thread(target=store.wait, args=(None, {}, 10, 3_600_000), kwargs={"members": True})
    thread.start()
    store.wake()
    thread.join(HANG_SECONDS)
    assert not thread.is_alive()
    store.close()


def test_a_released_shard_is_free_and_its_notes_wait_for_the_next_owner(begun: Store, another: Another) -> None:
    token = take(begun)
    assert begun.release(SHARD, token, b"\xff notes")
    assert begun.release(SHARD, token, b"\xff notes"), "a repeat is not idempotent"
    head = begun.heads([SHARD])[SHARD]
    assert (head.token, head.released, head.moves) == ("", token, 1)
    assert head.unowned_since > 0
    other = another()
    assert take(other, process="q") == "2:q"
    assert other.handovers([SHARD, OTHER]) == {SHARD: Handover(token, b"\xff notes")}
    assert begun.release(SHARD, token, b"late repeat"), "a late repeat is the same call"
    assert begun.heads([SHARD])[SHARD].token == "2:q"
    assert other.heads([SHARD])[SHARD].acquired_at > 0


def test_a_stale_token_releases_nothing(begun: Store) -> None:
    token = take(begun)
    assert not begun.release(SHARD, "9:p", b"")
    assert begun.heads([SHARD])[SHARD].token == token
    assert begun.heads([SHARD])[SHARD].moves == 0
    assert begun.handovers([SHARD]) == {}


def test_each_move_is_counted(begun: Store) -> None:
    for number in range(1, 4):
        assert begun.release(SHARD, take(begun), str(number).encode())
        assert begun.heads([SHARD])[SHARD].moves == number
    assert begun.handovers([SHARD])[SHARD].notes == b"3"


def test_an_entry_that_cannot_be_read_takes_no_part(redis_server: PrivateRedis) -> None:
    """A shard whose key has the wrong type does not hide the other shards either."""
    store, keys = RedisStore(redis_server.url, "n"), Keys("n")
    store.check()
    token = take(store, OTHER)
    client = redis_server.client()
    for number, entry in enumerate((b"", b"\xff", b"{}", b'{"instance":"i","kinds":["pod"],"refused":["pod/x"]}')):
        client.hset(keys.meta, f"member:bad{number}", entry)
    client.rpush(keys.shard(SHARD), "of the wrong type")
    assert store.join("good", ONE, seen=None, counter="")
    found = store.survey([SHARD, OTHER])
    assert found.members == {"good": ONE}
    assert found.tokens == {SHARD: "", OTHER: token}
    store.close()


def test_a_survey_of_a_node_without_a_log_is_empty(store: Store) -> None:
    found = store.survey([Shard("keeper")])
    assert (found.run, found.members, found.counters, found.tokens) == ("", {}, {}, {Shard("keeper"): ""})
