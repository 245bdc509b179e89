"""Sends a command to the node and waits for the resulting events in the log.

Input: a command. Output: the events whose cause is its request id. Leases and shard hashes show whether the
node is just slow, or none of its processes hosts the kind. Next: `apply`, `delete` and `gc`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

from chronolet.cli.errors import Failure, not_found
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import Session
from chronolet.kernel.storage.store import Store, owner_of
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Command, Entry, Event, Position
from chronolet_schemas.keys import Shard

MANIFESTS = Shard("manifests")
NOT_FOUND = "not found"
"""The suffix of a refusal's reason if the pod or Secret does not exist."""
_LOOK_MILLISECONDS = 250
_PAGE = 1_000


class Ownerless(Failure):
    """Raised if no live process has owned the shard for `Timing.ownerless_seconds`."""


class Reply(NamedTuple):
    """One event caused by the command."""

    entry: Entry
    event: Event


def new_request() -> str:
    """Return a unique request id."""
    return f"cli-{uuid.uuid4().hex}"


def ask(session: Session, command: Command, shard: Shard = MANIFESTS) -> list[Reply]:
    """Send a command, wait for its events and return them.

    Raises Failure if the shard has no owner, the mailbox is full, the node could not process the command, or this
    release cannot decode the node's response.
    """
    store = session.store
    wait_for_owner(session, shard)
    with progress("waiting for the node agent"):
        after = store.last()
        _send(store, command, shard)
        return _replies(session, shard, command.request, after)


class Queued(NamedTuple):
    """The result if the command stays in the mailbox because no live process owns the shard."""

    request: str


def ask_or_queue(session: Session, command: Command, shard: Shard = MANIFESTS) -> list[Reply] | Queued:
    """Like `ask`, but leave the command queued if no agent is running or the agent stops before it responds."""
    if not owner_alive(session.store, shard):
        _send(session.store, command, shard)
        return Queued(command.request)
    try:
        return ask(session, command, shard)
    except Ownerless:
        _send(session.store, command, shard)  # idempotent: a request id is processed once
        return Queued(command.request)


def _send(store: Store, command: Command, shard: Shard) -> None:
    name = registry.type_of(type(command))
    if store.send(shard, name, f"{shard.kind}/node", command.request, codec.encode(command)) == "busy":
        raise Failure("the node's mailbox is full (10,000 commands): retry when the node has caught up")


def refusal(pod: str, reason: str) -> str:
    """Return the error line for a refused pod: the reason, prefixed with the pod unless the reason names it. If the pod
    does not exist, return kubectl's line for that.
    """
    if reason.endswith(NOT_FOUND):
        return not_found("pods", pod.partition("/")[2])
    return reason if pod in reason else f"pod {pod}: {reason}"


def follow(
    store: Store,
    after: Position,
    idle: Callable[[], None] = lambda: None,
    look_milliseconds: int = _LOOK_MILLISECONDS,
) -> Iterator[Entry]:
    """Yield the log entries after a position, endlessly. Call `idle` whenever `look_milliseconds` pass without any."""
    while True:
        arrived = store.wait(after, {}, _PAGE, look_milliseconds).log
        if arrived:
            after = arrived[-1].position
            yield from arrived
        else:
            idle()


def _replies(session: Session, shard: Shard, request: str, after: Position) -> list[Reply]:
    store = session.store
    owner = Watch(session, f"request {request} stays in the mailbox until an agent runs again", shard)
    found: list[Reply] = []
    for entry in follow(store, after, owner.look):
        if entry.cause == request:
            found.append(_read(entry))
        elif found:
            return found
        # One step commits all events of a request, so they are complete when the log has no further entry.
        if found and not store.read_log(entry.position, 1):
            return found
    raise AssertionError("`follow` ended")


def _read(entry: Entry) -> Reply:
    try:
        event = codec.decode(entry.type, entry.data, Event)
    except codec.Undecodable as error:
        raise Failure(
            f"cannot decode the node's response at {entry.position}, from another release: {error}"
        ) from error
    if isinstance(event, kernel.MessageDeadLettered | kernel.EntryQuarantined):
        raise Failure(f"the node agent could not process {event.message}: {event.error}")
    return Reply(entry, event)


def owner_alive(store: Store, shard: Shard = MANIFESTS) -> bool:
    """Return whether a live process owns the shard."""
    token = store.heads((shard,))[shard].token
    return bool(token) and owner_of(token) in store.alive()


def wait_for_owner(session: Session, shard: Shard = MANIFESTS) -> None:
    """Wait until a live process owns the shard. Raises Ownerless if none does for `Timing.ownerless_seconds`."""
    store = session.store
    watch = Watch(session, "nothing was sent; start the agent with `chronolet run`", shard)
    with progress("waiting for the node agent"):
        while not owner_alive(store, shard):
            watch.look()
            store.wait(store.last(), {}, 1, _LOOK_MILLISECONDS)


class Watch:
    """Raises Ownerless once the shard has had no live owner for `Timing.ownerless_seconds`.

    `otherwise`: the last part of the error message, which states what to do or what will happen to the command.
    """

    def __init__(self, session: Session, otherwise: str, shard: Shard = MANIFESTS) -> None:
        self._store = session.store
        self._seconds = session.services.timing.ownerless_seconds
        self._shard = shard
        self._otherwise = otherwise
        self._since: float | None = None

    def look(self) -> None:
        now = time.monotonic()
        if owner_alive(self._store, self._shard):
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= self._seconds:
            raise Ownerless(
                f"no node agent has hosted `{self._shard.kind}` for {self._seconds:.0f} s; {self._otherwise}"
            )
