"""Sends a command to the node and waits for its answer, which stands in the log.

Comes in: a command. Goes out: the events whose cause is its request id. A node where nobody hosts the kind that answers
is told apart from a slow one by leases and shard hashes. Next: `apply`, `delete` and `gc`.
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
OWNERLESS_SECONDS = 5.0
NOT_FOUND = "not found"
"""How the reason of a refusal ends where there is no such pod or Secret."""
_LOOK_MILLISECONDS = 250
_PAGE = 1_000


class Ownerless(Failure):
    """Nobody has hosted the shard for a while."""


class Answer(NamedTuple):
    """One event that the command led to."""

    entry: Entry
    event: Event


def new_request() -> str:
    """A request id nobody else has."""
    return f"cli-{uuid.uuid4().hex}"


def ask(session: Session, command: Command, shard: Shard = MANIFESTS) -> list[Answer]:
    """Send and wait. Failure if nobody is there, the mailbox is full, or the node could not deal with the command."""
    store = session.store
    wait_for_owner(store, shard)
    with progress("waiting for the node agent"):
        after = store.last()
        _send(store, command, shard)
        return _answers(store, shard, command.request, after)


class Queued(NamedTuple):
    """The command waits in the mailbox: nobody is there who would decide it now."""

    request: str


def ask_or_queue(session: Session, command: Command, shard: Shard = MANIFESTS) -> list[Answer] | Queued:
    """As `ask`; but where no agent runs, or the one that ran ends before its answer, the command stays queued."""
    if not owner_alive(session.store, shard):
        _send(session.store, command, shard)
        return Queued(command.request)
    try:
        return ask(session, command, shard)
    except Ownerless:
        _send(session.store, command, shard)  # the same request is taken once
        return Queued(command.request)


def _send(store: Store, command: Command, shard: Shard) -> None:
    name = registry.type_of(type(command))
    if store.send(shard, name, f"{shard.kind}/node", command.request, codec.encode(command)) == "busy":
        raise Failure("10,000 commands are waiting for this node already: try again when it has caught up")


def refusal(pod: str, reason: str) -> str:
    """Why a pod was refused; the reasons that name it need no help."""
    if reason.endswith(NOT_FOUND):
        return not_found("pods", pod.partition("/")[2])
    return reason if pod in reason else f"pod {pod}: {reason}"


def follow(
    store: Store,
    after: Position,
    idle: Callable[[], None] = lambda: None,
    look_milliseconds: int = _LOOK_MILLISECONDS,
) -> Iterator[Entry]:
    """The log from there on, without end; `idle` is called whenever a while has brought nothing."""
    while True:
        arrived = store.wait(after, {}, _PAGE, look_milliseconds).log
        if not arrived:
            idle()
        for entry in arrived:
            after = entry.position
            yield entry


def _answers(store: Store, shard: Shard, request: str, after: Position) -> list[Answer]:
    owner = Watch(store, f"request {request} stays in the mailbox and is carried out when an agent runs again", shard)
    found: list[Answer] = []
    for entry in follow(store, after, owner.look):
        if entry.cause == request:
            found.append(_read(entry))
        elif found:
            return found
        # One step wrote all of the answer at once: it has been read when the log has no more.
        if found and not store.read_log(entry.position, 1):
            return found
    raise AssertionError("`follow` ended")


def _read(entry: Entry) -> Answer:
    try:
        event = codec.decode(entry.type, entry.data, Event)
    except codec.Undecodable as error:
        raise Failure(f"the node's answer at {entry.position} is of another release: {error}") from error
    if isinstance(event, kernel.MessageDeadLettered | kernel.EntryQuarantined):
        raise Failure(f"the node agent could not deal with {event.message}: {event.error}")
    return Answer(entry, event)


def owner_alive(store: Store, shard: Shard = MANIFESTS) -> bool:
    """Whether a living process owns the shard."""
    token = store.heads((shard,))[shard].token
    return bool(token) and owner_of(token) in store.alive()


def wait_for_owner(store: Store, shard: Shard = MANIFESTS) -> None:
    """Until somebody is there who will decide. Failure if nobody comes."""
    watch = Watch(store, "nothing was sent; start the agent with `chronolet run`", shard)
    with progress("waiting for the node agent"):
        while not owner_alive(store, shard):
            watch.look()
            store.wait(store.last(), {}, 1, _LOOK_MILLISECONDS)


class Watch:
    """Fails once nobody has owned the shard for five seconds."""

    def __init__(self, store: Store, otherwise: str, shard: Shard = MANIFESTS) -> None:
        self._store = store
        self._shard = shard
        self._otherwise = otherwise
        self._since: float | None = None

    def look(self) -> None:
        now = time.monotonic()
        if owner_alive(self._store, self._shard):
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= OWNERLESS_SECONDS:
            raise Ownerless(
                f"no node agent has hosted `{self._shard.kind}` for {OWNERLESS_SECONDS:.0f} s; {self._otherwise}"
            )
