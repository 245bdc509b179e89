"""The measured agent, started as an operator would start it, with all its files below one folder.

Input: an engine. Output: an `Agent` that `agent_bench` starts, kills and measures. Next: `parts`.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.kernel.child import REPOSITORY
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.docker.images import BUSYBOX

NODE = "bench"
CHRONOLET = ("-m", "chronolet.cli")
"""Python's arguments that run the agent: a module or a file, after which chronolet's arguments follow."""
HARNESS = Path(__file__).parent.with_name("agent_bench.py")


class AnyAgent:
    """An agent that runs the pods of a folder of manifests on an engine, with the interface that `agent_bench` needs.
    `start_command` starts it in the background and writes its pids to `pidfile`.
    """

    start_command: str

    def __init__(self, folder: Path, docker: PrivateDocker) -> None:
        self.folder = folder
        self.docker = docker
        self.manifests = folder / "manifests"
        self.pidfile = folder / "pid"
        self.log = folder / "log"
        self.manifests.mkdir()

    def start(self) -> None:
        """Start the agent with `start_command`. Raises CalledProcessError if that fails."""
        subprocess.run(["bash", "-c", self.start_command], check=True, cwd=REPOSITORY)

    def kill(self) -> None:
        """Kill the agent with SIGKILL; its child processes continue."""
        scratch.kill(self.pids())

    def pids(self) -> list[int]:
        """Return the pids in `pidfile` that are running."""
        if not self.pidfile.exists():
            return []
        return [int(word) for word in self.pidfile.read_text().split() if scratch.start_time(int(word))]

    def counted(self) -> list[str]:
        """Return the harness options for further processes that count as the agent when CPU and memory are measured."""
        raise NotImplementedError

    def measure(self, tests: str, *options: str) -> dict[str, Any]:
        """Run tests of `agent_bench`; return their results."""
        out = self.folder / f"{tests}.json"
        values = {
            "tests": tests,
            "out": out,
            "manifests": self.manifests,
            "pidfile": self.pidfile,
            "agent-start": self.start_command,
            "image": BUSYBOX.reference,
            "dockerd-pid": self.docker.pid,
            "containerd-pid": self._containerd(),
            "docker-sock": self.docker.host.removeprefix("unix://"),
        }
        words = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        subprocess.run([sys.executable, str(HARNESS), *words, *options], check=True, stdout=sys.stderr, cwd=REPOSITORY)
        found: dict[str, Any] = json.loads(out.read_text())
        return found

    def destroy(self) -> None:
        """Kill all processes whose command line names the agent's folder."""
        scratch.kill(scratch.pids_naming(f"{self.folder}/"))

    def _containerd(self) -> int:
        """Return the pid of the engine's containerd; if it were found by name, the harness would also count those of
        other engines.
        """
        return next(
            pid
            for pid in scratch.children(self.docker.pid)
            if Path(f"/proc/{pid}/comm").read_text().strip() == "containerd"
        )


class Agent(AnyAgent):
    """An agent started with `chronolet run`."""

    def __init__(self, folder: Path, docker: PrivateDocker, *, in_network: bool = False, port: int = 0) -> None:
        """`in_network`: run in Docker's network, where the agent can reach the addresses of pods. `port`: the port of
        its HTTP pages.
        """
        super().__init__(folder, docker)
        self._in_network = in_network
        self.port = port
        self.state = folder / "state"
        self.start_command = self._start_command(CHRONOLET)

    def start(self) -> None:
        super().start()
        scratch.wait_until(
            lambda: bool(self.redis()) and self._socket.exists(), f"the agent's redis-server; see {self.log}"
        )

    @property
    def pid(self) -> int:
        return int(self.pidfile.read_text())

    @property
    def url(self) -> str:
        """The URL of the agent's redis-server."""
        return f"unix://{self._socket}"

    @property
    def _socket(self) -> Path:
        return self.state / "redis/redis.sock"

    def restart(self, program: Sequence[str] = CHRONOLET) -> None:
        """Kill and restart the agent; from now on, each start runs Python with the arguments `program`."""
        self.kill()
        self.start_command = self._start_command(program)
        self.start()

    def redis(self) -> list[int]:
        """Return the pids of the redis-server that the agent has started."""
        named = scratch.pids_naming(f"{self.folder}/")
        return [pid for pid in named if "redis-server" in Path(f"/proc/{pid}/comm").read_text()]

    def counted(self) -> list[str]:
        return [word for pid in self.redis() for word in ("--agent-pid", str(pid))]

    def in_its_network(self, command: Sequence[str]) -> Sequence[str]:
        """Return a command that runs `command` in the network in which the agent serves its pages."""
        return self.docker.namespace.command(*command) if self._in_network else command

    def _start_command(self, program: Sequence[str]) -> str:
        """Return a command that starts the agent in the background in a new session and writes its pid to `pidfile`."""
        words = [
            *(sys.executable, *program, "run", "--port", str(self.port), "--hostname-override", NODE),
            *("--pod-manifest-path", str(self.manifests), "--root-dir", str(self.state), "--docker", self.docker.host),
            *("--cgroup-root", self.docker.cgroup_root(NODE)),
        ]
        begin = shlex.join(self.in_its_network(words))
        return f"setsid {begin} >>{self.log} 2>&1 </dev/null & echo $! >{self.pidfile}"


@contextmanager
def running(*, in_network: bool = False, port: int = 0) -> Iterator[Agent]:
    """Run an engine with the local images, and an agent on it; both are removed afterwards."""
    with private_docker() as docker, on(docker, docker.folder / "agent", in_network=in_network, port=port) as agent:
        yield agent


@contextmanager
def on(docker: PrivateDocker, folder: Path, *, in_network: bool = False, port: int = 0) -> Iterator[Agent]:
    """Run an agent on an engine; it is removed afterwards."""
    folder.mkdir()
    agent = Agent(folder, docker, in_network=in_network, port=port)
    try:
        agent.start()
        yield agent
    finally:
        agent.destroy()
