"""The steps from a failing probe to the next container's start, read from the log.

Input: a store, a position of its log. Output: the steps of each restart. Next: `broken`. The wait for the next probe,
which no agent can shorten, is not included.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, pleg, pod, prober, registry
from chronolet_schemas.envelope import Event, Position

_KINDS = (
    *(prober.ProbeSucceeded, prober.ProbeFailed, pleg.ProbeKillHeld),
    *(pod.ContainerStopRequested, pod.ContainerExited, pod.ContainerStarted),
)


class Steps(NamedTuple):
    """The steps of a restart in milliseconds. `decided` and `noticed` are the agent's, the other steps are mostly
    Docker's. Their sum is the time from the failing probe's start to the new container's.
    """

    probe: int
    """Duration of the failing probe."""
    decided: int
    """From the failure until the request to stop the container is in the log."""
    stopped: int
    """Until the container is dead, according to Docker's clock."""
    noticed: int
    """Until the container's death is in the log."""
    started: int
    """Until the next container has started, according to Docker's clock."""


def medians(found: Sequence[Steps]) -> Steps:
    """Return the median of each step. Raises StatisticsError if there were no restarts."""
    return Steps(*(round(statistics.median(one[step] for one in found)) for step in range(len(Steps._fields))))


def restarts(store: RedisStore, after: Position, prefix: str) -> Iterator[Steps]:
    """Yield the steps of each restart for a failed probe in pods with this name prefix. Restarts whose stop was held
    back because the machine was short of a resource are excluded.
    """
    names = {registry.type_of(kind) for kind in _KINDS}
    failed: dict[str, prober.ProbeFailed] = {}
    wished: dict[str, int] = {}
    dead: dict[str, tuple[pod.ContainerExited, int]] = {}
    for entry in store.scan(after):
        if entry.type not in names:
            continue
        event, at = codec.decode(entry.type, entry.data, Event), entry.position.milliseconds
        match event:
            case prober.ProbeSucceeded() | pleg.ProbeKillHeld() if event.pod not in wished:
                failed.pop(event.pod, None)
            case prober.ProbeFailed() if event.consecutive >= event.threshold and _is_of(event.pod, prefix):
                # The first failure counts: while stops are held back, a container continues to be probed.
                failed.setdefault(event.pod, event)
            case pod.ContainerStopRequested() if event.pod in failed:
                wished[event.pod] = at
            case pod.ContainerExited() if event.pod in wished:
                dead[event.pod] = event, at
            case pod.ContainerStarted() if event.pod in dead:
                probe, stop, (end, noticed) = failed.pop(event.pod), wished.pop(event.pod), dead.pop(event.pod)
                yield Steps(
                    probe=probe.milliseconds,
                    decided=stop - probe.at - probe.milliseconds,
                    stopped=end.finished_at - stop,
                    noticed=noticed - end.finished_at,
                    started=event.started_at - noticed,
                )


def _is_of(pod_key: str, prefix: str) -> bool:
    return pod_key.partition("/")[2].startswith(prefix)
