"""Converts pods to API form.

Input: a `Moment`. Output: v1 Pods with status, as plain data; or a Failure if a pod is missing. Next: `get`,
`describe`, `logs`, `exec`.
"""

from __future__ import annotations

from typing import Any

from chronolet.cli.errors import Failure, not_found
from chronolet.history.state import Moment
from chronolet.node.http import api_pods as node_pods
from chronolet.node.http.api_pods import api_pods

__all__ = ["api_pod", "api_pods"]

Object = dict[str, Any]


def api_pod(moment: Moment, node: str, namespace: str, name: str) -> Object:
    """Return one pod. Raises Failure if the pod does not exist."""
    pod = node_pods.api_pod(moment, node, f"{namespace}/{name}")
    if pod is None:
        raise Failure(not_found("pods", name))
    return pod
