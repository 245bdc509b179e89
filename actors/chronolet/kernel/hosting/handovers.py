"""Hands over shards to other processes: lets their hosts finish, then releases them.

Input: a plan; hosts that have left. Output: released shards, with the notes that their effects left. Used only on the
supervisor's thread. Next: `supervisor`; `host`, which finishes its effects and commits its last step.

    hosted -> leaving (its effects finish, for a bounded time) -> left (its host is stopped) -> released
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from chronolet.kernel.host import effect_notes
from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.hosting.hosted_shards import HostedShards
from chronolet.kernel.observer import Observer
from chronolet.kernel.ownership.sharing import Plan
from chronolet.kernel.storage.store import Store
from chronolet_schemas.keys import Shard

log = structlog.get_logger("chronolet.kernel")


class Handovers:
    """The shards that one process is handing over."""

    def __init__(self, store: Store, hosted: HostedShards, observer: Observer, stop: Callable[[Shard], None]) -> None:
        """`stop` stops the host of a shard."""
        self._store = store
        self._observer = observer
        self._hosted = hosted
        self._stop = stop
        self.unreleased: dict[Shard, HostHandle] = {}
        """The hosts that have left and were stopped, but whose shards are not released yet."""

    def begin(self, plan: Plan) -> None:
        """Begin to hand over each hosted shard that the plan gives to another process."""
        for shard, handle in self._hosted.handles().items():
            if (to := plan.give.get(shard, "")) and not handle.moves_to:
                log.info("handing over shard", shard=str(shard), to=to)
                handle.leave(to)

    def has_left(self, handle: HostHandle) -> bool:
        """Stop a host that has left. Returns True if its shard must now be released, False if it was stopped before."""
        if not self._hosted.is_current(handle):
            return False
        self._stop(handle.shard)
        self.unreleased[handle.shard] = handle
        return True

    def release(self, handle: HostHandle) -> bool:
        """Release the shard of a host that has left; return False if another process has taken it. Call this again if
        the store is unreachable.
        """
        released = self._store.release(handle.shard, handle.ledger.token, effect_notes.encode(handle.left_notes))
        if released:
            self._observer.shard_moved(handle.shard)
        else:
            log.warning("shard was taken over while it was handed over", shard=str(handle.shard))
        self.unreleased.pop(handle.shard, None)
        return released

    def begun(self) -> set[Shard]:
        """Return the shards that are being handed over."""
        return {*self.unreleased, *(shard for shard, one in self._hosted.handles().items() if one.moves_to)}

    def in_progress(self) -> bool:
        """Whether a shard is being handed over."""
        return bool(self.begun())
