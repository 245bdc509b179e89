"""Rows of `get containers`.

Input: Pods in API form. Output: containers as plain data, and their rows. Next: `get`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.cli.containers import parts
from chronolet.cli.get import pods
from chronolet.cli.printing import ages

Object = dict[str, Any]

HEAD = ("NAME", "POD", "STATE", "RESTARTS", "AGE")
WIDE = ("TYPE", "IMAGE", "ID")
_SHORT_ID = 12


def of(found: Sequence[Object]) -> list[Object]:
    """Every container of these pods in start order, with its pod's name and namespace."""
    return [one for pod in found for one in _of(pod)]


def _of(pod: Object) -> Iterator[Object]:
    metadata = pod["metadata"]
    for part in parts.parts(pod):
        if part.status:
            yield {"namespace": metadata["namespace"], "pod": metadata["name"], "type": part.kind, **part.status}


def head(*, namespaced: bool, wide: bool) -> list[str]:
    """The column names."""
    return [*(("NAMESPACE",) if namespaced else ()), *HEAD, *(WIDE if wide else ())]


def row(container: Object, now: int, *, namespaced: bool, wide: bool) -> list[str]:
    """The cells of one container. AGE is the time since it entered its current state."""
    cells = [container["namespace"]] if namespaced else []
    state = container.get("state", {})
    since = state.get("running", {}).get("startedAt") or state.get("terminated", {}).get("finishedAt")
    cells += [
        container["name"],
        container["pod"],
        word(state),
        str(container.get("restartCount", 0)),
        ages.ago(pods.milliseconds(since), now) if since else "<none>",
    ]
    if wide:
        short = pods.bare_id(container.get("containerID", ""))[:_SHORT_ID]
        cells += [container["type"], container.get("image", ""), short or "<none>"]
    return cells


def word(state: Object) -> str:
    """`Running`, or the reason why it waits or has terminated."""
    if "running" in state:
        return "Running"
    for other in ("terminated", "waiting"):
        if other in state:
            return str(state[other].get("reason") or other.capitalize())
    return "Unknown"
