"""Rows of pods and their containers, as `get pods` and `get containers` print them.

Input: states of pods. Output: changes of rows. Next: `viewer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chronolet.cli.get import containers, pod_rows
from chronolet.cli.history.page.cells import cells
from chronolet.cli.printing.ages import LATER
from chronolet.history.page.viewing import Change, Look, Object, Row, Table
from chronolet.history.state import Moment
from chronolet.node.http.api_pods import api_pod

PODS = Table("pod", "Pods", tuple(pod_rows.head(namespaced=True, wide=True)))
CONTAINERS = Table("container", "Containers", tuple(containers.head(namespaced=True, wide=True)), parent="pod")

_WAITING = ("Pending", "ContainerCreating", "PodInitializing", "Terminating", "NotReady", "Waiting")
_DONE = ("Completed", "Succeeded")


class Pods:
    """Formats pods after each change of their states."""

    def __init__(self, node: str) -> None:
        """`node`: the node's name."""
        self._node = node
        self._containers: dict[str, tuple[Object, ...]] = {}
        """The containers of each pod, by namespace/name."""

    def changed(self, moment: Moment, key: str) -> Iterator[Change]:
        """Return the rows of the pod `namespace/name` and its containers. `moment` includes the pod's state."""
        pod = api_pod(moment, self._node, key)
        about = Object(PODS.name, key)
        found = [] if pod is None else containers.of([pod])
        rows = {_container(key, one): _container_row(one, rank) for rank, one in enumerate(found)}
        yield Change(about, None if pod is None else _pod_row(pod))
        for gone in self._containers.pop(key, ()):
            if gone not in rows:
                yield Change(gone, None)
        if rows:
            self._containers[key] = tuple(rows)
        yield from (Change(one, row) for one, row in rows.items())


def _container(key: str, container: dict[str, Any]) -> Object:
    return Object(CONTAINERS.name, f"{key}/{container['name']}")


def _pod_row(pod: dict[str, Any]) -> Row:
    row = pod_rows.row(pod, LATER, namespaced=True, wide=True)
    summary = pod_rows.summarized(pod)
    return Row(cells(row), look(summary.status, ready=summary.ready == summary.total))


def _container_row(container: dict[str, Any], rank: int) -> Row:
    """`rank`: the container's place in the start order of its pod."""
    row = containers.row(container, LATER, namespaced=True, wide=True)
    word = containers.word(container.get("state", {}))
    return Row(cells(row), look(word, ready=container.get("ready", False)), rank)


def look(status: str, *, ready: bool) -> Look:
    """Return how a pod or container with this status word is drawn."""
    if status == "Running":
        return Look.GOOD if ready else Look.WAITING
    if status in _DONE:
        return Look.IDLE
    initialising = status.startswith("Init:") and status[len("Init:") :].replace("/", "").isdigit()
    return Look.WAITING if initialising or status in _WAITING else Look.BAD
