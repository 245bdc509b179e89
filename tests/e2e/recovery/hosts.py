"""Hosts that share one node name: each has its own engine, machine id and state folder, and all use one Redis.

Input: an engine, the URL of a server. Output: `Host`. Next: `test_sites`, `test_partition`.
"""

from __future__ import annotations

import http.client
from pathlib import Path

from tests.e2e.node import CommandResult, Node
from tests.support.docker.engine import PrivateDocker
from tests.support.ports import free_port
from tests.support.scratch import wait_until

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
NAME = "sited"


class Host:
    """A simulated machine with its own engine and machine id; it runs an agent for the shared node."""

    def __init__(
        self, engine: PrivateDocker, url: str, root: Path, machine_id: str, *, in_network: bool = False
    ) -> None:
        """`in_network`: the agent runs in the engine's network namespace, as if that were the machine's network."""
        self.node = Node(engine, url, NAME, root)
        self._in_network = in_network
        self.machine_id = root / "machine-id"
        self.machine_id.write_text(f"{machine_id}\n")
        self.node.environ["CHRONOLET_MACHINE_ID_FILE"] = str(self.machine_id)
        self.port = 0

    def start(self) -> None:
        self.port = free_port()
        self.node.start(self.port, in_network=self._in_network)

    def readiness(self) -> str:
        """Return the verbose page /readyz; empty while nothing is served."""
        try:
            if self._in_network:
                return self.node.engine.namespace.http(self.port, "/readyz?verbose").body.decode()
            return _page(self.port, "/readyz?verbose")
        except OSError:
            return ""

    def wait_for_readiness(self, text: str) -> str:
        wait_until(lambda: text in self.readiness(), f"{text!r} in /readyz; {self.node.log[-2000:]}", 60)
        return self.readiness()

    def move(self, *flags: str) -> CommandResult:
        return self.node.chronolet("node", "move", *flags)


def started_with(engine: PrivateDocker, folder: Path) -> None:
    """Start the engine with its data and exec root below `folder`, as after a change of dockerd's --data-root."""
    engine.data, engine._exec = folder / "data", folder / "exec"
    folder.mkdir(exist_ok=True)
    engine.start()


def _page(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()
