"""Durations as Go prints them."""

import pytest

from chronolet.rules.names.durations import go_duration


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (1, "1ms"),
        (999, "999ms"),
        (1000, "1s"),
        (1200, "1.2s"),
        (1234, "1.234s"),
        (60_000, "1m0s"),
        (62_500, "1m2.5s"),
        (3_600_000, "1h0m0s"),
        (3_603_040, "1h0m3.04s"),
    ],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert go_duration(milliseconds) == text
