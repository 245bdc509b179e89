"""The contract of the store for changes of a log's layout: a change is made completely in one call, or not at all."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from chronolet.kernel.storage.layout import Layout, Move, Outdated, Reshard, Resharded
from chronolet.kernel.storage.store import Acquired, Committed, Fenced, NotFree, Snapshot, Store
from chronolet_schemas.envelope import START, Position, Record
from chronolet_schemas.keys import Shard, shards_of
from tests.contracts.store.support import KEEPER, OTHER, SHARD, STARTED, TTL, Another, commit, record, step

EVENT = Record("kernel.KindResharded@1", "node/n", "", "process/p", "", b"\x80")
ADDED = Record("kernel.KindAdded@1", "node/n", "", "process/p", "", b"\x80")
Change = Callable[..., Reshard]


@pytest.fixture
def change(begun: Store) -> Change:
    """Return a function that acquires all current shards of `pod` and prepares a change of their number to `after`."""

    def prepare(after: int, **different: object) -> Reshard:
        before = begun.layout().counts["pod"]
        former = shards_of("pod", before)
        tokens = {shard: take(begun, shard) for shard in former}
        heads = begun.heads(former)
        waiting = {shard: begun.read_mail(shard, heads[shard].mail_cursor, 1000) for shard in former}
        new = shards_of("pod", after)
        fields: dict[str, object] = {
            "kind": "pod",
            "before": before,
            "after": after,
            "tokens": tokens,
            "mail_ends": {s: waiting[s][-1].id if waiting[s] else heads[s].mail_cursor for s in former},
            "moves": [
                Move(shard, mail.id, new[int(mail.entity[-1]) % after]) for shard in former for mail in waiting[shard]
            ],
            "read_to": begun.last(),
            "format": 40_001,
            "states": {shard: str(shard).encode() for shard in new},
            "log_cursor": min(head.log_cursor for head in heads.values()),
            "decided": (tuple(heads[shard].log_cursor for shard in former),),
            "attempts": {},
            "unclean": False,
            "schema": 2,
            "records": (EVENT,),
        }
        return Reshard(**fields | different)  # type: ignore[arg-type]

    return prepare


def take(store: Store, shard: Shard = SHARD, process: str = "p") -> str:
    """Acquire a shard as a process of this release whose former owner is proven dead. Returns the new token."""
    token = store.heads([shard])[shard].token
    acquired = store.acquire(shard, token, process, 2, proof="lock")
    assert isinstance(acquired, Acquired)
    return acquired.head.token


def send(store: Store, shard: Shard, request: str, *, of: int = 0) -> str:
    return store.send(shard, "pod.Do@1", f"pod/default/{request}", request, b"\x80", of=of)


def test_the_layout_is_that_of_the_first_event(store: Store, begun: Store) -> None:
    assert begun.layout() == Layout("run-1", {"pod": 2, "keeper": 1})


def test_without_a_log_there_is_no_layout(store: Store) -> None:
    assert store.layout() == Layout("", {})
    assert not store.request_shards("pod", 4)


@pytest.mark.parametrize("after", [1, 2, 3, 5])
def test_a_change_replaces_the_shards_and_writes_its_event(begun: Store, change: Change, after: int) -> None:
    token = take(begun)
    commit(begun, token, 3)
    commit(begun, token, 0, new_log_cursor=begun.last(), step_id="read")
    cursor = begun.last()
    prepared = change(after)
    done = begun.reshard(prepared)
    assert isinstance(done, Resharded)
    assert begun.layout().counts == {"pod": after, "keeper": 1}
    (written,) = begun.read_log(cursor, 10)
    assert written.position == done.at == begun.last()
    assert written.type == "kernel.KindResharded@1"
    assert written.position.n == cursor.n + 1
    for shard, head in begun.heads(shards_of("pod", after)).items():
        assert (head.token, head.at, head.log_cursor, head.shards, head.schema) == ("", done.at, START, after, 2)
        assert head.decided == ((cursor, START),)
        assert begun.read_snapshots([shard])[shard] == Snapshot(cursor, 40_001, str(shard).encode())


def test_numbers_only_grow_also_for_a_shard_that_comes_back(begun: Store, change: Change) -> None:
    seen: dict[Shard, tuple[int, int]] = {}
    for after in (1, 4, 2, 4):
        for shard in shards_of("pod", begun.layout().counts["pod"]):
            token = take(begun, shard)
            number = (int(token.partition(":")[0]), begun.heads([shard])[shard].version)
            assert number > seen.get(shard, (0, -1)), shard
            assert number[1] >= seen.get(shard, (0, -1))[1]
            assert isinstance(begun.step(step(begun, token, shard=shard, step_id=f"{after}")), Committed)
            seen[shard] = number
        assert isinstance(begun.reshard(change(after)), Resharded)
    assert len(seen) >= 5


def test_a_former_owner_is_fenced_and_a_former_shard_is_nobodys(begun: Store, change: Change) -> None:
    prepared = change(4)
    before = step(begun, prepared.tokens[SHARD], records=(record(1),), step_id="late")
    begun.reshard(prepared)
    assert begun.step(before) == Fenced("")
    assert isinstance(begun.reshard(change(1)), Resharded)
    for former in shards_of("pod", 4):
        head = begun.heads([former])[former]
        assert head.shards == 1, "whoever acquires it sees that it is not one of the kind's shards any more"
        refused = begun.acquire(former, "", "old", 1)
        assert isinstance(refused, NotFree), "a former release never acquires it"
        assert refused.reason == "newer_schema"


def test_a_former_release_cannot_host_the_new_shards(begun: Store, change: Change) -> None:
    begun.reshard(change(4))
    for shard in shards_of("pod", 4):
        assert begun.acquire(shard, "", "old", 1) == NotFree("newer_schema", "")
        assert isinstance(begun.acquire(shard, "", "new", 2), Acquired)


def test_waiting_commands_move_in_order_and_stay_known(begun: Store, change: Change) -> None:
    for number in range(6):
        assert send(begun, (SHARD, OTHER)[number % 2], str(number)) == "sent"
    token = take(begun)
    first = begun.read_mail(SHARD, START, 1)[0]
    commit(begun, token, 1, new_mail_cursor=first.id)  # request 0 is consumed
    assert isinstance(begun.reshard(change(3)), Resharded)
    found = {}
    for shard, head in begun.heads(shards_of("pod", 3)).items():
        mails = begun.read_mail(shard, head.mail_cursor, 10)
        assert all(mail.id > head.mail_cursor for mail in mails)
        found[shard] = [mail.request for mail in mails]
    assert found == {Shard("pod", 0): ["3"], Shard("pod", 1): ["4", "1"], Shard("pod", 2): ["2", "5"]}
    for number in range(6):
        assert send(begun, Shard("pod", number % 3), str(number), of=3) == "duplicate"
    assert send(begun, Shard("pod", 0), "6", of=3) == "sent"
    assert begun.read_mail(Shard("pod", 0), begun.heads([Shard("pod", 0)])[Shard("pod", 0)].mail_cursor, 9)[
        -1
    ].request == ("6")


def test_a_moved_command_is_consumed_by_a_step(begun: Store, change: Change) -> None:
    send(begun, OTHER, "1")
    begun.reshard(change(1))
    only = Shard("pod")
    acquired = begun.acquire(only, "", "p", 2)
    assert isinstance(acquired, Acquired)
    (mail,) = begun.read_mail(only, acquired.head.mail_cursor, 9)
    done = begun.step(step(begun, acquired.head.token, shard=only, new_mail_cursor=mail.id, records=(record(1),)))
    assert isinstance(done, Committed)
    assert not begun.read_mail(only, mail.id, 9)
    assert begun.reshard(change(2, moves=())) == Resharded(begun.last())


def test_a_sender_with_the_former_count_is_told(begun: Store, change: Change) -> None:
    assert send(begun, OTHER, "1", of=2) == "sent"
    begun.reshard(change(4))
    assert send(begun, OTHER, "2", of=2) == "moved"
    assert begun.send(KEEPER, "keeper.Do@1", "keeper/node", "3", b"", of=1) == "sent"
    assert begun.send(Shard("nothing"), "nothing.Do@1", "nothing/node", "3", b"", of=1) == "moved"


def test_attempts_and_an_unclean_end_are_kept(begun: Store, change: Change) -> None:
    begun.reshard(change(3, attempts={"log:1-1": 2, "effect a": 1}, unclean=True))
    for shard in shards_of("pod", 3):
        acquired = begun.acquire(shard, "", "p", 2)
        assert isinstance(acquired, Acquired)
        assert acquired.head.attempts == {"log:1-1": 2, "effect a": 1}
        assert acquired.head.token == f"{acquired.head.unclean_epoch + 1}:p"


@pytest.mark.parametrize("what", ["owner", "mail", "count", "log", "missing token"])
def test_an_outdated_change_writes_nothing(begun: Store, change: Change, what: str) -> None:
    send(begun, SHARD, "1")
    prepared = change(4)
    expected = what
    if what == "owner":
        take(begun, OTHER, "other")
    elif what == "mail":
        send(begun, SHARD, "2")
    elif what == "count":
        assert isinstance(begun.reshard(prepared), Resharded)
    elif what == "log":
        prepared = replace(prepared, read_to=Position(begun.last().milliseconds + 9, begun.last().n + 9))
    else:
        prepared, expected = replace(prepared, tokens={**prepared.tokens, OTHER: ""}), "owner"
        begun.retire("p", [(OTHER, begun.heads([OTHER])[OTHER].token)])
    last, heads, layout = begun.last(), begun.heads([SHARD, OTHER]), begun.layout()
    mail = begun.read_mail(SHARD, START, 9)
    assert begun.reshard(prepared) == Outdated(expected)  # type: ignore[arg-type]
    assert (begun.last(), begun.layout()) == (last, layout)
    assert begun.heads([SHARD, OTHER]) == heads
    assert begun.read_mail(SHARD, START, 9) == mail


def test_a_request_waits_until_it_is_met_or_refused(another: Another, begun: Store, change: Change) -> None:
    assert not begun.request_shards("nothing", 4)
    assert begun.request_shards("pod", 4)
    assert another().layout().requested == {"pod": 4}
    begun.refuse_shards("pod", 8, "not this one")
    assert begun.layout().requested == {"pod": 4}
    begun.refuse_shards("pod", 4, "pod/0 is busy")
    assert begun.layout() == Layout("run-1", {"pod": 2, "keeper": 1}, {}, {"pod": "pod/0 is busy"})
    assert begun.request_shards("pod", 3)
    assert begun.layout() == Layout("run-1", {"pod": 2, "keeper": 1}, {"pod": 3})
    begun.reshard(change(3))
    assert begun.layout() == Layout("run-1", {"pod": 3, "keeper": 1})
    begun.request_shards("pod", 9)
    assert begun.request_shards("pod", 3)
    assert begun.layout().requested == {}, "a request for the current count ends another one"


def test_a_kind_is_added_once(another: Another, store: Store) -> None:
    store.begin("run-1", {"pod": 2}, STARTED)
    store.renew("p", "all kinds", TTL)
    assert store.add_kind("eviction", 1, ADDED) == 1
    assert another().add_kind("eviction", 3, ADDED) == 1
    assert [entry.type for entry in store.scan(START)] == ["kernel.LogStarted@1", "kernel.KindAdded@1"]
    assert another().begin("run-2", {}, STARTED).shards == {"pod": 2, "eviction": 1}
    assert store.layout().counts == {"pod": 2, "eviction": 1}
    assert isinstance(store.acquire(Shard("eviction"), "", "p", 2), Acquired)
