"""Reports about the disk reserve: each subscriber gets the latest one."""

from __future__ import annotations

import threading

from chronolet.keeper.disk import DiskReports, Report
from chronolet.keeper.signals import ReserveReleased, ReserveRestored
from tests.support.scratch import HANG_SECONDS

GONE, BACK = ReserveReleased(freed_bytes=1, error="full"), ReserveRestored(size_bytes=1)


def test_a_late_subscriber_gets_only_the_newest_state() -> None:
    disk = DiskReports()
    assert disk.latest(0, 0.0) == (0, None)
    disk.publish(GONE)
    disk.publish(BACK)
    assert disk.latest(0, 0.0) == (2, BACK)
    assert disk.latest(2, 0.0) == (2, None)


def test_a_subscriber_is_woken() -> None:
    disk = DiskReports()
    received: list[tuple[int, Report | None]] = []
    subscriber = threading.Thread(target=lambda: received.append(disk.latest(0, HANG_SECONDS)))
    subscriber.start()
    disk.publish(GONE)
    subscriber.join(HANG_SECONDS)
    assert received == [(1, GONE)]
