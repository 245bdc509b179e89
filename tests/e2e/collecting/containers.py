"""Dead containers that the tests of collecting create and look for.

Input: a node. Output: container ids.
"""

from __future__ import annotations

from chronolet.ports.runtime import labels
from tests.e2e.node import BUSYBOX, Node
from tests.support.scratch import wait_until


def dead_containers_named(node: Node, name: str) -> list[str]:
    chosen = {"label": [f"{labels.NODE}={node.name}", f"{labels.CONTAINER_NAME}={name}"], "status": "exited"}
    return [one["Id"] for one in node.docker.containers(all=True, filters=chosen)]


def dead_containers(node: Node) -> set[str]:
    """Return the ids of this node's dead containers."""
    chosen = {"label": f"{labels.NODE}={node.name}", "status": "exited"}
    return {one["Id"] for one in node.docker.containers(all=True, filters=chosen)}


def unidentified_containers(node: Node, count: int) -> set[str]:
    """Create dead containers of this node whose labels name no pod: a run removes all of them."""
    created = [
        node.docker.create_container(BUSYBOX, ["true"], labels={labels.NODE: node.name})["Id"] for _ in range(count)
    ]
    run_to_end(node, *created)
    return set(created)


def run_to_end(node: Node, *created: str) -> None:
    """Run containers until the engine lists them as dead: `wait` returns a moment earlier."""
    for one in created:
        node.docker.start(one)
        node.docker.wait(one)

    def dead() -> set[str]:
        return {one["Id"] for one in node.docker.containers(all=True, filters={"status": "exited"})}

    wait_until(lambda: dead() >= set(created), "their ends in Docker's list")
