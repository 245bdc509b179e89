"""KubeEvents as lines of the agent's own log.

Input: posts. Output: one structured line per post, at least once: after a crash a line may be repeated. Next: readers
of the log.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from chronolet.ports.kube_sinks import LOCAL_BATCHES, Outcome
from chronolet_schemas.kube_events import Post

log = structlog.get_logger("chronolet.kube_events")


class LogSink:
    """Implements `ports.kube_sinks.Sink` with the agent's log."""

    batch_size = LOCAL_BATCHES["log"]

    def deliver(self, posts: Sequence[Post]) -> Outcome:
        for n, post in enumerate(posts):
            about = f"{post.object_kind.lower()}/{post.namespace}/{post.object_name}".replace("//", "/")
            write = log.warning if post.severity == "Warning" else log.info
            failure = write(
                "KubeEvent",
                object=about,
                field=post.field_path,
                reason=post.reason,
                message=post.message,
                count=post.count,
                position=post.at,
            )
            if failure:
                return Outcome(delivered=n, failure=failure)
        return Outcome(delivered=len(posts))
