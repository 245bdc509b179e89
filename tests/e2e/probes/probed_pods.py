"""Helpers for the tests of probes: manifests of probed pods, and their state in the log and on the machine.

Input: a node. Output: manifests, statuses, files of containers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chronolet.pod.status.status import pod_status
from chronolet_schemas import pod
from tests.e2e.node import Node

ENOUGH_SECONDS = 500
"""A time-out that no probe exceeds, however busy the machine is."""
NEVER = 1_000_000
"""A failure threshold that is not reached."""


def with_period(milliseconds: int, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the pod with this probe period."""
    manifest["metadata"]["annotations"] = {"chronolet/period-milliseconds": str(milliseconds)}
    return manifest


def started_and_ready(node: Node, name: str) -> tuple[bool | None, bool | None]:
    state = node.journal.pods[f"default/{name}"]
    (one,) = pod_status(state).container_statuses
    return one.started, one.ready


def started(node: Node, name: str, attempt: int = 0) -> pod.ContainerStarted:
    return node.journal.wait_for_event(pod.ContainerStarted, pod=f"default/{name}", attempt=attempt)


def file_in(node: Node, name: str, path: str, container: str = "app") -> Path:
    """Return the path of a running container's file, as the host sees it."""
    return Path(f"/proc/{node.running(name)[container]['State']['Pid']}/root{path}")
