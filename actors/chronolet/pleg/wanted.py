"""Pleg's two standing effects, outstanding for the life of the node.

Output: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers send `signals` until they
are cancelled. Source: pkg/kubelet/pleg/generic.go and evented.go.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class FollowRuntime(Effect, frozen=True, kw_only=True):
    """Follow the runtime's event stream. Sends StreamOpened, then for each notice a ContainerObserved or OomKilled
    (nothing for a creation), and StreamBroken on failure.
    """


class Relist(Effect, frozen=True, kw_only=True):
    """List the runtime's containers periodically. Sends one Relisted or RelistFailed per listing, and before it, if
    everything is inspected, a partial Relisted with the containers that are not running.

    Relists every `period_seconds` while the stream is down, else at the worker's configured interval.

    If a container is new or its state differs from the worker's last listing, its whole pod is inspected, with a
    time-out per container; a failed inspect is repeated by the next listing. Containers that are missing from this
    listing but were in an earlier one or in `known` (the ids in the log when the worker starts) are also inspected:
    only a 404 makes them `removed`. The first listing and each listing after the stream reopens inspect everything,
    because notices may have been missed; so does one every `event_driven_period_seconds`, the period at which the
    kubelet relists while it follows a stream.
    """

    period_seconds: int = 1
    event_driven_period_seconds: int = 300
    known: tuple[str, ...] = ()
