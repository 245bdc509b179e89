"""A node's log written by hand, and the command line run against it.

In: events. Out: what `chronolet ...` prints and its exit status. The log lies in the store's in-memory twin, whose
clock stands where the test puts it.
"""

import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from chronolet.adapters.fake_runtime import FakeRuntime
from chronolet.cli.main import status_of
from chronolet.cli.services import Services, pure_kinds
from chronolet.history.entries import ArchiveReader, NoArchive
from chronolet.kernel.kind import Kind
from chronolet.kernel.memory_data import MemoryServer
from chronolet.kernel.memory_store import MemoryStore
from chronolet.node.settings import Settings
from chronolet.ports.runtime import Runtime
from chronolet_schemas import codec, kernel, podspec, registry
from chronolet_schemas.envelope import Event, Position, Record

NODE = "node-1"
NOON = 1_800_000_000_000
"""2027-01-15T08:00:00Z, in milliseconds."""


class Said(NamedTuple):
    """What a command printed, and its exit status."""

    out: str
    err: str
    status: int


class WrittenNode:
    """One node: its log, its clock, its Docker."""

    def __init__(self, kinds: Sequence[Kind[Any]] | None = None) -> None:
        self.now = NOON
        self.server = MemoryServer(lambda: self.now)
        self.store = MemoryStore(self.server)
        self.runtime = FakeRuntime()
        self.docker: Callable[[Settings], Runtime] | None = None
        """Another Docker than the fake."""
        self.archive: ArchiveReader = NoArchive()
        self.kinds = kinds
        started = kernel.LogStarted(run="r", node=NODE, shards={})
        self.store.begin("r", {}, self.record(f"node/{NODE}", started))

    def record(self, entity: str, event: Event, cause: str = "") -> Record:
        kind = entity.partition("/")[0]
        return Record(registry.type_of(type(event)), entity, event.subject(), f"{kind}#1", cause, codec.encode(event))

    def write(self, entity: str, *events: Event, cause: str = "") -> Position:
        """Append events of an entity now; the last one's position."""
        with self.server.changed:
            at = self.server.last
            for event in events:
                at = self.server.append(self.record(entity, event, cause))
            self.server.changed.notify_all()
        return at

    def run(self, *arguments: str, stdin: bytes = b"") -> Said:
        """`chronolet ARGUMENTS`."""
        services = Services(
            store=lambda _: MemoryStore(self.server),
            runtime=self.docker or (lambda _: self.runtime),
            archive=lambda *_: self.archive,
            kinds=self._kinds,
            now=lambda: self.now,
        )
        return run(services, "--redis", "unix:///none", "--hostname-override", NODE, *arguments, stdin=stdin)

    def _kinds(self, names: Sequence[str]) -> Sequence[Kind[Any]]:
        if self.kinds is None:
            return pure_kinds(names)
        return [kind for kind in self.kinds if kind.name in names]


def run(services: Services, *arguments: str, stdin: bytes = b"") -> Said:
    """One command line in this process, its streams caught."""
    with _streams(stdin) as (out, err):
        status = status_of(arguments, services)
        sys.stdout.flush()
        sys.stderr.flush()
        return Said(out.getvalue().decode(), err.getvalue().decode(), status)


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = io.BytesIO(), io.BytesIO()
    # A file, for some commands read from its number.
    with tempfile.TemporaryFile() as given, pytest.MonkeyPatch.context() as patch:
        given.write(stdin)
        given.seek(0)
        patch.setattr(sys, "stdin", io.TextIOWrapper(given))
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
        patch.setattr(sys, "stderr", io.TextIOWrapper(err, write_through=True))
        yield out, err


def manifest(name: str = "web", namespace: str = "default", **spec: Any) -> podspec.Pod:
    """A Pod as `apply` would send it."""
    containers: list[Mapping[str, Any]] = spec.pop("containers", [{"name": "app", "image": "busybox:1"}])
    plain = {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": containers, **spec}}
    return podspec.defaulted(podspec.from_plain(plain), namespace)


def columns(text: str) -> list[list[str]]:
    """A printed table's cells."""
    return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in text.splitlines()]
