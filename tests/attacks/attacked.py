"""A node under attack: an agent for each module, with its HTTP server on a free port of this machine.

Input: an engine. Output: `Attacked`, a node whose pages, memory and connections a test looks at.
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
    """A node whose pages and memory a test looks at."""

    port = 0

    def listen(self) -> None:
        """Start the agent with its HTTP server, and wait for its log."""
        self.port = free_port()
        self.start(self.port)
        self.journal.wait_for("the log", lambda: self.journal.lines)
        self.wait_for_log("serving")

    def peak_bytes(self, pid: int = 0) -> int:
        """The most memory that a process, the agent if none is named, has had at a time."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid or self.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def connections(self) -> int:
        """How many of clients the agent holds open, be they closed on the other side or not."""
        lines = Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()[1:]
        fields = [line.split() for line in lines]
        port = f":{self.port:04X}"
        return sum(one[1].endswith(port) and one[3] in (_ESTABLISHED, _CLOSE_WAIT) for one in fields)

    def assert_well(self) -> None:
        """The agent that was started still runs, and has met nothing that it did not foresee."""
        assert self.runs
        assert "Traceback" not in self.log


@pytest.fixture(scope="module")
def attacked(docker_engine: PrivateDocker, request: pytest.FixtureRequest) -> Iterator[Attacked]:
    """The node of a module, attacked by all of its tests."""
    with private_redis() as server:
        name = f"attacked-{request.module.__name__.rpartition('_')[2]}"
        found = Attacked(docker_engine, server.url, name, server.folder / "agent")
        try:
            found.listen()
            yield found
        finally:
            found.close()


def check_well(node: Node) -> None:
    """It starts what comes, ends what goes, and met nothing unforeseen."""
    node.write("after.yaml", pod("after"))
    node.wait_until_running("after")
    (node.folder / "after.yaml").unlink()
    node.wait_until_gone("after")
    assert node.runs
    assert "Traceback" not in node.log
