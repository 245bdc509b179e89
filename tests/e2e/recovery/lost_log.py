"""Helpers for the tests of a lost log.

Input: a node whose log was lost. Output: the journal of the new log, a pod's containers.
"""

from __future__ import annotations

from chronolet.ports.runtime import labels
from chronolet_schemas import manifests
from tests.e2e.node import Node


def wait_for_new_log(node: Node, seconds: float = 30) -> None:
    """Let the journal read the new log, and wait for the end of the adoption."""
    node.reopen_journal()
    node.journal.wait_for_event(manifests.AdoptionFinished, seconds)


def all_ids(node: Node, pod_name: str) -> set[str]:
    """Return the ids of all containers of the pod, including dead ones."""
    chosen = {"label": [f"{labels.NODE}={node.name}", f"{labels.POD_NAME}={pod_name}"]}
    return {one["Id"] for one in node.docker.containers(all=True, filters=chosen)}
