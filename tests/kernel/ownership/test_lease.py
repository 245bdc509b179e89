"""The lease, with a manual clock: its process never considers it valid for longer than other processes do."""

import subprocess
import sys

import pytest

from chronolet.kernel.ownership.lease import Lease
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore

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

    def renew(self, process: str, info: str, ttl_milliseconds: int) -> None:
        self._manual.at += self.delay
        super().renew(process, info, ttl_milliseconds)


@pytest.mark.parametrize(("arrives_after", "valid"), [(0.05, True), (1.0, False)])
def test_a_renewal_that_arrives_too_late_is_a_lapse(arrives_after: float, valid: bool) -> None:
    """The renewal was sent in time; but another process may have taken over the shards before it arrived."""
    clock = ManualClock()
    store = SlowStore(clock)
    lease = Lease(store, "p", "", ttl_milliseconds=TTL, now=clock.now)
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


def test_the_leases_of_a_suspended_machine_are_invalid_until_ownership_was_checked() -> None:
    """The machine's processes were suspended, but not the server's clock: the processes must check ownership before
    they act.
    """
    clock = ManualClock()
    lease = Lease(SlowStore(clock), "p", "", ttl_milliseconds=TTL, now=clock.now)
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
