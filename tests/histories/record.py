"""Records a run of this release: `python -m tests.histories.record FOLDER`. Needs root, Docker and redis-server.

Output: files in FOLDER, as README.md describes them. In the run, a liveness probe kills pod web, which has the only
device; the agent is killed; web is deleted, and pod db gets the device; pod loop crashes.
"""

import os
import sys
from pathlib import Path

from chronolet_schemas import devices, pod
from tests.e2e.devices.device_node import STAYS, plugin, requesting, wait_for_list
from tests.e2e.node import Node, running_node, shell
from tests.e2e.node import pod as a_pod
from tests.support.docker.engine import private_docker
from tests.support.redis.server import private_redis

GPU = "vendor.test/gpu"
PROBE = {"exec": {"command": ["test", "!", "-e", "/tmp/ill"]}, "periodSeconds": 1, "failureThreshold": 2}
OUTPUTS = {
    "run.jsonl": ("log", "-o", "json"),
    "pods.json": ("get", "pods", "-A", "-o", "json"),
    "devices.json": ("get", "devices", "-o", "json"),
    "images.json": ("get", "images", "-o", "json"),
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    with (
        private_docker() as engine,
        private_redis() as server,
        running_node(engine, server.url, "recorded", server.folder / "agent") as node,
        plugin(node, GPU, "--devices", "1"),
    ):
        happen(node)
        for name, text in printed(node).items():
            (folder / name).write_text(text)


def happen(node: Node) -> None:
    web = node.write("web.yaml", a_pod("web", requesting(GPU, 1, STAYS, livenessProbe=PROBE)))
    node.write("loop.yaml", a_pod("loop", shell("app", "exit 3")))
    node.wait_until_running("web")
    node.chronolet("exec", "web", "--", "touch", "/tmp/ill")
    node.journal.wait_for_event(pod.ContainerStarted, pod="default/web", attempt=1)
    node.kill9()
    node.start()
    wait_for_list(node, GPU, 2)
    node.wait_until_running("web")
    web.unlink()
    node.wait_until_gone("web")
    node.journal.wait_for_event(devices.DevicesFreed, pod="default/web")
    node.write("db.yaml", a_pod("db", requesting(GPU, 1)))
    node.wait_until_running("db")


def printed(node: Node) -> dict[str, str]:
    with node.paused_when("any moment", lambda: True):
        results = {name: node.chronolet(*words) for name, words in OUTPUTS.items()}
    assert all(one.status == 0 for one in results.values()), results
    return {name: without_machine(one.out) for name, one in results.items()}


def without_machine(text: str) -> str:
    """Return the text without what identifies this machine."""
    machine, kernel = Path("/etc/machine-id").read_text().strip(), os.uname().release
    return text.replace(machine, "0" * 32).replace(kernel, "6.1.0")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
