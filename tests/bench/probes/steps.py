"""What the time from a failing probe to the next container's start is spent on, by the log.

Comes in: a store, where in the log to begin. Goes out: the median of each step. Next: `rows`. The wait for the next
probe, which no agent can shorten, is no part of it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import NamedTuple

from chronolet.kernel.redis_store import RedisStore
from chronolet_schemas import codec, pod, prober, registry
from chronolet_schemas.envelope import Event, Position

_KINDS = (prober.ProbeFailed, pod.ContainerStopRequested, pod.ContainerExited, pod.ContainerStarted)


class Steps(NamedTuple):
    """Milliseconds. `decided` and `noticed` are ours, the rest is mostly Docker's."""

    probe: int
    """The failing probe itself."""
    decided: int
    """Until the wish to stop the container stands in the log."""
    stopped: int
    """Until the container is dead, by Docker's clock."""
    noticed: int
    """Until its death stands in the log."""
    started: int
    """Until the next one has started, by Docker's clock."""


def medians(store: RedisStore, after: Position, prefix: str) -> Steps | None:
    """Of all such restarts of pods whose names begin so; None if there were none."""
    found = list(_restarts(store, after, prefix))
    return Steps(*(round(statistics.median(step)) for step in zip(*found, strict=True))) if found else None


def _restarts(store: RedisStore, after: Position, prefix: str) -> Iterator[Steps]:
    names = {registry.type_of(kind) for kind in _KINDS}
    failed: dict[str, prober.ProbeFailed] = {}
    wished: dict[str, int] = {}
    dead: dict[str, tuple[pod.ContainerExited, int]] = {}
    for entry in store.scan(after):
        if entry.type not in names:
            continue
        event, at = codec.decode(entry.type, entry.data, Event), entry.position.milliseconds
        match event:
            case prober.ProbeFailed() if event.held and event.pod.partition("/")[2].startswith(prefix):
                failed[event.pod] = event
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
