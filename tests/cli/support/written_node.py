"""A node with a hand-written log, on which tests run commands in the test's process.

Input: events, command lines. Output: each command's output, errors and exit status. The log is in an in-memory store
whose clock the test sets.
"""

import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chronolet.adapters.cgroups import LinuxCgroups
from chronolet.adapters.fakes.images import FakeImages
from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.cli.main import status_of
from chronolet.cli.services import Services, Timing, downloaded
from chronolet.history.entries import ArchiveReader, NoArchive
from chronolet.history.kube_events import recorded
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Store
from chronolet.kube_events.view import View
from chronolet.node.settings.table import Settings
from chronolet.ports.kube_sinks import api_event
from chronolet.ports.machine.cgroups import Cgroups
from chronolet.ports.runtime.runtime import Runtime
from chronolet.ports.spans import Span
from chronolet_schemas import codec, kernel, podspec, registry
from chronolet_schemas.envelope import START, Event, Position, Record
from chronolet_schemas.prober import RawResult

NODE = "node-1"
NOON = 1_800_000_000_000
"""The initial time of a node, 2027-01-15T08:00:00Z, in milliseconds since the epoch."""
SHORT = Timing(patience_seconds=0.3, ownerless_seconds=0.3)
"""Short time limits, for commands that find no log or no agent."""


class Result(NamedTuple):
    """The result of a command: its standard output, its standard error and its exit status."""

    output: str
    errors: str
    status: int


class KeptEvents:
    """The stream of KubeEvents, in memory. A blocking read at the end of the stream raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.entries: list[tuple[Position, dict[str, Any]]] = []

    def read(
        self, after: Position, count: int, block_milliseconds: int = 0
    ) -> Sequence[tuple[Position, dict[str, Any]]]:
        found = [entry for entry in self.entries if entry[0] > after][:count]
        if not found and block_milliseconds:
            raise KeyboardInterrupt
        return found

    def close(self) -> None:
        return


class WrittenNode:
    """One node: its log, clock and Docker."""

    def __init__(self, *, timing: Timing | None = None) -> None:
        self.now = NOON
        self.timing = timing or Timing()
        self.server = MemoryServer(lambda: self.now)
        self.store = MemoryStore(self.server)
        self.open_store: Callable[[], Store] = lambda: MemoryStore(self.server)
        """Opens the store for each command."""
        self.runtime = FakeRuntime()
        self.images = FakeImages()
        self.docker: Callable[[Settings], Runtime] | None = None
        """Connects to Docker; None to use the fake `runtime`."""
        self.archive: ArchiveReader = NoArchive()
        self.kept = KeptEvents()
        self.cgroups: Cgroups = LinuxCgroups(Path("/nowhere"), Path("/nowhere"))
        self.download: Callable[[str, int], bytes] = downloaded
        self.results: list[RawResult] = []
        """The raw probe results, newest first."""
        self.spans: dict[str, list[Span]] = {}
        """The spans that each process reports, by the process's entry in the list of live processes. A process without
        an entry here does not respond."""
        started = kernel.LogStarted(run="r", node=NODE, shards={})
        self.store.begin("r", {}, self.record(f"node/{NODE}", started))

    def record(self, entity: str, event: Event, cause: str = "") -> Record:
        kind = entity.partition("/")[0]
        return Record(registry.type_of(type(event)), entity, event.subject(), f"{kind}#1", cause, codec.encode(event))

    def write(self, entity: str, *events: Event, cause: str = "") -> Position:
        """Append events of an entity at the current time, and return the position of the last one."""
        with self.server.changed:
            at = self.server.last
            for event in events:
                at = self.server.append(self.record(entity, event, cause))
            self.server.changed.notify_all()
        return at

    def run(self, *arguments: str, stdin: bytes = b"") -> Result:
        """Run `chronolet ARGUMENTS...` in this process."""
        return run(self.services(), *self.named, *arguments, stdin=stdin)

    named = ("--redis", "unix:///none", "--hostname-override", NODE)
    """The flags that select this node."""

    def services(self) -> Services:
        """Return the external dependencies of the commands."""
        return Services(
            store=lambda _: self.open_store(),
            runtime=self.docker or (lambda _: self.runtime),
            images=lambda _: self.images,
            archive=lambda *_: self.archive,
            kube_events=lambda _: self.kept,
            results=lambda _: iter(self.results),
            spans=self._spans,
            cgroups=lambda _: self.cgroups,
            now=lambda: self.now,
            timing=self.timing,
            download=self.download,
        )

    def keep_events(self) -> None:
        """Add the KubeEvents recorded so far to the stream that `events` reads."""
        view = View()
        for at, event in recorded(self.store.scan(START), lambda _: True):
            post = view.take(at, event)
            if post is not None:
                self.kept.entries.append((at.position, api_event(post, NODE)))

    def _spans(self, process: str, pod: str) -> Sequence[Span] | None:
        known = self.spans.get(process)
        return None if known is None else [one for one in known if one.entity == pod]


def run(services: Services, *arguments: str, stdin: bytes = b"") -> Result:
    """Run one command line in this process and capture its streams."""
    with _streams(stdin) as (out, err):
        status = status_of(arguments, services)
        sys.stdout.flush()
        sys.stderr.flush()
        return Result(out.getvalue().decode(), err.getvalue().decode(), status)


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = io.BytesIO(), io.BytesIO()
    # A file, because some commands read from the file descriptor.
    with tempfile.TemporaryFile() as given, pytest.MonkeyPatch.context() as patch:
        given.write(stdin)
        given.seek(0)
        patch.setattr(sys, "stdin", io.TextIOWrapper(given))
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
        patch.setattr(sys, "stderr", io.TextIOWrapper(err, write_through=True))
        yield out, err


def manifest(name: str = "web", namespace: str = "default", **spec: Any) -> podspec.Pod:
    """Return a Pod with defaults filled in, as `apply` sends it."""
    containers: list[Mapping[str, Any]] = spec.pop("containers", [{"name": "app", "image": "busybox:1"}])
    plain = {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": containers, **spec}}
    return podspec.defaulted(podspec.from_plain(plain), namespace)


def columns(text: str) -> list[list[str]]:
    """Return the rows of a printed table, each as a list of its cells."""
    return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in text.splitlines()]
