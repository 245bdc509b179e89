"""The lease, on a manual clock: it is never valid for longer than other processes see it."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from chronolet.kernel.ownership.lease import Lease
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore

TTL = 3_600_000
"""So long that the lease's thread, which uses the real clock, renews nothing during a test."""


class Hands:
    """A manual clock that replaces the lease's own."""

    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> float:
        return self.at


class SlowStore(MemoryStore):
    """The in-memory twin with latency: each renewal takes `delay` seconds to arrive."""

    def __init__(self, hands: Hands, clock: Callable[[], int]) -> None:
        super().__init__(MemoryServer(clock=clock))
        self._hands = hands
        self.delay = 0.0

    def renew(self, process: str, info: str, ttl_milliseconds: int) -> None:
        self._hands.at += self.delay
        super().renew(process, info, ttl_milliseconds)


@pytest.mark.parametrize(("arrives_after", "valid"), [(0.05, True), (1.0, False)])
def test_a_renewal_that_arrives_too_late_is_a_lapse(arrives_after: float, valid: bool) -> None:
    """It was sent in time; but another process may have taken over the shards before it arrived."""
    hands = Hands()
    store = SlowStore(hands, lambda: int(hands.at * 1000))
    lease = Lease(store, "p", "", ttl_milliseconds=TTL, now=hands.now)
    lease.start(lambda: None)
    assert lease.valid()
    hands.at += TTL / 1000 - 0.1
    store.delay = arrives_after
    lease._renew()
    assert lease.answered()
    assert lease.valid() is valid
    lease.confirm(lease.lapses)
    assert lease.valid()
    lease.stop()


def test_a_machine_that_slept_has_lost_its_leases() -> None:
    """Its processes slept too, but the server's clock went on: they must check ownership before they act."""
    hands = Hands()
    lease = Lease(SlowStore(hands, lambda: int(hands.at * 1000)), "p", "", ttl_milliseconds=TTL, now=hands.now)
    lease.start(lambda: None)
    assert lease.valid()
    hands.at += 2 * TTL / 1000
    assert not lease.valid()
    lease._renew()
    assert not lease.valid(), "valid before ownership was checked"
    lease.confirm(lease.lapses)
    assert lease.valid()
    lease.stop()


def test_the_leases_clock_counts_time_asleep() -> None:
    """Runs in a time namespace in which the machine has slept for 5000 s since boot."""
    asked = (
        "import time; from chronolet.kernel.ownership.lease import seconds_since_boot;"
        " print(seconds_since_boot() - time.monotonic())"
    )
    words = ["unshare", "--time", "--boottime", "5000", sys.executable, "-c", asked]
    slept = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert float(slept) > 4999
