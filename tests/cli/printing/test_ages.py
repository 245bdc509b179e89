"""Durations and times in kubectl's format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.cli.printing import ages

S, M, H, D, Y = 1_000, 60_000, 3_600_000, 86_400_000, 365 * 86_400_000


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5 * S, "<invalid>"),
        (-2 * S, "<invalid>"),
        (-1 * S, "0s"),
        (0, "0s"),
        (999, "0s"),
        (119 * S, "119s"),
        (2 * M, "2m"),
        (2 * M + 5 * S, "2m5s"),
        (9 * M + 59 * S, "9m59s"),
        (10 * M + 59 * S, "10m"),
        (179 * M, "179m"),
        (3 * H, "3h"),
        (3 * H + 5 * M, "3h5m"),
        (7 * H + 59 * M, "7h59m"),
        (8 * H + 59 * M, "8h"),
        (47 * H, "47h"),
        (2 * D, "2d"),
        (2 * D + 5 * H, "2d5h"),
        (8 * D + 5 * H, "8d"),
        (729 * D, "729d"),
        (2 * Y, "2y"),
        (2 * Y + 35 * D, "2y35d"),
        (8 * Y + 35 * D, "8y"),
    ],
)
def test_a_duration_has_kubectls_format(milliseconds: int, text: str) -> None:
    assert ages.human(milliseconds) == text


@given(st.integers(0, 30 * Y))
def test_a_printed_duration_is_at_most_the_real_one_and_not_much_less(milliseconds: int) -> None:
    text = ages.human(milliseconds)
    units = {"s": S, "m": M, "h": H, "d": D, "y": Y}
    printed, digits = 0, ""
    for character in text:
        if character in units:
            printed, digits = printed + int(digits) * units[character], ""
        else:
            digits += character
    assert printed <= milliseconds
    assert milliseconds - printed < max(1_000, milliseconds * 0.13)


def test_the_age_of_an_unknown_time_is_unknown() -> None:
    assert ages.ago(0, 5) == "<unknown>"


def test_times_are_rfc3339() -> None:
    assert ages.rfc3339(1_800_000_000_123) == "2027-01-15T08:00:00Z"
    assert ages.rfc3339(1_800_000_000_023, fraction=True) == "2027-01-15T08:00:00.023Z"
