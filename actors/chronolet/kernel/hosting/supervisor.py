"""The supervisor: acquires shards, recovers them, starts their hosts and restarts hosts that fail.

Input: the messages in `notices`: failures of hosts and of the reader, the return of the server, a regained lease, ends
of back-offs, periodic messages, the request to retire. Output: running hosts. A restarted host gets a new epoch and
decides one message per step for a while. If the server lost the tail of the log, the supervisor reloads everything. A
failure of the supervisor ends the process, and the process manager restarts it. Next: `host`; `process`, which ends if
the supervisor fails.

A process without a shard stands by: it takes over shards that become free. The phases of a shard, as one process sees
them; an event is a notice to the supervisor, a reply from the store, or an error. MembersChanged does what Look does,
without delay:

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
    hosted        LeaseRegained    free          the same, found after a lapse of the lease
    hosted        Tick, Upkeep     free          the same, found by a regular check
    hosted        Tick, Look       leaving       another process should own it (`sharing`), or it was asked to drain
    hosted        Retire           leaving       another process can host it
    hosted        Tick, Look       free          released, because another number of shards was requested (`layout`)
    hosted        Retire           free          released on shutdown
    hosted        Tick, Look       free          released, because this process must not host its kind (`refusals`)
    leaving       HostLeft         free          released for the other process, which takes it
    leaving       RetireNow        free          its effects have not finished in time
    backing_off   BackOffOver      free
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, assert_never

import pykka
import structlog

from chronolet.kernel.host.host import Services
from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.hosting.adoption import Adopt, AdoptionHook
from chronolet.kernel.hosting.failures import Failures
from chronolet.kernel.hosting.handovers import Handovers
from chronolet.kernel.hosting.host_starts import HostStarts
from chronolet.kernel.hosting.hosted_shards import HostedShards
from chronolet.kernel.hosting.log_watch import LogWatch
from chronolet.kernel.hosting.looks import Looks
from chronolet.kernel.hosting.notices import (
    BackOffOver,
    HostFailed,
    HostLeft,
    LeaseRegained,
    Look,
    MembersChanged,
    Notice,
    ReaderFailed,
    Release,
    Retire,
    RetireNow,
    ServerBack,
    Tick,
    Upkeep,
)
from chronolet.kernel.hosting.refusals import HostingRefusals, Refuses
from chronolet.kernel.kind import Kind
from chronolet.kernel.layout.changes import LayoutChanges
from chronolet.kernel.log.log_end import LogMemory
from chronolet.kernel.log.reader import Reader
from chronolet.kernel.log.recovery import History
from chronolet.kernel.ownership.claims import Claim, Claims
from chronolet.kernel.ownership.death_watch import DeathWatch
from chronolet.kernel.ownership.lease import Lease
from chronolet.kernel.ownership.sharing import Plan, Sharing
from chronolet.kernel.step.routing import Router
from chronolet.kernel.step.shard_writer import ServerBehind, ShardLost
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet_schemas.keys import Shard

_RELEASE_SECONDS = 0.25
"""How long releasing the last shards may take on shutdown, after their effects had time to finish."""

log = structlog.get_logger("chronolet.kernel")


class SupervisorContext(NamedTuple):
    """The services and callbacks that the process passes to its supervisor."""

    kinds: Mapping[str, Kind[Any]]
    services: Services
    lease: Lease
    history: History
    claims: Claims
    sharing: Sharing
    router: Callable[[], Router]
    """Begins the log if there is none, and returns a router with the log's current shard counts."""
    describe: Callable[[], None]
    """Records the description of this process in the log."""
    changes: LayoutChanges
    phase: Callable[[str], None]
    """Called with the name of each phase."""
    memory: LogMemory
    """Remembers the log's end."""
    locks: Path | None = None
    """The folder of the life locks."""
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
        self._hosted = HostedShards(context.services, context.lease)
        self._handovers = Handovers(self._store, self._hosted, context.services.shared.observer, self._stop_host)
        self._claims = context.claims
        self._timing = timing = context.services.shared.timing
        self._failures = Failures(timing)
        self._starts = HostStarts(
            context.kinds,
            context.services,
            context.history,
            hosted=self._hosted,
            claims=self._claims,
            failures=self._failures,
            released=lambda shard: self._back_off(shard, timing.history_retry_seconds),
        )
        self._backing_off: set[Shard] = set()
        self._stands_by = False
        self._shows_refusal = False
        self._looks = Looks(context.services.shared.timers, timing, context.lease.renewal_seconds, self._tell)
        self._deaths = DeathWatch(context.locks, self._looks.members_changed)
        self._misses = False
        """Whether, at the last look, a shard assigned to this process had no host here, or a host has stopped since."""
        self._plan: Plan | None = None
        """What to take and to give, according to the last look at the other processes."""
        self._given_up: frozenset[Shard] = frozenset()
        """The shards of kinds that this process cannot host, none of which it owns."""
        self._leaving = False
        """Whether the process hands over its shards to shut down."""
        self._retired = False
        self._reload = False
        self._described = False
        """Whether the log has the description of this process."""
        self._logged = ""
        """The last error of the server that was logged."""
        self._adoption = AdoptionHook(context.adopt, context.phase)
        self._refusals = HostingRefusals(context.refuses, self._store)
        self._router = context.router()
        self._log = LogWatch(self._store, self._claims, context.memory)
        self._log.load()
        self._starts.unreported = self._log.lost
        self._reader = self._new_reader()

    def on_start(self) -> None:
        """Send the first tick and start the timers."""
        self._tell(Tick())
        self._every(self._context.lease.renewal_seconds, Tick())
        self._every(self._timing.upkeep_seconds, Upkeep())

    def on_failure(
        self,
        _exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """End the process, because its hosts must not run without a supervisor."""
        self._hosted.abandon()
        self._fatal(exception_value or RuntimeError("the supervisor failed"))

    def on_receive(self, message: Notice) -> None:
        """Handle one notice. If the server is unreachable or has an unusable key, the notice is retried later; a
        periodic one is not, because the next one follows anyway.
        """
        if self._retired:
            return  # sent before the shutdown: handling it could take back shards that were just handed over
        try:
            self._handle(message)
            if not isinstance(message, Look):  # some of them do not contact the server
                self._logged = ""
        except (StoreUnreachable, StoreBroken) as error:
            if str(error) != self._logged:  # log an error once, however long it lasts
                self._logged = str(error)
                log.warning("waiting for the server", error=self._logged, about=type(message).__name__)
            if not isinstance(message, Tick | Look | MembersChanged | Upkeep | LeaseRegained):  # a Tick follows anyway
                pause = self._context.lease.renewal_seconds / 2
                self._context.services.shared.timers.after(pause, lambda: self._tell(message))
        self._plan_look()

    def _tell(self, message: Notice) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # must not fail the timer or reader that calls this
            self.actor_ref.tell(message)

    def _handle(self, message: Notice) -> None:
        match message:
            case Tick() | Look() | MembersChanged() | Upkeep():
                self._on_timer(message)
            case HostFailed():
                self._failed(message.handle, message.error)
            case HostLeft() | Release() | Retire() | RetireNow():
                self._on_move(message)
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
            case _:
                assert_never(message)

    # -- acquiring shards ----------------------------------------------------------------------------------------
    def _take_free(self) -> None:
        refused = self._refusals.now(self._log.run)
        self._follow_layout(refused)
        self._hand_over(refused)
        hostable = self._context.kinds.keys() - refused - set(self._context.changes.pending)
        ours = {shard for kind in hostable for shard in self._router.shards_of(kind)}
        missing = ours - set(self._hosted) - self._backing_off - self._handovers.unreleased.keys()
        if self._plan is not None and self._plan.take is not None:
            missing &= self._plan.take
        self._misses = bool(missing)
        if missing and not self._leaving:
            self._take(sorted(missing, key=str), adopts=not refused)
        elif not refused:
            self._stand_by()
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
        stopped = {one.shard: one for one in self._hosted.handles().values() if one.shard.kind in refused}
        for shard in stopped:
            log.warning("shard handed over, its kind is refused here", shard=str(shard), reason=refused[shard.kind])
        self._stop_hosts(list(stopped))
        self._refusals.hand_over({shard: handle.ledger.token for shard, handle in stopped.items()})

    def _follow_layout(self, refused: Collection[str]) -> None:
        """Carry out requested changes of shard counts, and route by the layout that results. A process that must not
        host a kind, or shuts down, leaves its change to others.
        """
        changes = self._context.changes
        for kind in () if self._reload else changes.pending:
            self._stop_hosts([shard for shard in self._hosted if shard.kind == kind])
            if kind not in refused and not self._leaving:
                changes.attempt(kind)
        router = changes.router(self._router)
        if router is not self._router:
            former, self._router = self._router, router
            self._stop_hosts([s for s in self._hosted if former.count(s.kind) != router.count(s.kind)])
            self._backing_off = {s for s in self._backing_off if former.count(s.kind) == router.count(s.kind)}
            self._claims.lift_quarantines_except(router)
            self._reader.use(router)

    def _take(self, shards: Sequence[Shard], *, adopts: bool) -> None:
        if self._reload:
            return  # the next tick acquires them, once there is a reader again
        if self._log.was_replaced():
            self._drop_all()  # the server was emptied: its shards have no log to continue
            return
        if adopts and not self._adoption.attempt(self._router, self._log.run, self._log.lost):
            return  # the next tick retries
        if not self._described:
            self._context.describe()
            self._described = True
        claims = self._context.changes.fitting(self._claims.take(shards), self._router)
        if claims:
            self._host(claims)
        else:
            self._stand_by()

    def _stand_by(self) -> None:
        if not (self._hosted or self._backing_off or self._stands_by):
            self._stands_by = True
            self._context.phase("standing by")
            log.info("no free shard, standing by")

    def _host(self, claims: Mapping[Shard, Claim]) -> None:
        self._context.phase("recovering")
        self._starts.run(self._router, self._reader, claims)
        self._stands_by = False
        self._context.phase("running" if self._hosted else "without its history")

    # -- sharing with other processes ----------------------------------------------------------------------------
    def _on_move(self, message: HostLeft | Release | Retire | RetireNow) -> None:
        match message:
            case HostLeft():
                if self._handovers.has_left(message.handle):
                    self._tell(Release(message.handle))  # a notice of its own: it is repeated until the store replies
            case Release():
                self._release(message.handle)
            case Retire():
                self._leave()
            case RetireNow():
                self._retire()

    def _share(self) -> None:
        """Look at the other processes, take what is ours, and hand over what is theirs."""
        self._misses = True  # until `_take_free` knows better
        refused = self._refusals.now(self._log.run)
        hostable = self._context.kinds.keys() - refused
        router = self._router
        shards = [*router.of_other_kinds(), *(one for kind in self._context.kinds for one in router.shards_of(kind))]
        self._plan = plan = self._context.sharing.look(
            shards,
            kinds=hostable if self._has_adopted(hostable) else (),
            quarantined=self._claims.quarantined,
            leaving=self._leaving,
        )
        if plan.run != self._log.run:
            self._drop_all()
            return
        self._context.changes.follow(plan.layout)
        for shard in plan.elsewhere:
            self._claims.lift_quarantine(shard)
        self._take_free()
        self._give_up([shard for shard in shards if shard.kind not in hostable])
        if self._context.lease.valid():
            self._handovers.begin(plan)
        self._misses |= not plan.give.keys() <= self._handovers.begun()
        if plan.awaited:
            self._looks.await_release()
        self._deaths.watch(self._context.sharing.others)

    def _has_adopted(self, hostable: Collection[str]) -> bool:
        """Adopt what is already running, and return whether that is done. A process that must not host some of its
        kinds adopts nothing.
        """
        run = self._log.run
        if hostable != self._context.kinds.keys() or self._adoption.is_done(run):
            return True
        return not self._log.was_replaced() and self._adoption.attempt(self._router, run, self._log.lost)

    def _give_up(self, shards: Sequence[Shard]) -> None:
        """Release those of these shards, whose kinds this process cannot host, that a former process of its name owned:
        as long as this one lives, no other could take them.
        """
        if (never := frozenset(shards)) == self._given_up:
            return
        hosted = {*self._hosted, *self._handovers.unreleased}
        self._claims.give_back(sorted(never - hosted, key=str))
        self._given_up = never

    def _release(self, handle: HostHandle) -> None:
        if not self._handovers.release(handle):
            self._context.services.shared.observer.shard_taken(handle.shard)
        if self._leaving and not self._handovers.in_progress():
            self._retire()

    # -- losing shards -------------------------------------------------------------------------------------------
    def _failed(self, handle: HostHandle, error: BaseException) -> None:
        if not self._hosted.is_current(handle):
            return  # this supervisor has already stopped it
        self._stop_host(handle.shard)
        if isinstance(error, ShardLost):
            log.warning("shard lost to another owner", shard=str(handle.shard), owner=error.token)
            self._context.services.shared.observer.shard_taken(handle.shard)
        elif isinstance(error, ServerBehind):
            self._starts.last_versions[handle.shard] = handle.ledger.version
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

    def _stop_hosts(self, shards: Sequence[Shard]) -> None:
        handles = self._hosted.handles()
        for shard in shards:
            handles[shard].stopping.set()  # all before the first wait, as each host may be in a long call
        for shard in shards:
            self._stop_host(shard)

    def _stop_host(self, shard: Shard) -> None:
        self._misses = True
        self._reader.detach(shard)
        self._hosted.stop(shard)

    def _drop_taken_over(self) -> None:
        heads = self._claims.heads(list(self._hosted))  # an unreadable one is quarantined and omitted
        for shard, handle in self._hosted.handles().items():
            if shard not in heads:
                self._stop_host(shard)
            elif (token := heads[shard].token) != handle.ledger.token:
                log.warning("shard was taken over while the lease had lapsed", shard=str(shard), owner=token or "none")
                if token:
                    self._context.services.shared.observer.shard_taken(shard)
                self._stop_host(shard)

    def _check_for_loss(self) -> None:
        """Check whether the server still has all data that it acknowledged; if not, reload everything."""
        if self._reload:
            return  # the loss is already known
        if self._log.lacks_data(self._hosted.handles().values(), self._reader):
            self._drop_all()

    def _drop_all(self) -> None:
        """Stop all hosts. The next tick reloads everything from the data that the server still has."""
        log.error("the server has lost part of the log, reloading everything")
        self._log.remember(self._hosted.handles().values(), self._reader)
        for shard, handle in self._hosted.handles().items():
            self._starts.last_versions[shard] = handle.ledger.version
            self._stop_host(shard)
        self._reader.stop()
        self._reload = True
        self._tell(Tick())

    def _reload_all(self) -> None:
        self._context.phase("beginning")
        self._stands_by = False
        self._router = self._context.router()
        self._context.changes.read()
        if self._log.load():
            self._starts.unreported = self._log.lost
            self._adoption.repeat()
        self._given_up = frozenset()
        self._described = False  # the log may have lost it
        self._reader = self._new_reader()
        self._reload = False

    # -- periodic work -------------------------------------------------------------------------------------------
    def _on_timer(self, message: Tick | Look | MembersChanged | Upkeep) -> None:
        match message:
            case Tick():
                self._tick()
            case Look() | MembersChanged():
                self._looks.begin(message)
                self._look(changed=isinstance(message, MembersChanged))
            case Upkeep():
                self._check_for_loss()
                self._hosted.nudge()
                self._store.forget_dead()
                self._claims.sweep()

    def _plan_look(self) -> None:
        """Look again before the next tick if something is open, and while processes of other machines take part: only
        their counters tell whether they live.
        """
        sharing = self._context.sharing
        if self._misses or self._context.changes.pending or (sharing.has_free() and not sharing.alone):
            self._looks.plan_soon()
        elif not sharing.alone:
            self._looks.plan_reading(sharing.next_proof(), often=not self._deaths.watches(sharing.others))

    def _look(self, *, changed: bool) -> None:
        if self._reload or not self._adoption.is_done(self._log.run):
            return  # else each Look would query the runtime, which is too often
        if changed or not self._context.sharing.alone:
            self._share()
        else:
            self._take_free()

    def _tick(self) -> None:
        self._context.services.shared.observer.lease_valid(self._context.lease.valid())
        if self._reload:
            self._reload_all()
        elif self._hosted:  # not before: the old end must stay stored until a host records the loss
            self._log.remember(self._hosted.handles().values(), self._reader)
        self._share()

    def _every(self, seconds: float, message: Tick | Upkeep) -> None:
        def fire() -> None:
            if self.actor_ref.is_alive():
                self._tell(message)
                self._every(seconds, message)

        self._context.services.shared.timers.after(seconds, fire)

    def _leave(self) -> None:
        """Hand over all shards that other processes can host; then stop."""
        self._leaving = True
        timers, seconds = self._context.services.shared.timers, self._timing.handover_seconds
        if not self._context.sharing.alone:
            with contextlib.suppress(StoreUnreachable, StoreBroken):
                self._share()
        if self._handovers.in_progress():
            timers.after(seconds + _RELEASE_SECONDS, lambda: self._tell(RetireNow()))
        else:
            self._retire()

    def _retire(self) -> None:
        self._retired = True
        handles = list(self._hosted.handles().values())
        tokens = [(one.shard, one.ledger.token) for one in (*handles, *self._handovers.unreleased.values())]
        for handle in handles:
            handle.stopping.set()  # all before the first wait: each host may be in a call that the server never answers
        for shard in self._hosted:
            self._stop_host(shard)
        self._log.remember(handles, self._reader)  # only now, to include steps that were in flight
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
            self._looks.members_changed,
        )
        reader.start()
        return reader
