"""The supervisor: acquires shards, recovers them, starts their hosts and restarts hosts that fail.

Input: failures of hosts, the return of the server, a regained lease, a tick per second, and several checks for free
shards per tick. Output: running hosts. A restarted host gets a new epoch and decides one message per step for a while.
If the server lost the tail of the log, the supervisor reloads everything. A failure of the supervisor ends the process,
and the process manager restarts it. Next: `process`.

A process without a shard stands by: it takes over shards that become free. The phases of a shard, as one process sees
them; an event is a notice to the supervisor, a reply from the store, or an error:

    shard         event            to
    elsewhere     Tick, Look       free          its owner released it, or is proven dead by its lock or its counter
    free          Acquired         acquired
    free          NotFree          elsewhere     another process was faster
    free          NotFree          quarantined   a newer version of chronolet has written it
    free          StoreBroken      quarantined   its keys are unreadable
    acquired      Recovered        hosted
    acquired      HistoryMissing   quarantined   released, so that a process with the archive can take it over
    quarantined   Tick, Look       free          a retry; the quarantine ends once the shard has a host
    quarantined   BackOffOver      free          a retry after missing history
    hosted        HostFailed       backing_off
    hosted        ShardLost        elsewhere     its host found another token
    hosted        LeaseRegained    elsewhere     a renewal, or the check after a lapse, found another token
    hosted        ServerBehind     free          its host found that the server has lost data: all shards are reloaded
    hosted        ServerBack       free          the same, found after an outage
    hosted        Tick, Upkeep     free          the same, found by a regular check
    hosted        Retire           free          released on shutdown
    hosted        Tick, Look       free          released, because this process must not host its kind (`refusals`)
    backing_off   BackOffOver      free
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, assert_never

import pykka
import structlog

from chronolet.kernel.hosting.adoption import Adopt, AdoptionHook
from chronolet.kernel.hosting.failures import Failures
from chronolet.kernel.hosting.host import Host, Services
from chronolet.kernel.hosting.host_handle import HostHandle, Recovered
from chronolet.kernel.hosting.notices import (
    BackOffOver,
    HostFailed,
    LeaseRegained,
    Look,
    Notice,
    ReaderFailed,
    Retire,
    ServerBack,
    Tick,
    Upkeep,
)
from chronolet.kernel.hosting.refusals import HostingRefusals, Refuses
from chronolet.kernel.hosting.shard_recovery import ShardRecovery
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.log_end import LogMemory, log_loss
from chronolet.kernel.log.loss import is_behind, known, lacks_what_was_read
from chronolet.kernel.log.reader import Reader
from chronolet.kernel.log.recovery import History
from chronolet.kernel.ownership.claims import Claim, Claims
from chronolet.kernel.ownership.lease import Lease
from chronolet.kernel.ownership.waiting_mail import wait_for_other_processes, wait_until_decided, with_waiting_commands
from chronolet.kernel.step.routing import Router
from chronolet.kernel.step.shard_writer import ServerBehind, ShardLost
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

log = structlog.get_logger("chronolet.kernel")


class SupervisorContext(NamedTuple):
    """The services and callbacks that the process passes to its supervisor."""

    kinds: Mapping[str, Kind[Any]]
    services: Services
    lease: Lease
    history: History
    claims: Claims
    router: Callable[[], Router]
    """Begins the log if there is none, and returns a router with the shard counts fixed when the log began."""
    phase: Callable[[str], None]
    """Called with the name of each phase."""
    memory: LogMemory
    """Remembers the log's end."""
    adopt: Adopt | None = None
    refuses: Refuses | None = None


class Supervisor(pykka.ThreadingActor):
    """Manages the hosts of a process."""

    use_daemon_thread = True

    def __init__(self, context: SupervisorContext, fatal: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._context = context
        self._fatal = fatal
        self._store = context.services.store
        self._hosted: dict[Shard, tuple[HostHandle, pykka.ActorRef[Host]]] = {}
        self._claims = context.claims
        self._timing = timing = context.services.shared.timing
        self._failures = Failures(timing)
        self._recovery = ShardRecovery(
            context.kinds,
            self._store,
            context.history,
            claims=self._claims,
            failures=self._failures,
            observer=context.services.shared.observer,
            released=lambda shard: self._back_off(shard, timing.history_retry_seconds),
        )
        self._backing_off: set[Shard] = set()
        self._stands_by = False
        self._shows_refusal = False
        self._retired = False
        self._last_versions: dict[Shard, int] = {}
        """The last version of each shard that this process knew before the server lost data."""
        self._reload = False
        self._logged = ""
        """The last error of the server that was logged."""
        self._adoption = AdoptionHook(context.adopt, context.phase)
        self._refusals = HostingRefusals(context.refuses, self._store)
        self._router = context.router()
        self._run = self._store.run()
        self._lost = self._log_lost()
        self._unreported = self._lost
        """The loss of the log, if a host still has to record it."""
        self._reader = self._new_reader()

    def on_start(self) -> None:
        """Send the first tick and start the timers."""
        self._tell(Tick())
        renewal = self._context.lease.renewal_seconds
        self._every(renewal, Tick())
        self._every(renewal / self._timing.looks_per_renewal, Look())
        self._every(self._timing.upkeep_seconds, Upkeep())

    def on_failure(
        self,
        _exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """End the process, because its hosts must not run without a supervisor."""
        for handle, ref in self._hosted.values():
            handle.stopping.set()
            ref.stop(block=False)
        self._fatal(exception_value or RuntimeError("the supervisor failed"))

    def on_receive(self, message: Notice) -> None:
        """Handle one notice. If the server is unreachable, retry the notice later."""
        if self._retired:
            return  # sent before the shutdown: handling it could take back shards that were just handed over
        try:
            self._handle(message)
            self._logged = ""
        except (StoreUnreachable, StoreBroken) as error:
            if str(error) != self._logged:  # log an error once, however long it lasts
                self._logged = str(error)
                log.warning("waiting for the server", error=self._logged, about=type(message).__name__)
            if not isinstance(message, Tick | Look | Upkeep | LeaseRegained):  # those are sent again anyway
                pause = self._context.lease.renewal_seconds / 2
                self._context.services.shared.timers.after(pause, lambda: self._tell(message))

    def _tell(self, message: Notice) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # must not fail the timer or reader that calls this
            self.actor_ref.tell(message)

    def _handle(self, message: Notice) -> None:
        match message:
            case Tick() | Look() | Upkeep():
                self._on_timer(message)
            case HostFailed():
                self._failed(message.handle, message.error)
            case BackOffOver():
                self._backing_off.discard(message.shard)
                self._take_free()  # not `_take` of this shard: a tick may have acquired it while the notice was delayed
            case ServerBack():
                self._check_for_loss()
            case LeaseRegained():
                if self._context.lease.valid():
                    return  # an earlier one of these notices was handled meanwhile
                lapses = self._context.lease.lapses
                self._check_for_loss()  # first: a shard that the server lost was not taken over by another process
                self._drop_taken_over()
                self._context.lease.confirm(lapses)
            case ReaderFailed():
                raise message.error
            case Retire():
                self._retire()
            case _:
                assert_never(message)

    # -- acquiring shards ----------------------------------------------------------------------------------------
    def _take_free(self) -> None:
        refused = self._refusals.now(self._run)
        self._hand_over(refused)
        hostable = self._context.kinds.keys() - refused
        ours = {shard for kind in hostable for shard in self._router.shards_of(kind)}
        missing = ours - self._hosted.keys() - self._backing_off
        if missing:
            self._take(sorted(missing, key=str), adopts=not refused)
        self._show_refusal(bool(refused and not self._hosted))

    def _show_refusal(self, refused: bool) -> None:
        """Show the phase `refused`; afterwards, let a process without shards stand by again."""
        if refused:
            self._context.phase("refused")
        elif self._shows_refusal:
            self._stands_by = False
        self._shows_refusal = refused

    def _hand_over(self, refused: Mapping[str, str]) -> None:
        """Stop the hosts of refused kinds and release their shards."""
        stopped = {shard: handle.ledger.token for shard, (handle, _) in self._hosted.items() if shard.kind in refused}
        for shard in stopped:
            self._hosted[shard][0].stopping.set()  # all before the first wait, as in `_retire`
        for shard in stopped:
            log.warning("shard handed over, its kind is refused here", shard=str(shard), reason=refused[shard.kind])
            self._release(shard)
        self._refusals.hand_over(stopped)

    def _take(self, shards: Sequence[Shard], *, adopts: bool) -> None:
        if self._reload:
            return  # the next tick acquires them, once there is a reader again
        if self._store.run() != self._run:
            self._drop_all()  # the server was emptied: its shards have no log to continue
            return
        if adopts and not self._adoption.attempt(self._router, self._run, self._lost):
            return  # the next tick retries
        claims = self._claims.take(shards)
        if claims:
            self._prefetch({shard.kind for shard in claims})
            self._host(claims)
        elif not (self._hosted or self._backing_off or self._stands_by):
            self._stands_by = True
            self._context.phase("standing by")
            log.info("no free shard, standing by")

    def _host(self, claims: Mapping[Shard, Claim]) -> None:
        self._context.phase("recovering")
        first = with_waiting_commands(self._store, claims)
        self._start_hosts(first)
        seconds = self._timing.mail_seconds
        wait_until_decided([self._hosted[shard][0] for shard in first if shard in self._hosted], seconds)
        wait_for_other_processes(self._store, self._router.of_other_kinds(), seconds)
        self._start_hosts({shard: claim for shard, claim in claims.items() if shard not in first})
        self._context.services.shared.observer.shards_owned(len(self._hosted))
        self._stands_by = False
        self._context.phase("running" if self._hosted else "without its history")

    def _prefetch(self, kinds: Iterable[str]) -> None:
        """Let the kinds prefetch external data now: it takes about as long as recovery, so both run at the same
        time.
        """
        for name in kinds:
            if (ahead := self._context.kinds[name].ahead) is not None:
                ahead()

    def _start_hosts(self, claims: Mapping[Shard, Claim]) -> None:
        recovered_shards = self._recovery.run(self._router, claims)
        for shard in sorted(recovered_shards, key=self._precedence):
            recovered = recovered_shards[shard]
            recovered.notes = [*recovered.notes, *self._notes(shard, claims[shard])]
            recovered.unclean = claims[shard].former is not None
            self._start_host(shard, recovered)

    def _notes(self, shard: Shard, claim: Claim) -> list[Event]:
        """Return the kernel events that the new host records first."""
        had, found = self._last_versions.get(shard, 0), claim.head.version
        tail_lost = kernel.TailLost(had_version=had, found_version=found) if had > found else None
        log_lost = self._unreported if self._context.kinds[shard.kind].watches_clock else None
        return [note for note in (claim.former, log_lost, tail_lost, self._failures.note(shard)) if note is not None]

    def _precedence(self, shard: Shard) -> tuple[int, str]:
        return self._context.kinds[shard.kind].precedence, str(shard)

    def _start_host(self, shard: Shard, recovered: Recovered) -> None:
        handle = HostHandle(recovered, self._timing.behind_entries)
        self._hosted[shard] = (handle, Host.start(handle, self._context.services))
        self._share_tokens()
        self._reader.attach(handle)
        self._last_versions.pop(shard, None)
        self._claims.lift_quarantine(shard)
        self._failures.reported(shard)
        if self._context.kinds[shard.kind].watches_clock:
            self._unreported = None

    # -- losing shards -------------------------------------------------------------------------------------------
    def _failed(self, handle: HostHandle, error: BaseException) -> None:
        hosted = self._hosted.get(handle.shard)
        if hosted is None or hosted[0] is not handle:
            return  # this supervisor has already stopped it
        self._release(handle.shard)
        if isinstance(error, ShardLost):
            log.warning("shard lost to another owner", shard=str(handle.shard), owner=error.token)
            self._context.services.shared.observer.shard_taken(handle.shard)
        elif isinstance(error, ServerBehind):
            self._last_versions[handle.shard] = handle.ledger.version
            self._drop_all()
        else:
            self._restart_later(handle, error)

    def _restart_later(self, handle: HostHandle, error: BaseException) -> None:
        shard, at = handle.shard, str(max(handle.ledger.at, handle.ledger.log_cursor))
        text = f"{type(error).__name__}: {error}"
        pause = self._failures.add(shard, text, time.monotonic())
        log.error(
            "host failed, restarting",
            shard=str(shard),
            position=at,
            error=text,
            again_in_seconds=pause,
            exc_info=error,
        )
        self._context.services.shared.observer.host_restarted(shard)
        self._back_off(shard, pause)

    def _back_off(self, shard: Shard, seconds: float) -> None:
        self._backing_off.add(shard)
        self._context.services.shared.timers.after(seconds, lambda: self._tell(BackOffOver(shard)))

    def _release(self, shard: Shard) -> None:
        handle, ref = self._hosted.pop(shard)
        handle.stopping.set()
        self._share_tokens()
        self._reader.detach(shard)
        ref.stop(block=True)
        observer = self._context.services.shared.observer
        observer.shards_owned(len(self._hosted))
        observer.shard_lost(shard, tuple(handle.ledger.states))

    def _share_tokens(self) -> None:
        """Show the lease which shards are hosted: its next renewal checks their owners."""
        self._context.lease.tokens = {shard: handle.ledger.token for shard, (handle, _) in self._hosted.items()}

    def _drop_taken_over(self) -> None:
        heads = self._claims.heads(list(self._hosted))  # an unreadable one is quarantined and omitted
        for shard, (handle, _) in list(self._hosted.items()):
            if shard not in heads:
                self._release(shard)
            elif (token := heads[shard].token) != handle.ledger.token:
                log.warning(
                    "shard was taken over while the lease had lapsed", shard=str(shard), owner=token or "nobody"
                )
                if token:
                    self._context.services.shared.observer.shard_taken(shard)
                self._release(shard)

    def _check_for_loss(self) -> None:
        """Check whether the server still has all data that it acknowledged; if not, reload everything."""
        if self._reload:
            return  # the loss is already known
        handles = [handle for handle, _ in self._hosted.values()]
        ours = known(handle.ledger for handle in handles)
        behind = self._reader.found_loss or self._store.run() != self._run
        behind = behind or lacks_what_was_read(self._store, self._reader.at, handles)
        heads = self._claims.heads(list(ours))
        if behind or any(is_behind(head, ours[shard]) for shard, head in heads.items()):
            self._drop_all()

    def _drop_all(self) -> None:
        """Stop all hosts. The next tick reloads everything from the data that the server still has."""
        log.error("the server has lost part of the log, reloading everything")
        self._remember(handle for handle, _ in self._hosted.values())
        for shard, (handle, _) in list(self._hosted.items()):
            self._last_versions[shard] = handle.ledger.version
            self._release(shard)
        self._reader.stop()
        self._reload = True
        self._tell(Tick())

    def _reload_all(self) -> None:
        self._context.phase("beginning")
        self._stands_by = False
        self._router = self._context.router()
        self._run = self._store.run()
        if (lost := self._log_lost()) is not None:
            self._lost = self._unreported = lost
            self._adoption.repeat()
        self._reader = self._new_reader()
        self._reload = False

    def _log_lost(self) -> kernel.LogLost | None:
        lost = self._context.memory.lost(self._store, self._run)
        if lost is not None:
            log_loss(lost)
        return lost

    def _remember(self, handles: Iterable[HostHandle]) -> None:
        """Store the highest log position known to the reader and these hosts."""
        positions = [handle.ledger.at for handle in handles]
        self._context.memory.keep(self._run, max([*positions, self._reader.at]))

    # -- periodic work -------------------------------------------------------------------------------------------
    def _on_timer(self, message: Tick | Look | Upkeep) -> None:
        match message:
            case Tick():
                self._tick()
            case Look():
                if self._adoption.is_done(self._run):  # else each Look would query the runtime, which is too often
                    self._take_free()
            case Upkeep():
                self._check_for_loss()
                self._nudge_all()
                self._store.forget_dead()
                self._claims.sweep()

    def _tick(self) -> None:
        valid = self._context.lease.valid()
        self._context.services.shared.observer.lease_valid(valid)
        if self._reload:
            self._reload_all()
        elif valid and self._log_replaced():
            self._drop_all()
            return
        elif self._hosted:  # not before: the old end must stay stored until a host records the loss
            self._remember(handle for handle, _ in self._hosted.values())
        self._take_free()

    def _log_replaced(self) -> bool:
        """Whether the server now has another log. An idle process needs this check, because it commits no step that the
        server could refuse.
        """
        try:
            return self._store.run() != self._run
        except (StoreUnreachable, StoreBroken):
            return False  # lease and reader report the outage

    def _nudge_all(self) -> None:
        for handle, _ in self._hosted.values():
            handle.inbox.nudge()

    def _every(self, seconds: float, message: Tick | Look | Upkeep) -> None:
        def fire() -> None:
            if self.actor_ref.is_alive():
                self._tell(message)
                self._every(seconds, message)

        self._context.services.shared.timers.after(seconds, fire)

    def _retire(self) -> None:
        self._retired = True
        tokens = [(shard, handle.ledger.token) for shard, (handle, _) in self._hosted.items()]
        handles = [handle for handle, _ in self._hosted.values()]
        for handle in handles:
            handle.stopping.set()  # all before the first wait: each host may be in a call that the server never answers
        for shard in list(self._hosted):
            self._release(shard)
        self._remember(handles)  # only now, to include steps that were in flight
        self._reader.stop()
        self._context.lease.stop()
        try:
            self._store.retire(self._context.lease.process, tokens)
        except (StoreUnreachable, StoreBroken) as error:
            log.warning("shutdown without handover, shards stay unavailable until the lease expires", error=str(error))
        self.stop()

    def _new_reader(self) -> Reader:
        reader = Reader(
            self._store,
            self._router,
            lambda: self._tell(ServerBack()),
            lambda error: self._tell(ReaderFailed(error)),
        )
        reader.start()
        return reader
