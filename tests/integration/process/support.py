"""Whole agents in their own processes, with a temporary state folder.

Input: settings and tuning by name (see `agent`). Output: `Place`, which starts and kills agents, reads their logs, and
finally ends every process.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from chronolet.adapters.archive.places import place as archive_place
from chronolet.history.archives import NodeArchive
from chronolet.history.entries import entries
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.keys import Shard
from chronolet_schemas.manifests import DeletePods
from tests.support import scratch

NODE = "n"
MANIFESTS = Shard("manifests")
PATIENT: Mapping[str, object] = {"lease": 90_000, "end": scratch.HANG_SECONDS}
"""Settings of an agent whose lease does not expire during a stall of the machine, and whose shutdown remains clean."""


class Agent:
    """One agent: its process, the text of its log, and its pages."""

    def __init__(self, root: Path, log: Path, settings: Mapping[str, object], environ: Mapping[str, str]) -> None:
        self.port = int(str(settings.get("port", 0)))
        self._log = log
        options = [f"{name}={value}" for name, value in settings.items()]
        command = [sys.executable, "-m", "tests.integration.process.agent", str(root), *options]
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=os.environ | environ
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def lines(self) -> list[str]:
        return self.log.splitlines()

    def kill9(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Send SIGTERM, wait until the agent exits, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=scratch.HANG_SECONDS)

    def wait_for_line(self, text: str, seconds: float = 20) -> str:
        scratch.wait_until(
            lambda: text in self.log or self.process.poll() is not None, f"{text!r} in {self._log}", seconds
        )
        assert text in self.log, self.log
        return next(line for line in self.lines if text in line)

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=scratch.HANG_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def wait_ready(self, seconds: float = 20) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.log
            try:
                return self.get("/readyz")[0] == 200
            except OSError:
                return False

        scratch.wait_until(ready, "/readyz", seconds)


class Place:
    """A state folder and its agents. `root` may be on a separate file system."""

    def __init__(self, disk: Path, folder: Path) -> None:
        self.disk = disk
        self.root = disk / "s"
        self._folder = folder
        self._agents: list[Agent] = []
        self._stores: list[RedisStore] = []

    # -- agents --------------------------------------------------------------------------------------------------
    def start(self, *, environ: Mapping[str, str] | None = None, **settings: object) -> Agent:
        """Start an agent. By default, it hosts only `manifests` and `keeper`, and no engine listens at its Docker
        address.
        """
        given = {"docker": f"unix://{self._folder}/no-docker.sock", "actors": "manifests,keeper"} | settings
        log = self._folder / f"agent-{len(self._agents)}.log"
        self._agents.append(Agent(self.root, log, given, environ or {}))
        return self._agents[-1]

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
        """Wait as `scratch.wait_until` does; on failure, show the logs of the agents and the state of the shards."""
        try:
            scratch.wait_until(condition, what, seconds)
        except TimeoutError as error:
            for agent in self._agents:
                error.add_note(f"agent {agent.pid}, status {agent.process.poll()}: " + " | ".join(agent.lines[-12:]))
            if self.redis_pid():
                store = self.store()
                error.add_note(f"the log is at {store.last()}, {store.archived()}; {store.heads([MANIFESTS])}")
            raise

    # -- Redis ---------------------------------------------------------------------------------------------------
    @property
    def url(self) -> str:
        return f"unix://{self.root}/redis/redis.sock"

    def redis_pid(self) -> int:
        """Return the pid of the redis-server that the agents have started; 0 if none is running."""
        try:
            pid = int((self.root / "redis" / "redis.pid").read_text())
        except (FileNotFoundError, ValueError):
            return 0
        return pid if scratch.start_time(pid) else 0

    def kill_redis(self) -> int:
        pid = self.redis_pid()
        os.kill(pid, signal.SIGKILL)
        scratch.wait_until(lambda: not scratch.start_time(pid), "redis-server's end")
        return pid

    def store(self, url: str = "") -> RedisStore:
        self._stores.append(RedisStore(url or self.url, NODE))
        return self._stores[-1]

    # -- the disk ------------------------------------------------------------------------------------------------
    def fill_disk(self) -> Path:
        """Fill the disk; removing the file that is returned frees it again."""
        filler = self.disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(65536))
        return filler

    # -- the log -------------------------------------------------------------------------------------------------
    def history(self, store: RedisStore) -> list[Entry]:
        return list(entries(store, NodeArchive(archive_place("", self.root), NODE, store)))

    def events(self, store: RedisStore, kind: type[Event]) -> list[Event]:
        """Return all events of a class, from archive and stream; none while the server is unavailable."""
        name = registry.type_of(kind)
        try:
            return [codec.decode(entry.type, entry.data, Event) for entry in self.history(store) if entry.type == name]
        except StoreUnreachable:
            return []

    # -- clean-up ------------------------------------------------------------------------------------------------
    def destroy(self) -> None:
        for store in self._stores:
            store.close()
        for agent in self._agents:
            agent.kill9()


def command(request: str) -> tuple[str, str, str, bytes]:
    """Return the arguments of `send`, after the shard, for a command that causes one event and changes nothing."""
    delete = DeletePods(request=request, pods=("default/unknown",))
    return registry.type_of(DeletePods), "manifests/node", request, codec.encode(delete)


@contextmanager
def place(disk: int = 0) -> Iterator[Place]:
    """Yield a `Place` in a new folder below /tmp, on a separate file system of `disk` bytes if that is not 0. At the
    end, kill its processes and remove the folder.
    """
    scratch.sweep("agent", _remove)
    folder = scratch.create("agent")
    root = folder / "d"
    root.mkdir()
    if disk:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk}", "tmpfs", root], check=True)
    place = Place(root, folder)
    try:
        yield place
    finally:
        place.destroy()
        _remove(folder)


def _remove(folder: Path) -> None:
    scratch.kill(scratch.pids_naming(f"{folder}/"))
    if (folder / "d").is_mount():
        subprocess.run(["umount", "--lazy", folder / "d"], check=True)
    shutil.rmtree(folder)
