"""Process names: a restarted process takes its own name at once; two live processes never have the same name."""

import threading
from pathlib import Path

import pytest

from chronolet.kernel.hosting import notices
from chronolet.kernel.hosting.process import Process
from chronolet.kernel.ownership.life_lock import LifeLock, NameTaken, proven_dead, sweep
from chronolet.kernel.storage.members import Member
from chronolet.kernel.storage.store import Beat
from chronolet_schemas import kernel
from chronolet_schemas.keys import Shard
from tests.kernel import chore, tally
from tests.kernel.chore import Assign
from tests.kernel.ownership.test_takeover import abandon, owner
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch

LONG = 3_600_000
FORMER = Member(instance="former", kinds=("chore",), host="machine-1")


def leave_behind(rig: Rig, name: str) -> None:
    """Make the store look as if a process of this name owned the shard of `chore` until it was killed."""
    process = rig.process(chore.kind(), name=name, lease_milliseconds=LONG)
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    before = rig.remember()
    process.retire()
    log = list(rig.server.log), rig.server.last
    rig.forget(before)
    rig.server.log, rig.server.last = log
    rig.store.publish(name, FORMER)


def test_a_restarted_process_takes_its_name_and_shards_at_once(rig: Rig, tmp_path: Path) -> None:
    """Its life lock proves that its former instance is dead. Its lease would expire only after an hour."""
    leave_behind(rig, "node-a")
    abandon(LifeLock(tmp_path / "locks", "node-a", "former"))
    process = rig.process(chore.kind(), name="node-a", locks=tmp_path / "locks", lease_milliseconds=LONG)
    assert (process.id, owner(rig)) == ("node-a", "node-a")
    taken = rig.wait(kernel.ShardTakenOver)
    assert taken == [kernel.ShardTakenOver(former_owner="node-a", owner="node-a", proof="lock")]


def test_a_name_that_is_elsewhere_is_free_once_its_counter_stands_still(rig: Rig) -> None:
    leave_behind(rig, "node-a")
    before = int(rig.store.survey(()).counters["node-a"])
    process = rig.process(chore.kind(), name="node-a", lease_milliseconds=600)
    assert owner(rig) == "node-a"
    assert process.lease.valid()
    assert int(rig.store.survey(()).counters["node-a"]) > before + 100_000, "late renewals of the former one count"
    assert rig.wait(kernel.ShardTakenOver)[0].proof == "lease"


def test_a_restarted_process_gives_up_what_it_can_no_longer_host(rig: Rig, tmp_path: Path) -> None:
    """Otherwise, its former shards would look owned as long as it lives, and no other process would acquire them."""
    leave_behind(rig, "node-a")
    abandon(LifeLock(tmp_path / "locks", "node-a", "former"))
    setup = {"locks": tmp_path / "locks", "lease_milliseconds": LONG, "begin": False}
    less = rig.process(tally.kind(1), name="node-a", **setup)
    less.start()
    scratch.wait_until(lambda: owner(rig) == "", "the release of the chore")
    other = rig.process(chore.kind(), name="node-b", **setup)
    other.start()
    scratch.wait_until(lambda: owner(rig) == "node-b", "the chore elsewhere")


def test_an_entry_of_a_former_process_in_a_restored_server_ends_nobody(rig: Rig) -> None:
    """Only the entry of a successor ends a process: the numbers of its renewals are far higher."""
    process = rig.process(chore.kind(), name="node-a", lease_milliseconds=3000)
    with rig.server.changed:
        rig.server.renewals["node-a"] = 7
    rig.store.publish("node-a", FORMER)
    scratch.wait_until(lambda: rig.store.survey(()).members["node-a"] != FORMER, "its own entry again")
    assert process.error is None


def test_a_process_that_left_has_freed_its_name(rig: Rig) -> None:
    for _ in range(3):
        process = rig.process(chore.kind(), name="node-a", lease_milliseconds=LONG)
        process.retire()
    assert not rig.events(kernel.ShardTakenOver)


def test_a_second_process_of_the_same_name_on_another_machine_is_refused(rig: Rig) -> None:
    rig.process(chore.kind(), name="node-a", host="machine-1", lease_milliseconds=600)
    second = rig.process(chore.kind(), name="node-a", lease_milliseconds=600, begin=False)
    with pytest.raises(NameTaken, match=r"'node-a' is taken: another process .* on host machine-1; stop that process"):
        second.start()
    assert owner(rig) == "node-a"


def test_a_second_process_of_the_same_name_on_this_machine_is_refused(rig: Rig, tmp_path: Path) -> None:
    rig.process(chore.kind(), name="node-a", locks=tmp_path)
    with pytest.raises(NameTaken, match=r"a running process of this machine holds .*node-a\.lock"):
        rig.process(chore.kind(), name="node-a", locks=tmp_path, begin=False)


def test_a_process_that_was_taken_for_dead_ends_once_another_one_has_its_name(rig: Rig) -> None:
    line = Line()
    first = rig.process(chore.kind(), name="node-a", line=line, lease_milliseconds=600)
    line.down = True
    second = rig.process(chore.kind(), name="node-a", lease_milliseconds=600)
    line.down = False
    assert first.wait(scratch.HANG_SECONDS)
    assert isinstance(first.error, NameTaken)
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    assert second.error is None
    assert second.lease.valid()


def test_of_two_processes_that_start_together_one_gets_the_name(rig: Rig) -> None:
    processes = [rig.process(chore.kind(), name="node-a", lease_milliseconds=900, begin=False) for _ in range(4)]
    refused: list[Process] = []

    def start(process: Process) -> None:
        try:
            process.start()
        except NameTaken:
            refused.append(process)

    threads = [threading.Thread(target=start, args=(process,)) for process in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scratch.HANG_SECONDS)
    (only,) = [process for process in processes if process not in refused]
    scratch.wait_until(lambda: only.phase == "running", "the one that has the name")
    assert owner(rig) == "node-a"
    assert Shard("chore") in only.lease.tokens


def test_a_name_is_not_given_away_while_its_process_renews_its_lease(rig: Rig) -> None:
    """A second process of the same name cannot join while the renewal counter of the first one moves."""
    assert rig.store.join("node-a", FORMER, seen=None, counter="")
    rig.store.renew("node-a", "", 1, Beat(5, 4))
    process = rig.process(chore.kind(), name="node-a", begin=False, lease_milliseconds=LONG)
    started = threading.Thread(target=process.start)
    started.start()
    line = rig.lines[-1]
    scratch.wait_until(lambda: "survey" in line.calls, "the first look")
    rig.store.renew("node-a", "", 1, Beat(6, 5))
    assert rig.store.survey(()).members == {"node-a": FORMER}
    process.stop_waiting()
    started.join(scratch.HANG_SECONDS)
    assert not started.is_alive()
    assert rig.store.survey(()).members == {"node-a": FORMER}


def test_a_lock_that_was_left_here_proves_nothing_about_a_process_that_moved_to_another_machine(
    rig: Rig, tmp_path: Path
) -> None:
    abandon(LifeLock(tmp_path / "here", "node-a", "an earlier instance"))
    elsewhere = rig.process(chore.kind(), name="node-a", lease_milliseconds=LONG)
    here = rig.process(chore.kind(), name="node-b", locks=tmp_path / "here", lease_milliseconds=LONG, begin=False)
    here.start()
    scratch.wait_until(lambda: here.phase == "standing by", "the second process on standby")
    assert here._supervisor is not None
    for _ in range(3):
        here._supervisor.ask(notices.Tick())
    assert owner(rig) == "node-a"
    assert elsewhere.lease.valid()
    assert not proven_dead(tmp_path / "here", "node-a", elsewhere._membership.entry.instance)
    assert proven_dead(tmp_path / "here", "node-a", "an earlier instance")


def test_a_lock_that_is_probed_can_be_taken(tmp_path: Path) -> None:
    """Live processes probe the locks of dead ones several times a second. A restarted process gets its lock anyway."""
    abandon(LifeLock(tmp_path, "node-a", "i"))
    ended = threading.Event()

    def probe() -> None:
        while not ended.is_set():
            proven_dead(tmp_path, "node-a")

    probing = [threading.Thread(target=probe) for _ in range(2)]
    for thread in probing:
        thread.start()
    try:
        for number in range(20):
            lock = LifeLock(tmp_path, "node-a", str(number))
            assert not proven_dead(tmp_path, "node-a")
            abandon(lock)
    finally:
        ended.set()
        for thread in probing:
            thread.join()


def test_a_lock_that_is_held_is_never_swept_away(tmp_path: Path) -> None:
    held = LifeLock(tmp_path, "held", "i")
    abandon(LifeLock(tmp_path, "dead", "i"))
    sweep(tmp_path, ())
    assert [path.name for path in tmp_path.iterdir()] == ["held.lock"]
    held.release()
    assert LifeLock(tmp_path, "held", "j").former == ""
