"""Shard ownership: takeover by lock and by lease, lapse, handover, newer schema, reacquisition by the same process."""

import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from chronolet.kernel.decider import Effect
from chronolet.kernel.hosting import notices
from chronolet.kernel.kind import EffectContext, Kind
from chronolet.kernel.observer import Observer
from chronolet.kernel.ownership.life_lock import LifeLock
from chronolet.kernel.storage.store import Acquired, Beat, Committed, HistoryMissing, Snapshot, Step
from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel, registry
from chronolet_schemas.envelope import START, Entry, Position, Record
from chronolet_schemas.keys import Shard
from tests.kernel import chore, tally
from tests.kernel.chore import Assign
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch

CHORE = Shard("chore")
STARTED = Record("kernel.LogStarted@1", "node/n", "", "", "", b"\x80")


def own(rig: Rig, process: str, *, lease_milliseconds: int = 0) -> str:
    """Begin the log and acquire the shard for a process that exists only in the store, with a lease of
    `lease_milliseconds`; 0: no lease. Returns the process's token.
    """
    rig.store.begin("r", {"chore": 1}, STARTED)
    if lease_milliseconds:
        rig.store.renew(process, "chore", lease_milliseconds)
    acquired = rig.store.acquire(CHORE, rig.store.heads([CHORE])[CHORE].token, process, registry.SCHEMA)
    assert isinstance(acquired, Acquired)
    return acquired.head.token


def abandon(lock: LifeLock) -> None:
    """Release the lock as if its process had died: the lock's file stays."""
    os.close(lock._file)


def owner(rig: Rig) -> str:
    return rig.store.heads([CHORE])[CHORE].token.partition(":")[2]


def test_the_shards_of_a_dead_process_on_this_machine_are_taken_over_immediately(rig: Rig, tmp_path: Path) -> None:
    own(rig, "dead", lease_milliseconds=3_600_000)
    abandon(LifeLock(tmp_path / "locks", "dead"))
    process = rig.process(chore.kind(), locks=tmp_path / "locks")
    assert owner(rig) == process.id
    (taken,) = rig.wait(kernel.ShardTakenOver)
    assert taken == kernel.ShardTakenOver(former_owner="dead", owner=process.id, proof="lock")


def test_the_shards_of_a_live_process_are_not_taken_over(rig: Rig, tmp_path: Path) -> None:
    rig.timing = Timing(looks_per_renewal=20_000)
    token = own(rig, "alive", lease_milliseconds=3_600_000)
    lock = LifeLock(tmp_path / "locks", "alive")
    process = rig.process(chore.kind(), locks=tmp_path / "locks", lease_milliseconds=3_600_000, begin=False)
    process.start()
    line = process._setup.store.line  # type: ignore[attr-defined]
    scratch.wait_until(lambda: line.calls.count("renewals") >= 3, "three looks at the live processes")
    assert owner(rig) == "alive"
    lock.release()
    rig.store.retire("alive", [(CHORE, token)])
    scratch.wait_until(lambda: owner(rig) == process.id, "the handover")


def test_the_shards_of_a_process_elsewhere_are_taken_over_once_its_counter_stands_still(rig: Rig) -> None:
    """The key of its lease, which lasts for an hour, is no proof of life."""
    own(rig, "elsewhere", lease_milliseconds=3_600_000)
    process = rig.process(chore.kind())
    assert owner(rig) == process.id
    assert rig.store.renewals().keys() == {process.id}
    assert rig.wait(kernel.ShardTakenOver)[0].proof == "lease"


def test_the_shards_of_a_process_that_renews_its_lease_are_not_taken_over(rig: Rig) -> None:
    """Not even without the key of its lease, as after a step of the server's clock."""
    own(rig, "elsewhere")
    process = rig.process(chore.kind(), begin=False)
    process.start()
    line = process._setup.store.line  # type: ignore[attr-defined]
    for number in range(1, 60):
        looks = line.calls.count("renewals")
        rig.store.renew("elsewhere", "", 1, Beat(number, number - 1))
        scratch.wait_until(lambda looks=looks: line.calls.count("renewals") > looks + 1, "two looks at the counter")
    assert owner(rig) == "elsewhere"
    scratch.wait_until(lambda: owner(rig) == process.id, "the takeover after the last renewal")


def test_a_shard_is_taken_over_soon_after_its_owners_counter_stopped(rig: Rig) -> None:
    """The takeover is not delayed until the next renewal, which would add a third to the lease's time-to-live."""
    rig.timing = Timing(looks_per_renewal=50)
    own(rig, "elsewhere", lease_milliseconds=3_600_000)
    process = rig.process(chore.kind(), lease_milliseconds=1_500)
    line = process._setup.store.line  # type: ignore[attr-defined]
    assert owner(rig) == process.id
    assert line.calls.count("renew") <= 4, "the lease was renewed more often than in a time-to-live"


def test_the_lock_files_of_dead_processes_are_removed(rig: Rig, tmp_path: Path) -> None:
    rig.timing = Timing(upkeep_seconds=0.05)
    folder = tmp_path / "locks"
    own(rig, "dead", lease_milliseconds=3_600_000)
    abandon(LifeLock(folder, "dead"))
    living = LifeLock(folder, "living")
    process = rig.process(chore.kind(), locks=folder)
    rig.wait(kernel.ShardTakenOver)
    scratch.wait_until(lambda: not (folder / "dead.lock").exists(), "the removal")
    assert {path.name for path in folder.iterdir()} == {"living.lock", f"{process.id}.lock"}
    living.release()


def test_a_clean_end_hands_the_shards_over_immediately(rig: Rig) -> None:
    # The lease of the first process ends only when it retires.
    first = rig.process(chore.kind(), lease_milliseconds=3_600_000)
    second = rig.process(chore.kind(), begin=False)
    second.start()
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    rig.wait(chore.Completed)
    assert owner(rig) == first.id
    scratch.wait_until(lambda: second.phase == "standing by", "the second process on standby")
    first.retire()
    assert not rig.store.alive().keys() & {first.id}
    scratch.wait_until(lambda: owner(rig) == second.id, "the handover")
    scratch.wait_until(lambda: second.phase == "running", "the second process, running")
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, 2)
    assert not rig.events(kernel.ShardTakenOver), "a shard that was freed was not taken over"


def test_a_retired_process_acquires_nothing(rig: Rig) -> None:
    """Ticks may be queued behind the notice to retire."""
    first = rig.process(chore.kind(), lease_milliseconds=3000)
    supervised = first._supervisor
    assert supervised is not None
    rig.lines[0].calls.clear()
    with rig.server.changed:  # retiring has to wait for the server here
        for notice in (notices.Retire(), notices.Look(), notices.Tick()):
            supervised.tell(notice)
    supervised.actor_stopped.wait(scratch.HANG_SECONDS)
    assert owner(rig) == ""
    assert rig.lines[0].calls.count("acquire") == 0


class Losses(Observer):
    def __init__(self) -> None:
        self.lost: list[tuple[Shard, list[str]]] = []

    def shard_lost(self, shard: Shard, keys: Collection[str]) -> None:
        self.lost.append((shard, sorted(keys)))


def test_an_idle_owner_learns_of_its_loss_from_its_next_renewal(rig: Rig) -> None:
    """Only the shard's token has changed; the process's own entry is as it was."""
    losses = Losses()
    process = rig.process(chore.kind(), observer=losses)
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    rig.settle()
    with rig.server.changed:
        rig.server.update(CHORE, token="9:thief")
    scratch.wait_until(lambda: losses.lost == [(CHORE, ["a"])], "the release of the lost shard")
    assert process.lease.lapses >= 1
    scratch.wait_until(process.lease.valid, "the lease again")


def test_a_process_that_lost_its_shards_during_a_lapse_drops_them(rig: Rig) -> None:
    """The process runs none of their effects: its standing effect has ended before the lease is valid again."""
    line, cancelled, losses = Line(), threading.Event(), Losses()

    def stand(_effect: Effect, context: EffectContext) -> None:
        context.cancelled.wait()
        cancelled.set()

    first = rig.process(chore.kind(standing=stand), line=line, observer=losses)
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(chore.Assigned)
    rig.settle()
    assert losses.lost == []
    line.down = True
    scratch.wait_until(lambda: first.id not in rig.store.alive(), "the end of the lease")
    second = rig.process(chore.kind())
    assert owner(rig) == second.id
    assert not first.lease.valid()
    line.down = False
    assert cancelled.wait(scratch.HANG_SECONDS)
    scratch.wait_until(first.lease.valid, "the lease again")
    assert losses.lost == [(CHORE, ["a"])]
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, 2)
    assert {entry.actor for entry in rig.log() if entry.type == "chore.Assigned@1"} == {"chore#1", "chore#2"}


def test_a_deleted_key_is_no_proof_of_death(rig: Rig) -> None:
    """Neither by an operator, nor by a step of the server's clock, after which all keys of leases have expired."""
    first = rig.process(chore.kind())
    second = rig.process(chore.kind(), begin=False)
    second.start()
    scratch.wait_until(lambda: second.phase == "standing by", "the second process on standby")
    line = rig.lines[-1]
    for _ in range(20):
        looks = line.calls.count("survey")
        with rig.server.changed:
            rig.server.leases.clear()
        scratch.wait_until(lambda looks=looks: line.calls.count("survey") > looks + 1, "two looks at the counters")
    assert owner(rig) == first.id
    assert not rig.events(kernel.ShardTakenOver)


def test_no_standing_effect_runs_for_two_owners(rig: Rig) -> None:
    """The renewals of the first owner do not arrive: its effect has ended before the second owner starts its own."""
    line, seen = Line(), list[str]()

    def standing(name: str) -> Kind[Any]:
        def stand(_effect: Effect, context: EffectContext) -> None:
            context.fence("stand")
            seen.append(f"{name} begins")
            context.cancelled.wait()
            seen.append(f"{name} ends")

        return chore.kind(standing=stand)

    first = rig.process(standing("first"), line=line)
    rig.send(Assign(request=request(), key="a", standing="s"))
    scratch.wait_until(lambda: seen == ["first begins"], "the effect")
    line.blocked.add("renew")
    second = rig.process(standing("second"), begin=False)
    second.start()
    scratch.wait_until(lambda: "second begins" in seen, "the effect of the second owner")
    assert seen == ["first begins", "first ends", "second begins"]
    assert owner(rig) == second.id
    line.blocked.clear()
    scratch.wait_until(first.lease.valid, "the lease of the first process")
    assert seen == ["first begins", "first ends", "second begins"], "an effect of a lost shard was started again"


def test_a_standby_process_stands_by_again_after_the_server_was_emptied(rig: Rig) -> None:
    empty = rig.remember()
    rig.process(chore.kind(), lease_milliseconds=3_600_000)
    second = rig.process(chore.kind(), begin=False)
    second.start()
    scratch.wait_until(lambda: second.phase == "standing by", "the second process on standby")
    assert second._supervisor is not None
    second._supervisor.ask(notices.Upkeep())
    with rig.server.changed:  # no process acts in between
        rig.forget(empty)
        own(rig, "other", lease_milliseconds=3_600_000)
    second._supervisor.ask(notices.Upkeep())
    second._supervisor.ask(notices.Tick())
    assert second.phase == "standing by"


class Refusals(Observer):
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def step_refused(self, shard: Shard, reason: str) -> None:
        self.reasons.append(reason)


def test_a_fenced_host_stops_and_its_process_continues(rig: Rig) -> None:
    # The lease is long, because after a lapse the process would check its ownership before any step. Free shards are
    # checked for four times a second.
    rig.timing = Timing(looks_per_renewal=4_800)
    refusals = Refusals()
    first = rig.process(chore.kind(), observer=refusals, lease_milliseconds=3_600_000)
    token = rig.store.heads([CHORE])[CHORE].token
    thief = rig.store.acquire(CHORE, token, "thief", registry.SCHEMA, proof="lock")
    assert isinstance(thief, Acquired)
    rig.store.renew("thief", "", 3_600_000)
    rig.send(Assign(request=request(), key="a"))
    scratch.wait_until(lambda: refusals.reasons == ["fenced"], "the refusal")
    assert first.error is None
    assert not rig.events(chore.Assigned)
    rig.store.retire("thief", [(CHORE, thief.head.token)])
    rig.wait(chore.Assigned)
    assert refusals.reasons == ["fenced"]


def test_a_shard_written_by_a_newer_schema_is_quarantined(rig: Rig) -> None:
    token = own(rig, "newer", lease_milliseconds=3_600_000)
    step = Step(
        shard=CHORE,
        token=token,
        version=0,
        step_id="s",
        schema=registry.SCHEMA + 1,
        log_cursor=START,
        new_log_cursor=START,
        mail_cursor=START,
        new_mail_cursor=START,
        records=(),
    )
    assert isinstance(rig.store.step(step), Committed)
    rig.store.retire("newer", [(CHORE, token)])
    process = rig.process(chore.kind(), begin=False)
    with capture_logs() as logged:
        process.start()
        line = process._setup.store.line  # type: ignore[attr-defined]
        scratch.wait_until(lambda: line.calls.count("acquire") >= 3, "three attempts")
    assert owner(rig) == ""
    assert [entry["event"] for entry in logged] == ["shard quarantined", "no free shard, standing by"]


def test_a_shard_without_its_history_is_quarantined_and_the_others_continue(rig: Rig) -> None:
    first = rig.process(tally.kind(1), chore.kind())
    rig.send(tally.Add(request="1", key="a", number=1), "tally")
    rig.wait(tally.Added)
    first.retire()
    snapshot = Snapshot(position=rig.store.last(), format=tally.kind(1).format, state=b"\x80")
    thief = rig.store.acquire(Shard("tally"), "", "thief", registry.SCHEMA)
    assert isinstance(thief, Acquired)
    assert rig.store.snapshot(Shard("tally"), thief.head.token, snapshot)
    rig.has_forged_states = True
    rig.store.retire("thief", [(Shard("tally"), thief.head.token)])
    available = threading.Event()

    def history(after: Position) -> Iterator[Entry]:
        if after == START and not available.is_set():
            raise HistoryMissing("the archive files are not here")
        return rig.store.scan(after)

    rig.timing = Timing(history_retry_seconds=3600.0)
    lone = rig.process(chore.kind(), history=history, begin=False)
    lone.start()
    scratch.wait_until(lambda: lone.phase == "without its history", "the phase of a process that cannot continue")
    lone.retire()
    with capture_logs() as logged:
        process = rig.process(tally.kind(1), chore.kind(), history=history)
        rig.send(tally.Add(request="2", key="a", number=2), "tally")
        rig.wait(tally.Added, 2)
        assert owner(rig) == "", "a process that has the archive may take it"
        assert (process.phase, process.quarantined()) == ("running", {CHORE: "the archive files are not here"})
        assert process.error is None
        process.retire()
    assert [entry["shard"] for entry in logged if entry["event"] == "shard quarantined"] == ["chore"]
    rig.timing = Timing(history_retry_seconds=0.05)
    with capture_logs() as logged:
        retrying = rig.process(tally.kind(1), chore.kind(), history=history)
        calls = rig.lines[-1].calls
        before = calls.count("acquire")
        scratch.wait_until(lambda: calls.count("acquire") >= before + 3, "three retries")
    assert [entry["shard"] for entry in logged if entry["event"] == "shard quarantined"] == ["chore"]
    assert retrying.quarantined() == {CHORE: "the archive files are not here"}
    available.set()
    scratch.wait_until(lambda: owner(rig) == retrying.id, "the shard, once its history is available")
    scratch.wait_until(lambda: not retrying.quarantined(), "the end of the quarantine")
