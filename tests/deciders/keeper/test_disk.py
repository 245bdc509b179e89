"""Reports about the disk reserve reach every follower, also one that comes later."""

from chronolet.keeper.disk import DiskReports, Report
from chronolet.keeper.signals import ReserveReleased, ReserveRestored

GONE, BACK = ReserveReleased(freed_bytes=1, error="full"), ReserveRestored(size_bytes=1)


def test_a_follower_receives_the_latest_report_and_each_later_one() -> None:
    disk = DiskReports()
    early: list[Report] = []
    late: list[Report] = []
    disk.follow(early.append)
    disk.publish(BACK)
    disk.publish(GONE)
    disk.follow(late.append)
    disk.publish(BACK)
    assert early == [BACK, GONE, BACK]
    assert late == [GONE, BACK]


def test_a_follower_that_has_left_receives_nothing_more() -> None:
    disk = DiskReports()
    found: list[Report] = []
    leave = disk.follow(found.append)
    disk.publish(GONE)
    leave()
    disk.publish(BACK)
    assert found == [GONE]
