"""What a reader of the log sees: either the posts that the sinks get, or everything."""

from __future__ import annotations

from chronolet.kube_events.view import View, correlated
from chronolet_schemas.envelope import Position
from chronolet_schemas.times import Stamp
from tests.deciders.kube_events.recording import T0, recorded

LOUD = [
    (Stamp(Position(T0 + number, number), T0 + number), recorded(message=str(number % 40))) for number in range(1, 81)
]


def test_the_view_has_what_the_sinks_have() -> None:
    posts = correlated(LOUD)
    assert [post.message for post in posts][:2] == ["1", "2"]
    assert posts[-1].message.startswith("(combined from similar events): ")
    assert posts[-1].count == 16  # the 10th to the 25th; after these, no token is left


def test_the_view_without_filter_has_everything() -> None:
    view = View(whole=True)
    assert all(view.take(at, event) for at, event in LOUD)
    assert [post.count for post in view.posts()] == [2] * 40
