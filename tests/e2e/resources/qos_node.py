"""A node for tests that inspect its resource settings and cgroups.

Input: a node. Output: cgroup names; pods are applied and deleted.
"""

from __future__ import annotations

from typing import Any

from chronolet_schemas import pod, qos
from tests.e2e.node import Node
from tests.e2e.resources import cgroup_files


def parent_path(node: Node) -> list[str]:
    """Return the parts of the path that contains the node's kubepods."""
    return node.engine.cgroup_root(node.name).strip("/").split("/")


class QosNode:
    """A node and the names of its cgroups. It must have been started."""

    def __init__(self, node: Node) -> None:
        self.node = node
        node.journal.wait_for_event(qos.NodeDescribed)
        self.parent_path = parent_path(node)
        self.all, self.burstable, self.best_effort = (
            cgroup_files.named(*self.parent_path, "kubepods", *below) for below in ((), ("burstable",), ("besteffort",))
        )

    def uid(self, name: str) -> str:
        accepted: Any = self.node.journal.wait_for_event(pod.SpecAccepted, pod=f"default/{name}")
        return str(accepted.uid)

    def of(self, name: str) -> str:
        """Return the name of a pod's cgroup, in the form given to Docker as the parent of the pod's containers."""
        ready: Any = self.node.journal.wait_for_event(qos.CgroupReady, uid=self.uid(name))
        return str(ready.parent)

    def apply(self, *pods: dict[str, Any]) -> None:
        result = self.node.chronolet("apply", "-f", self.node.write_unwatched("pods.yaml", *pods))
        assert result.status == 0, result.err

    def delete(self, *names: str) -> None:
        assert self.node.chronolet("delete", "pod", *names, "--now").status == 0
        for name in names:
            self.node.wait_until_gone(name)


def requests_and_limits(cpu: str, memory: str, limit: tuple[str, str] | None = None) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    return {"requests": requests} | ({"limits": {"cpu": limit[0], "memory": limit[1]}} if limit else {})
