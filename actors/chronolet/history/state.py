"""Reads the states of actors at a position of the log. The reader's process folds them, without involving any actor.

Input: a store, an archive, kinds, a position. Output: `Moment`. A snapshot is used if it has the format of the kind and
of its current number of shards, and is not newer than the position; so is the archive's newest checkpoint up to the
position (docs/adr/0051). Without either, the history is folded from its beginning.
Next: `cli`; the page /pods, which uses `Latest` because it is requested repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from chronolet.history.derived.folds import FoldableKind, KindFold
from chronolet.history.derived.wanted import of_kinds
from chronolet.history.entries import ArchiveReader, entries
from chronolet.kernel.step.snapshots import decode_states, snapshot_format
from chronolet.kernel.storage.store import HistoryMissing, Snapshot, Store
from chronolet_schemas import codec
from chronolet_schemas.envelope import START, Entry, Event, Position
from chronolet_schemas.keys import Shard, shard_for, shards_of

if TYPE_CHECKING:
    from chronolet.history.derived.checkpoint import Checkpoint

Keys = Mapping[str, Collection[str]]
"""The keys of the requested entities, by kind. If a kind is missing, all of its entities are requested."""


class ReadableKind(FoldableKind, Protocol):
    """The part of a `Kind` that is needed to read its states."""

    @property
    def shards(self) -> int:
        """See `Kind`."""


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


class _KindStates(KindFold):
    """Folds the states of one kind, each shard from its own position on."""

    def __init__(self, kind: ReadableKind, shards: int, keys: Collection[str] | None = None) -> None:
        """`shards`: the kind's current number of shards. It matters only for the snapshots: if it changes while they
        are read, they have another format.
        """
        super().__init__(kind, keys)
        self.kind: ReadableKind = kind
        self._count = shards
        found = shards_of(kind.name, shards) if keys is None else map(self._shard, keys)
        self.begins: dict[Shard, Position] = dict.fromkeys(found, START)
        self._unreadable: list[tuple[Shard, Position]] = []

    def _shard(self, key: str) -> Shard:
        return shard_for(self.kind.name, self._count, key)

    def usable(self, snapshots: Mapping[Shard, Snapshot], latest: Position | None) -> Mapping[Shard, Snapshot]:
        """Return the snapshots of this kind that have its format and are not newer than `latest`."""
        format_ = snapshot_format(self.kind, self._count)
        return {
            shard: one
            for shard, one in snapshots.items()
            if shard in self.begins and one.format == format_ and not (latest and one.position > latest)
        }

    def begin_with(self, checkpoint: Checkpoint) -> None:
        """Start all shards from a checkpoint. Raises Unusable."""
        self.states = checkpoint.states_of(self.kind.name, self.kind.state, self.keys)
        self.begins = dict.fromkeys(self.begins, checkpoint.position)
        self._unreadable = [
            (self._shard(one.key), Position(*one.position))
            for one in checkpoint.unreadable.get(self.kind.name, ())
            if self.keys is None or one.key in self.keys
        ]

    def restore(self, snapshots: Mapping[Shard, Snapshot]) -> None:
        """Start each shard from its snapshot if that is newer than what the shard starts from."""
        for shard, snapshot in snapshots.items():
            self._unreadable = [one for one in self._unreadable if one[0] != shard or one[1] > snapshot.position]
            if snapshot.position <= self.begins[shard]:
                continue
            try:
                images = decode_states(self.kind.state, snapshot.state, self.keys)
            except (msgspec.ValidationError, msgspec.DecodeError):
                continue  # recovery ignores it as well; folding the history gives the same states
            self.begins[shard] = snapshot.position
            for key in [key for key in self.states if self._shard(key) == shard]:
                del self.states[key]  # an entity missing in the snapshot is gone
            self.states |= {key: image.state for key, image in images.items()}

    def unreadable(self) -> Iterable[Position]:
        """Return the entries that cannot be decoded, of those that the beginning includes: none before a snapshot."""
        return (position for _, position in self._unreadable)

    def add(self, key: str, entry: Entry) -> None:
        """Fold one entry. Raises Undecodable."""
        if self.keys is not None and key not in self.keys:
            return
        if entry.position > self.begins[self._shard(key)]:
            super().add(key, entry)


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
    folding = Folding(store, archive, kinds, position, keys)
    folding.read(entries(store, archive, folding.at, position, folding.wanted, prefer_archive=position is not None))
    return folding


class Folding:
    """Folds states along the log. `at` is the last position read, or at first the position of the oldest snapshot."""

    def __init__(
        self,
        store: Store,
        archive: ArchiveReader,
        kinds: Sequence[ReadableKind],
        latest: Position | None = None,
        keys: Keys | None = None,
    ) -> None:
        """Start from the usable snapshots and the newest usable checkpoint, none of them newer than `latest`."""
        counts, keys = store.layout().counts, keys or {}
        self._folds = {
            kind.name: _KindStates(kind, counts.get(kind.name, kind.shards), keys.get(kind.name)) for kind in kinds
        }
        self.wanted = of_kinds({kind.name: keys.get(kind.name) for kind in kinds})
        """The entries that change these states."""
        read = store.read_snapshots([shard for fold in self._folds.values() for shard in fold.begins])
        snapshots = {name: fold.usable(read, latest) for name, fold in self._folds.items()}
        if self._needs_archive(store, snapshots):
            self._begin_with_checkpoint(store, archive, latest)
        for name, fold in self._folds.items():
            fold.restore(snapshots[name])
        self.at = min((begin for fold in self._folds.values() for begin in fold.begins.values()), default=START)
        self._unreadable = sorted(position for fold in self._folds.values() for position in fold.unreadable())

    def _needs_archive(self, store: Store, snapshots: Mapping[str, Mapping[Shard, Snapshot]]) -> bool:
        """Return whether entries are needed that the stream no longer has."""
        trimmed = store.archived()[1]
        return any(
            trimmed > (snapshots[name][shard].position if shard in snapshots[name] else START)
            for name, fold in self._folds.items()
            for shard in fold.begins
        )

    def _begin_with_checkpoint(self, store: Store, archive: ArchiveReader, latest: Position | None) -> None:
        from chronolet.history.derived.checkpoint import KINDS  # noqa: PLC0415 - seldom needed
        from chronolet.history.derived.code import version_of  # noqa: PLC0415
        from chronolet.history.derived.sealed import Unusable  # noqa: PLC0415

        # What is archived is certain: a keeper may have written a file whose last entries Redis then lost.
        archived = store.archived()[0]
        upto = archived if latest is None else min(archived, latest)
        versions = {name: version_of(fold.kind) for name, fold in self._folds.items() if name in KINDS}
        for name, found in archive.checkpoints(upto, versions).items() if versions else ():
            with suppress(Unusable):  # it was altered; the history is folded instead
                self._folds[name].begin_with(found)

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
        from chronolet.history.derived.code import version_of  # noqa: PLC0415 - commands need it seldom

        self._store = store
        self._archive = archive
        self._kinds = kinds
        self._run = ""
        for kind in kinds:
            version_of(kind)  # now, while the code on disk is that in memory
        self._folding: Folding | None = None

    def moment(self) -> Moment:
        """Return the current states. Raises the same exceptions as `state_at`."""
        run = self._store.run()
        folding, self._folding = self._folding, None  # a failed read must not be continued
        if folding is None or run != self._run or not self._continues(folding.at):
            folding = Folding(self._store, self._archive, self._kinds)
        try:
            folding.read(entries(self._store, self._archive, folding.at, wanted=folding.wanted))
        except HistoryMissing:  # trimmed during the read, after newer snapshots were written
            folding = Folding(self._store, self._archive, self._kinds)
            folding.read(entries(self._store, self._archive, folding.at, wanted=folding.wanted))
        self._run, self._folding = run, folding
        return folding.moment()

    def _continues(self, at: Position) -> bool:
        """Return whether the log continues right after `at` and has not lost its tail."""
        following = self._store.read_log(at, 1)
        return following[0].position.n == at.n + 1 if following else self._store.last() == at
