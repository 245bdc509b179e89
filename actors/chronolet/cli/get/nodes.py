"""Selects the node for `get nodes`, and formats its row.

Input: the node's log and its live processes. Output: a v1 Node as plain data, its row. Next: `get`, `node_section`.
Source: kubectl's printers (printNode). `node.http.api_node` computes the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronolet.cli.errors import not_found
from chronolet.cli.get import pod_rows
from chronolet.cli.get.query import Found, Query
from chronolet.cli.printing import ages
from chronolet.cli.session import Session
from chronolet.history.entries import FIRST_N
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.node.http import api_node
from chronolet_schemas.times import time_of

Object = dict[str, Any]

HEAD = ("NAME", "STATUS", "ROLES", "AGE", "VERSION")
WIDE = ("INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME")
_NONE = "<none>"


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    one = of(node)
    name = one["metadata"]["name"]
    chosen = [one] if query.matches(one) and (not query.names or name in query.names) else []
    missing = [not_found("nodes", wanted) for wanted in query.names if wanted != name]
    wide, now = query.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"node/{name}" for _ in chosen],
        head=head(wide=wide, labelled=query.labels),
        rows=[row(each, now, wide=wide, labelled=query.labels) for each in chosen],
    )
    return found, missing


def of(node: Session) -> Object:
    """Return the node as a v1 Node."""
    moment = node.state("qos", "pleg", "devices")
    store = node.store if node.at is None else None
    return api_node.api_node(api_node.facts(moment, store, node.now()), node.settings.node, created_at(node))


def created_at(node: Session) -> int:
    """Return the time of the log's first entry; 0 if that entry cannot be read, or a record of the past lacks it."""
    try:
        first = next(iter(node.entries()), None)
    except HistoryMissing:
        return 0
    return time_of(first) if first is not None and first.position.n == FIRST_N else 0


# -- table row ------------------------------------------------------------------------------------------------------
def head(*, wide: bool, labelled: bool) -> list[str]:
    """Return the column names."""
    return [*HEAD, *(WIDE if wide else ()), *(("LABELS",) if labelled else ())]


def row(one: Object, now: ages.Now, *, wide: bool, labelled: bool) -> list[str]:
    """Return the node's cells in kubectl's format."""
    metadata, status = one["metadata"], one["status"]
    info = status["nodeInfo"]
    cells = [
        metadata["name"],
        _status(status["conditions"]),
        _NONE,
        ages.ago(pod_rows.milliseconds(metadata["creationTimestamp"]), now),
        info["kubeletVersion"] or "<unknown>",
    ]
    if wide:
        internal = next((each["address"] for each in status["addresses"] if each["type"] == "InternalIP"), _NONE)
        known = (info[name] or "<unknown>" for name in ("osImage", "kernelVersion", "containerRuntimeVersion"))
        cells += [internal, _NONE, *known]
    return [*cells, pod_rows.labels(one)] if labelled else cells


def _status(conditions: Iterable[Object]) -> str:
    ready = next((one for one in conditions if one["type"] == "Ready"), None)
    return "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
