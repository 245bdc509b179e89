"""Processes on the in-memory store change a kind's number of shards: no input is lost or decided twice."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from chronolet.history.entries import NoArchive
from chronolet.history.state import state_at
from chronolet.kernel.faults import Faults
from chronolet.kernel.kind import Kind
from chronolet.kernel.storage.store import Acquired, Beat, HistoryMissing, Snapshot
from chronolet.kernel.timing import Timing
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Entry, Position, Record
from chronolet_schemas.keys import Shard, shard_for, shards_of
from tests.kernel import chore, mirror, tally
from tests.kernel.rig import Line, Rig
from tests.support import scratch

UNREADABLE = b"\xc1"
KEYS = [f"k{number}" for number in range(12)]


class Load:
    """Sends numbered additions for every key to the shards of the current layout."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.sent = dict.fromkeys(KEYS, 0)

    def send(self, times: int = 1, **more: int) -> None:
        for _ in range(times):
            for key in KEYS:
                self.sent[key] += 1
                command = tally.Add(request=f"{key}/{self.sent[key]}", key=key, number=self.sent[key], **more)
                shards = self.rig.store.layout().counts["tally"]
                self.rig.send_to(shard_for("tally", shards, key), command)

    def check(self) -> None:
        """Wait until everything is decided; check that it was decided once, in order, and seen by the mirror."""
        total = sum(self.sent.values())
        for event in (tally.Added, mirror.Seen):
            name = registry.type_of(event)
            scratch.wait_until(lambda name=name: self._count(name) >= total, f"{total} {name}")
            numbers: dict[str, list[int]] = {key: [] for key in KEYS}
            for entry in self.rig.log():
                if entry.type == name and entry.data != UNREADABLE:
                    numbers[entry.entity.partition("/")[2]].append(codec.decode(name, entry.data, event).number)
            assert numbers == {key: list(range(1, count + 1)) for key, count in self.sent.items()}

    def _count(self, name: str) -> int:
        return sum(entry.type == name and entry.data != UNREADABLE for entry in self.rig.log())


def kinds(rig: Rig) -> tuple[Kind[Any], Kind[Any]]:
    return tally.kind(4, rig.folder), mirror.kind(4)


@pytest.fixture
def load(rig: Rig) -> Load:
    rig.set_shards("tally", 4)
    rig.set_shards("mirror", 4)
    return Load(rig)


def reshard(rig: Rig, kind: str, shards: int) -> kernel.KindResharded:
    """Request `shards` shards for the kind; return the event of the change."""
    before = len(rig.events(kernel.KindResharded))
    assert rig.store.request_shards(kind, shards)
    return rig.wait(kernel.KindResharded, before + 1)[-1]


def owned(rig: Rig, kind: str) -> bool:
    heads = rig.store.heads(shards_of(kind, rig.store.layout().counts[kind]))
    return all(head.token for head in heads.values())


def test_the_number_of_shards_changes_between_inputs(rig: Rig, load: Load) -> None:
    rig.process(*kinds(rig))
    for shards in (8, 2, 1, 3, 4):
        load.send(2)
        before = rig.store.layout().counts["tally"]
        event = reshard(rig, "tally", shards)
        assert (event.kind, event.before, event.after) == ("tally", before, shards)
        assert len(event.cursors) == before
        assert reshard(rig, "mirror", shards).kind == "mirror"
        load.send(2)
        scratch.wait_until(lambda: owned(rig, "tally") and owned(rig, "mirror"), "owners of all shards")
    load.check()
    assert not rig.events(kernel.MessageDeadLettered) + rig.events(kernel.EntryQuarantined)
    assert not rig.events(kernel.HostRestarted)


def test_two_processes_hand_over_and_share_the_new_shards(rig: Rig, load: Load) -> None:
    first = rig.process(*kinds(rig))
    second = rig.process(*kinds(rig), begin=False)
    second.start()
    load.send(3)
    reshard(rig, "tally", 8)
    load.send(3)
    load.check()
    scratch.wait_until(lambda: owned(rig, "tally"), "owners")
    first.retire()
    load.send()
    load.check()


def test_a_process_without_the_kind_continues_and_follows(rig: Rig, load: Load) -> None:
    """The process routes by the new layout without stopping its own hosts, which never lose their shards."""
    rig.process(tally.kind(4, rig.folder))
    other = rig.process(mirror.kind(4))
    scratch.wait_until(lambda: owned(rig, "mirror"), "owners of the mirror")
    before = rig.store.heads(shards_of("mirror", 4))
    load.send(2)
    reshard(rig, "tally", 8)
    load.send(2)
    load.check()
    supervisor = other._supervisor._actor_weakref()  # type: ignore[union-attr]
    assert supervisor is not None
    scratch.wait_until(lambda: supervisor._router.count("tally") == 8, "the new layout")
    after = rig.store.heads(shards_of("mirror", 4))
    assert {s: head.token for s, head in after.items()} == {s: head.token for s, head in before.items()}


def test_waiting_commands_are_decided_by_the_new_shards(rig: Rig, load: Load) -> None:
    rig.process(*kinds(rig)).retire()
    load.send(5)
    rig.store.request_shards("tally", 2)
    rig.process(*kinds(rig))
    (event,) = rig.wait(kernel.KindResharded)
    assert event.moved_commands == 5 * len(KEYS)
    load.check()


def test_timers_and_effects_continue(rig: Rig, load: Load) -> None:
    notes = rig.folder
    rig.process(*kinds(rig))
    load.send(10, rest_after=600)
    reshard(rig, "tally", 8)
    load.check()
    assert len(rig.wait(tally.NoteTaken, len(KEYS))) == len(KEYS)
    assert len(rig.wait(tally.Rested, len(KEYS))) == len(KEYS)
    for key in KEYS:
        assert set((notes / key).read_text().split()) == {"10"}


def test_states_before_and_after_are_readable_and_use_the_new_snapshots(rig: Rig, load: Load) -> None:
    rig.process(*kinds(rig))
    load.send(3)
    load.check()
    before = rig.store.last()
    expected = dict.fromkeys(KEYS, 3)
    reshard(rig, "tally", 8)
    changed = rig.store.last()
    load.send()
    load.check()

    def counts(position: object = None) -> dict[str, int]:
        moment = state_at(rig.store, NoArchive(), [tally.kind(4)], position)  # type: ignore[arg-type]
        return {key: state.count for key, state in moment.states["tally"].items()}

    assert counts(before) == counts(changed) == expected
    assert counts() == dict.fromkeys(KEYS, 4)
    snapshots = rig.store.read_snapshots(shards_of("tally", 8))
    assert len(snapshots) == 8
    assert {one.format for one in snapshots.values()} == {80_001}
    with rig.server.changed:  # from now on, only the snapshots contain what happened before the change
        rig.server.log = [entry for entry in rig.server.log if entry.position >= changed]
        rig.server.trimmed = rig.server.archived = before
    assert counts() == dict.fromkeys(KEYS, 4)


def test_a_snapshot_of_another_layout_is_ignored(rig: Rig, load: Load) -> None:
    """A reader may read the shard count before a change and a snapshot after it. That snapshot has other entities."""
    rig.process(*kinds(rig))
    load.send(2)
    load.check()
    reshard(rig, "tally", 8)
    with rig.server.changed:
        rig.server.counts["tally"] = 4  # the count that the reader still has
    moment = state_at(rig.store, NoArchive(), [tally.kind(4)])
    assert {key: state.count for key, state in moment.states["tally"].items()} == dict.fromkeys(KEYS, 2)
    with rig.server.changed:
        rig.server.counts["tally"] = 8


def test_a_shard_of_another_layout_is_given_back(rig: Rig, load: Load) -> None:
    """A process that has not read the new layout yet may acquire a shard, whose hash shows the new count."""
    first = rig.process(*kinds(rig))
    load.send(2)
    line = Line()
    line.blocked.add("layout")
    late = rig.process(*kinds(rig), line=line, begin=False)
    late.start()  # it still routes by the count with which the log began
    reshard(rig, "tally", 2)
    load.send(2)
    first.retire()
    scratch.wait_until(lambda: line.calls.count("acquire") > 0, "an attempt to acquire")
    line.blocked.clear()
    load.send(2)
    load.check()
    assert not rig.events(kernel.EntryQuarantined)


class DeadError(Exception):
    """A simulated crash at a point of the change."""


class CrashAt(Faults):
    """Raises `DeadError` at the first point whose name begins with `name`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.passed = False

    def point(self, name: str) -> None:
        if name.startswith(self.name) and not self.passed:
            self.passed = True
            raise DeadError


@pytest.mark.parametrize("point", ["reshard/acquired", "reshard/before", "reshard/after"])
def test_a_process_that_dies_while_it_changes_the_layout_is_replaced(rig: Rig, load: Load, point: str) -> None:
    faults = CrashAt(point)
    first = rig.process(*kinds(rig), faults=faults)
    load.send(3)
    rig.store.request_shards("tally", 8)
    scratch.wait_until(lambda: first.error is not None, "the end of the first process")
    assert faults.passed
    assert isinstance(first.error, DeadError)
    first.lease.stop()
    rig.process(*kinds(rig))
    load.send(3)
    load.check()
    assert [event.after for event in rig.events(kernel.KindResharded)] == [8]


def test_an_owner_that_does_not_hand_over_ends_the_request(rig: Rig, load: Load) -> None:
    """The owner may be a process of an earlier release, which does not know requests to change the shard count."""
    rig.timing = Timing(reshard_patience_seconds=0.2)
    rig.process(*kinds(rig)).retire()
    stranger = Shard("tally", 3)
    rig.store.renew("old", "", 3_600_000)
    assert isinstance(rig.store.acquire(stranger, "", "old", registry.SCHEMA), Acquired)
    beats = _beating(rig)
    process = rig.process(*kinds(rig))
    rig.store.request_shards("tally", 8)

    def refused() -> bool:
        next(beats)
        return bool(rig.store.layout().refused)

    scratch.wait_until(refused, "a refusal")
    reason = rig.store.layout().refused["tally"]
    assert "tally/3 by process old" in reason
    assert rig.store.layout().counts["tally"] == 4
    scratch.wait_until(
        lambda: {owner.partition(":")[2] for owner in _tokens(rig)} == {"old", process.id}, "the former owners"
    )
    rig.store.retire("old", [(stranger, rig.store.heads([stranger])[stranger].token)])
    load.send()
    load.check()


def _beating(rig: Rig) -> Iterator[None]:
    for number in count(2):
        rig.store.renew("old", "", 3_600_000, Beat(number, number - 1))
        yield


def _tokens(rig: Rig) -> list[str]:
    return [head.token for head in rig.store.heads(shards_of("tally", 4)).values()]


def test_an_unreported_unreadable_entry_ends_the_request(rig: Rig, load: Load) -> None:
    """The new snapshots would hide the entry from the host that has to report it."""
    rig.process(*kinds(rig)).retire()
    with rig.server.changed:
        rig.server.append(Record("tally.Added@1", "tally/k1", "", "tally/0#1", "", UNREADABLE))
    rig.store.request_shards("tally", 8)
    rig.process(*kinds(rig))
    scratch.wait_until(lambda: bool(rig.store.layout().refused), "a refusal")
    assert "cannot be decoded" in rig.store.layout().refused["tally"]
    rig.wait(kernel.EntryQuarantined)
    reshard(rig, "tally", 8)
    load.send()
    load.check()


def test_a_new_kind_joins_an_old_log_and_hears_its_whole_history(rig: Rig, load: Load) -> None:
    rig.set_shards("mirror", 0)
    first = rig.process(tally.kind(4, rig.folder))
    load.send(2)
    rig.wait(tally.Added, 2 * len(KEYS))
    second = rig.process(mirror.kind(3), shards={"tally": 4, "mirror": 3})
    load.check()
    (added,) = rig.events(kernel.KindAdded)
    assert (added.kind, added.shards) == ("mirror", 3)
    assert rig.store.layout().counts["mirror"] == 3
    assert first.error is None
    second.retire()
    rig.process(mirror.kind(5), shards={"tally": 4, "mirror": 5})  # joins with the count that the log has
    load.send()
    load.check()
    assert len(rig.events(kernel.KindAdded)) == 1
    rig.process(chore.kind(), shards={"chore": 1})
    assert [one.kind for one in rig.events(kernel.KindAdded)] == ["mirror", "chore"] or rig.store.layout().counts[
        "chore"
    ]


def test_a_snapshot_taken_after_a_change_has_the_format_of_its_layout(rig: Rig, load: Load) -> None:
    rig.timing = Timing(snapshot_events=1)
    rig.process(*kinds(rig))
    load.send()
    reshard(rig, "tally", 2)
    load.send(2)
    load.check()
    changed = rig.events(kernel.KindResharded)
    assert changed
    first = {s: one.position for s, one in rig.store.read_snapshots(shards_of("tally", 2)).items()}

    def newer() -> bool:
        found = rig.store.read_snapshots(shards_of("tally", 2))
        load.send()
        return all(found[s].position > first[s] for s in first)

    scratch.wait_until(newer, "newer snapshots")
    found: dict[Shard, Snapshot] = dict(rig.store.read_snapshots(shards_of("tally", 2)))
    assert {one.format for one in found.values()} == {20_001}
    load.check()


def test_a_request_that_has_ended_meanwhile_is_not_attempted(rig: Rig, load: Load) -> None:
    """Changes of two kinds are requested. One request has already ended when the process attempts to carry it out."""
    process = rig.process(*kinds(rig))
    load.send()
    load.check()
    changes = process._context().changes
    for kind in ("tally", "mirror"):
        rig.store.request_shards(kind, 8)
    changes.read()
    assert changes.pending == ["mirror", "tally"]
    rig.store.request_shards("tally", 4)
    changes.read()
    changes.attempt("tally")
    assert changes.pending == ["mirror"]
    assert rig.wait(kernel.KindResharded)[0].kind == "mirror"
    load.send()
    load.check()


def _without_archive(_after: Position) -> Iterator[Entry]:
    raise HistoryMissing("the archive is on another machine")
    yield


def test_a_process_without_the_history_leaves_the_change_to_one_that_has_it(rig: Rig, load: Load) -> None:
    rig.process(*kinds(rig)).retire()
    load.send()
    rig.store.request_shards("tally", 8)
    lacking = rig.process(*kinds(rig), history=_without_archive, begin=False)
    lacking.start()
    scratch.wait_until(lambda: lacking.quarantined() != {}, "a process that hosts nothing")
    assert rig.store.layout().requested == {"tally": 8}
    rig.process(*kinds(rig))
    rig.wait(kernel.KindResharded)
    lacking.retire()
    load.check()


def test_without_any_process_that_has_the_history_the_request_is_refused(rig: Rig, load: Load) -> None:
    rig.process(*kinds(rig)).retire()
    rig.timing = Timing(reshard_patience_seconds=0.1)
    rig.store.request_shards("tally", 8)
    lacking = rig.process(*kinds(rig), history=_without_archive, begin=False)
    lacking.start()
    scratch.wait_until(lambda: bool(rig.store.layout().refused), "a refusal")
    assert "the archive is on another machine" in rig.store.layout().refused["tally"]
    assert rig.store.layout().counts["tally"] == 4
