"""Pleg's health, and durations as Go formats them."""

from __future__ import annotations

from chronolet.pleg.health import NEVER, go_duration, ill_from, illness


def test_a_listing_counts_for_as_long_as_the_threshold() -> None:
    assert illness(None, 5, 10) == NEVER
    assert illness(0, 180_000, 180_000) == ""
    assert ill_from(0, 180_000) == 180_001
    assert illness(0, 181_000, 180_000) == "pleg was last seen active 3m1s ago; threshold is 3m0s"


def test_durations_are_formatted_as_in_go() -> None:
    read = {0: "0s", 59: "59s", 60: "1m0s", 185: "3m5s", 3600: "1h0m0s", 3725: "1h2m5s"}
    assert {seconds: go_duration(seconds * 1000) for seconds in read} == read
