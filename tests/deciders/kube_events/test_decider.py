"""Deliveries to each sink: posts that are delivered, rejected or given up, and retries."""

from __future__ import annotations

from typing import Any

from hypothesis import given as with_data
from hypothesis import settings
from hypothesis import strategies as st

from chronolet.kernel.decider import Due, EffectFailed
from chronolet.kube_events import signals, wanted
from chronolet.kube_events.decider import DECIDER, decider
from chronolet.kube_events.policy import Policy, Rules
from chronolet.kube_events.state import State
from chronolet_schemas import kube_events, pleg
from tests.deciders.given import Scene, given
from tests.deciders.kube_events.recording import T0, batch, count, recorded, scene, several

NOW = T0 + 60_000


def deliver(one: Scene, sink: str = "web") -> wanted.Deliver:
    effect = one.effects[f"sink/{sink}"]
    assert isinstance(effect, wanted.Deliver)
    return effect


def answered(one: Scene, sink: str = "web", **what: Any) -> signals.DeliveryResult:
    effect = deliver(one, sink)
    return signals.DeliveryResult(subject=effect.subject, intent=effect.intent, **what)


def refused(*names: str) -> tuple[signals.RejectedPost, ...]:
    return tuple(signals.RejectedPost(name=name, error="no") for name in names)


def test_a_new_sink_starts_with_the_next_post() -> None:
    one = scene("web").when(batch(recorded()))
    assert one.kinds == ["SinksChanged", "Correlated"]
    assert [post.object_name for post in deliver(one).posts] == ["web"]
    one.when(answered(one, delivered=1)).then(kube_events.Delivered(sink="web", upto=1, count=1))
    assert (one.effects, len(one.state.posts)) == ({}, 0)
    one.when(batch(recorded(), number=2))
    assert one.kinds == ["Correlated"]
    assert [post.count for post in deliver(one).posts] == [2]


def test_suppressed_events_are_counted() -> None:
    one = scene("web").when(batch(*[recorded()] * 30))
    correlated = one.only(kube_events.Correlated)
    assert (correlated.heard, len(correlated.posts), correlated.suppressed) == (30, 25, 5)
    assert (one.state.heard, one.state.suppressed, one.state.head) == (30, 5, 25)
    assert correlated.upto == one.state.upto == f"{T0}-30"
    one.when(batch(recorded(), number=31))
    assert (one.only(kube_events.Correlated).posts, one.state.head, one.state.suppressed) == ((), 25, 6)


def test_a_slow_sink_delays_no_other() -> None:
    one = scene("web", "redis", batch=2).when(batch(*several(3)))
    one.when(answered(one, "redis", delivered=2)).when(answered(one, "redis", delivered=1))
    assert list(one.effects) == ["sink/web"]
    assert len(one.state.posts) == 3
    one.when(answered(one, "web", delivered=2))
    assert list(one.state.posts) == [3]


def test_a_rejected_post_is_given_up_immediately_and_the_next_follow() -> None:
    one = scene("web").when(batch(*several(4)))
    names = [post.name for post in deliver(one).posts]
    one.when(answered(one, delivered=2, refused=refused(names[1]))).then(
        kube_events.GivenUp(sink="web", first=1, last=3, count=1, reason="refused", name=names[1], error="no"),
        kube_events.Delivered(sink="web", upto=3, count=2),
    )
    one.when(answered(one, refused=refused(names[3])))
    assert one.kinds == ["GivenUp"]
    sink = one.state.sinks["web"]
    assert (sink.delivered, sink.given_up, sink.waiting(one.state.head)) == (2, 2, 0)


def test_a_post_that_the_sink_already_has_is_counted_separately() -> None:
    one = scene("web").when(batch(*several(4)))
    name = deliver(one).posts[1].name
    one.when(answered(one, delivered=1, known=1, refused=refused(name), failure="gone"), at=NOW)
    assert one.facts[:3] == (
        kube_events.GivenUp(sink="web", first=1, last=3, count=1, reason="refused", name=name, error="no"),
        kube_events.GivenUp(sink="web", first=1, last=3, count=1, reason="known"),
        kube_events.Delivered(sink="web", upto=3, count=1),
    )
    assert one.only(kube_events.DeliveryFailed).number == 4
    sink = one.state.sinks["web"]
    assert (sink.delivered, sink.given_up, sink.waiting(one.state.head)) == (1, 2, 1)


def test_a_failed_delivery_is_retried_after_a_pause() -> None:
    one = scene("web").when(batch(*several(2)))
    one.when(answered(one, delivered=1, failure="gone"), at=NOW)
    assert one.kinds == ["Delivered", "DeliveryFailed"]
    failed = one.only(kube_events.DeliveryFailed)
    assert (failed.number, failed.tries, failed.error) == (2, 1, "gone")
    assert NOW < failed.retry_at <= NOW + 10_000
    assert (one.effects, one.due) == ({}, failed.retry_at)
    one.wake().then(kube_events.DeliveryResumed(sink="web", number=2))
    assert [post.object_name for post in deliver(one).posts] == ["web-1"]
    later = one.at
    one.when(answered(one, failure="gone"))
    assert one.only(kube_events.DeliveryFailed).retry_at == later + 10_000


def test_a_failed_effect_counts_as_a_failed_delivery() -> None:
    one = scene("web").when(batch(recorded()))
    effect = deliver(one)
    one.when(EffectFailed(effect="Deliver", subject=effect.subject, intent=effect.intent, error="late", timed_out=True))
    assert one.only(kube_events.DeliveryFailed).error == "late"


def test_a_post_is_given_up_after_twelve_attempts() -> None:
    one = scene("web").when(batch(*several(2)))
    for number in range(1, 12):
        one.when(answered(one, failure="gone"))
        assert one.only(kube_events.DeliveryFailed).tries == number
        one.wake()
    name = deliver(one).posts[0].name
    one.when(answered(one, failure="gone")).then(
        kube_events.GivenUp(sink="web", first=1, last=1, count=1, reason="tries", name=name, error="gone")
    )
    assert [post.object_name for post in deliver(one).posts] == ["web-1"]


def test_the_first_pause_varies_between_posts() -> None:
    rules = Rules()
    first = {rules.retry_at(0, attempts=1, sink="web", name=f"n{number}") for number in range(100)}
    assert len(first) > 90
    assert all(0 < pause <= 10_000 for pause in first)
    assert rules.retry_at(0, attempts=2, sink="web", name="n1") == 10_000


def test_an_outdated_result_is_ignored() -> None:
    one = scene("web").when(batch(recorded()))
    late = answered(one, delivered=1)
    one.when(late).when(late).then()
    one.when(signals.DeliveryResult(subject="sink/other", intent="other/1/0", delivered=1)).then()


def test_posts_beyond_the_bound_are_given_up_except_those_in_delivery() -> None:
    one = scene("web", backlog=20, batch=5).when(batch(*several(20)))
    assert count(one.facts, kube_events.GivenUp) == 0
    under_way = answered(one, delivered=5)
    one.when(batch(*several(1, begin=20), number=21))
    assert one.only(kube_events.GivenUp) == kube_events.GivenUp(sink="web", first=6, last=8, count=3, reason="backlog")
    one.when(batch(*several(10, begin=21), number=22))
    assert one.only(kube_events.GivenUp).first == 9
    one.when(under_way).then(kube_events.Delivered(sink="web", upto=5, count=5))
    sink = one.state.sinks["web"]
    assert (sink.delivered, sink.given_up) == (5, 13)
    assert deliver(one).posts[0].object_name == "web-18"
    assert sink.waiting(one.state.head) == len(one.state.posts) == 13


def test_a_batch_ends_before_the_gap() -> None:
    one = scene("web", backlog=20, batch=5).when(batch(*several(25)))
    one.when(answered(one, delivered=2))
    assert [post.object_name for post in deliver(one).posts] == ["web-2", "web-3", "web-4"]


def test_posts_of_a_gap_are_kept_for_sinks_that_need_them() -> None:
    policy = Policy(sinks={"web": Rules(backlog=20, batch=5), "redis": Rules(backlog=100, batch=100)})
    one = given(decider(policy)).when(batch(*several(25)))
    assert [post.object_name for post in deliver(one, "redis").posts] == [f"web-{n}" for n in range(25)]
    one.when(answered(one, "redis", delivered=25))
    assert len(one.state.posts) == one.state.sinks["web"].waiting(25) == 18


def test_pending_posts_of_a_removed_sink_are_given_up() -> None:
    before = scene("web", "old").when(batch(recorded()))
    before.when(answered(before, "old", delivered=1)).when(batch(recorded(), number=2))
    one = given(decider(Policy(sinks={"web": Rules(), "new": Rules()})), *before.history)
    assert deliver(one, "old").posts  # its delivery effect fails
    one.when(batch(recorded(), number=3))
    assert one.facts[:2] == (
        kube_events.GivenUp(sink="old", first=2, last=2, count=1, reason="removed"),
        kube_events.SinksChanged(sinks=("web", "new")),
    )
    assert len(deliver(one, "web").posts) == 3
    assert len(deliver(one, "new").posts) == 1
    idle = given(decider(Policy()), kube_events.SinksChanged(sinks=("old",))).when(batch(recorded()))
    assert idle.kinds == ["SinksChanged", "Correlated"]


def test_an_implausibly_long_pause_ends_with_the_next_event() -> None:
    """This happens after the clock was set back."""
    one = scene("web").when(batch(recorded()))
    one.when(answered(one, failure="gone"), at=NOW + 3_600_000)
    one.when(batch(recorded(), number=2), at=NOW)
    assert one.kinds == ["Correlated", "DeliveryResumed"]


def test_only_elapsed_pauses_end() -> None:
    one = scene("web", "redis").when(batch(recorded()))
    one.when(answered(one, "web", failure="gone"), at=NOW)
    one.when(answered(one, "redis", failure="gone"), at=NOW + 20_000)
    assert one.due == one.state.sinks["web"].retry_at
    one.wake()
    assert one.facts == (kube_events.DeliveryResumed(sink="web", number=1),)
    assert one.due == one.state.sinks["redis"].retry_at


def test_unknown_events_and_sinks_change_nothing() -> None:
    state = State()
    assert DECIDER.evolve(state, pleg.Healthy()) is state
    assert DECIDER.evolve(state, kube_events.Delivered(sink="web", upto=1, count=1)) is state
    assert DECIDER.decide(state, Due(at=1), 1) == ()


@settings(max_examples=80, deadline=None)
@with_data(
    st.lists(
        st.one_of(
            st.tuples(st.just("recorded"), st.integers(1, 30)),
            st.tuples(st.sampled_from(["took", "refused", "failed", "late"]), st.integers(1, 5)),
        ),
        max_size=60,
    )
)
def test_each_post_is_delivered_given_up_or_pending(story: list[tuple[str, int]]) -> None:
    """The sink gives random results at random times."""
    one, number, known = scene("web", backlog=20, batch=5, max_tries=2), 1, None
    for step, much in story:
        if step == "recorded":
            one.when(batch(*several(much, begin=number), number=number))
            number += much
        elif step == "late" and known is not None:
            one.when(known)
        elif "sink/web" in one.effects:
            posts = deliver(one).posts[:much]
            what: dict[str, Any] = {"delivered": len(posts)} if step == "took" else {}
            if step == "refused":
                what = {"refused": refused(*(post.name for post in posts))}
            known = answered(one, **({"failure": "gone"} if step == "failed" else what))
            one.when(known, at=NOW)
        elif one.due:
            one.wake()
        sink = one.state.sinks.get("web")
        if sink is not None:
            waiting = sink.waiting(one.state.head)
            assert sink.delivered + sink.given_up + waiting == one.state.head == number - 1
            assert sorted(one.state.posts) == [n for n in range(1, number) if sink.wants(n)]
            assert waiting == len(one.state.posts) <= 20 + 5
