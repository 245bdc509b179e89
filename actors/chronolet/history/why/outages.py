"""Finds the times when Docker Engine was down, and what ended with it. Pure.

Input: the history of a pod, the time of an end. Output: `EngineDown`. Next: `endings`, `stops`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.facts import Fact
from chronolet.history.why.records import Life, PodHistory, Run
from chronolet_schemas import pleg, pod

NEAR_MILLISECONDS = 10_000
"""Containers may end this long after an engine is back that was killed."""
SHUTDOWN_MILLISECONDS = 20_000
"""Containers may end this long before a stopping engine closes its connections, or after others of their pod: dockerd
gives containers 15 seconds (`shutdown-timeout`), or their own stop time-out and 5 seconds."""


def outages(history: PodHistory) -> Sequence[tuple[Fact, pleg.StreamLost, Fact | None]]:
    """Return each loss of the connection to Docker, and when it was followed again."""
    followed = [fact for fact, _ in history.node_events(pleg.StreamFollowed)]
    return [
        (lost, event, next((fact for fact in followed if fact.position > lost.position), None))
        for lost, event in history.node_events(pleg.StreamLost)
    ]


def outage_at(history: PodHistory, at: int, *, whole_pod: bool) -> Sequence[Cause]:
    """Return the outage during which, or shortly before or after which, something ended at this time."""
    for lost, event, back in reversed(outages(history)):
        until = (back.at if back else at) + NEAR_MILLISECONDS
        if lost.at - SHUTDOWN_MILLISECONDS <= at <= until:
            back_at = back.at if back else 0
            return (causes.EngineDown(error=event.error, back_at=back_at, whole_pod=whole_pod, **where(lost)),)
    return ()


def engine_ended(history: PodHistory, life: Life, at: int, sent: tuple[int, ...] | None) -> Sequence[Cause]:
    """Return the end of Docker Engine, if the whole pod ended with it at about this time.

    Without live-restore, an engine stops its containers, or kills them when it starts again. `sent`: the signals that
    Docker sent.
    """
    if sent is not None and causes.TERM not in sent:
        return ()
    near = any(abs(event.finished_at - at) <= SHUTDOWN_MILLISECONDS for _, event in sandbox_deaths(life))
    return outage_at(history, at, whole_pod=True) if near else ()


def sandbox_deaths(life: Life) -> Sequence[tuple[Fact, pod.SandboxExited]]:
    """Return the ends of the pod's sandboxes that chronolet did not request."""
    stopped = {event.id for _, event in life.of(pod.SandboxStopRequested)}
    return [one for one in life.of(pod.SandboxExited) if one[1].id not in stopped]


def sandbox_died(
    history: PodHistory, life: Life, run: Run, death: tuple[Fact, pod.SandboxExited]
) -> causes.SandboxDied:
    """Return the end of the sandbox of a run as a cause."""
    fact, event = death
    return causes.SandboxDied(
        exit_code=event.exit_code,
        signals=sent_to(life, event.id),
        others=history.has_all_of(run, fact.position),
        **where(fact),
    )


def sent_to(life: Life, container_id: str) -> tuple[int, ...] | None:
    """Return the signals that Docker sent to a sandbox before its first death; None if they are not known."""
    return next((event.sent for _, event in life.of(pleg.ContainerDied) if event.id == container_id), None)
