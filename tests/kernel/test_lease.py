"""The lease, on a clock moved by hand: what it allows is never more than what others see of it."""

from collections.abc import Callable

import pytest

from chronolet.kernel import lease as lease_module
from chronolet.kernel.lease import Lease
from chronolet.kernel.memory_data import MemoryServer
from chronolet.kernel.memory_store import MemoryStore


class Hands:
    """A clock that a test moves, in place of the lease's `time`."""

    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


class SlowStore(MemoryStore):
    """The twin at the end of a long line: each renewal takes `delay` seconds to get there."""

    def __init__(self, hands: Hands, clock: Callable[[], int]) -> None:
        super().__init__(MemoryServer(clock=clock))
        self._hands = hands
        self.delay = 0.0

    def renew(self, process: str, info: str, ttl_milliseconds: int) -> None:
        self._hands.at += self.delay
        super().renew(process, info, ttl_milliseconds)


@pytest.mark.parametrize(("arrives_after", "valid"), [(0.05, True), (1.0, False)])
def test_a_renewal_that_arrives_too_late_is_a_lapse(
    monkeypatch: pytest.MonkeyPatch, arrives_after: float, valid: bool
) -> None:
    """It was asked for in time; but when it arrived somebody else may have taken the shards over."""
    hands = Hands()
    monkeypatch.setattr(lease_module, "time", hands)
    store = SlowStore(hands, lambda: int(hands.at * 1000))
    lease = Lease(store, "p", "", ttl_milliseconds=3000)
    lease.start(lambda: None)
    assert lease.valid()
    hands.at += 2.9
    store.delay = arrives_after
    lease._renew()
    assert lease.answered()
    assert lease.valid() is valid
    lease.confirm(lease.lapses)
    assert lease.valid()
    lease.stop()
