"""Effects of the `kube_events` kind: for each sink with waiting posts, the delivery of the next ones.

Input: none. Output: the Effect Structs that `decider.outstanding` returns. Next: `effects`.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas.kube_events import Post


class Deliver(Effect, frozen=True, kw_only=True):
    """Deliver these posts to a sink, one after another. Result: DeliveryResult.

    A repeated delivery sends the same posts, so a sink that compares names and counts stores each post only once.
    """

    sink: str
    posts: tuple[Post, ...]
