"""Containers that record their starts and ends in a file that belongs to their pod, in order.

Input: names. Output: containers, and the recorded lines. Next: the tests of a pod's life.
"""

from __future__ import annotations

from typing import Any, Final

from tests.corpus.extra.pods import AppliedPods, host_volume
from tests.e2e.node import shell

DIARY: Final = [{"name": "diary", "mountPath": "/diary"}]
DIARY_VOLUME: Final = [host_volume("diary")]


def diary_container(name: str, then: str = "sleep 3600 & wait", **more: Any) -> dict[str, Any]:
    """Return a container that writes its start to the pod's diary, and its end when it gets SIGTERM."""
    script = f"trap 'echo -{name} >> /diary/lines; exit 0' TERM; echo +{name} >> /diary/lines; {then}"
    return shell(name, script, volumeMounts=DIARY, **more)


def diary(pods: AppliedPods, name: str) -> list[str]:
    """Return the lines so far, in the order in which they were written."""
    path = pods.place(name) / "lines"
    return path.read_text().split() if path.exists() else []


def delete_pod(pods: AppliedPods, name: str) -> None:
    """Delete the pod and wait until it is gone."""
    result = pods.node.chronolet("delete", "pod", name)
    assert result.status == 0, result
