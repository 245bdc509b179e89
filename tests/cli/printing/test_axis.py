"""Labels of an axis in the local time zone."""

import time
from collections.abc import Iterator

import pytest

from chronolet.cli.printing.axis import DAY, HOUR, MINUTE, ROUND_DURATIONS, SECOND, label, utc_offset

NOON = 1_800_000_000_000
"""2027-01-15T08:00:00Z."""


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone of this process."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "step", "expected"),
    [
        ("UTC", 30 * SECOND, "08:00:00"),
        ("UTC", MINUTE, "08:00"),
        ("UTC", 12 * HOUR, "08:00"),
        ("UTC", DAY, "01-15"),
        ("IST-5:30", HOUR, "13:30"),
        ("PST8", DAY, "01-15"),
        ("PST9", DAY, "01-14"),
    ],
    indirect=["zone"],
)
@pytest.mark.usefixtures("zone")
def test_labels_are_local_times(step: int, expected: str) -> None:
    assert label(NOON, step) == expected


@pytest.mark.parametrize(("zone", "hours"), [("UTC", 0), ("IST-5:30", 5.5), ("PST8", -8)], indirect=["zone"])
@pytest.mark.usefixtures("zone")
def test_the_offset_is_that_of_the_time_zone(hours: float) -> None:
    assert utc_offset(NOON) == hours * HOUR


def test_round_durations_ascend() -> None:
    assert sorted(set(ROUND_DURATIONS)) == list(ROUND_DURATIONS)
