"""Recovery restores states, causes and outstanding work, whatever the messages and wherever the process dies."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronolet.kernel.decider import Decider
from chronolet.kernel.host.host import Services
from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.hosting import hosted_shards
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.recovery import Recovery
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Acquired, Committed, Snapshot, Step, StoreBroken
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import START, Entry, Position, Record
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Assign, Report, Result
from tests.kernel.rig import Rig, request
from tests.support import scratch

SHARD = Shard("chore")
STARTED = Record("kernel.LogStarted@1", "node/n", "", "", "", b"\x80")
KEYS = st.sampled_from(["a", "b", "node"])


def subscribed(format_: int = 1) -> Kind[chore.Chore]:
    """Return the chore kind with a subscription to the tally's additions to known entities. One entity exists from the
    start.
    """

    def decide(state: chore.Chore, message: object, now: int) -> Any:
        if isinstance(message, tally.Added):
            return (chore.Reported(text=str(message.number)),)
        return chore.decide(state, message, now)

    decider: Decider[chore.Chore] = dataclasses.replace(chore.DECIDER, decide=decide)
    route = {tally.Added: lambda added: (added.key, "node")}
    return chore.kind(decider=decider, subscribes=route, at_start=("node",), format=format_)


class Life:
    """One host without threads, which decides, commits, and is sometimes killed."""

    def __init__(self) -> None:
        self.kind = subscribed()
        self.server = MemoryServer()
        self.store = MemoryStore(self.server)
        self.store.begin("r", {"chore": 1}, STARTED)
        self.router = Router({"chore": self.kind}, {"chore": 1})
        self.sent = 0
        self.backlog: list[Input] = []
        self.ledger: Ledger[chore.Chore] = self.recover()

    def recover(self, *, format_: int = 1) -> Ledger[chore.Chore]:
        token = self.store.heads([SHARD])[SHARD].token
        acquired = self.store.acquire(SHARD, token, "p", 1)
        assert isinstance(acquired, Acquired)
        kind = self.kind if format_ == 1 else subscribed(format_)
        recovery = Recovery({"chore": kind}, self.router, self.store, self.store.scan)
        recovered = recovery.run({SHARD: (acquired.head.token, acquired.head)}, frozenset())[SHARD]
        self.backlog = recovered.backlog
        self.mail_to = recovered.mail_to
        return recovered.ledger

    # -- events of a life -----------------------------------------------------------------------------------------
    def send(self, command: Assign) -> None:
        self.sent += 1
        sent = msgspec.structs.replace(command, request=f"r{self.sent}")
        self.store.send(SHARD, "chore.Assign@1", f"chore/{sent.key}", sent.request, codec.encode(sent))

    def add(self, added: tally.Added) -> None:
        with self.server.changed:
            name = registry.type_of(tally.Added)
            at = self.server.append(Record(name, f"tally/{added.key}", "", "tally#1", "", codec.encode(added)))
        entry = self.server.log[-1]
        assert entry.position == at
        self.backlog += [item for _, item in self.router.route(entry, (SHARD,))]

    def signal(self, key: str, message: Any) -> None:
        self.step([Input("signal", START, (key,), message, "", "chore.Signal")])

    def step(self, items: list[Input] | None = None) -> None:
        mails = self.store.wait(self.store.last(), {SHARD: self.mail_to}, 50, 0).mail.get(SHARD, ())
        self.mail_to = mails[-1].id if mails else self.mail_to
        turn = self.ledger.begin()
        for item in [*self.backlog, *(self.router.mail(SHARD, mail) for mail in mails), *(items or ())]:
            self.ledger.decide(turn, item, 1_000)
        self.backlog = []
        self.sent += 1
        ledger = self.ledger
        step = Step(
            shard=SHARD,
            token=ledger.token,
            version=ledger.version,
            step_id=f"s{self.sent}",
            schema=1,
            log_cursor=ledger.log_cursor,
            new_log_cursor=turn.log_cursor,
            mail_cursor=ledger.mail_cursor,
            new_mail_cursor=turn.mail_cursor,
            records=tuple(turn.records),
            dead=tuple(turn.dead),
            forget_attempts=tuple(turn.forget),
        )
        answer = self.store.step(step)
        assert isinstance(answer, Committed)
        ledger.committed(turn, answer)

    def snapshot(self) -> None:
        at = max(self.ledger.at, self.ledger.log_cursor)
        if at > START:
            self.store.snapshot(SHARD, self.ledger.token, Snapshot(at, 1, self.ledger.snapshot()))

    # -- the check ------------------------------------------------------------------------------------------
    def die(self) -> None:
        """Check that recovery restores the state before the death, with and without a snapshot."""
        lived, mails = self.ledger, self.store.read_mail(SHARD, self.ledger.mail_cursor, 50)
        waiting = [*(mail.id for mail in mails), *(item.at for item in self.backlog if item.source == "log")]
        for format_ in (2, 1):  # a snapshot of another format is ignored: everything is folded again
            self.ledger = self.recover(format_=format_)
            assert self.ledger.states == lived.states
            assert self.ledger.positions == lived.positions
            assert (self.ledger.version, self.ledger.at) == (lived.version, lived.at)
            assert (self.ledger.log_cursor, self.ledger.mail_cursor) == (lived.log_cursor, lived.mail_cursor)
            assert [item.at for item in self.backlog] == waiting


MESSAGES = st.one_of(
    st.builds(
        Assign,
        request=st.just(""),
        key=KEYS,
        one_shot=st.sampled_from(["", "w"]),
        due=st.integers(0, 2),
        ends=st.booleans(),
        refuse=st.booleans(),
    ),
    st.builds(tally.Added, key=KEYS, number=st.integers(0, 9), count=st.just(1), checksum=st.just(0)),
    st.tuples(KEYS, st.one_of(st.just(Result(intent="w")), st.just(Report(text="x")))),
    st.sampled_from(["step", "snapshot", "die"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(MESSAGES, max_size=25))
def test_recovery_restores_the_state_before_the_death(messages: list[Any]) -> None:
    life = Life()
    for message in messages:
        match message:
            case Assign():
                life.send(message)
            case tally.Added():
                life.add(message)
            case str():
                getattr(life, message)()
            case key, signal:
                life.signal(key, signal)
                life.die()
    life.step()
    life.die()


class Snapshots(MemoryStore):
    """A store that records which snapshots each call reads. The snapshots of `broken` shards are unreadable."""

    def __init__(self, server: MemoryServer, broken: frozenset[Shard] = frozenset()) -> None:
        super().__init__(server)
        self.calls: list[Sequence[Shard]] = []
        self._broken = broken

    def read_snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        self.calls.append(shards)
        if self._broken & set(shards):
            raise StoreBroken("WRONGTYPE")
        return super().read_snapshots(shards)


@pytest.mark.parametrize("broken", [None, 2])
def test_all_snapshots_are_read_in_one_round_trip_unless_one_is_unreadable(broken: int | None) -> None:
    shards = [Shard("chore", number) for number in range(4)]
    store = Snapshots(MemoryServer(), frozenset(shard for shard in shards if shard.index == broken))
    store.begin("r", {"chore": 4}, STARTED)
    acquired = {}
    for shard in shards:
        answer = store.acquire(shard, "", "p", 1)
        assert isinstance(answer, Acquired)
        acquired[shard] = answer.head.token, answer.head
        store.snapshot(
            shard,
            answer.head.token,
            Snapshot(store.last(), 40_001, Ledger(chore.kind(), shard, "t", answer.head, 1).snapshot()),
        )
    recovery = Recovery({"chore": chore.kind()}, Router({"chore": chore.kind()}, {"chore": 4}), store, store.scan)
    recovered = recovery.run(acquired, frozenset())
    assert store.calls == ([shards] if broken is None else [shards, *([shard] for shard in shards)])
    assert [recovered[shard].snapshot_at == START for shard in shards] == [shard.index == broken for shard in shards]


@pytest.mark.parametrize("snapshot_covers_all", [False, True])
def test_the_time_of_the_log_is_that_of_its_newest_entry_and_not_of_its_position(snapshot_covers_all: bool) -> None:
    """The server's clock was an hour ahead once; a process without a stored time must not begin an hour ahead."""
    clock = [5_000_000]
    store = MemoryStore(MemoryServer(clock=lambda: clock[0]))
    clock[0] += 3_600_000
    store.begin("r", {"chore": 1}, STARTED)
    clock[0] -= 3_600_000
    answer = store.acquire(SHARD, "", "p", 1)
    assert isinstance(answer, Acquired)
    record = Record("chore.Closed@1", "tally/a", "", "tally#1", "", b"\x80")
    start = answer.head.log_cursor
    step = Step(SHARD, answer.head.token, 0, "s", 1, start, start, start, start, records=(record,))
    assert isinstance(store.step(step), Committed)
    assert store.last().milliseconds == 8_600_000
    if snapshot_covers_all:
        states = Ledger(chore.kind(), SHARD, "t", answer.head, 1).snapshot()
        assert store.snapshot(SHARD, answer.head.token, Snapshot(store.last(), 1, states))
        moved = Step(SHARD, answer.head.token, 1, "t", 1, start, store.last(), start, start, records=())
        assert isinstance(store.step(moved), Committed)
    recovery = Recovery({"chore": chore.kind()}, Router({"chore": chore.kind()}, {"chore": 1}), store, store.scan)
    head = store.heads([SHARD])[SHARD]
    recovered = recovery.run({SHARD: (head.token, head)}, frozenset())[SHARD]
    assert (recovered.log_time, recovery.read) == (5_000_000, 0 if snapshot_covers_all else 2)


def test_an_unreadable_snapshot_is_ignored(rig: Rig) -> None:
    first = rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(chore.Assigned)
    first.retire()
    with rig.server.changed:
        rig.server.shard(SHARD).snapshot = Snapshot(rig.server.last, 1, b"\xc1")
    rig.process(chore.kind(standing=_report_intent))
    assert rig.wait(chore.Reported)[0].text == "s"


def _report_intent(effect: Any, context: Any) -> None:
    context.send(Report(text=effect.intent))
    context.cancelled.wait()


def test_outstanding_work_continues_after_a_restart(rig: Rig) -> None:
    """Timers are set and effects are started again, although the process died without a handover."""
    token = _die_after(rig, Assign(request="r", key="a", one_shot="w", standing="s", due=99))
    rig.process(chore.kind(standing=_report_intent))
    rig.wait(chore.Completed)
    rig.wait(chore.Fired)
    rig.wait(chore.Reported)
    (assigned,) = (entry for entry in rig.log() if entry.type == "chore.Assigned@1")
    assert assigned.actor == f"chore#{token.partition(':')[0]}"
    assert {entry.cause for entry in rig.log() if entry.type in ("chore.Completed@1", "chore.Reported@1")} == {
        str(assigned.position)
    }


def _die_after(rig: Rig, command: Assign) -> str:
    """Commit a command's events on a host that then dies. Returns the host's token."""
    life = Life()
    life.server, life.store = rig.server, rig.store
    life.store.begin("r", {"chore": 1, "tally": 1, "mirror": 1}, STARTED)
    life.ledger = life.recover()
    rig.send(command)
    life.step()
    return life.ledger.token


def test_an_unreadable_entry_is_quarantined_with_an_event(rig: Rig) -> None:
    """One entry belongs to another shard and has a subscriber, the other belongs to the subscriber's own shard. Each
    shard reports an entry once, however often it reads it.
    """
    first = rig.process(tally.kind(1), mirror.kind(1))
    with rig.server.changed:
        rig.server.append(Record("tally.Added@1", "tally/a", "", "tally#1", "", b"\xc1"))
        rig.server.append(Record("mirror.Seen@9", "mirror/a", "", "mirror#1", "", b"\x80"))
        rig.server.changed.notify_all()
    rig.wait(kernel.EntryQuarantined)
    first.retire()
    second = rig.process(tally.kind(1), mirror.kind(1))
    rig.send(tally.Add(request="1", key="a", number=1), "tally")
    rig.wait(mirror.Seen)
    second.retire()
    rig.process(tally.kind(1), mirror.kind(1))
    rig.send(tally.Add(request="2", key="a", number=2), "tally")
    rig.wait(mirror.Seen, 2)
    quarantined = [each.message for each in rig.events(kernel.EntryQuarantined)]
    assert sorted(quarantined) == ["mirror.Seen@9", "tally.Added@1", "tally.Added@1"]
    assert sorted((letter.type, letter.data) for letter in rig.server.dead) == [
        ("mirror.Seen@9", b"\x80"),
        ("tally.Added@1", b"\xc1"),
        ("tally.Added@1", b"\xc1"),
    ]


def test_hosts_are_started_by_precedence(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    start = hosted_shards.Host.start

    def recorded(handle: HostHandle, services: Services) -> Any:
        started.append(str(handle.shard))
        return start(handle, services)

    monkeypatch.setattr(hosted_shards.Host, "start", recorded)
    rig.set_shards("tally", 2)
    first = dataclasses.replace(tally.kind(2), precedence=0)
    last = dataclasses.replace(chore.kind(), precedence=9)
    rig.process(first, last, mirror.kind(1))
    assert started == ["tally/0", "tally/1", "mirror", "chore"]


def test_a_kind_prefetches_after_its_shard_is_acquired_and_before_it_is_recovered(rig: Rig) -> None:
    steps: list[str] = []

    def history(after: Position) -> Iterator[Entry]:
        steps.append("recovered")
        yield from rig.store.scan(after)

    prefetching = dataclasses.replace(tally.kind(1), ahead=lambda: steps.append("prefetched"))
    owner = rig.process(prefetching, history=history)
    assert steps == ["prefetched", "recovered"]
    rig.process(prefetching, history=history, begin=False).start()
    scratch.wait_until(lambda: rig.processes[1].phase == "standing by", "a process without a shard")
    assert steps == ["prefetched", "recovered"], "nothing is prefetched for a shard that another process owns"
    owner.retire()
    scratch.wait_until(lambda: rig.processes[1].phase == "running", "the takeover")
    assert steps == ["prefetched", "recovered"] * 2
