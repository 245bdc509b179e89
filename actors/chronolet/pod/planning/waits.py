"""The waits in a pod's state: when they end, and their correction after the clock was set back. Pure.

Input: State, now. Output: times, or the State with corrected waits. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from chronolet.pod.admission import admission
from chronolet.pod.planning.backoff import KUBELET, RESYNC_SECONDS, image_failed_milliseconds
from chronolet.pod.planning.deadline import deadline
from chronolet.pod.state import Cleanup, Container, State, Stop

_LONGEST_MS = (KUBELET.maximum_seconds + RESYNC_SECONDS) * 1000


def waits(state: State) -> Iterator[int]:
    """Return the ends of all waits in this state."""
    return (time for time in (*_bounded(state), *_spec_defined(state)) if time)


def _bounded(state: State) -> Iterator[int]:
    """Return the ends of the waits with a known maximum length."""
    times = [state.sandbox.retry_at, state.cleanup.retry_at if state.cleanup else 0]
    stops = (*(one.stop for one in state.strays), *(one.stop for one in state.containers))
    times += [stop.retry_at for stop in stops if stop]
    times += admission.retry_times(state)
    for one in state.containers:
        times += (one.retry_at, one.tell_again_at)
        if one.phase == "image_failed":
            times.append(one.waits_from + image_failed_milliseconds(one.image_failures))
    return (time for time in times if time)


def _spec_defined(state: State) -> Iterator[int]:
    """Yield the ends of the waits whose length is defined in the pod's spec."""
    yield deadline(state)
    for one in state.containers:
        if one.hook:
            yield one.hook.sleeps_until
        if one.stop and one.stop.held:
            yield one.stop.deadline


def _spec_defined_starts(state: State) -> Iterator[int]:
    """Yield the times at which the waits of `_spec_defined` began."""
    yield state.accepted_at
    for one in state.containers:
        if one.hook:
            yield one.hook.requested_at
        if one.stop and one.stop.held:
            yield one.stop.deadline - one.stop.grace_period_seconds * 1000


def clamped(state: State, now: int) -> State:
    """Return the state with its waits corrected for a clock that was set back.

    A wait that is longer than its maximum ends now; times in the future at which waits began become `now`.
    """
    ends_in_time = all(time <= now + _LONGEST_MS for time in _bounded(state))
    if ends_in_time and all(time <= now for time in _spec_defined_starts(state)):
        return state
    return replace(
        state,
        accepted_at=min(state.accepted_at, now),
        sandbox=replace(state.sandbox, retry_at=_clamped(state.sandbox.retry_at, now)),
        cleanup=_cleanup(state.cleanup, now),
        containers=tuple(_container(one, now) for one in state.containers),
        wishes={name: replace(one, asked_at=min(one.asked_at, now)) for name, one in state.wishes.items()},
        share=replace(state.share, asked_at=min(state.share.asked_at, now)),
        strays=tuple(replace(one, stop=_stop(one.stop, now)) for one in state.strays),
    )


def _clamped(time: int, now: int) -> int:
    return now if time > now + _LONGEST_MS else time


def _cleanup(one: Cleanup | None, now: int) -> Cleanup | None:
    return replace(one, retry_at=_clamped(one.retry_at, now)) if one else None


def _stop(one: Stop | None, now: int) -> Stop | None:
    if one is None:
        return None
    latest = now + one.grace_period_seconds * 1000
    return replace(one, retry_at=_clamped(one.retry_at, now), deadline=min(one.deadline, latest))


def _container(one: Container, now: int) -> Container:
    return replace(
        one,
        waits_from=min(one.waits_from, now),
        retry_at=_clamped(one.retry_at, now),
        tell_again_at=_clamped(one.tell_again_at, now),
        stop=_stop(one.stop, now),
        hook=replace(one.hook, requested_at=min(one.hook.requested_at, now)) if one.hook else None,
    )
