"""Reads the states of actors at a position of the log. The reader's process folds them, without involving any actor.

Input: a store, an archive, kinds, a position. Output: `Moment`. A snapshot is used if it has the format of the kind and
of its current number of shards, and is not newer than the position; otherwise the history is folded from its beginning.
Next: `cli`; the page /pods, which uses `Latest` because it is requested repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from chronolet.history.entries import ArchiveReader, entries
from chronolet.kernel.folding import Evolution, folded
from chronolet.kernel.step.snapshots import decode_states, snapshot_format
from chronolet.kernel.storage.store import HistoryMissing, Store
from chronolet_schemas import codec
from chronolet_schemas.envelope import START, Entry, Event, Position
from chronolet_schemas.keys import Shard, shard_for, shards_of

Keys = Mapping[str, Collection[str]]
"""The keys of the requested entities, by kind. If a kind is missing, all of its entities are requested."""


class ReadableKind(Protocol):
    """The part of a `Kind` that is needed to read its states."""

    @property
    def name(self) -> str:
        """See `Kind`, which also documents the other properties."""

    @property
    def shards(self) -> int: ...

    @property
    def state(self) -> type[Any]: ...

    @property
    def format(self) -> int: ...

    @property
    def decider(self) -> Evolution[Any]: ...

    @property
    def at_start(self) -> tuple[str, ...]: ...


class Fold(NamedTuple):
    """An `Evolution` without a decider."""

    initial: Any
    evolve: Callable[[Any, Event], Any]


class StatesOnly(NamedTuple):
    """A `ReadableKind` without an actor: neither deciders nor workers are imported for it."""

    name: str
    shards: int
    state: type[Any]
    format: int
    decider: Fold
    at_start: tuple[str, ...] = ()


class Moment(Struct, frozen=True):
    """The state of every entity of the requested kinds: `states[kind][key]`."""

    position: Position
    """The position of the last entry that the states include; START for an empty log."""
    states: Mapping[str, Mapping[str, Any]]
    unreadable: tuple[Position, ...] = ()
    """Entries of these kinds that this release cannot decode; they are omitted, just as the hosts omit them."""


class _KindStates:
    """Folds the states of one kind. `keys`: fold only these entities."""

    def __init__(self, kind: ReadableKind, shards: int, keys: Collection[str] | None = None) -> None:
        """`shards`: the kind's current number of shards. It matters only for the snapshots: if it changes while they
        are read, they have another format.
        """
        self.kind = kind
        self.keys = keys
        self._count = shards
        self.states: dict[str, Any] = dict.fromkeys(kind.at_start, kind.decider.initial)
        found = shards_of(kind.name, shards) if keys is None else map(self._shard, keys)
        self.begins: dict[Shard, Position] = dict.fromkeys(found, START)

    def _shard(self, key: str) -> Shard:
        return shard_for(self.kind.name, self._count, key)

    def restore(self, store: Store, latest: Position | None) -> None:
        """Start each shard from its snapshot if the snapshot is usable."""
        for shard, snapshot in store.read_snapshots(list(self.begins)).items():
            if snapshot.format != snapshot_format(self.kind, self._count) or (latest and snapshot.position > latest):
                continue
            try:
                images = decode_states(self.kind.state, snapshot.state, self.keys)
            except (msgspec.ValidationError, msgspec.DecodeError):
                continue  # recovery ignores it as well; folding the history gives the same states
            self.begins[shard] = snapshot.position
            for key in self.kind.at_start:  # an entity missing in the snapshot is gone
                if self._shard(key) == shard:
                    self.states.pop(key, None)
            self.states |= {key: image.state for key, image in images.items()}

    def add(self, key: str, entry: Entry) -> None:
        """Fold one entry. Raises Undecodable."""
        if self.keys is not None and key not in self.keys:
            return
        if entry.position <= self.begins[self._shard(key)]:
            return
        event = codec.decode(entry.type, entry.data, Event)
        state = folded(self.kind.decider, self.states.get(key), event)
        if state is None:
            self.states.pop(key, None)
        else:
            self.states[key] = state


def state_at(
    store: Store,
    archive: ArchiveReader,
    kinds: Sequence[ReadableKind],
    position: Position | None = None,
    *,
    keys: Keys | None = None,
) -> Moment:
    """Return the states at `position`, or the current ones. `keys`: read only these entities and their snapshots.

    Raises HistoryMissing if entries that are needed are not available.
    """
    return folding_at(store, archive, kinds, position, keys=keys).moment()


def folding_at(
    store: Store,
    archive: ArchiveReader,
    kinds: Sequence[ReadableKind],
    position: Position | None = None,
    *,
    keys: Keys | None = None,
) -> Folding:
    """Like `state_at`, but return the folding, with which the caller reads on."""
    try:
        return _folded(store, archive, kinds, position, keys or {})
    except HistoryMissing:
        # Without an archive: during the read, newer snapshots were written and the log before them was trimmed. Retry.
        return _folded(store, archive, kinds, position, keys or {})


def _folded(
    store: Store, archive: ArchiveReader, kinds: Sequence[ReadableKind], position: Position | None, keys: Keys
) -> Folding:
    folding = Folding(store, kinds, position, keys)
    folding.read(entries(store, archive, folding.at, position))
    return folding


class Folding:
    """Folds states along the log. `at` is the last position read, or at first the position of the oldest snapshot."""

    def __init__(
        self, store: Store, kinds: Sequence[ReadableKind], latest: Position | None = None, keys: Keys | None = None
    ) -> None:
        """Start from the usable snapshots, none of them newer than `latest`."""
        counts = store.layout().counts
        self._folds = {
            kind.name: _KindStates(kind, counts.get(kind.name, kind.shards), (keys or {}).get(kind.name))
            for kind in kinds
        }
        for fold in self._folds.values():
            fold.restore(store, latest)
        self.at = min((begin for fold in self._folds.values() for begin in fold.begins.values()), default=START)
        self._unreadable: list[Position] = []

    def read(self, found: Iterable[Entry]) -> None:
        """Fold the entries that follow `at`."""
        for entry in found:
            self.at = entry.position
            name, _, key = entry.entity.partition("/")
            if name not in self._folds:
                continue
            try:
                self._folds[name].add(key, entry)
            except codec.Undecodable:
                self._unreadable.append(entry.position)

    @property
    def states(self) -> Mapping[str, Mapping[str, Any]]:
        """The states so far, as in a `Moment`. The next `read` changes these tables, but no state in them."""
        return {name: fold.states for name, fold in self._folds.items()}

    @property
    def unreadable(self) -> Sequence[Position]:
        """The entries so far that this release cannot decode, oldest first."""
        return self._unreadable

    def take_unreadable(self) -> Sequence[Position]:
        """Like `unreadable`, but forget them, for a caller that reads on endlessly."""
        taken, self._unreadable = self._unreadable, []
        return taken

    def moment(self) -> Moment:
        """Return the states so far. The next `read` continues with the same states."""
        return Moment(self.at, self.states, tuple(self._unreadable))


class Latest:
    """Returns the current states on repeated requests, each of which reads only new log entries.

    Not thread-safe; a moment is valid until the next one is requested.
    """

    def __init__(self, store: Store, archive: ArchiveReader, kinds: Sequence[ReadableKind]) -> None:
        self._store = store
        self._archive = archive
        self._kinds = kinds
        self._run = ""
        self._folding: Folding | None = None

    def moment(self) -> Moment:
        """Return the current states. Raises the same exceptions as `state_at`."""
        run = self._store.run()
        folding, self._folding = self._folding, None  # a failed read must not be continued
        if folding is None or run != self._run or not self._continues(folding.at):
            folding = Folding(self._store, self._kinds)
        try:
            folding.read(entries(self._store, self._archive, folding.at))
        except HistoryMissing:  # trimmed during the read, after newer snapshots were written
            folding = Folding(self._store, self._kinds)
            folding.read(entries(self._store, self._archive, folding.at))
        self._run, self._folding = run, folding
        return folding.moment()

    def _continues(self, at: Position) -> bool:
        """Return whether the log continues right after `at` and has not lost its tail."""
        following = self._store.read_log(at, 1)
        return following[0].position.n == at.n + 1 if following else self._store.last() == at
