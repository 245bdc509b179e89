"""One command's view of one node: its store, its archive, its states.

Comes in: settings and services. Goes out: what commands ask for, with failures in words. Next: the commands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

from chronolet.cli.errors import Failure
from chronolet.cli.printing import ages
from chronolet.cli.printing.progress import progress
from chronolet.cli.services import Services
from chronolet.history.entries import ArchiveReader, entries
from chronolet.history.state import Moment, state_at
from chronolet.kernel.storage.redis.urls import where
from chronolet.kernel.storage.store import HistoryMissing, Store, StoreUnreachable
from chronolet.node.settings.table import Settings
from chronolet_schemas.envelope import START, Entry, Position

PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Session:
    """Open for the length of one command."""

    settings: Settings
    services: Services
    store: Store
    archive: ArchiveReader
    unreadable: set[Position] = field(default_factory=set)
    """Entries that the states which were asked for leave out: named once, when the command is done."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self.services.now()

    def state(self, *kinds: str) -> Moment:
        """These kinds' states now."""
        with progress("reading the node's log"):
            moment = state_at(self.store, self.archive, self.services.kinds(kinds))
        self.unreadable.update(moment.unreadable)
        return moment

    def entries(self, after: Position = START) -> Iterator[Entry]:
        """The log from there to its present end."""
        return entries(self.store, self.archive, after)


@contextmanager
def session(settings: Settings, *, patient: bool = False) -> Iterator[Session]:
    """The node's log; a Failure in one line if there is none. With `patient`, for commands that send something, only
    after a while: it may be starting.
    """
    services = click.get_current_context().find_object(Services) or Services()
    with progress("waiting for the node agent's Redis"):
        store = _opened(settings, services, PATIENCE_SECONDS if patient else 0.0)
    try:
        node = Session(settings, services, store, services.archive(settings, store))
        # When the command is done: behind all that it shows.
        click.get_current_context().call_on_close(lambda: _name_unreadable(node.unreadable))
        yield node
    except HistoryMissing as missing:
        raise Failure(str(missing)) from missing
    finally:
        store.close()


def _name_unreadable(positions: set[Position]) -> None:
    if not positions:
        return
    entries = "1 entry" if len(positions) == 1 else f"{len(positions)} entries"
    newest = max(positions)
    click.echo(
        f"note: {entries} of the log (the newest: #{newest.n}, {ages.rfc3339(newest.milliseconds)}) cannot be decoded "
        "by this release and had no effect on what is shown; the node agent passes over it, too; see `chronolet log`",
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
    """A store whose server answers and has a log of the node."""
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
            "start its agent with `chronolet run`, or name the node by --hostname-override"
        )


def _expect_socket(settings: Settings) -> None:
    """Tell a node that never ran here from one whose Redis is down."""
    if not settings.redis and not settings.redis_socket.exists():
        raise Failure(
            f"no node agent's Redis at {settings.redis_socket}: start one with `chronolet run`, "
            "or name its --redis URL or --root-dir"
        )
