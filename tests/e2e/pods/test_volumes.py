"""Volumes when the agent is killed: volumes in memory keep their content, nothing is mounted twice, and everything is
removed with the pod.
"""

from pathlib import Path
from typing import Any

from chronolet_schemas import pod as events
from tests.e2e.node import Node, pod, shell
from tests.support import scratch

STAY = "trap 'exit 0' TERM; sleep 3600 & wait"


def mount_points(node: Node) -> list[str]:
    """Return the mount points below the node's folder, in order."""
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return [point for point in points if point.startswith(f"{node.root}/")]


def test_mounts_survive_the_agent_and_end_with_the_pod(own_node: Node) -> None:
    fast: dict[str, Any] = {"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    mounts = [
        {"name": "fast", "mountPath": "/fast"},
        {"name": "fast", "mountPath": "/part", "subPathExpr": "$(POD)/part"},
    ]
    env = [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    keeps = shell("keeps", f"echo kept >> /fast/word; ls /fast; {STAY}", volumeMounts=mounts, env=env)
    manifest = own_node.write("quick.yaml", pod("quick", keeps, shell("dies"), volumes=[fast]))
    own_node.start()
    own_node.wait_until_running("quick")
    scratch.wait_until(lambda: "quick" in own_node.output("quick", "keeps"), "the first attempt's output")
    before = mount_points(own_node)
    assert len(before) == 2
    own_node.kill9()
    own_node.kill_process("quick", "keeps")
    own_node.start()
    own_node.journal.wait_for_event(events.ContainerStarted, pod="default/quick", container="keeps", attempt=1)
    own_node.wait_until_running("quick")
    scratch.wait_until(lambda: "quick" in own_node.output("quick", "keeps"), "the second attempt's output")
    file = next(Path(point) for point in before if point.endswith("/fast")) / "word"
    assert file.read_text() == "kept\nkept\n"
    assert mount_points(own_node) == before
    manifest.unlink()
    own_node.wait_until_gone("quick")
    assert mount_points(own_node) == []
    assert list((own_node.root / "pods").iterdir()) == []
