"""Which events are merged, combined or suppressed, and how much memory this takes."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import given as with_data
from hypothesis import settings
from hypothesis import strategies as st

from chronolet.kube_events import signals
from chronolet.kube_events.correlator import COMBINED, LONGEST_MESSAGE, Correlation
from chronolet.kube_events.decider import decider
from chronolet.kube_events.policy import Options, Policy
from chronolet.kube_events.state import Caches, State
from chronolet.ports.kube_sinks import last_at
from chronolet.rules.names.kube_event import event_name, event_namespace
from chronolet_schemas import kube_events
from chronolet_schemas.envelope import Position
from chronolet_schemas.times import Stamp
from tests.deciders.given import given
from tests.deciders.kube_events.recording import T0, batch, caches_of, in_order, recorded, several


def posts(*events: kube_events.Recorded, **options: Any) -> list[kube_events.Post | None]:
    work = Correlation(Caches(), Options(**options))
    return [
        work.take(Stamp(Position(T0 + number, number + 1), T0 + number), event) for number, event in enumerate(events)
    ]


def test_a_post_has_all_fields() -> None:
    event = recorded(uid="u1", field_path="spec.containers{app}")
    assert posts(event) == [
        kube_events.Post(
            at=f"{T0}-1",
            name=f"web.{T0 * 1_000_000 + 1:x}",
            first=T0,
            object_kind="Pod",
            namespace="shop",
            object_name="web",
            uid="u1",
            field_path="spec.containers{app}",
            severity="Warning",
            reason="BackOff",
            message="again",
        )
    ]


def test_identical_events_are_one_post_with_a_count() -> None:
    first, second, other = posts(recorded(), recorded(), recorded(message="else"))
    assert first is not None
    assert second is not None
    assert other is not None
    assert (second.name, second.first, second.count) == (first.name, first.first, 2)
    assert (other.name != first.name, other.count) == (True, 1)


def test_two_events_of_the_same_time_have_different_names() -> None:
    work = Correlation(Caches(), Options())
    names = {work.take(Stamp(Position(T0, number), T0), recorded(message=str(number))).name for number in (7, 8)}  # type: ignore[union-attr]
    assert len(names) == 2


def test_an_event_without_a_token_is_not_posted_and_counted_in_the_next() -> None:
    found = posts(*[recorded()] * 4, burst=2, refill=3)
    assert [post and post.count for post in found] == [1, 2, None, 4]


def test_each_severity_has_its_own_tokens() -> None:
    found = posts(recorded(), recorded(severity="Normal"), recorded(message="b"), burst=1)
    assert [post is not None for post in found] == [True, True, False]


def test_a_known_message_is_combined_as_late_as_a_new_one() -> None:
    messages = ["a", "b", "a", "c", "c", "d"]
    found = posts(*(recorded(message=text) for text in messages), max_events=3)
    combined = [post is not None and post.message.startswith(COMBINED) for post in found]
    assert combined == [False, False, False, True, False, True]


def test_a_long_message_is_truncated_and_still_distinguished_by_its_end() -> None:
    whole = "x" * 1_000_000
    first, second = posts(recorded(message=whole + "a"), recorded(message=whole + "b"))
    assert first is not None
    assert second is not None
    assert len(first.message) == LONGEST_MESSAGE
    assert first.message.endswith("...")
    assert first.name != second.name


def test_events_of_an_object_without_a_valid_name_are_named_by_a_uuid() -> None:
    name = event_name("Not_A_DNS:name", 16)
    assert uuid.UUID(name).version == 5
    assert name == event_name("Not_A_DNS:name", 16) != event_name("Not_A_DNS:name", 17)
    assert (event_namespace(""), event_namespace("shop")) == ("default", "shop")


def test_memory_is_bounded_with_many_objects() -> None:
    scene = given(decider(Policy()))
    for begin in range(0, 5_000, 1_000):
        scene.when(batch(*several(1_000, begin=begin), number=begin + 1))
    caches = scene.state.caches
    assert scene.state.heard == 5_000
    for one in (caches.known, caches.similar, caches.tokens):
        assert len(one.entries) == len(one.order) == 4096
    assert len(scene.state.posts) == 0  # there is no sink


@settings(max_examples=60, deadline=None)
@with_data(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 400_000)), min_size=1, max_size=40),
    st.lists(st.integers(1, 7), min_size=1),
    st.integers(1, 4),
)
def test_a_batch_gives_the_same_result_as_single_events(
    events_given: list[tuple[int, int, int]], sizes: list[int], cache_size: int
) -> None:
    """This holds for any number of events per step, and for caches of any size."""
    policy = Policy(options=Options(burst=3, max_events=3))
    events, at = [], T0
    for number, (name, message, pause) in enumerate(events_given, 1):
        at += pause
        events.append((Stamp(Position(at, number), at), recorded(f"web-{name}", str(message))))
    ends = []
    for chunks in ([1] * len(events), sizes * len(events)):
        state, left, found, kept_back = State(caches=caches_of(cache_size)), list(events), [], 0
        one = decider(policy)
        for size in chunks:
            if not left:
                break
            for event in one.decide(state, signals.batch(left[:size]), 0):
                assert isinstance(event, kube_events.Correlated)
                found += event.posts
                kept_back += event.suppressed
                state = one.evolve(state, event) or State()
            left = left[size:]
        assert state.heard == len(events) == len(found) + kept_back
        caches = state.caches
        ends.append((found, kept_back, [in_order(one) for one in (caches.known, caches.similar, caches.tokens)]))
    assert ends[0] == ends[1]


def test_the_times_of_a_post_are_those_of_its_entries_not_of_their_positions() -> None:
    """After the log's positions were ahead once, they stand still until real time has caught up."""
    work, ahead = Correlation(Caches(), Options()), T0 + 3_600_000
    early, late = (Stamp(Position(ahead, number), T0 + 5_000 * number) for number in (1, 2))
    first, second = work.take(early, recorded()), work.take(late, recorded())
    assert first is not None
    assert second is not None
    assert (first.first, last_at(first)) == (T0 + 5_000, T0 + 5_000)
    assert (second.first, last_at(second), second.count) == (T0 + 5_000, T0 + 10_000, 2)
    assert (second.at, second.name) == (f"{ahead}-2", first.name)
