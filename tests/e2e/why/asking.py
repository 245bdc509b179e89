"""Asks `chronolet why` about a pod, after all that it could be found out from has gone.

Input: a node. Output: its dead containers removed and its agent restarted; first sentences of answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chronolet_schemas import container_gc, pleg
from tests.e2e.node import Node

HUNG = "trap '' TERM; sleep 3600 & while true; do wait; done"
"""A script that ignores SIGTERM."""
FAILS: dict[str, Any] = {
    "exec": {"command": ["sh", "-c", "echo the queue is stuck; exit 7"]},
    "periodSeconds": 1,
    "timeoutSeconds": 30,
    "failureThreshold": 2,
}
"""A probe that fails each time."""


def forget(node: Node, *flags: str) -> None:
    """Remove all dead containers of the node, and kill and restart its agent: only the log remembers them."""
    before = len(node.journal.events(container_gc.RunFinished))
    settings = ("--maximum-dead-containers-per-container", "0", *flags)
    node.kill9()
    follows = len(node.journal.events(pleg.StreamFollowed))
    node.start(0, *settings)
    node.journal.wait_for("the agent", lambda: len(node.journal.events(pleg.StreamFollowed)) > follows)
    node.chronolet("gc", "run")  # fails on a full disk
    node.journal.wait_for("the collection", lambda: len(node.journal.events(container_gc.RunFinished)) > before)
    node.kill9()
    node.start(0, *settings)
    node.journal.wait_for("the agent", lambda: len(node.journal.events(pleg.StreamFollowed)) > follows + 1)


def first_sentence(node: Node, name: str, *options: str) -> str:
    """Return the first line of the answer about a pod."""
    result = node.chronolet("why", f"pod/{name}", *options)
    assert result.status == 0, result
    assert result.out.splitlines()[1:3] == ["", "Because:"], result.out
    return result.out.splitlines()[0]


def wrong(sentence: str, expected: Sequence[str]) -> list[str]:
    """Return which of these texts a sentence lacks; a text that begins with `!` must not be in it."""
    return [one for one in expected if (one[1:] in sentence if one.startswith("!") else one not in sentence)]


def noticed(node: Node, name: str, container: str = "app") -> bool:
    """Return whether the container's first death came with its signals. It did not if a listing found the death before
    Docker's notice of it was read, which happens on a loaded machine.
    """
    died = node.journal.wait_for_event(pleg.ContainerDied, pod=f"default/{name}", container=container)
    return died.sent is not None
