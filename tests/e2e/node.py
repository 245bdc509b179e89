"""A node as a person runs one: `chronolet run` in a process of its own on a private engine and a private Redis, and the
other commands beside it.

Input: an engine, a server, a name. Output: manifests that come and go, what commands print, the log, HTTP.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import msgspec
import yaml

from chronolet.cli.get.pods import summarized
from chronolet.pod.status.status import plain_status
from chronolet.ports.runtime import labels
from chronolet_schemas import manifests
from chronolet_schemas.podspec import plain
from tests.e2e.fault_injection.agent_farm import AgentJob
from tests.e2e.journal import Journal
from tests.support import scratch
from tests.support.docker import PrivateDocker
from tests.support.frozen import stopped

_CHRONOLET = [sys.executable, "-m", "chronolet.cli"]
BUSYBOX = "chronolet/busybox:1"
_REMOVED_AT_ONCE = 4
_UNSENT = "nothing was sent; start the agent"
"""What a command says of an agent that nobody has heard of for five seconds."""
ROOMY = {"CHRONOLET_NODE_CAPACITY": "cpu=1000,memory=4Ti", "CHRONOLET_MAX_PODS": "1000"}
"""However little the machine has: what does not fit has tests of its own."""


class Said(msgspec.Struct, frozen=True):
    """How a command ended, with what it printed."""

    status: int
    out: str
    err: str

    def line(self, beginning: str) -> str:
        """The first line of its output that begins so."""
        return next(line for line in self.out.splitlines() if line.startswith(beginning))


class Node:
    """One node. The agent is started by `start`; `stop` or the end of the test ends it."""

    def __init__(self, engine: PrivateDocker, url: str, name: str, root: Path) -> None:
        self.engine = engine
        self.url = url
        self.name = name
        self.root = root
        self.folder = root / "manifests"
        self.folder.mkdir(parents=True)
        self.docker = engine.api(round(scratch.HANG_SECONDS))
        self.journal = Journal(url, name)
        self._log = root / "agent.log"
        self._agent: subprocess.Popen[bytes] | None = None
        self._others: list[subprocess.Popen[bytes]] = []
        self.agents_environ: dict[str, str] = {}
        """What the agent has in its environment, and no command."""
        self.environ = os.environ | {
            "CHRONOLET_REDIS": url,
            "CHRONOLET_ROOT_DIR": str(root),
            "CHRONOLET_HOSTNAME_OVERRIDE": name,
            "DOCKER_HOST": engine.host,
            "CHRONOLET_CGROUP_ROOT": engine.cgroup_root(name),
            **ROOMY,
            # What a busy machine does to probes is the subject of test_overload.
            "CHRONOLET_PROBE_OVERLOAD_PROTECTION": "false",
            # The machine's disk may be as full as it likes.
            "CHRONOLET_PINNED_IMAGES": "chronolet/*",
        }

    # -- the agent -------------------------------------------------------------------------------------------------

    def start(self, port: int = 0, *more: str, in_network: bool = False, within: Sequence[str] = ()) -> None:
        """`in_network`: in Docker's own network, where the addresses of pods can be reached, as on any host. `more` are
        flags of `run`. `within` is a command that becomes what is behind it, in surroundings of its own.
        """
        command = [*within, *_CHRONOLET, "run", "--pod-manifest-path", str(self.folder), "--port", str(port), *more]
        if in_network:
            command = self.engine.namespace.command(*command)
        environ = self.environ | self.agents_environ
        with self._log.open("ab") as log:
            self._agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ)

    def beside(self, name: str, actors: str) -> subprocess.Popen[bytes]:
        """Another process of the node that hosts these kinds, as if on another machine: with a state folder of its own.
        Killed at the end if it still runs.
        """
        command = [*_CHRONOLET, "run", "--actors", actors, "--port", "0", "--root-dir", str(self.root / name)]
        with (self.root / f"{name}.log").open("ab") as log:
            other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environ)
        self._others.append(other)
        return other

    def job(self, **more: Any) -> AgentJob:
        """How a farm starts this node's agent, with the crash point and so on of `more`."""
        flags = {
            "redis": self.environ["CHRONOLET_REDIS"],
            "root_dir": str(self.root),
            "node": self.name,
            "docker": self.engine.host,
            "cgroup_root": self.engine.cgroup_root(self.name),
            "node_capacity": ROOMY["CHRONOLET_NODE_CAPACITY"],
            "probe_overload_protection": "false",
            "pod_manifest_path": str(self.folder),
            "port": "0",
        }
        return AgentJob(flags=flags, log=str(self._log), struck=str(self.root / "struck"), **more)

    def kill9(self) -> None:
        assert self._agent is not None
        self._agent.kill()
        self._agent.wait()

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self._agent is not None
        self._agent.send_signal(signal.SIGTERM)
        return self._agent.wait(scratch.HANG_SECONDS)

    def wait_for_end(self) -> int:
        """Of an agent that ends by itself."""
        assert self._agent is not None
        return self._agent.wait(scratch.HANG_SECONDS)

    @property
    def pid(self) -> int:
        """The agent's."""
        assert self._agent is not None
        return self._agent.pid

    @property
    def runs(self) -> bool:
        return self._agent is not None and self._agent.poll() is None

    @contextmanager
    def standing_still(self, what: str, condition: Callable[[], bool]) -> Iterator[None]:
        """The agent does nothing meanwhile, at a moment at which the condition holds by all that it has written."""
        while True:
            self.journal.wait_for(what, condition)
            with stopped([self.pid]):
                scratch.wait_until(self._stands_still, "the last of the agent's threads to stop")
                self.journal.catch_up()
                if condition():
                    yield
                    return

    def _stands_still(self) -> bool:
        """SIGSTOP was sent; a thread in the middle of a call stops at its end."""
        try:
            stats = [(task / "stat").read_text() for task in Path(f"/proc/{self.pid}/task").iterdir()]
        except (FileNotFoundError, ProcessLookupError):  # a thread has just ended
            return False
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_for_log(self, text: str) -> str:
        """The first line of the agent's own log with that text."""
        try:
            scratch.wait_until(lambda: text in self.log, f"{text!r} in {self._log}")
        except TimeoutError as error:
            error.add_note(self.log[-4000:])
            raise
        return next(line for line in self.log.splitlines() if text in line)

    def close(self, *, remove: bool = True) -> None:
        """kill -9, and the containers it leaves, unless the engine ends next and takes them with it: that is faster."""
        if self._agent is not None:
            self.kill9()
        for other in self._others:
            other.kill()
            other.wait()
        self.journal.close()
        if remove:
            self._remove_containers()
        self.docker.close()

    def _remove_containers(self) -> None:
        left = self.docker.containers(all=True, filters={"label": f"{labels.NODE}={self.name}"})
        parts = [left[first::_REMOVED_AT_ONCE] for first in range(_REMOVED_AT_ONCE)]
        with ThreadPoolExecutor(_REMOVED_AT_ONCE) as pool:
            list(pool.map(self._remove, filter(None, parts)))

    def _remove(self, containers: Sequence[Mapping[str, Any]]) -> None:
        with closing(self.engine.api(round(scratch.HANG_SECONDS))) as api:
            for one in containers:
                with suppress(docker.errors.NotFound):  # the agent's last call has removed it
                    _remove(api, one["Id"])

    # -- manifests -------------------------------------------------------------------------------------------------

    def write(self, name: str, *documents: Mapping[str, Any] | str | bytes) -> Path:
        """A file of the watched folder, complete the moment that it appears."""
        path = self.folder / name
        unfinished = self.folder / f".{name}"
        unfinished.write_bytes(b"---\n".join(map(_text, documents)))
        unfinished.rename(path)
        return path

    def aside(self, name: str, *documents: Mapping[str, Any]) -> str:
        """A file that nobody watches, for `apply -f`."""
        path = self.root / name
        path.write_bytes(b"---\n".join(map(_text, documents)))
        return str(path)

    # -- commands --------------------------------------------------------------------------------------------------

    def chronolet(self, *words: str) -> Said:
        """Run a command to its end; once more where it sent nothing because the agent, which runs, stood still."""
        until = time.monotonic() + scratch.HANG_SECONDS
        said = self._run(words)
        while said.status and _UNSENT in said.err and self.runs and time.monotonic() < until:
            said = self._run(words)
        return said

    def _run(self, words: Sequence[str]) -> Said:
        done = subprocess.run(
            [*_CHRONOLET, *words],
            capture_output=True,
            text=True,
            env=self.environ,
            timeout=scratch.hang_limit(60),
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def piped(self, data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end that is given so much on standard input."""
        command = [*_CHRONOLET, *words]
        return subprocess.run(
            command, input=data, capture_output=True, env=self.environ, timeout=scratch.hang_limit(60), check=False
        )

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that goes on; killed at the end if it still does."""
        process = subprocess.Popen([*_CHRONOLET, *words], stdout=subprocess.PIPE, env=self.environ)
        with process:
            try:
                yield process
            finally:
                process.kill()

    # -- what there is ---------------------------------------------------------------------------------------------

    def wait_for_status(self, pod: str, word: str, seconds: float = 30) -> None:
        """Until a container of the pod is in a state of that word: running, or a reason."""
        self.journal.wait_for(f"{pod} {word}; now {self.words(pod)}", lambda: word in self.words(pod), seconds)

    def wait_for_column(self, pod: str, word: str, seconds: float = 30) -> None:
        """Until kubectl's STATUS column of this pod says so."""
        self.journal.wait_for(f"{pod} {word}; now {self.column(pod)}", lambda: self.column(pod) == word, seconds)

    def column(self, pod: str) -> str:
        """The STATUS column of a pod, empty without such a pod."""
        state = self.journal.pods.get(f"default/{pod}")
        if state is None:
            return ""
        return summarized({**plain(state.manifest), "status": plain_status(state)}).status

    def words(self, pod: str) -> list[str]:
        """Of each container: `running`, or why it waits, or how it ended."""
        status = self.journal.status(f"default/{pod}")
        return [_word(one.state) for one in status.container_statuses] if status else []

    def restarts(self, pod: str) -> list[int | None]:
        """Of each container."""
        status = self.journal.status(f"default/{pod}")
        return [one.restart_count for one in status.container_statuses] if status else []

    def wait_until_running(self, *pods: str) -> None:
        self.journal.wait_for(f"{pods} running", lambda: all(map(self.all_run, pods)))

    def all_run(self, pod: str) -> bool:
        return set(self.words(pod)) == {"running"}

    def wait_until_gone(self, pod: str) -> None:
        self.journal.wait_for(f"the end of {pod}", lambda: f"default/{pod}" not in self.journal.pods)

    def running(self, pod: str) -> dict[str, Any]:
        """Docker's own view of a pod's running containers: name in the pod -> inspect."""
        chosen = {"label": [f"{labels.NODE}={self.name}", f"{labels.POD_NAME}={pod}"]}
        found: dict[str, Any] = {}
        for one in self.docker.containers(filters=chosen):
            with suppress(docker.errors.NotFound):  # it was removed since it was listed
                found[one["Labels"][labels.CONTAINER_NAME]] = self.docker.inspect_container(one["Id"])
        return found

    def started_at(self, *pods: str) -> dict[str, str]:
        """When each running container of these pods was started, by Docker, under its id."""
        return {one["Id"]: one["State"]["StartedAt"] for pod in pods for one in self.running(pod).values()}

    def kill_process(self, pod: str, container: str) -> None:
        """kill -9 to a container's process, behind everybody's back."""
        os.kill(self.running(pod)[container]["State"]["Pid"], signal.SIGKILL)

    def processes(self, pod: str, container: str) -> list[str]:
        """The names of a running container's processes."""
        names: list[str] = []
        for _, pid, *_rest in self.docker.top(self.running(pod)[container]["Id"])["Processes"]:
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                names.append(Path(f"/proc/{pid}/comm").read_text().strip())
        return names

    def output(self, pod: str, container: str) -> str:
        """What a running container has written so far."""
        return self.docker.logs(self.running(pod)[container]["Id"]).decode()

    def wait_for_output(self, pod: str, container: str, words: str) -> str:
        """What a running container has written, once it has these words."""
        said: list[str] = [""]

        def there() -> bool:
            said[0] = self.output(pod, container)
            return words in said[0]

        self.journal.wait_for(f"{words!r} of {pod}/{container}", there)
        return said[0]

    def page(self, port: int) -> str:
        """What the pod's host port serves, empty while nothing does."""
        try:
            return self.engine.namespace.http(port).body.decode()
        except OSError:
            return ""


def _remove(api: docker.APIClient, container: str) -> None:
    """NotFound where it has gone meanwhile."""
    try:
        api.remove_container(container, force=True, v=True)
    except docker.errors.APIError as error:
        if "already in progress" not in str(error):  # by the agent's last call
            raise
        api.wait(container, condition="removed")


def _text(document: Mapping[str, Any] | str | bytes) -> bytes:
    if isinstance(document, bytes):
        return document
    return (document if isinstance(document, str) else yaml.safe_dump(dict(document))).encode()


def _word(state: Any) -> str:
    if state.running:
        return "running"
    part = state.waiting or state.terminated
    return str(part.reason)


def pod(name: str, *containers: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """A Pod; without containers it has one that runs until it is told to end."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": list(containers or [shell("app")]), **spec},
    }


def shell(name: str, script: str = "trap 'exit 0' TERM; sleep 1000000 & wait", **more: Any) -> dict[str, Any]:
    """A container that runs a shell script."""
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
    """A node whose agent is started, with `more` flags; gone at the end, and with `remove` its containers, too."""
    node = Node(engine, url, name, root)
    try:
        node.start(0, *more, in_network=in_network)
        # Before it hosts manifests, commands wait for it only so long.
        node.journal.wait_for_event(manifests.FolderRead)
        yield node
    finally:
        node.close(remove=remove)
