"""A death on the same machine is noticed at once, by the lock that the dead process held."""

import fcntl
import threading
from pathlib import Path

import pytest

from chronolet.kernel.hosting import notices
from chronolet.kernel.ownership.death_watch import DeathWatch
from chronolet.kernel.ownership.life_lock import LifeLock
from tests.kernel import chore
from tests.kernel.ownership.test_takeover import owner
from tests.kernel.rig import Rig
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

HOUR = 3_600_000


def die(lock: LifeLock) -> None:
    """Release the lock as if its process had died: the lock's file stays."""
    fcntl.flock(lock._file, fcntl.LOCK_UN)


def test_each_death_of_a_watched_process_is_noticed_once(tmp_path: Path) -> None:
    deaths = threading.Semaphore(0)
    watch = DeathWatch(tmp_path, deaths.release)
    lock = LifeLock(tmp_path, "web", "first")
    watch.watch({"web": "first"})
    assert watch.watches({"web": "first"})
    assert not deaths.acquire(timeout=0.05)
    die(lock)
    assert deaths.acquire(timeout=HANG_SECONDS)
    assert not watch.watches({"web": "first"})
    watch.watch({"web": "first"})  # it is still listed until its shards are taken over
    successor = LifeLock(tmp_path, "web", "second")
    watch.watch({"web": "second"})
    assert not deaths.acquire(timeout=0.05)
    die(successor)
    assert deaths.acquire(timeout=HANG_SECONDS)
    assert not deaths.acquire(timeout=0.05)


def test_a_process_without_a_lock_here_is_not_watched(tmp_path: Path) -> None:
    deaths = threading.Semaphore(0)
    watch = DeathWatch(tmp_path, deaths.release)
    lock = LifeLock(tmp_path, "moved", "here")
    watch.watch({"elsewhere": "i", "moved": "there"})
    assert not watch.watches({"elsewhere": "i"})
    assert not watch.watches({"moved": "there"})
    DeathWatch(None, deaths.release).watch({"moved": "here"})
    die(lock)
    assert not deaths.acquire(timeout=0.05)


def test_a_process_that_is_listed_again_is_still_watched_once(tmp_path: Path) -> None:
    deaths = threading.Semaphore(0)
    watch = DeathWatch(tmp_path, deaths.release)
    lock = LifeLock(tmp_path, "web", "first")
    for listed in ({"web": "first"}, {}, {"web": "first"}, {}, {"web": "first"}):
        watch.watch(listed)
    assert [one.name for one in threading.enumerate()].count("life of web") == 1
    die(lock)
    assert deaths.acquire(timeout=HANG_SECONDS)
    assert not deaths.acquire(timeout=0.05)


def test_without_a_thread_a_death_is_left_to_regular_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    lock = LifeLock(tmp_path, "web", "first")
    opened = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    watch = DeathWatch(tmp_path, lambda: None)
    watch.watch({"web": "first"})
    assert len(list(Path("/proc/self/fd").iterdir())) == opened
    die(lock)


def test_the_shards_of_a_dead_process_are_taken_over_without_waiting_for_a_tick(rig: Rig, tmp_path: Path) -> None:
    """With leases of an hour, the next tick is twenty minutes away."""
    first = rig.process(chore.kind(), locks=tmp_path, lease_milliseconds=HOUR)
    second = rig.process(chore.kind(), locks=tmp_path, lease_milliseconds=HOUR, begin=False)
    second.start()
    scratch.wait_until(lambda: second.phase == "standing by", "a process that stands by")
    assert second._supervisor is not None
    second._supervisor.ask(notices.Look())  # after this, what its own joining has caused is handled
    assert owner(rig) == first.id
    assert first._lock is not None
    die(first._lock)
    scratch.wait_until(lambda: owner(rig) == second.id, "the takeover")
