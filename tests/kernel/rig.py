"""Real kernel processes on the in-memory store, whose server can be unreachable, lose data, and lose replies.

Input: kinds. Output: the log, with helpers that wait for entries. Next: the tests in this folder, which use the fixture
`rig`.
"""

import copy
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.kind import Kind
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet.kernel.timing import Timing
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import START, Command, Entry, Event
from chronolet_schemas.keys import Shard, shard_for
from tests.support import redecided, scratch

E = TypeVar("E", bound=Event)

_CALLS = (
    *(
        "check",
        "begin",
        "record",
        "run",
        "layout",
        "reshard",
        "renew",
        "retire",
        "heads",
        "alive",
        "renewals",
        "acquire",
        "unowned",
        "step",
        "count_attempts",
        "read_log",
        "read_mail",
    ),
    *("scan", "last", "wait", "send", "snapshot", "read_snapshots", "archived"),
    *("join", "publish", "survey", "drain", "release", "handovers"),
)


class Line:
    """The faults of one store's connection to the server."""

    def __init__(self) -> None:
        self.down = False
        self.loses_replies: set[str] = set()
        """Names of calls that lose every other reply, beginning with the first."""
        self.blocked: set[str] = set()
        """Names of calls that do not reach the server."""
        self.raises: dict[str, Exception] = {}
        """Errors that calls raise, by the call's name."""
        self.calls: list[str] = []


class LineStore(MemoryStore):
    """The in-memory store, reached over a faulty connection."""

    def __init__(self, server: MemoryServer, line: Line) -> None:
        super().__init__(server)
        self.line = line


def _over_the_line(name: str) -> Callable[..., Any]:
    real = getattr(MemoryStore, name)

    def call(self: LineStore, *arguments: Any, **named: Any) -> Any:
        self.line.calls.append(name)
        if name in self.line.raises:
            raise self.line.raises[name]
        if self.line.down or name in self.line.blocked:
            raise StoreUnreachable("the server is down")
        answer = real(self, *arguments, **named)
        if self.line.down or (name in self.line.loses_replies and self.line.calls.count(name) % 2):
            raise StoreUnreachable("the reply was lost")
        return answer

    return call


for _name in _CALLS:
    setattr(LineStore, _name, _over_the_line(_name))


class Rig:
    """A node on an in-memory server: its processes and its data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = MemoryServer()
        self.store = MemoryStore(self.server)
        self.processes: list[Process] = []
        self.lines: list[Line] = []
        self.timing = Timing()
        """Timing of the processes created from now on."""
        self.has_forged_states = False
        """Whether the test has given a shard states that do not follow from the log."""
        self.kinds: dict[str, Kind[Any]] = {}
        """The kinds of all processes, by name."""
        self._counts = {"chore": 1, "tally": 1, "mirror": 1}

    # -- processes -----------------------------------------------------------------------------------------------
    def process(self, *kinds: Kind[Any], line: Line | None = None, begin: bool = True, **setup: Any) -> Process:
        """Create a process that hosts these kinds. If `begin` is true, start it and wait until it is running."""
        by_name = {kind.name: kind for kind in kinds}
        self.kinds |= by_name
        fields: dict[str, Any] = {"lease_milliseconds": 300, "shards": self._counts, "timing": self.timing}
        store = LineStore(self.server, line or Line())
        self.lines.append(store.line)
        process = Process(Setup(node="n", store=store, kinds=by_name, **fields | setup))
        self.processes.append(process)
        if begin:
            process.start()
            scratch.wait_until(lambda: process.phase == "running", "a running process")
        return process

    def set_shards(self, kind: str, count: int) -> None:
        """Set a kind's shard count before the log begins. 0 leaves the kind out of the log."""
        self._counts = {**self._counts, kind: count}
        if not count:
            del self._counts[kind]

    def retire(self) -> None:
        for process in self.processes:
            process.retire()

    # -- commands and events -------------------------------------------------------------------------------------
    def send(self, command: Command, kind: str = "chore") -> str:
        """Put a command into its shard's mailbox. Returns its request id."""
        self.send_to(shard_for(kind, self._counts[kind], command.key), command)  # type: ignore[attr-defined]
        return command.request

    def send_to(self, shard: Shard, command: Command) -> None:
        """Put a command into the given shard's mailbox."""
        name = registry.type_of(type(command))
        entity = f"{shard.kind}/{command.key}"  # type: ignore[attr-defined]
        assert self.store.send(shard, name, entity, command.request, codec.encode(command)) == "sent"

    def log(self) -> Sequence[Entry]:
        return list(self.store.scan(START))

    def events(self, event: type[E]) -> list[E]:
        name = registry.type_of(event)
        return [codec.decode(entry.type, entry.data, event) for entry in self.log() if entry.type == name]

    def types(self) -> list[str]:
        return [entry.type.partition("@")[0] for entry in self.log()]

    def wait(self, event: type[E], count: int = 1) -> list[E]:
        """Wait until the log has at least `count` of these events. Returns all of them."""
        name = registry.type_of(event)
        scratch.wait_until(lambda: len(self.events(event)) >= count, f"{count} {name} in {self.types()}")
        return self.events(event)

    def settle(self) -> None:
        """Wait until each host has the replies to its committed steps: a step is in the log before its host has the
        reply.
        """
        scratch.wait_until(lambda: all(map(self._knows, self.processes)), "the replies to all steps")

    def _knows(self, process: Process) -> bool:
        supervisor = process._supervisor._actor_weakref() if process._supervisor is not None else None
        hosted = list(supervisor._hosted.handles().items()) if supervisor is not None else []
        heads = self.store.heads([shard for shard, _ in hosted])
        return all(
            heads[shard].token != handle.ledger.token or heads[shard].version == handle.ledger.version
            for shard, handle in hosted
        )

    # -- a server that loses data -----------------------------------------------------------------------------------
    def remember(self) -> Mapping[str, Any]:
        """Return a copy of the server's data."""
        with self.server.changed:
            kept = {k: v for k, v in vars(self.server).items() if k not in ("changed", "clock")}
            return copy.deepcopy(kept)

    def crash(self, remembered: Mapping[str, Any]) -> None:
        """Crash the server and restart it with only the remembered data."""
        self.settle()  # a host still waiting for a reply could not notice the loss
        for line in self.lines:
            line.down = True
        self.forget(remembered)
        before = [line.calls.count("wait") for line in self.lines]
        scratch.wait_until(
            lambda: all(line.calls.count("wait") > count for line, count in zip(self.lines, before, strict=True)),
            "readers that notice the outage",
        )
        for line in self.lines:
            line.down = False

    def forget(self, remembered: Mapping[str, Any]) -> None:
        """Reset the server to the remembered data. All connections stay open."""
        with self.server.changed:
            vars(self.server).update(copy.deepcopy(dict(remembered)))
            self.server.changed.notify_all()


def request() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A node on an in-memory server. At the end of the test, its processes are retired, and its
    log is decided again.
    """
    made = Rig(tmp_path)
    yield made
    made.retire()
    log = made.log()
    complete = [entry.position.n for entry in log] == list(range(1, len(log) + 1))  # else the test has removed a part
    if complete and not made.has_forged_states:
        redecided.check(log, made.kinds.values())
