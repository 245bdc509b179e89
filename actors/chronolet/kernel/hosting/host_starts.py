"""Recovers acquired shards and starts their hosts, in the right order.

Input: claims. Output: running hosts, to which the reader delivers. Shards with waiting commands are hosted before the
others (docs/adr/0019). Used only on the supervisor's thread. Next: `supervisor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chronolet.kernel.host import effect_notes
from chronolet.kernel.host.host import Services
from chronolet.kernel.host.host_handle import Recovered
from chronolet.kernel.hosting.failures import Failures
from chronolet.kernel.hosting.hosted_shards import HostedShards
from chronolet.kernel.hosting.shard_recovery import ShardRecovery
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.reader import Reader
from chronolet.kernel.log.recovery import History
from chronolet.kernel.ownership.claims import Claim, Claims
from chronolet.kernel.ownership.waiting_mail import wait_for_other_processes, wait_until_decided, with_waiting_commands
from chronolet.kernel.step.routing import Router
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard


class HostStarts:
    """Starts the hosts of one process."""

    def __init__(
        self,
        kinds: Mapping[str, Kind[Any]],
        services: Services,
        history: History,
        *,
        hosted: HostedShards,
        claims: Claims,
        failures: Failures,
        released: Callable[[Shard], None],
    ) -> None:
        """`released` is called with each shard whose history is missing, after the shard was released."""
        self._kinds = kinds
        self._store = services.store
        self._observer = services.shared.observer
        self._timing = services.shared.timing
        self._hosted = hosted
        self._claims = claims
        self._failures = failures
        self._recovery = ShardRecovery(
            kinds,
            self._store,
            history,
            claims=claims,
            failures=failures,
            observer=self._observer,
            released=released,
        )
        self.last_versions: dict[Shard, int] = {}
        """The last version of each shard that this process knew before the server lost data."""
        self.unreported: kernel.LogLost | None = None
        """The loss of the log, if a host still has to record it."""

    def run(self, router: Router, reader: Reader, claims: Mapping[Shard, Claim]) -> None:
        """Recover and host the claimed shards. A shard whose history is missing is released instead."""
        for name in {shard.kind for shard in claims}:
            # Begins to fetch external data, which takes about as long as the recovery: both run at the same time.
            if (ahead := self._kinds[name].ahead) is not None:
                ahead()
        first = with_waiting_commands(self._store, claims)
        self._start(router, reader, first)
        handles, seconds = self._hosted.handles(), self._timing.mail_seconds
        wait_until_decided([handles[shard] for shard in first if shard in handles], seconds)
        wait_for_other_processes(self._store, router.of_other_kinds(), seconds)
        self._start(router, reader, {shard: claim for shard, claim in claims.items() if shard not in first})
        self._observer.shards_owned(len(self._hosted))

    def _start(self, router: Router, reader: Reader, claims: Mapping[Shard, Claim]) -> None:
        recovered_shards = self._recovery.run(router, claims)
        notes = effect_notes.left_for(self._store, claims)
        for shard in sorted(recovered_shards, key=self._precedence):
            recovered = recovered_shards[shard]
            recovered.notes = [*recovered.notes, *self._notes(shard, claims[shard])]
            recovered.unclean = claims[shard].unclean
            recovered.effect_notes = notes.get(shard, {})
            self._start_host(reader, shard, recovered)

    def _start_host(self, reader: Reader, shard: Shard, recovered: Recovered) -> None:
        reader.attach(self._hosted.start(recovered))
        self.last_versions.pop(shard, None)
        self._claims.lift_quarantine(shard)
        self._failures.reported(shard)
        if self._kinds[shard.kind].watches_clock:
            self.unreported = None

    def _notes(self, shard: Shard, claim: Claim) -> list[Event]:
        """Return the kernel events that the new host records first."""
        had, found = self.last_versions.get(shard, 0), claim.head.version
        tail_lost = kernel.TailLost(had_version=had, found_version=found) if had > found else None
        log_lost = self.unreported if self._kinds[shard.kind].watches_clock else None
        return [note for note in (claim.former, log_lost, tail_lost, self._failures.note(shard)) if note is not None]

    def _precedence(self, shard: Shard) -> tuple[int, str]:
        return self._kinds[shard.kind].precedence, str(shard)
