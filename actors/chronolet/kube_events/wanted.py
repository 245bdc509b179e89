"""What kube_events wants to have running: for each sink that has something to come, the delivery of its next posts.

Comes in: nothing. Goes out: the Effect Structs that `decider.outstanding` returns. Next: `effects`.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas.kube_events import Post


class Deliver(Effect, frozen=True, kw_only=True):
    """Hand these posts to a sink, one after the other. Answers: SinkAnswered.

    A repeat is the same again, so a sink that knows what it has by name and count has each once.
    """

    sink: str
    posts: tuple[Post, ...]
