"""Follows the log's layout for one process, and carries out requested changes of shard counts.

Input: the layout, as `sharing` surveys it. Output: the kinds whose hosts must stop because a change was
requested; the change, made by the first process that owns all former shards. Next: `supervisor`.

    requested    `chronolet shards set` has written the request into the node's hash
    handed over  each process stops its hosts of the kind and releases their shards
    acquired     one process acquires all former shards: of several, the one that gets the first shard
    prepared     it folds their states (`preparation`)
    changed      one atomic call of the store: the event, the new shards, the new count
    reloaded     each process routes by the new count and takes shards as usual

If a process dies in between, the request remains, and another process continues. If a shard is not handed over in time
(its owner runs an earlier release, or its data is damaged), the request is refused and the former shards are hosted
again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from msgspec import Struct

from chronolet.kernel.faults import Faults
from chronolet.kernel.kind import Kind
from chronolet.kernel.layout.preparation import NotReady, Preparation, Wanted
from chronolet.kernel.log.recovery import History
from chronolet.kernel.ownership.claims import Claim, Claims
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.layout import Layout, Outdated, Resharded
from chronolet.kernel.storage.store import HistoryMissing, Store, StoreBroken
from chronolet_schemas.keys import Shard, shards_of

ATTEMPTS = 5
"""How many times at most a change is prepared while new commands keep arriving for its shards."""

RETRY_SECONDS = 0.25
"""Pause after a failed attempt. Giving back the shards wakes all processes, including this one."""
PAUSE_SECONDS = 2.0
"""How long a process without the history leaves a change to other processes before it tries again."""

log = structlog.get_logger("chronolet.kernel")


class _Open(Struct):
    """An open request, as this process knows it. Times are those of its monotonic clock."""

    since: float
    next_attempt: float = 0.0
    error: str = ""
    """Why this process could not make the change."""


class LayoutChanges:
    """The layout as one process sees it, and the requested changes that the process carries out."""

    def __init__(
        self,
        store: Store,
        kinds: Mapping[str, Kind[Any]],
        claims: Claims,
        history: History,
        *,
        node: str,
        process: str,
        faults: Faults,
        patience_seconds: float,
    ) -> None:
        """`patience_seconds`: how long a request may wait for shards that are not handed over."""
        self._store = store
        self._kinds = kinds
        self._claims = claims
        self._history = history
        self._node = node
        self._process = process
        self._faults = faults
        self._patience_seconds = patience_seconds
        self._layout = Layout("", {})
        self._open: dict[tuple[str, int], _Open] = {}
        """The requests for kinds of this process, by kind and count."""

    def read(self) -> None:
        """Read the layout, and follow it."""
        self.follow(self._store.layout())

    def follow(self, layout: Layout) -> None:
        """Note the log's current layout, and the changes that are requested."""
        self._layout = layout
        requests = [request for request in layout.requested.items() if request[0] in self._kinds]
        self._open = {request: self._open.get(request) or _Open(time.monotonic()) for request in requests}

    @property
    def pending(self) -> Sequence[str]:
        """The kinds of this process for which a change is requested: it must not host them."""
        return sorted(kind for kind, _ in self._open)

    def router(self, current: Router) -> Router:
        """Return a router for the layout last read: the current one if it has the same counts."""
        counts = self._layout.counts
        if not counts or current.counts == counts or not self._kinds.keys() <= counts.keys():
            return current
        changed = {kind: count for kind, count in counts.items() if current.counts.get(kind) != count}
        log.info("the log's layout has changed", shards=changed)
        return Router(self._kinds, counts)

    def fitting(self, claims: Mapping[Shard, Claim], router: Router) -> Mapping[Shard, Claim]:
        """Return the claims of shards that belong to the router's layout, and give back those of another layout.

        A change needs all shards of its kind, so no other process can change the kind while this one owns one of them.
        """
        outdated = [s for s, one in claims.items() if one.head.shards not in (0, router.count(s.kind))]
        if outdated:
            self._claims.give_back(outdated)
            self.read()
        return {shard: claim for shard, claim in claims.items() if shard not in outdated}

    def attempt(self, kind: str) -> None:
        """Try to carry out the request for a kind. This process must not run a host of the kind."""
        before, after = self._layout.counts.get(kind), self._layout.requested.get(kind)
        if before is None or after is None:  # met or refused by another process since the layout was read for `pending`
            return
        former = shards_of(kind, before)
        self._faults.point(f"reshard/released {kind}")
        request = self._open[kind, after]
        claims: Mapping[Shard, Claim] = {}
        if time.monotonic() >= request.next_attempt:
            claims = self._claims.take_all(former)
            request.next_attempt = time.monotonic() + RETRY_SECONDS
        if not claims:
            self._claims.give_back(former)
            self._refuse_if_late(kind, after, former)
            return
        wanted = Wanted(self._node, self._process, self._kinds[kind], before, after)
        try:
            self._faults.point(f"reshard/acquired {kind}")
            done = self._change(wanted, claims)
        except HistoryMissing as error:  # another process may have the archive
            log.warning("shard count not changed, leaving it to other processes", kind=kind, error=str(error))
            request.next_attempt, request.error = time.monotonic() + PAUSE_SECONDS, str(error)
            self._claims.give_back(former)
        except (NotReady, StoreBroken) as error:
            self._claims.give_back(former)
            self._refuse(kind, after, str(error))
        else:
            if isinstance(done, Outdated):
                log.info("shard count not changed, retrying", kind=kind, changed_meanwhile=done.what)
                self._claims.give_back(former)
            self._faults.point(f"reshard/after {kind}")
        self.read()

    def _change(self, wanted: Wanted, claims: Mapping[Shard, Claim]) -> Resharded | Outdated:
        preparation = Preparation(self._store, self._history, wanted, claims)
        done: Resharded | Outdated = Outdated("mail")
        for _ in range(ATTEMPTS):
            change = preparation.change()
            self._faults.point(f"reshard/before {wanted.kind.name}")
            done = self._store.reshard(change)
            if not isinstance(done, Outdated) or done.what != "mail":
                break
        if isinstance(done, Resharded):
            name = wanted.kind.name
            log.info("shard count changed", kind=name, before=wanted.before, after=wanted.after, at=str(done.at))
        return done

    def _refuse_if_late(self, kind: str, after: int, former: Sequence[Shard]) -> None:
        request = self._open[kind, after]
        if time.monotonic() - request.since < self._patience_seconds:
            return
        owners = ", ".join(f"{shard} by process {owner}" for shard, owner in self._claims.owners_of(former).items())
        seconds = f"within {self._patience_seconds:.0f} s"
        if owners:
            reason = f"not handed over {seconds}: {owners}; stop or upgrade that process, then request the change again"
        else:
            reason = (
                f"not made {seconds}: {request.error or 'its shards could not be acquired, see the logs of the agents'}"
            )
        self._refuse(kind, after, reason)
        self.read()

    def _refuse(self, kind: str, after: int, reason: str) -> None:
        log.error("shard count not changed", kind=kind, requested=after, error=reason)
        self._store.refuse_shards(kind, after, reason)
