"""The reader of a process: each host gets each entry once and in order, whenever the host is attached."""

import dataclasses
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chronolet.kernel.host.host_handle import MOST_WAITING, HostHandle, Recovered
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.reader import COUNT, Reader
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.redis.replies import NEVER_OWNED
from chronolet.kernel.timing import Timing
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Position, Record
from chronolet_schemas.keys import Shard
from tests.kernel import mirror, tally
from tests.kernel.rig import Line, LineStore
from tests.support import scratch

STARTED = Record("kernel.LogStarted@1", "node/n", "", "", "", b"\x80")
ADDED = Record(
    registry.type_of(tally.Added),
    "tally/a",
    "",
    "tally#1",
    "",
    codec.encode(tally.Added(key="a", number=1, count=1, checksum=1)),
)
KIND = mirror.kind(1)


class Receiver:
    """A host handle that shows which inputs were delivered to it."""

    def __init__(self, read_to: Position, shard: int | None = None, kind: Kind[Any] = KIND) -> None:
        ledger: Ledger[Any] = Ledger(kind, Shard("mirror", shard), "1:p", NEVER_OWNED, 1)
        self.handle = HostHandle(Recovered(ledger, [], read_to, careful=False), Timing().behind_entries)
        self.after = read_to

    def received(self) -> list[Position]:
        return [item.at for item in self.handle.inbox.take(1_000_000)]  # type: ignore[union-attr]


ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 30)),
    st.tuples(st.just("join"), st.integers(0, 40)),
    st.tuples(st.just("down"), st.booleans()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTIONS, min_size=3, max_size=15))
def test_each_host_receives_every_entry_once_and_in_order_whenever_it_is_attached(
    actions: list[tuple[str, int]],
) -> None:
    server, line = MemoryServer(), Line()
    store = LineStore(server, line)
    store.begin("r", {"mirror": 1}, STARTED)
    failures: list[Exception] = []
    reader = Reader(store, Router({"mirror": KIND}, {"mirror": 1}), lambda: None, failures.append)
    reader.start()
    receivers: list[Receiver] = []
    received: dict[int, list[Position]] = {}
    for action, number in [*actions, ("down", False), ("join", 0), ("append", 3)]:
        if action == "append":
            with server.changed:
                for _ in range(number):
                    server.append(ADDED)
                server.changed.notify_all()
        elif action == "down":
            line.down = bool(number)
        else:
            if receivers:
                _collect(receivers[-1], received, len(receivers) - 1)
            receivers.append(Receiver(server.log[max(0, len(server.log) - 1 - number)].position))
            reader.attach(receivers[-1].handle)
    last = receivers[-1]
    scratch.wait_until(lambda: last.handle.read_to == server.last, "the end of the log")
    reader.stop()
    _collect(last, received, len(receivers) - 1)
    expected = [entry.position for entry in server.log if entry.position > last.after]
    assert received[len(receivers) - 1] == expected
    for index, receiver in enumerate(receivers):
        got = received[index] + receiver.received()
        assert got == [p for p in (e.position for e in server.log) if p > receiver.after][: len(got)]
    assert not failures


def test_a_host_with_a_full_inbox_delays_no_other_and_misses_no_entry() -> None:
    server, line = MemoryServer(), Line()
    store = LineStore(server, line)
    store.begin("r", {"mirror": 2}, STARTED)
    failures: list[Exception] = []
    kind = dataclasses.replace(mirror.kind(2), subscribes={tally.Added: lambda _: ("a", "b", "c", "d")})
    reader = Reader(store, Router({"mirror": kind}, {"mirror": 2}), lambda: None, failures.append)
    slow, quick = (Receiver(server.last, shard, kind) for shard in range(2))
    reader.attach(slow.handle)
    reader.attach(quick.handle)
    reader.start()
    got: dict[int, list[Position]] = {0: [], 1: []}
    for _ in range(30):
        with server.changed:
            for _ in range(500):
                server.append(ADDED)
            server.changed.notify_all()
        scratch.wait_until(lambda: quick.handle.read_to == server.last, "the end of the log, read for the quick host")
        got[1] += quick.received()
        assert len(slow.handle.inbox) < MOST_WAITING + COUNT
    assert slow.handle.read_to < server.last
    expected = [entry.position for entry in server.log if entry.position > slow.after]
    while len(got[0]) < len(expected):
        got[0] += [item.at for item in slow.handle.inbox.take(100)]  # type: ignore[union-attr]
        assert len(slow.handle.inbox) < MOST_WAITING + COUNT
    reader.stop()
    assert got == {0: expected, 1: expected}
    assert slow.handle.read_to == server.last
    assert not failures


def _collect(receiver: Receiver, received: dict[int, list[Position]], index: int) -> None:
    received.setdefault(index, []).extend(receiver.received())
