"""A bundle in the place of a node's log: a read-only `Store`, and the archive that belongs to it.

Input: a bundle. Output: entries, the states at the window's beginning as snapshots, and refusals of everything else.
What came before the window counts as trimmed, and is not in the archive. Next: `cli.session`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NoReturn

from chronolet.history.bundle.reader import Bundle
from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import NoArchive
from chronolet.history.when import MomentError
from chronolet.kernel.storage.layout import Layout
from chronolet.kernel.storage.members import Survey
from chronolet.kernel.storage.store import HistoryMissing, Inputs, Run, Snapshot, StoreUnreachable
from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.keys import Shard


class EndOfBundle(Exception):  # noqa: N818 - the condition's name
    """Raised instead of waiting for entries after the last one: nothing follows."""


class BeforeWindow(HistoryMissing, MomentError):  # noqa: N818 - the condition's name
    """What is from before the window: no moment of this history, and entries that are missing."""


def _refused(what: str) -> Callable[..., NoReturn]:
    def refuse(self: BundleStore, *_: object, **__: object) -> NoReturn:
        raise StoreUnreachable(f"{self.name}: a bundle is read-only and has no {what}", healing=False)

    return refuse


class BundleStore:
    """A `Store` with the entries of a bundle. Whatever needs a live node raises StoreUnreachable."""

    def __init__(self, bundle: Bundle) -> None:
        self.name = bundle.name
        self._bundle = bundle
        self._begins = Position.parse(bundle.manifest.begins)

    # -- the log -----------------------------------------------------------------------------------------------------
    def run(self) -> str:
        return self._bundle.manifest.run

    def last(self) -> Position:
        return Position.parse(self._bundle.manifest.ends)

    def archived(self) -> tuple[Position, Position]:
        return self._begins, self._begins

    def read_log(self, after: Position, count: int, upto: Position | None = None) -> Sequence[Entry]:
        return tuple(islice(self._bundle.entries(after, upto), count))

    def scan(self, after: Position, upto: Position | None = None) -> Iterator[Entry]:
        return self._bundle.entries(after, upto)

    def wait(self, log_after: Position | None, *_: object, **__: object) -> Inputs:
        """Return the entries after a position. Raises EndOfBundle if there are none."""
        found = () if log_after is None else self.read_log(log_after, 1_000)
        if not found:
            raise EndOfBundle
        return Inputs(found, {})

    def sizes(self) -> Mapping[str, int]:
        return {"log": self._bundle.manifest.count}

    # -- states ------------------------------------------------------------------------------------------------------
    def layout(self) -> Layout:
        """Return a layout in which each kind with states has one shard."""
        return Layout(self.run(), {part.kind: 1 for part in self._bundle.manifest.of("states")})

    def read_snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        found = {Shard(part.kind): part for part in self._bundle.manifest.of("states")}
        return {
            shard: Snapshot(self._begins, found[shard].format, self._bundle.states_of(found[shard]))
            for shard in shards
            if shard in found
        }

    # -- a node without processes ------------------------------------------------------------------------------------
    def check(self) -> Sequence[str]:
        return ()

    def alive(self) -> Mapping[str, str]:
        return {}

    def renewals(self) -> Mapping[str, str]:
        return {}

    def survey(self, shards: Sequence[Shard]) -> Survey:  # noqa: ARG002 - see `Members`
        return Survey(self.run(), {}, {}, frozenset(), {}, self.layout())

    def wake(self) -> None:
        """Do nothing: `wait` never waits."""

    def close(self) -> None:
        """Do nothing: the caller that opened the bundle closes it."""

    begin: Callable[..., Run] = _refused("beginning of a new log")
    renew = retire = heads = acquire = unowned = release = handovers = forget_dead = _refused("owners of shards")
    step = count_attempts = snapshot = mark_archived = trim = _refused("steps of actors")
    read_mail = send = _refused("mailboxes")
    request_shards = refuse_shards = reshard = add_kind = _refused("shards to change")
    join = publish = drain = _refused("processes")


class BundleArchive(NoArchive):
    """The `ArchiveReader` of a bundle. It only has the entry that the window follows."""

    def __init__(self, bundle: Bundle, since: str) -> None:
        """`since`: the time at which the window begins, for people."""
        self._bundle = bundle
        self._since = since
        self._begins = Position.parse(bundle.manifest.begins)

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Iterator[Entry]:  # noqa: ARG002
        """See `ArchiveReader`. Raises BeforeWindow."""
        if after < self._begins:
            raise self._missing()
        return iter(())

    def numbered(self, number: int) -> Entry | None:
        """See `ArchiveReader`."""
        return self._bundle.at(self._begins) if number == self._begins.n else None

    def _missing(self) -> BeforeWindow:
        return BeforeWindow(
            f"{self._bundle.name}: the bundle has the log from {self._since} on, after entry #{self._begins.n}: "
            "ask for a later moment, or save a bundle that begins earlier (`chronolet bundle save --from`)"
        )
