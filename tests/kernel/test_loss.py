"""A server that has lost the end of what it knew: nobody acts on it, owners say so, everything is loaded again."""

import dataclasses
import threading

from chronolet.kernel.kind import Kind
from chronolet.kernel.store import Snapshot
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Tell
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS


def test_an_owner_ahead_of_its_server_says_so_and_goes_on_from_what_is_left(rig: Rig) -> None:
    rig.process(chore.kind())
    rig.send(Tell(request=request(), key="a", due=1))
    rig.wait(chore.Rang)
    version = rig.store.heads([Shard("chore")])[Shard("chore")].version
    kept = rig.remember()
    for _ in range(3):
        rig.send(Tell(request=request(), key="a", standing="lost"))
        rig.wait(chore.Told)
    rig.wait(chore.Told, 4)
    rig.crash(kept)
    (lost,) = rig.wait(kernel.TailLost)
    assert lost.found_version == version
    assert lost.had_version > version
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told, 2)
    assert [entry.position.n for entry in rig.log()] == list(range(1, len(rig.log()) + 1))


class Stubborn:
    """A mirror that is deciding one message for as long as a test wants."""

    def __init__(self) -> None:
        self.deciding = threading.Event()
        self.release = threading.Event()
        self.release.set()

    def kind(self) -> Kind[mirror.Mirror]:
        def decide(state: mirror.Mirror, message: object, now: int) -> object:
            if not self.release.is_set():
                self.deciding.set()
                self.release.wait()
            return mirror.decide(state, message, now)

        made = mirror.kind(1)
        return dataclasses.replace(made, decider=dataclasses.replace(made.decider, decide=decide))  # type: ignore[arg-type]


def test_nobody_acts_on_an_entry_that_the_server_has_lost(rig: Rig) -> None:
    """The mirror has read an entry, and decides it; the server loses it and nothing of the mirror's own."""
    line, stubborn = Line(), Stubborn()
    rig.process(tally.kind(1), line=Line())
    rig.process(stubborn.kind(), line=line)
    rig.send(tally.Add(request="1", key="a", number=1), "tally")
    rig.wait(mirror.Seen)
    kept = rig.remember()
    stubborn.release.clear()
    rig.send(tally.Add(request="2", key="a", number=2), "tally")
    rig.wait(tally.Added, 2)
    assert stubborn.deciding.wait(HANG_SECONDS)
    rig.forget(kept)
    stubborn.release.set()
    scratch.wait_until(lambda: line.calls.count("begin") >= 2, "everything loaded again")
    rig.send(tally.Add(request="3", key="a", number=3), "tally")
    rig.wait(mirror.Seen, 2)
    seen, added = rig.events(mirror.Seen), rig.events(tally.Added)
    assert [each.number for each in seen] == [each.number for each in added] == [1, 3]


def test_nobody_acts_on_a_command_that_the_server_has_lost(rig: Rig) -> None:
    line = Line()
    process = rig.process(chore.kind(), line=line)
    rig.send(Tell(request="1", key="a"))
    rig.wait(chore.Told)
    kept = rig.remember()
    line.silent = {"step"}
    rig.send(Tell(request="2", key="a"))
    scratch.wait_until(lambda: line.calls.count("step") >= 3, "the step on its way")
    rig.forget(kept)
    line.silent = set()
    scratch.wait_until(lambda: line.calls.count("begin") >= 2, "everything loaded again")
    assert rig.send(Tell(request="2", key="b"))
    rig.wait(chore.Told, 2)
    assert [entry.cause for entry in rig.log() if entry.type == "chore.Told@1"] == ["1", "2"]
    assert len([entry for entry in rig.log() if entry.entity == "chore/a"]) == 1
    assert process.error is None


def test_a_snapshot_of_what_the_server_has_lost_is_refused(rig: Rig) -> None:
    rig.process(chore.kind())
    rig.send(Tell(request="1", key="a"))
    rig.wait(chore.Told)
    shard = Shard("chore")
    kept, token = rig.remember(), rig.store.heads([shard])[shard].token
    rig.send(Tell(request="2", key="a"))
    rig.wait(chore.Told, 2)
    ahead = Snapshot(rig.store.last(), 1, b"\x80")
    rig.forget(kept)
    assert not rig.store.snapshot(shard, token, ahead)


def test_a_return_without_a_loss_is_no_reason_to_load_again(rig: Rig) -> None:
    line = Line()
    rig.process(chore.kind(), line=line)
    for turn in range(3):
        rig.send(Tell(request=request(), key="a"))
        rig.wait(chore.Told, turn + 1)
        line.away = True
        rig.send(Tell(request=request(), key="b"))  # ends the reader's wait
        scratch.wait_until(lambda: line.calls[-1] in ("wait", "step", "renew"), "a call that fails")
        line.away = False
    rig.wait(chore.Told, 6)
    assert line.calls.count("begin") == 1
    assert not rig.events(kernel.TailLost)


def test_an_emptied_server_begins_a_new_run(rig: Rig) -> None:
    rig.process(chore.kind())
    empty = {**rig.remember(), "run": "", "log": [], "last": START, "leases": {}, "_shards": {}}
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told)
    (first,) = rig.events(kernel.LogStarted)
    rig.crash(empty)
    scratch.wait_until(lambda: bool(rig.log()), "a new log")
    (second,) = rig.events(kernel.LogStarted)
    assert first.run != second.run
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told)


def test_an_emptied_server_is_noticed_though_the_reader_comes_back_last(rig: Rig) -> None:
    """The lease is renewed and shards are looked for before anything is read: there is no log to go on with."""
    line = Line()
    process = rig.process(chore.kind(), line=line)
    empty = {**rig.remember(), "run": "", "log": [], "last": START, "leases": {}, "_shards": {}}
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told)
    rig.settle()
    line.away = True
    rig.forget(empty)
    scratch.wait_until(lambda: not process.lease.answered(), "the end of the lease")
    line.silent = {"wait"}
    line.away = False
    rig.wait(kernel.LogStarted)
    line.silent = set()
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told)
    assert rig.events(kernel.TailLost)
