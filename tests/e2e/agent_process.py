"""The agent of a node under test: `chronolet run` in a separate process.

Input: an engine, a redis-server's URL, a node's name and a folder. Output: starts, stops, kills and pauses of the
agent, and the agent's own log. Next: `tests.e2e.node` adds manifests, commands and the states of pods.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import owner_of
from chronolet_schemas import kernel
from chronolet_schemas.keys import Shard
from tests.e2e.fault_injection.agent_farm import AgentJob
from tests.e2e.journal import Journal
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker
from tests.support.machine.frozen import are_stopped, stopped
from tests.support.scratch import wait_until

CHRONOLET = [sys.executable, "-m", "chronolet.cli"]
LARGE_CAPACITY = {"CHRONOLET_NODE_CAPACITY": "cpu=1000,memory=4Ti", "CHRONOLET_MAX_PODS": "1000"}
"""Lets the agent admit pods however small the machine is; separate tests cover rejected pods."""

_ENDS_OF_HANDOVERS = (kernel.ShardReleased, kernel.ShardTakenOver)
"""A handover ends with its release, or another process takes the shard before."""


class AgentProcess:
    """One node's agent. `start` starts it; `stop` or the end of the test stops it."""

    def __init__(self, engine: PrivateDocker, url: str, name: str, root: Path) -> None:
        self.engine = engine
        self.url = url
        self.name = name
        self.root = root
        self.folder = root / "manifests"
        self.folder.mkdir(parents=True)
        self.journal = Journal(url, name)
        self._log = root / "agent.log"
        self._agent: subprocess.Popen[bytes] | None = None
        self._others: list[subprocess.Popen[bytes]] = []
        self.agent_environ: dict[str, str] = {}
        """Environment variables for the agent alone, not for commands."""
        self.environ = os.environ | {
            "CHRONOLET_REDIS": url,
            "CHRONOLET_ROOT_DIR": str(root),
            "CHRONOLET_HOSTNAME_OVERRIDE": name,
            "DOCKER_HOST": engine.host,
            "CHRONOLET_CGROUP_ROOT": engine.cgroup_root(name),
            **LARGE_CAPACITY,
            # probes/test_overload.py tests probes on a busy machine.
            "CHRONOLET_PROBE_OVERLOAD_PROTECTION": "false",
            # Images are kept even if the machine's disk is full.
            "CHRONOLET_PINNED_IMAGES": "chronolet/*",
        }

    def start(self, port: int = 0, *flags: str, in_network: bool = False, wrapper: Sequence[str] = ()) -> None:
        """Start the agent with `flags` of `run`.
        `in_network`: in Docker's network namespace, where the addresses of pods can be reached, as on any host.
        `wrapper`: a command that executes its arguments in a changed environment.
        """
        command = [*wrapper, *CHRONOLET, "run", "--pod-manifest-path", str(self.folder), "--port", str(port), *flags]
        if in_network:
            command = self.engine.namespace.command(*command)
        environ = self.environ | self.agent_environ
        with self._log.open("ab") as log:
            self._agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ)

    def start_other(self, name: str, actors: str) -> subprocess.Popen[bytes]:
        """Start another process of the node, which hosts `actors` and has a separate state folder, as if on another
        machine. `close` kills it if it is still running.
        """
        command = [*CHRONOLET, "run", "--actors", actors, "--process-name", name, "--port", "0"]
        command += ["--root-dir", str(self.root / name)]
        with (self.root / f"{name}.log").open("ab") as log:
            other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environ)
        self._others.append(other)
        return other

    def start_named(self, name: str, *, url: str = "") -> subprocess.Popen[bytes]:
        """Start another process of the node on the same machine, with a name of its own, which can host everything.
        `url`: the address at which it reaches the node's Redis. `close` kills it if it is still running.
        """
        command = [*CHRONOLET, "run", "--process-name", name, "--pod-manifest-path", str(self.folder), "--port", "0"]
        environ = self.environ | {"CHRONOLET_REDIS": url or self.url}
        with (self.root / f"{name}.log").open("ab") as log:
            other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ)
        self._others.append(other)
        return other

    def put_on_standby(self, name: str, instead_of: str = "") -> None:
        """Drain a process of the node: it takes over only what no other process can host. `instead_of`: a process that
        is no longer drained.
        """
        with closing(RedisStore(self.url, self.name)) as store:
            wait_until(lambda: name in store.survey(()).members, f"{name} to join the node")
            store.drain(name, drains=True)
            store.drain(instead_of, drains=False)

    def stands_by(self, name: str, owner: str) -> bool:
        """Whether a process that was put on standby has no shard any more, because `owner` has what it had before, and
        nothing is on its way.
        """
        self.journal.read()
        with closing(RedisStore(self.url, self.name)) as store:
            tokens = store.survey([Shard("prober", number) for number in range(4)]).tokens
        owners = {owner_of(token) for token in tokens.values()}
        actors = [line.entry.actor for line in self.journal.lines if isinstance(line.event, _ENDS_OF_HANDOVERS)]
        ended = Counter(actor.partition("#")[0] for actor in actors)
        logs = self.log_of_other(name) + self.log_of_other(owner)
        begun = Counter[str](re.findall(r"handing over shard .*shard=(\S+)", logs))
        return "standing by" in self.log_of_other(name) and owners == {owner} and begun <= ended

    def log_of_other(self, name: str) -> str:
        """Return the log of a process that `start_other` started."""
        return (self.root / f"{name}.log").read_text()

    def reopen_journal(self, url: str = "", *, archived: bool = False) -> None:
        """Reopen the journal at the beginning of a new log, or of the log on another server if `url` is given.
        `archived`: the log may be so long that a part of it is in the archive.
        """
        older = self.journal.has_older_release
        self.journal.close()
        self.journal = Journal(url or self.url, self.name, self.root if archived else None)
        self.journal.has_older_release = older

    def job(self, **more: Any) -> AgentJob:
        """Return the job with which an agent farm starts this node's agent; `more`: further fields, such as `point`."""
        flags = {
            "redis": self.environ["CHRONOLET_REDIS"],
            "root_dir": str(self.root),
            "node": self.name,
            "docker": self.engine.host,
            "cgroup_root": self.engine.cgroup_root(self.name),
            "node_capacity": LARGE_CAPACITY["CHRONOLET_NODE_CAPACITY"],
            "probe_overload_protection": "false",
            "pod_manifest_path": str(self.folder),
            "port": "0",
        }
        return AgentJob(flags=flags, log=str(self._log), kill_marker=str(self.root / "kill-marker"), **more)

    def kill9(self) -> None:
        assert self._agent is not None
        self._agent.kill()
        self._agent.wait()

    def stop(self) -> int:
        """Send SIGTERM, wait until the agent exits, and return its exit status."""
        assert self._agent is not None
        self._agent.send_signal(signal.SIGTERM)
        return self._agent.wait(scratch.HANG_SECONDS)

    def wait_for_end(self) -> int:
        """Wait until the agent exits by itself; return its exit status."""
        assert self._agent is not None
        return self._agent.wait(scratch.HANG_SECONDS)

    @property
    def pid(self) -> int:
        """The agent's process id."""
        assert self._agent is not None
        return self._agent.pid

    @property
    def runs(self) -> bool:
        """Whether the agent is running."""
        return self._agent is not None and self._agent.poll() is None

    @contextmanager
    def paused_when(self, what: str, condition: Callable[[], bool]) -> Iterator[None]:
        """Pause the agent and the other processes of the node during the block, which begins at a point where the
        condition holds for everything that they have written.
        """
        while True:
            self.journal.wait_for(what, condition)
            pids = [self.pid, *(one.pid for one in self._others if one.poll() is None)]
            with stopped(pids):
                scratch.wait_until(functools.partial(are_stopped, pids), "the last of the agent's threads to stop")
                self.journal.catch_up()
                if condition():
                    yield
                    return

    @property
    def log(self) -> str:
        """The agent's own log so far."""
        return self._log.read_text()

    def wait_for_log(self, text: str) -> str:
        """Wait until a line of the agent's own log contains the text; return the first such line."""
        try:
            scratch.wait_until(lambda: text in self.log, f"{text!r} in {self._log}")
        except TimeoutError as error:
            error.add_note(self.log[-4000:])
            raise
        return next(line for line in self.log.splitlines() if text in line)

    def kill_all(self) -> None:
        """Send SIGKILL to the agent and all other processes of the node."""
        if self._agent is not None:
            self.kill9()
        for other in self._others:
            other.kill()
            other.wait()
