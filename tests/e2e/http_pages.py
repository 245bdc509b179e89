"""HTTP pages of an agent that runs in its engine's network."""

from __future__ import annotations

from tests.e2e.node import Node
from tests.support.machine.netns import HttpAnswer
from tests.support.scratch import HANG_SECONDS


def status(node: Node, port: int, path: str) -> tuple[int, str]:
    """Return the status code and the content type of a page."""
    answer = get(node, port, path)
    return answer.status, answer.headers["Content-Type"]


def get(node: Node, port: int, path: str) -> HttpAnswer:
    return node.engine.namespace.http(port, path, timeout=HANG_SECONDS)
