"""What pleg wants to have running: two standing effects, for as long as the node lives.

Comes in: nothing. Goes out: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers send
`signals` until they are cancelled. Source: pkg/kubelet/pleg/generic.go and evented.go.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class FollowRuntime(Effect, frozen=True, kw_only=True):
    """Follow the runtime's event stream: StreamOpened, a Noticed for each notice, StreamBroken before it raises."""


class Relist(Effect, frozen=True, kw_only=True):
    """List the runtime's containers: one Relisted or RelistFailed each time.

    Every `period_seconds` while the stream is lost; while it stands, as seldom as the worker was told.

    A pod of which something is new, or has another state than the last listing of this worker had, is inspected as a
    whole, each container with a time-out of its own; if an inspect fails, again the next time. What `known` (the ids
    that the log knows when the worker starts) or an earlier listing has and this one lacks is inspected too: only a 404
    makes it `removed`.
    The first listing, and each one after the stream was opened anew, inspects everything, for notices may have been
    missed; so does one every `event_driven_period_seconds`, the kubelet's period beside a stream.
    """

    period_seconds: int = 1
    event_driven_period_seconds: int = 300
    known: tuple[str, ...] = ()
