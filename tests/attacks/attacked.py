"""A node under attack: each test module gets an agent whose HTTP server listens on a free port of this machine.

Input: an engine. Output: `Attacked`, a node whose HTTP pages, memory and connections a test inspects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.node import Node, pod
from tests.support.docker.engine import PrivateDocker
from tests.support.ports import free_port
from tests.support.redis.server import private_redis

_ESTABLISHED, _CLOSE_WAIT = "01", "08"


class Attacked(Node):
    """A node whose HTTP pages, memory and connections a test inspects."""

    port = 0

    def start_serving(self) -> None:
        """Start the agent with its HTTP server, and wait until both log and server are ready."""
        self.port = free_port()
        self.start(self.port)
        self.journal.wait_for("the log", lambda: self.journal.lines)
        self.wait_for_log("serving")

    def peak_bytes(self, pid: int = 0) -> int:
        """Return the peak memory of a process, by default that of the agent."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid or self.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def connections(self) -> int:
        """Return the number of client connections that the agent holds, including those that the client has closed."""
        lines = Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()[1:]
        fields = [line.split() for line in lines]
        port = f":{self.port:04X}"
        return sum(one[1].endswith(port) and one[3] in (_ESTABLISHED, _CLOSE_WAIT) for one in fields)

    def assert_well(self) -> None:
        """Check that the agent is still running and has logged no traceback."""
        assert self.runs
        assert "Traceback" not in self.log


@pytest.fixture(scope="module")
def attacked(docker_engine: PrivateDocker, request: pytest.FixtureRequest) -> Iterator[Attacked]:
    """The node that all tests of a module attack."""
    with private_redis() as server:
        name = f"attacked-{request.module.__name__.rpartition('_')[2]}"
        found = Attacked(docker_engine, server.url, name, server.folder / "agent")
        try:
            found.start_serving()
            yield found
        finally:
            found.close()


def check_well(node: Node) -> None:
    """Check that the node can start and remove a pod, and that its agent has logged no traceback."""
    node.write("after.yaml", pod("after"))
    node.wait_until_running("after")
    (node.folder / "after.yaml").unlink()
    node.wait_until_gone("after")
    assert node.runs
    assert "Traceback" not in node.log
