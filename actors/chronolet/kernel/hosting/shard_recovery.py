"""Recovers the shards that a process has acquired, and releases those whose history is missing on this machine.

Input: claims. Output: a `Recovered` for each shard. A shard whose history is missing is quarantined, released and
passed to `released`. Next: `supervisor`, which starts the hosts.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from chronolet.kernel.host.host_handle import Recovered
from chronolet.kernel.hosting.failures import Failures
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.recovery import History, Recovery
from chronolet.kernel.observer import Observer
from chronolet.kernel.ownership.claims import Claim, Claims
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.store import NOBODY, HistoryMissing, Store
from chronolet_schemas.keys import Shard


class ShardRecovery:
    """Recovers shards for one process."""

    def __init__(
        self,
        kinds: Mapping[str, Kind[Any]],
        store: Store,
        history: History,
        *,
        claims: Claims,
        failures: Failures,
        observer: Observer,
        released: Callable[[Shard], None],
    ) -> None:
        """`released` is called with each shard whose history is missing, after the shard was released."""
        self._kinds = kinds
        self._store = store
        self._history = history
        self._claims = claims
        self._failures = failures
        self._observer = observer
        self._released = released

    def run(self, router: Router, claims: Mapping[Shard, Claim]) -> Mapping[Shard, Recovered]:
        """Recover all shards in one scan. If any history is missing, recover each shard separately, and release those
        whose history is missing.
        """
        if not claims:
            return {}
        with contextlib.suppress(HistoryMissing):
            return self._recover(router, claims)
        found: dict[Shard, Recovered] = {}
        for shard, claim in claims.items():
            try:
                found |= self._recover(router, {shard: claim})
            except HistoryMissing as missing:
                self._claims.quarantine(shard, str(missing))
                # A process that has the history may now take over.
                self._store.retire(NOBODY, [(shard, claim.head.token)])
                self._released(shard)
        return found

    def _recover(self, router: Router, claims: Mapping[Shard, Claim]) -> Mapping[Shard, Recovered]:
        recovery = Recovery(self._kinds, router, self._store, self._history)
        acquired = {shard: (claim.head.token, claim.head) for shard, claim in claims.items()}
        begun = time.monotonic()
        recovered = recovery.run(acquired, self._failures.of(claims))
        self._observer.recovered(len(recovered), recovery.read, time.monotonic() - begun)
        return recovered
