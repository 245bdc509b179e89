"""What commands print about a moment, at that moment and later.

Input: a node. Output: the position of the log's last entry with the commands' output; later, a comparison with `--at`.
"""

import json
from collections.abc import Iterable
from typing import Any

from tests.e2e.node import Node

READINGS = (
    ("get", "pods", "-A", "-o", "json"),
    ("get", "pods,containers,images,devices", "-o", "json"),
    ("get", "events", "--all", "-o", "json"),
)
"""Commands whose output has no ages, and all the facts."""


def dump(node: Node) -> tuple[str, list[Any]]:
    """Return the position of the log's last entry, and what the commands print, while the agent is paused."""
    with node.paused_when("any moment", lambda: True):
        texts = [node.chronolet(*words) for words in READINGS]
        assert all(one.status == 0 for one in texts), texts
        found = [json.loads(one.out) for one in texts]
        positions = {one["metadata"]["resourceVersion"] for one in found}
    assert len(positions) == 1, "the log grew although the agent was paused"
    return positions.pop(), found


def check(node: Node, dumps: Iterable[tuple[str, list[Any]]]) -> None:
    """Check that the commands print about each of these moments what they printed then."""
    for position, expected in dumps:
        for words, then in zip(READINGS, expected, strict=True):
            later = node.chronolet(*words, "--at", position)
            assert json.loads(later.out) == then, (position, words)
