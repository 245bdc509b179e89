"""The supervisor: takes shards, recovers them, starts their hosts, and starts them again when they fail.

Comes in: failures of hosts, the server's return, the lease's return, a tick a second. Goes out: hosts at work.
A restart takes a new epoch and steps one message at a time for a while. When the server has lost a tail, everything is
loaded again. What fails here ends the process: whatever runs it starts it again. Next: `process`.

    a shard:  free -> acquired -> recovered -> hosted -> (failed -> acquired ... | lost -> free)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pykka
import structlog

from chronolet.kernel.host import Host, Recovered, Seat, Services, ShardDiverged, ShardLost
from chronolet.kernel.kind import Kind
from chronolet.kernel.lease import Lease, proven_dead
from chronolet.kernel.reader import Reader
from chronolet.kernel.recovery import History, Recovery
from chronolet.kernel.routing import Router
from chronolet.kernel.store import Acquired, Head, StoreUnreachable
from chronolet_schemas import kernel, registry
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

TICK_SECONDS = 1.0
UPKEEP_SECONDS = 60.0
STEADY_SECONDS = 60.0
LONGEST_BACK_OFF_SECONDS = 30.0

log = structlog.get_logger("chronolet.kernel")


class Tick(NamedTuple):
    """A second has passed."""


class Upkeep(NamedTuple):
    """A minute has passed: hosts look whether a snapshot or an empty step is due."""


class HostFailed(NamedTuple):
    """A host's thread ended with an error."""

    seat: Seat
    error: BaseException


class Again(NamedTuple):
    """The back-off of a failed shard is over."""

    shard: Shard


class ServerBack(NamedTuple):
    """The reader reached the server again after it could not."""


class LeaseRegained(NamedTuple):
    """The lease was renewed after it had lapsed."""


class Retire(NamedTuple):
    """Stop everything and hand over at once."""


@dataclass(slots=True)
class Failures:
    """How often a shard's host failed in a row."""

    count: int = 0
    last: float = 0.0
    error: str = ""
    """Not yet told in an event."""


class Surrounding(NamedTuple):
    """What the supervisor is given by the process."""

    kinds: Mapping[str, Kind[Any]]
    services: Services
    lease: Lease
    history: History
    locks: Path | None
    router: Callable[[], Router]
    """Begins the log where there is none, and knows the number of shards that it fixed."""
    phase: Callable[[str], None]
    """Told the name of each phase of a start."""


class Supervisor(pykka.ThreadingActor):
    """Owns the hosts of a process."""

    use_daemon_thread = True

    def __init__(self, given: Surrounding, fatal: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._given = given
        self._fatal = fatal
        self._store = given.services.store
        self._hosted: dict[Shard, tuple[Seat, pykka.ActorRef[Host]]] = {}
        self._failures: dict[Shard, Failures] = {}
        self._waiting: set[Shard] = set()
        self._had: dict[Shard, int] = {}
        self._reload = False
        self._router = given.router()
        self._reader = self._new_reader()

    def on_start(self) -> None:
        """Begin with the first tick at once."""
        self.actor_ref.tell(Tick())
        self._every(TICK_SECONDS, Tick())
        self._every(UPKEEP_SECONDS, Upkeep())

    def on_failure(self, exception_type: Any, exception_value: BaseException | None, traceback: Any) -> None:
        """End the process."""
        self._fatal(exception_value or RuntimeError("the supervisor failed"))

    def on_receive(self, message: Any) -> None:
        """Handle one notice; while the server is away it is kept for later."""
        try:
            self._handle(message)
        except StoreUnreachable as error:
            log.warning("waiting for the server", error=str(error), about=type(message).__name__)
            if isinstance(message, Tick | Upkeep):
                return  # the next one comes by itself
            self._given.services.around.timers.after(TICK_SECONDS / 2, lambda: self.actor_ref.tell(message))

    def _handle(self, message: Any) -> None:
        match message:
            case Tick():
                self._tick()
            case Upkeep():
                self._nudge_all()
            case HostFailed():
                self._failed(message.seat, message.error)
            case Again():
                self._waiting.discard(message.shard)
                self._take([message.shard])
            case ServerBack():
                self._look_for_loss()
            case LeaseRegained():
                lapses = self._given.lease.lapses
                self._drop_what_others_took()
                self._given.lease.confirm(lapses)
            case Retire():
                self._retire()

    # -- taking shards -------------------------------------------------------------------------------------------
    def _take_free(self) -> None:
        ours = {shard for kind in self._given.kinds for shard in self._router.shards_of(kind)}
        wanted = ours - self._hosted.keys() - self._waiting
        if wanted:
            self._take(sorted(wanted, key=str))

    def _take(self, shards: Iterable[Shard]) -> None:
        heads, alive = self._store.heads(list(shards)), self._store.alive()
        acquired: dict[Shard, tuple[str, Head]] = {}
        notes: dict[Shard, list[Event]] = {}
        for shard, head in heads.items():
            proof = self._free(head, alive)
            if proof is None:
                continue
            answer = self._store.acquire(
                shard, head.token, self._given.lease.process, registry.SCHEMA, proven_dead=proof == "lock"
            )
            if isinstance(answer, Acquired):
                acquired[shard] = (answer.head.token, answer.head)
                notes[shard] = self._notes(shard, head, proof)
        if acquired:
            self._host(acquired, notes)

    def _free(self, head: Head, alive: Mapping[str, str]) -> Literal["released", "lease", "lock"] | None:
        owner = head.token.partition(":")[2]
        if not owner or owner == self._given.lease.process:
            return "released"
        if owner not in alive:
            return "lease"
        return "lock" if proven_dead(self._given.locks, owner) else None

    def _notes(self, shard: Shard, head: Head, proof: Literal["released", "lease", "lock"]) -> list[Event]:
        owner, us = head.token.partition(":")[2], self._given.lease.process
        notes: list[Event] = []
        if owner and owner != us:
            notes.append(kernel.ShardTakenOver(former_owner=owner, owner=us, proof=proof))
        had = self._had.get(shard, 0)
        if had > head.version:
            notes.append(kernel.TailLost(had_version=had, found_version=head.version))
        failures = self._failures.get(shard)
        if failures is not None and failures.error:
            notes.append(kernel.HostRestarted(error=failures.error, restarts=failures.count))
        return notes

    def _host(self, acquired: Mapping[Shard, tuple[str, Head]], notes: Mapping[Shard, list[Event]]) -> None:
        self._given.phase("recovering")
        careful = frozenset(shard for shard in acquired if shard in self._failures)
        recovery = Recovery(self._given.kinds, self._router, self._store, self._given.history)
        for shard, recovered in recovery.run(acquired, careful).items():
            recovered.notes = [*recovered.notes, *notes[shard]]
            self._start_host(shard, recovered)
        self._given.services.around.observer.shards_owned(len(self._hosted))
        self._given.phase("running")

    def _start_host(self, shard: Shard, recovered: Recovered) -> None:
        seat = Seat(recovered)
        self._hosted[shard] = (seat, Host.start(seat, self._given.services))
        self._reader.attach(seat)
        self._had.pop(shard, None)
        if shard in self._failures:
            self._failures[shard].error = ""

    # -- losing them ---------------------------------------------------------------------------------------------
    def _failed(self, seat: Seat, error: BaseException) -> None:
        held = self._hosted.get(seat.shard)
        if held is None or held[0] is not seat:
            return  # stopped by us meanwhile
        self._let_go(seat.shard)
        if isinstance(error, ShardLost) and not error.ahead:
            log.warning("shard lost to another owner", shard=str(seat.shard), owner=error.token)
        elif isinstance(error, ShardLost) or (isinstance(error, ShardDiverged) and error.found < error.had):
            self._had[seat.shard] = seat.ledger.version
            self._lose_tail()
        else:
            self._restart_later(seat.shard, error)

    def _restart_later(self, shard: Shard, error: BaseException) -> None:
        now = time.monotonic()
        failures = self._failures.setdefault(shard, Failures())
        failures.count = 1 if now - failures.last > STEADY_SECONDS else failures.count + 1
        failures.last, failures.error = now, f"{type(error).__name__}: {error}"
        pause = 0.0 if failures.count == 1 else min(0.1 * 2**failures.count, LONGEST_BACK_OFF_SECONDS)
        log.error("host failed", shard=str(shard), error=failures.error, again_in_seconds=pause, exc_info=error)
        self._given.services.around.observer.host_restarted(shard)
        self._waiting.add(shard)
        self._given.services.around.timers.after(pause, lambda: self.actor_ref.tell(Again(shard)))

    def _let_go(self, shard: Shard) -> None:
        seat, ref = self._hosted.pop(shard)
        seat.stopping.set()
        self._reader.detach(shard)
        ref.stop(block=True)
        self._given.services.around.observer.shards_owned(len(self._hosted))

    def _drop_what_others_took(self) -> None:
        heads = self._store.heads(list(self._hosted))
        for shard, head in heads.items():
            if head.token != self._hosted[shard][0].ledger.token:
                log.warning("shard was taken over while the lease had lapsed", shard=str(shard), owner=head.token)
                self._let_go(shard)

    def _look_for_loss(self) -> None:
        """After the server was away: does it still know all that it had acknowledged?"""
        heads, last = self._store.heads(list(self._hosted)), self._store.last()
        behind = self._reader.at is not None and last < self._reader.at
        for shard, head in heads.items():
            ledger = self._hosted[shard][0].ledger
            epoch = int(head.token.partition(":")[0] or 0)
            if head.version < ledger.version or epoch < int(ledger.token.partition(":")[0]):
                self._had[shard] = ledger.version
                behind = True
        if behind:
            self._lose_tail()

    def _lose_tail(self) -> None:
        """Stop everything; the next tick begins anew with what the server has."""
        log.error("the server has lost a part of the log: loading everything again")
        for shard, (seat, _) in list(self._hosted.items()):
            self._had[shard] = seat.ledger.version
            self._let_go(shard)
        self._reader.stop()
        self._reload = True
        self.actor_ref.tell(Tick())

    def _begin_anew(self) -> None:
        self._given.phase("beginning")
        self._router = self._given.router()
        self._reader = self._new_reader()
        self._reload = False

    # -- time passes ---------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        if self._reload:
            self._begin_anew()
        self._given.services.around.observer.lease_valid(self._given.lease.valid())
        self._take_free()

    def _nudge_all(self) -> None:
        for seat, _ in self._hosted.values():
            seat.inbox.nudge()

    def _every(self, seconds: float, message: Tick | Upkeep) -> None:
        def ring() -> None:
            if self.actor_ref.is_alive():
                self.actor_ref.tell(message)
                self._every(seconds, message)

        self._given.services.around.timers.after(seconds, ring)

    def _retire(self) -> None:
        tokens = [(shard, seat.ledger.token) for shard, (seat, _) in self._hosted.items()]
        for shard in list(self._hosted):
            self._let_go(shard)
        self._reader.stop()
        self._given.lease.stop()
        self._store.retire(self._given.lease.process, tokens)
        self.stop()

    def _new_reader(self) -> Reader:
        reader = Reader(self._store, self._router, lambda: self.actor_ref.tell(ServerBack()))
        reader.start()
        return reader
