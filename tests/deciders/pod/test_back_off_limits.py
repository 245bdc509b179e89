"""The limits of the restart back-off that a setting leads to, and the waits that follow."""

import pytest

from chronolet.pod.planning.backoff import KUBELET, Limits, advanced, limits, wait_seconds
from chronolet.pod.state import BackOff


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (300_000, KUBELET),
        (60_000, Limits(10, 60)),
        (10_000, Limits(10, 10)),
        (4_000, Limits(4, 4)),
        (1_000, Limits(1, 1)),
        (0, Limits(1, 1)),
    ],
)
def test_a_back_off_begins_no_longer_than_its_maximum(milliseconds: int, expected: Limits) -> None:
    assert limits(milliseconds) == expected


def test_a_back_off_grows_to_its_maximum_and_is_forgotten_after_twice_as_long() -> None:
    found, known = [], None
    for at in range(0, 40_000, 10_000):
        known = advanced(known, at, at, limits(25_000))
        found.append(known.seconds)
    assert found == [10, 20, 25, 25]
    assert wait_seconds(BackOff(seconds=25, updated_at=0), 50_000, limits(25_000)) == 25
    assert wait_seconds(BackOff(seconds=25, updated_at=0), 50_001, limits(25_000)) == 0
