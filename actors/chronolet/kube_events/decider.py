"""Decide how KubeEvents from the log are delivered to the sinks. Pure.

Input: `signals.RecordedBatch`, results of deliveries, Due. Output: events of kube_events. Next: `effects`, through
`outstanding`. Source: client-go's tools/record/event.go (recordToSink, recordEvent).

Each sink advances through the posts independently. It is `pausing` while `Sink.retry_at` is set, else `delivering`
while posts are waiting, else `idle`:

    sink         event             to
    -            SinksChanged      idle         it is configured; it begins with the next post
    idle         Correlated        delivering   new posts
    idle         SinksChanged      -            it is no longer configured
    delivering   Correlated        delivering
    delivering   Delivered         delivering   the cursor moves on to the next posts
    delivering   Delivered         idle         no posts are left
    delivering   GivenUp           delivering   refused, known, the last attempt failed, or backlog too long
    delivering   GivenUp           idle         as above; or all posts of a sink that is removed
    delivering   DeliveryFailed    pausing
    pausing      Correlated        pausing
    pausing      GivenUp           pausing      the backlog is too long
    pausing      GivenUp           idle         all posts of a sink that is removed
    pausing      DeliveryResumed   delivering   the pause has ended

A sink's backlog is bounded: beyond the bound the oldest posts are given up, except those whose delivery may be in
progress. So delivered, given up and waiting posts add up to all posts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from chronolet.kernel.decider import Decider, Due, EffectFailed
from chronolet.kube_events import signals, wanted
from chronolet.kube_events.correlator import Correlation
from chronolet.kube_events.evolve import evolve
from chronolet.kube_events.policy import Policy, Rules
from chronolet.kube_events.state import Sink, State
from chronolet_schemas import kube_events
from chronolet_schemas.envelope import Event
from chronolet_schemas.kube_events import Post

KubeEventsMessage = signals.RecordedBatch | signals.DeliveryResult | EffectFailed | Due
"""Every message that the kind handles."""


def decide(policy: Policy, state: State, message: KubeEventsMessage, now: int) -> Sequence[Event]:
    """See `Decider.decide`. A changed set of sinks is recorded with the first message of any kind."""
    changes = tuple(_sinks_changed(policy, state))
    for change in changes:
        state = evolve(state, change)
    return (*changes, *_decided(policy, state, message, now))


def _decided(policy: Policy, state: State, message: KubeEventsMessage, now: int) -> Iterator[Event]:
    match message:
        case signals.RecordedBatch():
            yield from _correlated(policy, state, message)
            # A pause longer than the configured one means that the clock was set back: end it.
            yield from _resumed(state, lambda name, sink: sink.retry_at > now + policy.sinks[name].pause)
        case signals.DeliveryResult():
            yield from _delivery_ended(policy, state, message, now)
        case EffectFailed():
            failed = signals.DeliveryResult(subject=message.subject, intent=message.intent, failure=message.error)
            yield from _delivery_ended(policy, state, failed, now)
        case Due():
            yield from _resumed(state, lambda _, sink: 0 < sink.retry_at <= message.at)
        case _:
            assert_never(message)


def _resumed(state: State, is_over: Callable[[str, Sink], bool]) -> Iterator[Event]:
    for name, sink in state.sinks.items():
        if is_over(name, sink):
            yield kube_events.DeliveryResumed(sink=name, number=sink.cursor + 1)


# -- configured sinks --------------------------------------------------------------------------------------------------
def _sinks_changed(policy: Policy, state: State) -> Iterator[Event]:
    if policy.sinks.keys() == state.sinks.keys():
        return
    for name, sink in state.sinks.items():
        waiting = sink.waiting(state.head)
        if name not in policy.sinks and waiting:
            yield kube_events.GivenUp(
                sink=name, first=sink.cursor + 1, last=state.head, count=waiting, reason="removed"
            )
    yield kube_events.SinksChanged(sinks=tuple(policy.sinks))


# -- posts and backlog -------------------------------------------------------------------------------------------------
def _correlated(policy: Policy, state: State, message: signals.RecordedBatch) -> Iterator[Event]:
    work = Correlation(state.caches, policy.options)
    found = [work.take(at, event) for at, event in message.events]
    posts = tuple(post for post in found if post is not None)
    correlated = kube_events.Correlated(
        heard=len(found),
        upto=str(message.events[-1][0].position),
        suppressed=len(found) - len(posts),
        first_number=state.head + 1,
        posts=posts,
        known=work.known.changed,
        similar=work.similar.changed,
        tokens=work.tokens.changed,
    )
    yield correlated
    yield from _overflow(policy, state, state.head + len(posts))


def _overflow(policy: Policy, state: State, head: int) -> Iterator[Event]:
    for name, sink in state.sinks.items():
        rules = policy.sinks[name]
        first = sink.gap_last + 1 if sink.gap_first else sink.cursor + rules.batch + 1
        count = min(rules.too_many(sink.waiting(head)), head - first + 1)
        if count > 0:
            yield kube_events.GivenUp(sink=name, first=first, last=first + count - 1, count=count, reason="backlog")


# -- delivery results --------------------------------------------------------------------------------------------------
def _delivery_ended(policy: Policy, state: State, result: signals.DeliveryResult, now: int) -> Iterator[Event]:
    name = result.subject.removeprefix(_SUBJECT)
    sink = state.sinks.get(name)
    if sink is None or result.intent != _intent(name, sink):
        return
    settled = result.delivered + result.known + len(result.refused)
    first, last = sink.cursor + 1, sink.cursor + settled
    if result.refused:
        refused = result.refused[-1]
        yield kube_events.GivenUp(
            sink=name,
            first=first,
            last=last,
            count=len(result.refused),
            reason="refused",
            name=refused.name,
            error=refused.error,
        )
    if result.known:
        yield kube_events.GivenUp(sink=name, first=first, last=last, count=result.known, reason="known")
    if result.delivered:
        yield kube_events.Delivered(sink=name, upto=last, count=result.delivered)
    if result.failure:
        attempts = 1 if settled else sink.tries + 1
        yield _failed(policy.sinks[name], state, name, last + 1, attempts=attempts, error=result.failure, now=now)


def _failed(rules: Rules, state: State, sink: str, number: int, *, attempts: int, error: str, now: int) -> Event:
    post = state.posts[number].name
    if attempts >= rules.max_tries:
        return kube_events.GivenUp(
            sink=sink, first=number, last=number, count=1, reason="tries", name=post, error=error
        )
    retry_at = rules.retry_at(now, attempts=attempts, sink=sink, name=post)
    return kube_events.DeliveryFailed(
        sink=sink, number=number, name=post, tries=attempts, error=error, retry_at=retry_at
    )


# -- outstanding effects -----------------------------------------------------------------------------------------------
_SUBJECT = "sink/"


def due(state: State) -> int | None:
    """Return when the next pause ends; None if no sink is pausing."""
    return min((sink.retry_at for sink in state.sinks.values() if sink.retry_at), default=None)


def outstanding(policy: Policy, state: State) -> Sequence[wanted.Deliver]:
    """Return a delivery of the next posts for each sink that has waiting posts and is not pausing."""
    return tuple(
        wanted.Deliver(
            subject=f"{_SUBJECT}{name}",
            intent=_intent(name, sink),
            sink=name,
            posts=_batch(policy, state, name, sink),
        )
        for name, sink in state.sinks.items()
        if not sink.retry_at and sink.waiting(state.head)
    )


def _intent(name: str, sink: Sink) -> str:
    return f"{name}/{sink.cursor + 1}/{sink.tries}"


def _batch(policy: Policy, state: State, name: str, sink: Sink) -> tuple[Post, ...]:
    """Return the sink's next batch: consecutive posts, up to the gap if there is one."""
    rules = policy.sinks.get(name) or Rules()
    end = min(sink.cursor + rules.batch, sink.gap_first - 1 if sink.gap_first else state.head, state.head)
    return tuple(state.posts[number] for number in range(sink.cursor + 1, end + 1))


def decider(policy: Policy) -> Decider[State]:
    """Build the decider for this policy."""
    return Decider(
        initial=State(),
        decide=functools.partial(decide, policy),
        evolve=evolve,
        due=due,
        outstanding=functools.partial(outstanding, policy),
    )


DECIDER: Decider[State] = decider(Policy())
