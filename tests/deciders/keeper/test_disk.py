"""How the disk stands: the newest news, for whoever asks, whenever it asks."""

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
    heard: list[tuple[int, Report | None]] = []
    listener = threading.Thread(target=lambda: heard.append(disk.latest(0, HANG_SECONDS)))
    listener.start()
    disk.publish(GONE)
    listener.join(HANG_SECONDS)
    assert heard == [(1, GONE)]
