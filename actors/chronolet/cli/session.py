"""Gives a command access to a node: its store, archive and states.

Input: settings and services. Output: states and log entries, with errors as `Failure`. Next: the commands.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from chronolet.cli.errors import Failure
from chronolet.cli.printing import ages
from chronolet.cli.printing.progress import progress
from chronolet.cli.services import Services, services_of_command
from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import ArchiveReader, entries
from chronolet.kernel.storage.redis.urls import where
from chronolet.kernel.storage.store import HistoryMissing, Store, StoreUnreachable
from chronolet.node.settings.settings import Settings
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.keys import Shard, shards_of

if TYPE_CHECKING:
    from chronolet.history.state import Folding, Moment
    from chronolet.history.when import Located

_PAUSE_SECONDS = 0.1


class Session:
    """A connection to one node's log, open for the duration of one command."""

    def __init__(self, settings: Settings, services: Services, store: Store, archive: ArchiveReader) -> None:
        self.settings = settings
        self.services = services
        self.store = store
        self.archive = archive
        self.at: Located | None = None
        """The moment of the past that the command is about; None: the present."""
        self._past: Moment | None = None
        """The states that `preload` has read."""
        self.unreadable: set[Position] = set()
        """Undecodable entries that had no effect on the command's output. Reported once, when the command ends."""
        self.unsearched: set[str] = set()
        """Archive files that `go_to` has not searched. Reported once, when the command ends."""

    def now(self) -> int:
        """Return the time of the session's moment, by default the current time, in milliseconds since the epoch."""
        return self.services.now() if self.at is None else self.at.milliseconds

    def last(self) -> Position:
        """Return the position of the last entry up to the session's moment."""
        return self.store.last() if self.at is None else self.at.position

    def go_to(self, text: str, flag: str = "--at") -> Located:
        """Make a moment of the past, as a person names it, the session's, and return it. Raises Failure, which names
        the flag, if there is no such moment.
        """
        from chronolet.history import when  # noqa: PLC0415 - only --at needs it

        now = self.services.now()
        self._past = None
        try:
            self.at = when.located(self.store, self.archive, when.parsed(text, now), now)
        except when.MomentError as error:
            raise Failure(f"{flag}: {error}") from error
        self.unsearched.update(self.at.unsearched)
        return self.at

    def go_to_now(self) -> Located:
        """Make the present the session's moment, as it is when this is called."""
        from chronolet.history.when import Located  # noqa: PLC0415 - see `go_to`

        self._past = None
        self.at = Located(self.store.last(), self.services.now())
        return self.at

    def state(self, *kinds: str, pods: Collection[str] = ()) -> Moment:
        """Return the states of these kinds at the session's moment. `pods`: read only these, by namespace/name; if it
        is empty, read all pods.
        """
        if self._past is not None and self._past.states.keys() >= set(kinds):
            return self._past
        moment = self.folding(*kinds, pods=pods).moment()
        self.unreadable.update(moment.unreadable)
        return moment

    def folding(self, *kinds: str, pods: Collection[str] = ()) -> Folding:
        """Return a folding of these kinds at the session's moment, with which the caller reads on. `pods`: see `state`.
        Only the caller knows which undecodable entries to report.
        """
        from chronolet.history.state import folding_at  # noqa: PLC0415 - `log` reads no states

        with progress("reading the node's log"):
            keys = {"pod": frozenset(pods)} if pods else None
            position = None if self.at is None else self.at.position
            return folding_at(self.store, self.archive, self.services.kinds(kinds), position, keys=keys)

    def preload(self, *kinds: str) -> None:
        """Read the states of these kinds at the session's moment of the past, for several calls of `state`: each of
        them would fold the history again.
        """
        self._past = None
        if kinds:
            self._past = self.state(*kinds)

    def shards(self, *kinds: str) -> tuple[Shard, ...]:
        """Return all shards of these kinds, in their order. A kind that the log does not have has its usual count."""
        counts = self.store.layout().counts
        usual = self.services.actors(kinds)
        return tuple(shard for kind in usual for shard in shards_of(kind.name, counts.get(kind.name, kind.shards)))

    def beginning(self) -> Position:
        """Return the position after which the history begins: START, unless a record of the past begins in the middle
        of the log. What came before is not missing in it.
        """
        return self.store.archived()[1] if self.services.past else START

    def entries(
        self, after: Position = START, wanted: Wanted = EVERYTHING, *, prefer_archive: bool = False
    ) -> Iterator[Entry]:
        """Yield the log's entries after this position, up to the session's moment. Archived entries that are not wanted
        may be left out. `prefer_archive`: see `history.entries`; it is always set for a moment of the past.
        """
        after = max(after, self.beginning())
        upto = None if self.at is None else self.at.position
        preferred = prefer_archive or upto is not None
        return entries(self.store, self.archive, after, upto, wanted, prefer_archive=preferred)

    def lacks(self, pod: str, about: str, gaps: Sequence[str] = ()) -> Failure:
        """Return the error that the history has no entries about a pod (namespace/name). `about`: words for what was
        looked for, such as the pod up to a moment, or its start. `gaps`: why some entries could not be read.
        """
        begin = self.beginning()
        since = "" if begin == START else f" after entry #{begin.n}"
        readable = " of the entries that can be read," if gaps else ""
        has = "has none" if gaps else "has no entries"
        missing = "".join(f"; {gap}" for gap in gaps)
        return Failure(
            f'pods "{pod.partition("/")[2]}" not found:{readable} the log of node {self.settings.node}{since} {has} '
            f"about {about}{missing}; `chronolet get pods -A` lists its pods, -n selects a namespace"
        )


@contextmanager
def session(settings: Settings, *, at: str | None = None, patient: bool = False) -> Iterator[Session]:
    """Open the node's log for the duration of the block. Raises a one-line Failure if there is none.

    `at`: the moment of the past that the command is about, as a person names it. `patient`, for commands that send
    something: retry for `Timing.patience_seconds`, as the agent may be starting.
    """
    services = services_of_command()
    with progress("waiting for the node agent's Redis"):
        store = _opened(settings, services, services.timing.patience_seconds if patient else 0.0)
    try:
        node = Session(settings, services, store, services.archive(settings, store))
        # Printed on close, so that the note follows the command's output.
        click.get_current_context().call_on_close(lambda: _report(node))
        if at is not None:
            node.go_to(at)
        elif services.past:
            node.go_to_now()
        yield node
    except HistoryMissing as missing:
        raise Failure(str(missing)) from missing
    finally:
        store.close()


def _report(node: Session) -> None:
    if node.unsearched:
        files = "1 archive file" if len(node.unsearched) == 1 else f"{len(node.unsearched)} archive files"
        click.echo(
            f"note: not searched: {files} without a usable index (the first: {min(node.unsearched)}); if the clock was"
            " ahead and set back there, entries up to the moment are missing in this output; `chronolet archive index`"
            " writes indexes, `chronolet archive verify` finds damage",
            err=True,
        )
    _report_unreadable(node.unreadable)


def _report_unreadable(positions: set[Position]) -> None:
    if not positions:
        return
    entries = "1 entry" if len(positions) == 1 else f"{len(positions)} entries"
    newest = max(positions)
    click.echo(
        f"note: {entries} of the log (the newest: #{newest.n}, {ages.rfc3339(newest.milliseconds)}) cannot be decoded "
        "by this release and had no effect on this output; the node agent skips such entries, too; see `chronolet log`",
        err=True,
    )


def _opened(settings: Settings, services: Services, patience: float) -> Store:
    deadline = time.monotonic() + patience
    while True:
        try:
            return _opened_now(settings, services)
        except (Failure, StoreUnreachable) as error:
            healing = isinstance(error, Failure) or error.healing
            if healing and time.monotonic() <= deadline:
                pass
            elif patience and isinstance(error, Failure):
                raise Failure(*(f"{line}; nothing was sent" for line in error.lines)) from error
            else:
                raise
        time.sleep(_PAUSE_SECONDS)


def _opened_now(settings: Settings, services: Services) -> Store:
    """Open the store. Raises Failure if it has no log of the node."""
    if not services.past:
        _expect_socket(settings)
    store = services.store(settings)
    try:
        _expect_log(settings, store)
    except BaseException:
        store.close()
        raise
    return store


def _expect_log(settings: Settings, store: Store) -> None:
    if store.last() == START:
        raise Failure(
            f"node {settings.node} has no log at {where(settings.redis_url)}: "
            "start its agent with `chronolet run`, or select the node with --hostname-override"
        )


def _expect_socket(settings: Settings) -> None:
    """Raise Failure if the agent's own Redis is expected and its socket does not exist: then no agent of the node has
    run here.
    """
    if not settings.redis and not settings.redis_socket.exists():
        raise Failure(
            f"no node agent's Redis at {settings.redis_socket}: start one with `chronolet run`, "
            "or specify its --redis URL or --root-dir"
        )
