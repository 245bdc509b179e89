"""The waits in a pod's state: when they end, and what becomes of them when the clock is put back. Pure.

Comes in: State, now. Goes out: times, or the State with waits that have not lost their sense. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from chronolet.pod.backoff import MAXIMUM_SECONDS, RESYNC_SECONDS
from chronolet.pod.starting import IMAGE_FAILED_SHOWN_MS
from chronolet.pod.state import Cleanup, Container, State, Stop

_LONGEST_MS = (MAXIMUM_SECONDS + RESYNC_SECONDS) * 1000


def waits(state: State) -> Iterator[int]:
    """Every time at which a wait of this state ends."""
    times = [state.sandbox.retry_at, state.cleanup.retry_at if state.cleanup else 0]
    stops = (*(one.stop for one in state.strays), *(one.stop for one in state.containers))
    times += [stop.retry_at for stop in stops if stop]
    for one in state.containers:
        times.append(one.retry_at)
        if one.phase == "image_failed":
            times.append(one.waits_from + IMAGE_FAILED_SHOWN_MS)
    return (time for time in times if time)


def clamped(state: State, now: int) -> State:
    """The state as it is to be planned with.

    A wait that is longer than any is meant to be ends now: the clock was put back since.
    """
    if all(time <= now + _LONGEST_MS for time in waits(state)):
        return state
    return replace(
        state,
        sandbox=replace(state.sandbox, retry_at=_clamped(state.sandbox.retry_at, now)),
        cleanup=_cleanup(state.cleanup, now),
        containers=tuple(_container(one, now) for one in state.containers),
        strays=tuple(replace(one, stop=_stop(one.stop, now)) for one in state.strays),
    )


def _clamped(time: int, now: int) -> int:
    return now if time > now + _LONGEST_MS else time


def _cleanup(one: Cleanup | None, now: int) -> Cleanup | None:
    return replace(one, retry_at=_clamped(one.retry_at, now)) if one else None


def _stop(one: Stop | None, now: int) -> Stop | None:
    return replace(one, retry_at=_clamped(one.retry_at, now)) if one else None


def _container(one: Container, now: int) -> Container:
    return replace(
        one, waits_from=min(one.waits_from, now), retry_at=_clamped(one.retry_at, now), stop=_stop(one.stop, now)
    )
