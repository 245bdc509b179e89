"""Lists containers for `get containers`.

Input: Pods in API form. Output: containers as plain data, and their rows. Next: `get`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.cli.containers import parts
from chronolet.cli.errors import not_found
from chronolet.cli.get import pod_rows
from chronolet.cli.get.api_form import api_pods
from chronolet.cli.get.query import Found, Query
from chronolet.cli.printing import ages
from chronolet.cli.session import Session

Object = dict[str, Any]

HEAD = ("NAME", "POD", "STATE", "RESTARTS", "AGE")
WIDE = ("TYPE", "IMAGE", "ID")
_SHORT_ID = 12


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    chosen_pods = [pod for pod in api_pods(node.state("pod"), node.settings.node) if query.matches(pod)]
    chosen = query.sorted(
        [
            one
            for one in of(chosen_pods)
            if query.namespace in (None, one["namespace"]) and (not query.names or one["name"] in query.names)
        ]
    )
    known = {one["name"] for one in chosen}
    missing = [not_found("containers", name) for name in query.names if name not in known]
    namespaced, wide, now = query.namespace is None, query.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"container/{one['pod']}/{one['name']}" for one in chosen],
        head=head(namespaced=namespaced, wide=wide),
        rows=[row(one, now, namespaced=namespaced, wide=wide) for one in chosen],
    )
    return found, missing


def of(found: Sequence[Object]) -> list[Object]:
    """Return the containers of these pods that have a status, in start order, with their pod's name and namespace."""
    return [one for pod in found for one in _of(pod)]


def _of(pod: Object) -> Iterator[Object]:
    metadata = pod["metadata"]
    for part in parts.parts(pod):
        if part.status:
            yield {"namespace": metadata["namespace"], "pod": metadata["name"], "type": part.kind, **part.status}


def head(*, namespaced: bool, wide: bool) -> list[str]:
    """Return the column names."""
    return [*(("NAMESPACE",) if namespaced else ()), *HEAD, *(WIDE if wide else ())]


def row(container: Object, now: ages.Now, *, namespaced: bool, wide: bool) -> list[str]:
    """Return the cells of one container. AGE is the time since it started or terminated."""
    cells = [container["namespace"]] if namespaced else []
    state = container.get("state", {})
    since = state.get("running", {}).get("startedAt") or state.get("terminated", {}).get("finishedAt")
    cells += [
        container["name"],
        container["pod"],
        word(state),
        str(container.get("restartCount", 0)),
        ages.ago(pod_rows.milliseconds(since), now) if since else "<none>",
    ]
    if wide:
        short = pod_rows.bare_id(container.get("containerID", ""))[:_SHORT_ID]
        cells += [container["type"], container.get("image", ""), short or "<none>"]
    return cells


def word(state: Object) -> str:
    """Return `Running`, or the reason why the container is waiting or has terminated."""
    if "running" in state:
        return "Running"
    for other in ("terminated", "waiting"):
        if other in state:
            return str(state[other].get("reason") or other.capitalize())
    return "Unknown"
