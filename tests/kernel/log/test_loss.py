"""A server has lost the end of its data: no host acts on lost entries, owners record the loss, states are reloaded."""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.hosting.process import Process
from chronolet.kernel.kind import Kind
from chronolet.kernel.storage.store import Snapshot
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START, Event
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Assign
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS


def test_an_owner_ahead_of_its_server_reports_the_loss_and_continues_from_the_remaining_data(rig: Rig) -> None:
    rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a", due=1))
    rig.wait(chore.Fired)
    version = rig.store.heads([Shard("chore")])[Shard("chore")].version
    kept = rig.remember()
    for _ in range(3):
        rig.send(Assign(request=request(), key="a", standing="lost"))
        rig.wait(chore.Assigned)
    rig.wait(chore.Assigned, 4)
    rig.crash(kept)
    (lost,) = rig.wait(kernel.TailLost)
    assert lost.found_version == version
    assert lost.had_version > version
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, 2)
    assert [entry.position.n for entry in rig.log()] == list(range(1, len(rig.log()) + 1))


class Pausable:
    """Wraps a kind so that its decider blocks while `release` is cleared; it is set initially."""

    def __init__(self) -> None:
        self.deciding = threading.Event()
        self.release = threading.Event()
        self.release.set()

    def kind(self, made: Kind[Any]) -> Kind[Any]:
        def decide(state: object, message: Any, now: int) -> Sequence[Event]:
            if not self.release.is_set():
                self.deciding.set()
                self.release.wait()
            return made.decider.decide(state, message, now)

        return dataclasses.replace(made, decider=dataclasses.replace(made.decider, decide=decide))


def test_no_host_acts_on_a_lost_entry(rig: Rig) -> None:
    """While the mirror is deciding an entry, the server loses that entry, but none of the mirror's own data."""
    line, pausable = Line(), Pausable()
    rig.process(tally.kind(1), line=Line())
    rig.process(pausable.kind(mirror.kind(1)), line=line)
    rig.send(tally.Add(request="1", key="a", number=1), "tally")
    rig.wait(mirror.Seen)
    kept = rig.remember()
    pausable.release.clear()
    rig.send(tally.Add(request="2", key="a", number=2), "tally")
    rig.wait(tally.Added, 2)
    assert pausable.deciding.wait(HANG_SECONDS)
    rig.forget(kept)
    pausable.release.set()
    scratch.wait_until(lambda: line.calls.count("begin") >= 2, "a reload")
    rig.send(tally.Add(request="3", key="a", number=3), "tally")
    rig.wait(mirror.Seen, 2)
    seen, added = rig.events(mirror.Seen), rig.events(tally.Added)
    assert [each.number for each in seen] == [each.number for each in added] == [1, 3]


@pytest.mark.parametrize("outage_noticed", [True, False])
def test_no_host_skips_a_lost_entry_for_one_written_in_its_place(rig: Rig, outage_noticed: bool) -> None:
    """The lost entry is waiting behind the one being decided. Before its turn comes, the tally's owner writes other
    entries, and the mirror's process may have noticed the server's outage (`outage_noticed`).
    """
    line, pausable = Line(), Pausable()
    rig.process(tally.kind(1), line=Line())
    process = rig.process(pausable.kind(mirror.kind(1)), line=line)
    _add(rig, 1)
    rig.wait(mirror.Seen)
    pausable.release.clear()
    _add(rig, 2)
    assert pausable.deciding.wait(HANG_SECONDS)
    kept = rig.remember()
    _add(rig, 3)
    handle = _handle(process, Shard("mirror"))
    scratch.wait_until(lambda: handle.read_to == rig.store.last(), "the reader")
    rig.settle()
    line.down = outage_noticed
    reads = line.calls.count("wait")
    _lose(rig, kept)
    _add(rig, 3)
    _add(rig, 4)
    scratch.wait_until(lambda: not outage_noticed or line.calls.count("wait") > reads, "a read that fails")
    line.down = False
    scratch.wait_until(
        lambda: handle.read_to == rig.store.last() or handle.stopping.is_set(), "the reader, or a reload"
    )
    pausable.release.set()
    rig.wait(mirror.Seen, 4)
    assert [each.number for each in rig.events(mirror.Seen)] == [1, 2, 3, 4]
    assert [each.number for each in rig.events(tally.Added)] == [1, 2, 3, 4]


def test_no_host_skips_a_lost_command_for_one_sent_in_its_place(rig: Rig) -> None:
    line, pausable = Line(), Pausable()
    process = rig.process(pausable.kind(tally.kind(1)), line=line)
    _add(rig, 1)
    pausable.release.clear()
    rig.send(tally.Add(request="2", key="a", number=2), "tally")
    assert pausable.deciding.wait(HANG_SECONDS)
    kept = rig.remember()
    rig.send(tally.Add(request="3", key="a", number=3), "tally")
    handle = _handle(process, Shard("tally"))
    scratch.wait_until(lambda: len(handle.inbox) == 1, "the reader")
    line.down = True
    reads = line.calls.count("wait")
    _lose(rig, kept)
    rig.send(tally.Add(request="3", key="a", number=3), "tally")
    scratch.wait_until(lambda: line.calls.count("wait") > reads, "a read that fails")
    line.down = False
    scratch.wait_until(lambda: len(handle.inbox) == 2 or handle.stopping.is_set(), "the reader, or a reload")
    pausable.release.set()
    _add(rig, 4)
    assert [each.number for each in rig.events(tally.Added)] == [1, 2, 3, 4]


def _add(rig: Rig, number: int) -> None:
    """Add a number, and wait until the tally's entry is in the log."""
    rig.send(tally.Add(request=str(number), key="a", number=number), "tally")
    scratch.wait_until(lambda: number in [each.number for each in rig.events(tally.Added)], f"number {number}")


def _lose(rig: Rig, kept: Mapping[str, Any]) -> None:
    """Restore the server's earlier data. Later entries will not get the positions of lost ones."""
    lost = rig.store.last().milliseconds
    scratch.wait_until(lambda: rig.server.clock() > lost, "the next millisecond")
    rig.forget(kept)


def _handle(process: Process, shard: Shard) -> HostHandle:
    supervisor = process._supervisor._actor_weakref()  # type: ignore[union-attr]
    return supervisor._hosted.handles()[shard]  # type: ignore[union-attr,no-any-return]


def test_no_host_acts_on_a_lost_command(rig: Rig) -> None:
    line = Line()
    process = rig.process(chore.kind(), line=line)
    rig.send(Assign(request="1", key="a"))
    rig.wait(chore.Assigned)
    kept = rig.remember()
    line.blocked = {"step"}
    rig.send(Assign(request="2", key="a"))
    scratch.wait_until(lambda: line.calls.count("step") >= 3, "a step sent three times")
    rig.forget(kept)
    line.blocked = set()
    scratch.wait_until(lambda: line.calls.count("begin") >= 2, "a reload")
    assert rig.send(Assign(request="2", key="b"))
    rig.wait(chore.Assigned, 2)
    assert [entry.cause for entry in rig.log() if entry.type == "chore.Assigned@1"] == ["1", "2"]
    assert len([entry for entry in rig.log() if entry.entity == "chore/a"]) == 1
    assert process.error is None


def test_a_snapshot_of_lost_entries_is_refused(rig: Rig) -> None:
    rig.process(chore.kind())
    rig.send(Assign(request="1", key="a"))
    rig.wait(chore.Assigned)
    shard = Shard("chore")
    kept, token = rig.remember(), rig.store.heads([shard])[shard].token
    rig.send(Assign(request="2", key="a"))
    rig.wait(chore.Assigned, 2)
    ahead = Snapshot(rig.store.last(), 1, b"\x80")
    rig.forget(kept)
    assert not rig.store.snapshot(shard, token, ahead)


def test_a_reconnect_without_a_loss_reloads_nothing(rig: Rig) -> None:
    line = Line()
    rig.process(chore.kind(), line=line)
    for turn in range(3):
        rig.send(Assign(request=request(), key="a"))
        rig.wait(chore.Assigned, turn + 1)
        line.down = True
        rig.send(Assign(request=request(), key="b"))  # ends the reader's wait
        scratch.wait_until(lambda: line.calls[-1] in ("wait", "step", "renew"), "a call that fails")
        line.down = False
    rig.wait(chore.Assigned, 6)
    assert line.calls.count("begin") == 1
    assert not rig.events(kernel.TailLost)


def test_an_emptied_server_begins_a_new_run(rig: Rig) -> None:
    rig.process(chore.kind())
    empty = {**rig.remember(), "run": "", "log": [], "last": START, "leases": {}, "_shards": {}}
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    (first,) = rig.events(kernel.LogStarted)
    rig.crash(empty)
    scratch.wait_until(lambda: bool(rig.log()), "a new log")
    (second,) = rig.events(kernel.LogStarted)
    assert first.run != second.run
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)


def test_an_emptied_server_is_noticed_although_the_reader_reconnects_last(rig: Rig) -> None:
    """Before the reader's first read, the lease is renewed and the supervisor tries to acquire free shards; but there
    is no log to continue.
    """
    line = Line()
    process = rig.process(chore.kind(), line=line)
    empty = {**rig.remember(), "run": "", "log": [], "last": START, "leases": {}, "_shards": {}}
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    rig.settle()
    line.down = True
    rig.forget(empty)
    scratch.wait_until(lambda: not process.lease.answered(), "the end of the lease")
    line.blocked = {"wait"}
    line.down = False
    rig.wait(kernel.LogStarted)
    line.blocked = set()
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    assert rig.events(kernel.TailLost)
