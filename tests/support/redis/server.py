"""A private redis-server on a unix socket, which tests may kill, optionally with a slow or small disk.

Input: options. Output: a server whose append-only file survives `kill9()` and `restart()`; everything is removed at the
end of the `with` block. Next: tests use the fixture `redis_server`, or `private_redis(...)` with options.
"""

import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from chronolet.adapters.redis_server import append_only
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS
from tests.support.server_process import ServerProcess

_KIND = "redis"
_SLOW_FSYNC, _STEPPED_CLOCK = (Path(__file__).with_name(name) for name in ("slow_fsync.c", "stepped_clock.c"))


class RedisOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a redis-server. `port` 0: unix socket only. Sizes are in bytes; `disk` creates a file system of that
    size for the data. `slow_fsync` preloads the library for `slow_down`, `clock` the one for `step_clock`. `more`:
    further arguments of redis-server.
    """

    appendfsync: Literal["always", "everysec", "no"] = "always"
    maxmemory: int = 0
    maxmemory_policy: str = "noeviction"
    requirepass: str = ""
    port: int = 0
    disk: int = 0
    slow_fsync: bool = False
    clock: bool = False
    more: tuple[str, ...] = ()


class PrivateRedis(ServerProcess):
    """One redis-server, with all its files in one folder. `kill9` loses data that was not yet written to the kernel."""

    def __init__(self, folder: Path, options: RedisOptions) -> None:
        super().__init__("redis-server", folder / "log")
        self.folder = folder
        self.options = options
        self.socket = folder / "sock"
        self.data = folder / "data"
        self._clients: list[redis.Redis] = []

    @property
    def url(self) -> str:
        """The URL for `--redis`."""
        password = f":{self.options.requirepass}@" if self.options.requirepass else ""
        return f"unix://{password}{self.socket}"

    # -- the server ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the server and wait until it has loaded its data and responds."""
        assert self._process is None, "redis-server is running already"
        if (self.data / "appendonlydir").exists():
            append_only.cut_torn_end(self.data / "appendonlydir")
        self._launch(
            self._arguments(),
            env=os.environ | (self._shims() if self.options.slow_fsync or self.options.clock else {}),
        )

    def wait_for_end(self) -> int:
        """Wait until the server exits by itself, as on a full disk with `always`; return its exit status."""
        status = self._running().wait(timeout=HANG_SECONDS)
        self._process = None
        return status

    def client(self, *, timeout: float = HANG_SECONDS) -> redis.Redis:
        """Create a client without retries: redis-py's default of ten retries would send commands twice."""
        client = redis.Redis.from_url(self.url, socket_timeout=timeout, retry=Retry(NoBackoff(), 0))
        self._clients.append(client)
        return client

    # -- a bad clock -----------------------------------------------------------------------------------------------

    def step_clock(self, ahead_seconds: int) -> None:
        """Set how many seconds the server's wall clock is ahead of the machine's; negative: behind. Needs `clock`."""
        assert self.options.clock, "private_redis(clock=True) is needed"
        with (self.folder / "clock").open("r+b", buffering=0) as file:
            file.write(struct.pack("=q", ahead_seconds))

    # -- a bad disk ------------------------------------------------------------------------------------------------

    def slow_down(self, milliseconds: int) -> None:
        """Delay each fsync from the next one on; 0 ends the delay. Needs `slow_fsync`.

        With everysec, a write during an fsync is acknowledged immediately and reaches the kernel up to two seconds
        later: `wait_for_fsync()`, write, `kill9()` loses exactly those writes.
        """
        assert self.options.slow_fsync, "private_redis(slow_fsync=True) is needed"
        fresh = self.folder / "milliseconds.new"
        fresh.write_text(str(milliseconds))
        fresh.rename(self.folder / "milliseconds")

    def wait_for_fsync(self) -> None:
        """Wait until a delayed fsync runs; with everysec, one starts within a second of a write."""
        scratch.wait_until((self.folder / "busy").exists, "the start of an fsync; was anything written?")

    def fill_disk(self) -> Path:
        """Fill the small disk; return the file whose removal frees the space again."""
        assert self.options.disk, "private_redis(disk=BYTES) is needed"
        filler = self.data / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(65536))
        return filler

    # -- removal --------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Remove the server and its files, in any state."""
        for client in self._clients:
            client.close()
        scratch.kill(scratch.pids_naming(f"{self.folder}/"))
        if self._process is not None:
            # If the server has a port, its process title contains the port instead of the folder.
            self._process.kill()
            self._process.wait()
            self._process = None
        scratch.unmount_below(self.folder)  # the server's disk, and volumes of agents whose folder is below this one
        shutil.rmtree(self.folder)

    def prepare(self) -> None:
        """Create the data folder, on a separate disk if requested."""
        self.data.mkdir()
        if self.options.disk:
            size = f"size={self.options.disk}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", self.data], check=True)

    def _arguments(self) -> list[str]:
        options = self.options
        settings = {
            "port": options.port,
            "bind": "127.0.0.1",
            "unixsocket": self.socket,
            "unixsocketperm": 700,
            "dir": self.data,
            "appendonly": "yes",
            "appendfsync": options.appendfsync,
            "aof-load-truncated": "no",  # as in the agent's own server: Redis's repair would leave half a step
            "maxmemory": options.maxmemory,
            "maxmemory-policy": options.maxmemory_policy,
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        password = ["--requirepass", options.requirepass] if options.requirepass else []
        # An empty `save` must come last: redis-server would use the next word as its value.
        return ["redis-server", *words, *password, *options.more, "--save", ""]

    def _shims(self) -> dict[str, str]:
        wanted = {_SLOW_FSYNC: self.options.slow_fsync, _STEPPED_CLOCK: self.options.clock}
        clock = self.folder / "clock"
        if not clock.exists():
            clock.write_bytes(bytes(8))
        preloaded = ":".join(self._compiled(source) for source, used in wanted.items() if used)
        return {"LD_PRELOAD": preloaded, "SLOW_FSYNC_FOLDER": str(self.folder), "STEPPED_CLOCK": str(clock)}

    def _compiled(self, source: Path) -> str:
        library = self.folder / f"{source.stem}.so"
        if not library.exists():
            compiler = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
            subprocess.run(compiler, check=True)
        return str(library)

    def _responds(self) -> bool:
        client = redis.Redis.from_url(self.url, socket_timeout=HANG_SECONDS, retry=Retry(NoBackoff(), 0))
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):  # BusyLoadingError is a ConnectionError
            return False
        finally:
            client.close()

    def _end(self, number: signal.Signals) -> None:
        super()._end(number)
        self.socket.unlink(missing_ok=True)
        (self.folder / "busy").unlink(missing_ok=True)


@contextmanager
def private_redis(options: RedisOptions | None = None, **fields: object) -> Iterator[PrivateRedis]:
    """Run an empty server while the block runs: `private_redis(appendfsync="everysec", slow_fsync=True)`."""
    sweep()
    chosen = options or RedisOptions(**fields)  # type: ignore[arg-type]
    server = PrivateRedis(scratch.create(_KIND), chosen)
    try:
        server.prepare()
        server.start()
        yield server
    finally:
        server.destroy()


def sweep() -> None:
    """Remove what killed test runs have left behind."""
    scratch.sweep(_KIND, lambda folder: PrivateRedis(folder, RedisOptions()).destroy())
