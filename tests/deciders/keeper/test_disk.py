"""How the disk stands: the newest news, for whoever asks, whenever it asks."""

from __future__ import annotations

import threading

from chronolet.keeper.disk import Disk, News
from chronolet.keeper.signals import BallastBack, BallastGone
from tests.support.scratch import HANG_SECONDS

GONE, BACK = BallastGone(freed_bytes=1, error="full"), BallastBack(size_bytes=1)


def test_a_late_listener_hears_the_newest_and_only_that() -> None:
    disk = Disk()
    assert disk.news(0, 0.0) == (0, None)
    disk.tell(GONE)
    disk.tell(BACK)
    assert disk.news(0, 0.0) == (2, BACK)
    assert disk.news(2, 0.0) == (2, None)


def test_a_listener_is_woken() -> None:
    disk = Disk()
    heard: list[tuple[int, News | None]] = []
    listener = threading.Thread(target=lambda: heard.append(disk.news(0, HANG_SECONDS)))
    listener.start()
    disk.tell(GONE)
    listener.join(HANG_SECONDS)
    assert heard == [(1, GONE)]
