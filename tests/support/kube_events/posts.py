"""Posts of KubeEvents for tests of sinks."""

from __future__ import annotations

from collections.abc import Iterable

from chronolet_schemas.kube_events import Post


def warnings(messages: Iterable[str]) -> list[Post]:
    """Return one warning about a pod for each message."""
    return [
        Post(
            at=f"1-{n}",
            name=f"n{n}",
            first=1,
            object_kind="Pod",
            object_name="web",
            severity="Warning",
            reason="R",
            message=message,
        )
        for n, message in enumerate(messages)
    ]
