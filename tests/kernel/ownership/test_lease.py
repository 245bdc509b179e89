"""The lease, with a manual clock: its process never considers it valid for longer than other processes do."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import capture_logs

from chronolet.kernel.effects.timers import Timers
from chronolet.kernel.ownership.lease import MARGIN, RENEWALS_IN_TTL, RETRIES_PER_RENEWAL, TTL_MILLISECONDS, Lease
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.redis.store import Timeouts
from chronolet.kernel.storage.store import FIRST_BEAT, Acquired, Beat, Renewed, StoreUnreachable
from chronolet_schemas.keys import Shard
from tests.support import scratch

TTL = 3_600_000
"""The lease's time to live in milliseconds: so long that its thread, which uses the real clock, never renews it."""


class ManualClock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> float:
        return self.at


class SlowStore(MemoryStore):
    """The in-memory store with latency: each renewal takes `delay` seconds to arrive."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(MemoryServer(clock=lambda: int(clock.at * 1000)))
        self._manual = clock
        self.delay = 0.0
        self.down = False
        self.before_reply: Callable[[], None] = lambda: None

    def renew(self, process: str, info: str, ttl_milliseconds: int, beat: Beat = FIRST_BEAT) -> Renewed:
        self._manual.at += self.delay
        if self.down:
            raise StoreUnreachable("down")
        renewed = super().renew(process, info, ttl_milliseconds, beat)
        self.before_reply()
        return renewed


@pytest.fixture
def timers() -> Iterator[Timers]:
    made = Timers()
    yield made
    made.stop()


class Effect:
    """A standing effect that counts its lapses."""

    def __init__(self) -> None:
        self.lapses = 0

    def lapse(self) -> None:
        self.lapses += 1


@pytest.mark.parametrize(("arrives_after", "valid"), [(0.05, True), (1.0, False)])
def test_a_renewal_that_arrives_too_late_is_a_lapse(timers: Timers, arrives_after: float, valid: bool) -> None:
    """The renewal was sent in time; but another process may have taken over the shards before it arrived."""
    clock = ManualClock()
    store = SlowStore(clock)
    lease = Lease(store, "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    assert lease.valid()
    clock.at += TTL / 1000 - 0.1
    store.delay = arrives_after
    lease._renew()
    assert lease.answered()
    assert lease.valid() is valid
    lease.confirm(lease.lapses)
    assert lease.valid()
    lease.stop()


def test_the_leases_of_a_suspended_machine_are_invalid_until_ownership_was_checked(timers: Timers) -> None:
    """The machine's processes were suspended, but not the server's clock: the processes must check ownership before
    they act.
    """
    clock = ManualClock()
    lease = Lease(SlowStore(clock), "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    assert lease.valid()
    clock.at += 2 * TTL / 1000
    assert not lease.valid()
    lease._renew()
    assert not lease.valid(), "valid before ownership was checked"
    lease.confirm(lease.lapses)
    assert lease.valid()
    lease.stop()


def test_the_leases_clock_includes_the_time_of_a_suspension() -> None:
    """Runs in a time namespace in which the machine seems to have been suspended for 5000 s since boot."""
    code = (
        "import time; from chronolet.kernel.ownership.lease import seconds_since_boot;"
        " print(seconds_since_boot() - time.monotonic())"
    )
    command = ["unshare", "--time", "--boottime", "5000", sys.executable, "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert float(printed) > 4999


def test_a_lost_shard_counts_as_a_lapse(timers: Timers) -> None:
    """The next renewal shows it, even if the owner commits no step; standing effects end before anything else."""
    clock, shard, effect = ManualClock(), Shard("pod"), Effect()
    store = SlowStore(clock)
    lease = Lease(store, "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    lease.join(effect)
    acquired = store.acquire(shard, "", "p", 1)
    assert isinstance(acquired, Acquired)
    lease.tokens = {shard: acquired.head.token}
    lease._renew()
    assert (lease.valid(), effect.lapses) == (True, 0)
    assert isinstance(store.acquire(shard, acquired.head.token, "thief", 1, proof="lock"), Acquired)
    lease._renew()
    assert (lease.valid(), effect.lapses) == (False, 1)
    lease.stop()


def test_a_removed_entry_counts_as_a_lapse_even_without_shards(timers: Timers) -> None:
    clock = ManualClock()
    store = SlowStore(clock)
    lease = Lease(store, "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    store.retire("p", [])
    lease._renew()
    assert not lease.valid()
    lease.confirm(lease.lapses)
    lease._renew()
    assert lease.valid()
    lease.stop()


def test_each_attempt_has_a_new_number_and_a_lost_reply_is_no_lapse(timers: Timers) -> None:
    """Another process may have seen the number of an attempt whose reply was lost, and counts from then."""
    clock = ManualClock()
    store = SlowStore(clock)
    lease = Lease(store, "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    first = store.renewals()["p"]
    store.down = True
    with pytest.raises(StoreUnreachable):
        lease._renew()
    store.down = False
    lease._renew()
    assert int(store.renewals()["p"]) == int(first) + 2
    assert lease.valid()
    lease.stop()


def test_standing_effects_stop_before_the_lease_ends(timers: Timers) -> None:
    """A new owner must find their sockets free. An effect that has ended is not stopped."""
    effect, ended = Effect(), Effect()
    store = SlowStore(ManualClock())
    lease = Lease(store, "p", "", timers, ttl_milliseconds=600)
    lease.start(lambda: None)
    store.down = True
    for one in (effect, ended):
        lease.join(one)
    lease.leave(ended)
    valid_then: list[bool] = []
    effect.lapse = lambda: valid_then.append(lease.valid())  # type: ignore[method-assign]
    scratch.wait_until(lambda: bool(valid_then), "the stop")
    assert valid_then == [True]
    assert ended.lapses == 0
    lease.stop()


def test_no_fence_passes_between_a_late_renewal_and_the_check_of_the_owners(timers: Timers) -> None:
    """The lease thread renews while another thread asks whether the lease is valid: in the middle of the answer."""
    clock = ManualClock()
    lease = Lease(SlowStore(clock), "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    clock.at += 2 * TTL / 1000

    def now() -> float:
        asked = clock.now()
        lease._now = clock.now
        lease._renew()
        return asked

    lease._now = now
    assert not lease.valid()
    assert not lease.valid()
    lease.stop()


def test_an_effect_that_begins_when_the_lease_is_about_to_end_is_stopped_at_once(timers: Timers) -> None:
    """The timer that stops standing effects has fired before, and fires no more."""
    clock, early, late = ManualClock(), Effect(), Effect()
    lease = Lease(SlowStore(clock), "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    lease.join(early)
    clock.at += 0.95 * TTL / 1000
    lease.join(late)
    assert (early.lapses, late.lapses) == (0, 1)
    lease.stop()


def test_an_effect_that_begins_before_ownership_was_checked_is_stopped_at_once(timers: Timers) -> None:
    clock, effect = ManualClock(), Effect()
    lease = Lease(SlowStore(clock), "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    clock.at += 2 * TTL / 1000
    lease._renew()
    lease.join(effect)
    assert effect.lapses == 1
    lease.stop()


def test_a_shard_that_the_process_took_again_during_a_renewal_is_not_lost(timers: Timers) -> None:
    clock, shard = ManualClock(), Shard("pod")
    store = SlowStore(clock)
    lease = Lease(store, "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)

    def take() -> None:
        acquired = store.acquire(shard, store.heads([shard])[shard].token, "p", 1)
        assert isinstance(acquired, Acquired)
        lease.tokens = {shard: acquired.head.token}

    take()
    store.before_reply = take
    lease._renew()
    assert lease.valid()
    lease.stop()


def test_an_effect_that_fails_to_stop_leaves_the_others_and_the_lease_alone(timers: Timers) -> None:
    clock, effects = ManualClock(), [Effect() for _ in range(5)]
    lease = Lease(SlowStore(clock), "p", "", timers, ttl_milliseconds=TTL, now=clock.now)
    lease.start(lambda: None)
    for one in effects:
        lease.join(one)

    def fails() -> None:
        raise OSError("nothing works")

    effects[2].lapse = fails  # type: ignore[method-assign]
    clock.at += 2 * TTL / 1000
    with capture_logs() as logged:
        lease._renew()
    assert [one.lapses for one in effects] == [1, 1, 0, 1, 1]
    assert [entry["event"] for entry in logged] == ["a standing effect could not be stopped"]
    lease.confirm(lease.lapses)
    assert lease.valid()
    lease.stop()


class Waits(threading.Event):
    """An event whose waits take no time: each moves the clock and is noted. It is set after `most` waits."""

    def __init__(self, clock: ManualClock, most: int) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self._clock = clock
        self._most = most

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(round(timeout, 3))
        self._clock.at += timeout
        return len(self.seconds) > self._most


def test_a_renewal_that_failed_is_retried_soon_and_slow_ones_are_as_frequent(timers: Timers) -> None:
    clock = ManualClock()
    store = SlowStore(clock)
    lease = Lease(store, "p", "", timers, ttl_milliseconds=3000, now=clock.now)
    lease.start(lambda: None)
    lease.stop()
    store.delay, store.before_reply = 0.3, lambda: setattr(store, "down", True)
    lease._stopping = waits = Waits(clock, 3)
    lease._run()
    assert waits.seconds == [1.0, 0.7, 0.2, 0.2]


def test_one_late_reply_stops_no_standing_effect() -> None:
    """After a call that times out, a retry has half a time-out until standing effects are stopped."""
    lease_seconds = TTL_MILLISECONDS / 1000
    renewal = lease_seconds / RENEWALS_IN_TTL
    second_attempt = renewal + Timeouts().lease_seconds + renewal / RETRIES_PER_RENEWAL
    assert second_attempt + Timeouts().lease_seconds / 2 < lease_seconds * (1 - MARGIN)
