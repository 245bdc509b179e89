"""Converts what the runtime reports about a container into the form that the decider handles. Pure.

Input: a line of the event stream, or an inspect's result, and the container's owner. Output:
`signals.ContainerObserved`, or `signals.OomKilled` for an OOM kill. Next: the workers send it; `changes` turns it into
events.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from chronolet.pleg import signals
from chronolet.ports.runtime.labels import Owner
from chronolet.ports.runtime.runtime import ContainerState, Notice
from chronolet.rules.refs import ContainerRef

NOBODY = Owner(pod="", uid="", container="", attempt=0)
"""Placeholder for the owner of a container that is known only from the log; `changes` takes the owner from the
state."""


class Sent(NamedTuple):
    """What the runtime was asked to send to a run, as in `pleg.ContainerDied`: the signals, and the last one's time."""

    signals: tuple[int, ...] | None = None
    at: int = 0


NOT_KNOWN = Sent()


def noticed(
    notice: Notice, owner: Owner, sent: Sent = NOT_KNOWN
) -> signals.ContainerObserved | signals.OomKilled | None:
    """Return the signal for a line of the event stream; None for a creation, a kill, and an unreadable death.

    A creation needs no signal: a start notice follows, and a listing finds a container that never starts. Nor does a
    kill: `sent`, the signals that the runtime sent to this run so far, is part of the observation of its death. A death
    whose exit code is hidden is left to the next listing.
    """
    ref = _ref(notice.id, owner)
    match notice.action:
        case "start":
            return signals.ContainerObserved(state="running", started_at=notice.at, detailed=False, **ref)
        case "die":
            if notice.exit_code is None:
                return None
            return signals.ContainerObserved(
                state="exited",
                exit_code=notice.exit_code,
                finished_at=notice.at,
                sent=sent.signals,
                sent_at=sent.at,
                **ref,
            )
        case "destroy":
            return signals.ContainerObserved(state="removed", **ref)
        case "oom":
            return signals.OomKilled(**ref)
        case "create" | "kill":
            return None
        case _:
            assert_never(notice.action)


def inspected(container_id: str, found: ContainerState | None, owner: Owner) -> signals.ContainerObserved:
    """Return the signal for an inspect's result. `found` is None if the container is gone."""
    ref = _ref(container_id, owner)
    if found is None:
        return signals.ContainerObserved(state="removed", **ref)
    if found.state != "exited":
        return signals.ContainerObserved(state=found.state, started_at=found.started_at, **ref)
    return signals.ContainerObserved(
        state="exited",
        exit_code=found.exit_code,
        reason=_reason(found),
        started_at=found.started_at,
        finished_at=found.finished_at,
        **ref,
    )


def _reason(found: ContainerState) -> str:
    if found.oom_killed:
        return "OOMKilled"
    return "Error" if found.exit_code else "Completed"


def _ref(container_id: str, owner: Owner) -> ContainerRef:
    return ContainerRef(pod=owner.pod, uid=owner.uid, container=owner.container, attempt=owner.attempt, id=container_id)
