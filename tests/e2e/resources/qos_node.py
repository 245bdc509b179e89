"""A node whose shares tests look at, with the cgroups that it makes.

Input: a node. Output: the names of cgroups, pods that come and go.
"""

from __future__ import annotations

from typing import Any

from chronolet_schemas import pod, qos
from tests.e2e.node import Node
from tests.e2e.resources import cgroup_files


def above(node: Node) -> list[str]:
    """The parts of the path in which the node's kubepods is."""
    return node.engine.cgroup_root(node.name).strip("/").split("/")


class Shared:
    """A node of three processors and 8 GiB, as its settings have it, and its cgroups."""

    def __init__(self, node: Node) -> None:
        self.node = node
        node.journal.wait_for_event(qos.NodeDescribed)
        self.above = above(node)
        self.all, self.burstable, self.best_effort = (
            cgroup_files.named(*self.above, "kubepods", *below) for below in ((), ("burstable",), ("besteffort",))
        )

    def uid(self, name: str) -> str:
        accepted: Any = self.node.journal.wait_for_event(pod.SpecAccepted, pod=f"default/{name}")
        return str(accepted.uid)

    def of(self, name: str) -> str:
        """A pod's cgroup, as Docker is told to put containers beneath it."""
        ready: Any = self.node.journal.wait_for_event(qos.CgroupReady, uid=self.uid(name))
        return str(ready.parent)

    def apply(self, *pods: dict[str, Any]) -> None:
        said = self.node.chronolet("apply", "-f", self.node.write_unwatched("pods.yaml", *pods))
        assert said.status == 0, said.err

    def delete(self, *names: str) -> None:
        assert self.node.chronolet("delete", "pod", *names, "--now").status == 0
        for name in names:
            self.node.wait_until_gone(name)


def asking(cpu: str, memory: str, limit: tuple[str, str] | None = None) -> dict[str, Any]:
    asked = {"cpu": cpu, "memory": memory}
    return {"requests": asked} | ({"limits": {"cpu": limit[0], "memory": limit[1]}} if limit else {})
