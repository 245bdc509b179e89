"""A node as a user runs one: the agent on a private engine and a private Redis, and commands of `chronolet`.

Input: an engine, a server, a name. Output: manifests, output of commands, the log, states of pods, HTTP pages.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import msgspec
import yaml

from chronolet.cli.get.pod_rows import summarized
from chronolet.pod.status.status import plain_status
from chronolet.ports.runtime import labels
from chronolet_schemas import kube_events, manifests
from chronolet_schemas.podspec import plain
from tests.e2e.agent_process import CHRONOLET, AgentProcess
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker

BUSYBOX = "chronolet/busybox:1"
_CONCURRENT_REMOVALS = 4
_STALLED = ("nothing was sent; start the agent", "does not reply in time")
"""A command's errors if the agent's lease has been missing, or Redis has not replied, for five seconds."""


class CommandResult(msgspec.Struct, frozen=True):
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    def line(self, beginning: str) -> str:
        """Return the first line of standard output with this beginning."""
        return next(line for line in self.out.splitlines() if line.startswith(beginning))


class Node(AgentProcess):
    """One node: its agent, manifests, commands, and the states of its pods."""

    def __init__(self, engine: PrivateDocker, url: str, name: str, root: Path) -> None:
        super().__init__(engine, url, name, root)
        self.docker = engine.api(round(scratch.HANG_SECONDS))

    def close(self, *, remove: bool = True) -> None:
        """Kill the agent and, with `remove`, remove its containers. `remove=False` is faster if the engine is about to
        be stopped.
        """
        self.kill_all()
        self.journal.close()
        if remove:
            self._remove_containers()
        self.docker.close()

    def _remove_containers(self) -> None:
        left = self.docker.containers(all=True, filters={"label": f"{labels.NODE}={self.name}"})
        parts = [left[first::_CONCURRENT_REMOVALS] for first in range(_CONCURRENT_REMOVALS)]
        with ThreadPoolExecutor(_CONCURRENT_REMOVALS) as pool:
            list(pool.map(self._remove, filter(None, parts)))

    def _remove(self, containers: Sequence[Mapping[str, Any]]) -> None:
        with closing(self.engine.api(round(scratch.HANG_SECONDS))) as api:
            for one in containers:
                with suppress(docker.errors.NotFound):  # the agent's last call removed it
                    _remove(api, one["Id"])

    # -- manifests -------------------------------------------------------------------------------------------------

    def write(self, name: str, *documents: Mapping[str, Any] | str | bytes) -> Path:
        """Write a file of the watched folder atomically."""
        path = self.folder / name
        unfinished = self.folder / f".{name}"
        unfinished.write_bytes(b"---\n".join(map(_text, documents)))
        unfinished.rename(path)
        return path

    def write_unwatched(self, name: str, *documents: Mapping[str, Any]) -> str:
        """Write a file outside the watched folder, for `apply -f`; return its path."""
        path = self.root / name
        path.write_bytes(b"---\n".join(map(_text, documents)))
        return str(path)

    # -- commands --------------------------------------------------------------------------------------------------

    def chronolet(self, *words: str) -> CommandResult:
        """Run a command to its end. Repeat it if the running agent or the server was stalled."""
        until = time.monotonic() + scratch.HANG_SECONDS
        result = self._run(words)
        while result.status and _is_stalled(result) and self.runs and time.monotonic() < until:
            result = self._run(words)
        return result

    def _run(self, words: Sequence[str]) -> CommandResult:
        done = subprocess.run(
            [*CHRONOLET, *words],
            capture_output=True,
            text=True,
            env=self.environ,
            timeout=scratch.hang_limit(60),
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def run_with_input(self, data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end, with `data` on standard input."""
        command = [*CHRONOLET, *words]
        return subprocess.run(
            command, input=data, capture_output=True, env=self.environ, timeout=scratch.hang_limit(60), check=False
        )

    @contextmanager
    def running_command(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command, and kill it at the end if it is still running."""
        process = subprocess.Popen([*CHRONOLET, *words], stdout=subprocess.PIPE, env=self.environ)
        with process:
            try:
                yield process
            finally:
                process.kill()

    # -- pods by the log -------------------------------------------------------------------------------------------

    def wait_for_status(self, pod: str, state: str, seconds: float = 30) -> None:
        """Wait until an app container of the pod has this state: `running`, or the reason why it waits or has ended."""
        what = f"{pod} {state}; now {self.container_states(pod)}"
        self.journal.wait_for(what, lambda: state in self.container_states(pod), seconds)

    def wait_for_status_column(self, pod: str, text: str, seconds: float = 30) -> None:
        """Wait until kubectl's STATUS column for this pod shows the text."""
        what = f"{pod} {text}; now {self.status_column(pod)}"
        self.journal.wait_for(what, lambda: self.status_column(pod) == text, seconds)

    def status_column(self, pod: str) -> str:
        """Return the STATUS column of a pod; empty if there is no such pod."""
        state = self.journal.pods.get(f"default/{pod}")
        if state is None:
            return ""
        return summarized({**plain(state.manifest), "status": plain_status(state)}).status

    def container_states(self, pod: str) -> list[str]:
        """Return for each app container `running`, or the reason why it waits or has ended."""
        status = self.journal.status(f"default/{pod}")
        return [_state_text(one.state) for one in status.container_statuses] if status else []

    def restarts(self, pod: str) -> list[int | None]:
        """Return the restart count of each app container."""
        status = self.journal.status(f"default/{pod}")
        return [one.restart_count for one in status.container_statuses] if status else []

    def kube_events(self, pod: str) -> list[tuple[str, str]]:
        """Return the reasons and messages of the pod's KubeEvents so far."""
        return [(one.reason, one.message) for one in self.journal.events(kube_events.Recorded, name=pod)]

    def wait_until_running(self, *pods: str) -> None:
        self.journal.wait_for(f"{pods} running", lambda: all(map(self.all_run, pods)))

    def all_run(self, pod: str) -> bool:
        """Return whether all app containers of the pod are running."""
        return set(self.container_states(pod)) == {"running"}

    def wait_until_gone(self, pod: str) -> None:
        self.journal.wait_for(f"the end of {pod}", lambda: f"default/{pod}" not in self.journal.pods)

    # -- pods by Docker --------------------------------------------------------------------------------------------

    def running(self, pod: str) -> dict[str, Any]:
        """Return Docker's inspect results of a pod's running containers, by their name in the pod; that of the sandbox
        is POD.
        """
        chosen = {"label": [f"{labels.NODE}={self.name}", f"{labels.POD_NAME}={pod}"]}
        found: dict[str, Any] = {}
        for one in self.docker.containers(filters=chosen):
            with suppress(docker.errors.NotFound):  # it was removed since it was listed
                found[one["Labels"][labels.CONTAINER_NAME]] = self.docker.inspect_container(one["Id"])
        return found

    def started_at(self, *pods: str) -> dict[str, str]:
        """Return Docker's start time of each running container of these pods, including sandboxes, by container id."""
        return {one["Id"]: one["State"]["StartedAt"] for pod in pods for one in self.running(pod).values()}

    def kill_process(self, pod: str, container: str) -> None:
        """Send SIGKILL to a container's process, bypassing Docker and the agent."""
        os.kill(self.running(pod)[container]["State"]["Pid"], signal.SIGKILL)

    def processes(self, pod: str, container: str) -> list[str]:
        """Return the names of a running container's processes."""
        names: list[str] = []
        for _, pid, *_rest in self.docker.top(self.running(pod)[container]["Id"])["Processes"]:
            with suppress(FileNotFoundError, ProcessLookupError):  # the process has just ended
                names.append(Path(f"/proc/{pid}/comm").read_text().strip())
        return names

    def output(self, pod: str, container: str) -> str:
        """Return what a running container has written so far."""
        return self.docker.logs(self.running(pod)[container]["Id"]).decode()

    def wait_for_output(self, pod: str, container: str, text: str) -> str:
        """Wait until a running container has written the text; return all its output."""
        output = [""]

        def is_written() -> bool:
            output[0] = self.output(pod, container)
            return text in output[0]

        self.journal.wait_for(f"{text!r} of {pod}/{container}", is_written)
        return output[0]

    def page(self, port: int) -> str:
        """Return what the pod's host port serves; empty while nothing is served."""
        try:
            return self.engine.namespace.http(port).body.decode()
        except OSError:
            return ""


def _is_stalled(result: CommandResult) -> bool:
    return any(text in result.err for text in _STALLED)


def _remove(api: docker.APIClient, container: str) -> None:
    """Remove a container. Raises NotFound if it no longer exists."""
    try:
        api.remove_container(container, force=True, v=True)
    except docker.errors.APIError as error:
        if "already in progress" not in str(error):  # by a call of the killed agent
            raise
        api.wait(container, condition="removed")


def _text(document: Mapping[str, Any] | str | bytes) -> bytes:
    if isinstance(document, bytes):
        return document
    return (document if isinstance(document, str) else yaml.safe_dump(dict(document))).encode()


def _state_text(state: Any) -> str:
    if state.running:
        return "running"
    part = state.waiting or state.terminated
    return str(part.reason)


def pod(name: str, *containers: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a Pod; without `containers`, it has one that runs until SIGTERM."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": list(containers or [shell("app")]), **spec},
    }


def shell(name: str, script: str = "trap 'exit 0' TERM; sleep 1000000 & wait", **more: Any) -> dict[str, Any]:
    """Return a container that runs a shell script."""
    return {"name": name, "image": BUSYBOX, "command": ["/bin/sh", "-c", script], **more}


@contextmanager
def running_node(
    engine: PrivateDocker,
    url: str,
    name: str,
    root: Path,
    *,
    in_network: bool = False,
    more: Sequence[str] = (),
    remove: bool = True,
) -> Iterator[Node]:
    """Run a node whose agent gets the flags `more`. At the end the agent is killed and, with `remove`, its containers
    are removed.
    """
    node = Node(engine, url, name, root)
    try:
        node.start(0, *more, in_network=in_network)
        # Commands time out while no process hosts the actor `manifests`.
        node.journal.wait_for_event(manifests.FolderRead)
        yield node
    finally:
        node.close(remove=remove)
