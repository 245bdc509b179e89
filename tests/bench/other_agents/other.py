"""Any other agent, started by a shell command.

Input: a command, an engine. Output: an agent that can be measured like chronolet. Next: `other_agents`.

The command is run by bash in the engine's network. These placeholders are replaced:

    {manifests}  the folder of Pod manifests that the agent must watch
    {pidfile}    where the command writes the agent's pids; without it, the command is the agent: it is run in the
                 background, and its own pid is the agent's
    {docker}     the engine's socket, unix://...; also in DOCKER_HOST
    {folder}     a private folder for the agent
    {cgroup}     a private cgroup

The pids in the file, their descendants, and every process whose command line names the folder count as the agent.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.bench.pods.agent import AnyAgent
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker

NAME = "other"
SECOND = (
    f"{sys.executable} -m chronolet.cli run --port 0 --hostname-override {NAME} --pod-manifest-path {{manifests}}"
    " --root-dir {folder}/state --docker {docker} --cgroup-root {cgroup}"
)
"""The command that starts a second chronolet agent."""


class Other(AnyAgent):
    """An agent known only by its command."""

    def __init__(self, folder: Path, docker: PrivateDocker, command: str) -> None:
        folder.mkdir()
        super().__init__(folder, docker)
        self.start_command = shlex.join(docker.namespace.command("bash", "-c", self._filled(command)))

    def start(self) -> None:
        """Start the agent and wait until its pids are known. Raises CalledProcessError if the command fails."""
        super().start()
        scratch.wait_until(lambda: bool(self.pids()), f"the agent's pids in {self.pidfile}; see {self.log}")

    def counted(self) -> list[str]:
        named = set(scratch.pids_naming(f"{self.folder}/")) - set(self.pids())
        return ["--agent-tree", *(word for pid in sorted(named) for word in ("--agent-pid", str(pid)))]

    def destroy(self) -> None:
        """Kill the agent's processes and their descendants, even those that do not name its folder."""
        pids = self.pids()
        scratch.kill([*pids, *(child for pid in pids for child in scratch.children(pid))])
        super().destroy()

    def _filled(self, command: str) -> str:
        if "{pidfile}" not in command:
            command = f"setsid {command} >>{shlex.quote(str(self.log))} 2>&1 </dev/null & echo $! >{{pidfile}}"
        values = {
            "manifests": self.manifests,
            "pidfile": self.pidfile,
            "docker": self.docker.host,
            "folder": self.folder,
            "cgroup": self.docker.cgroup_root(self.folder.name),
        }
        # `str.format` cannot be used, because braces also occur in shell syntax.
        for name, value in values.items():
            command = command.replace(f"{{{name}}}", shlex.quote(str(value)))
        return f"export DOCKER_HOST={self.docker.host}; {command}"
