"""The supervisor: restarts of hosts, the end of a process, and shards without events."""

import threading
from itertools import pairwise

from chronolet.kernel.hosting import notices
from chronolet.kernel.observer import Observer
from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel, registry
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Assign
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch

CHORE = Shard("chore")


class Recoveries(Observer):
    def __init__(self) -> None:
        self.counted: list[tuple[int, int]] = []

    def recovered(self, shards: int, events: int, seconds: float) -> None:
        assert seconds > 0
        self.counted.append((shards, events))


def test_a_recovery_is_reported_with_the_number_of_entries_read(rig: Rig) -> None:
    first = rig.process(tally.kind(1), chore.kind())
    for _ in range(5):
        rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, 5)
    first.retire()
    recoveries = Recoveries()
    rig.process(tally.kind(1), chore.kind(), observer=recoveries)
    assert recoveries.counted == [(2, len(rig.log()))]


def test_a_failed_host_is_restarted_by_the_same_process_with_a_new_epoch(rig: Rig) -> None:
    process = rig.process(chore.kind(), lease_milliseconds=3000)
    before = rig.store.heads([CHORE])[CHORE].token
    rig.send(Assign(request=request(), key="a", raises=True))
    rig.wait(kernel.HostRestarted)
    after = rig.store.heads([CHORE])[CHORE].token
    assert before == f"1:{process.id}"
    assert int(after.partition(":")[0]) > 1
    assert after.endswith(process.id)
    assert not rig.events(kernel.ShardTakenOver)


def test_the_back_off_between_restarts_grows(rig: Rig) -> None:
    rig.timing = Timing(host_first_back_off_seconds=0.05)
    rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a", raises=True))
    rig.wait(kernel.MessageDeadLettered)
    at = [entry.position.milliseconds for entry in rig.log() if entry.type == "kernel.HostRestarted@1"]
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert len(gaps) == 3
    assert [gap >= pause for gap, pause in zip(gaps, (50, 100, 200), strict=True)] == [True] * 3


def test_a_shard_without_events_moves_its_cursor_by_empty_steps(rig: Rig) -> None:
    rig.timing = Timing(behind_entries=40)
    rig.process(chore.kind(), tally.kind(1), mirror.kind(1))
    for number in range(100):
        rig.send(Assign(request=request(), key=f"k{number}"))
    rig.wait(chore.Assigned, 100)
    quiet = Shard("mirror")
    scratch.wait_until(lambda: rig.store.last().n - rig.store.heads([quiet])[quiet].log_cursor.n <= 40, "an empty step")
    assert rig.types().count("chore.Assigned") == 100
    assert not any(entry.actor.startswith("mirror#") for entry in rig.log())


def test_a_process_retires_while_its_server_is_unreachable(rig: Rig) -> None:
    line = Line()
    process = rig.process(chore.kind(), line=line)
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(chore.Assigned)
    line.down = True
    rig.send(Assign(request=request(), key="a"))
    ended = threading.Thread(target=process.retire)
    ended.start()
    ended.join(scratch.HANG_SECONDS)
    assert not ended.is_alive()
    assert process.phase == "retired"
    assert process.error is None


def test_a_host_that_waits_for_a_reply_can_be_stopped(rig: Rig) -> None:
    """The host's step gets no reply until its process retires. Another process then takes over the shard, and only the
    second process's step for the command is committed.
    """
    line = Line()
    first = rig.process(chore.kind(), line=line, lease_milliseconds=300)
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    line.blocked = {"step"}
    rig.send(Assign(request=request(), key="a"))
    scratch.wait_until(lambda: line.calls.count("step") >= 3, "a step sent three times")
    first.retire()
    rig.process(chore.kind())
    rig.wait(chore.Assigned, 2)
    assert len(rig.events(chore.Assigned)) == 2


def test_a_failing_supervisor_ends_the_process_with_its_error(rig: Rig) -> None:
    line = Line()
    rig.timing = Timing(upkeep_seconds=0.1)
    process = rig.process(chore.kind(), line=line)
    line.raises["alive"] = ZeroDivisionError("a bug")
    retired = rig.store.heads([CHORE])[CHORE].token
    rig.store.acquire(CHORE, retired, "thief", registry.SCHEMA, proof="lock")  # so that live processes are queried
    rig.send(Assign(request=request(), key="a"))
    assert process.wait(scratch.HANG_SECONDS)
    assert isinstance(process.error, ZeroDivisionError)
    process.retire()


def test_a_failing_reader_ends_the_process_with_its_error(rig: Rig) -> None:
    line = Line()
    process = rig.process(chore.kind(), line=line)
    line.raises["wait"] = ZeroDivisionError("a bug")
    rig.send(Assign(request=request(), key="a"))
    rig.send(Assign(request=request(), key="a"))
    assert process.wait(scratch.HANG_SECONDS)
    assert isinstance(process.error, ZeroDivisionError)


def test_a_late_notice_of_an_ended_back_off_does_not_host_a_shard_twice(rig: Rig) -> None:
    """The server was unreachable when the back-off ended, and a tick acquired the shard before the notice came."""
    process = rig.process(chore.kind(), lease_milliseconds=3000)
    before = rig.store.heads([CHORE])[CHORE].token
    assert process._supervisor is not None
    process._supervisor.tell(notices.BackOffOver(CHORE))
    process._supervisor.ask(notices.Tick())
    assert rig.store.heads([CHORE])[CHORE].token == before
