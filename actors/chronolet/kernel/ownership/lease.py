"""The process's lease, renewed each second by its own thread, even during recovery.

Input: a store; the tokens of the hosted shards. Output: `valid`, which is judged by this machine's clock since boot and
checked before every external call; standing effects are stopped when the lease lapses (docs/design.md, Ownership).

    valid -> lapsed (not renewed in time, or the reply shows a takeover) -> ownership checked -> valid

Renewals are numbered. Other processes consider this one dead once its number has not changed for a time-to-live
(`watch`). The lease ends earlier: a time-to-live after the last answered renewal was sent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from chronolet.kernel.effects.timers import Timers
from chronolet.kernel.storage.store import Beat, Store, StoreBroken, StoreUnreachable
from chronolet_schemas.keys import Shard

TTL_MILLISECONDS = 3000
RENEWALS_IN_TTL = 3
RETRIES_PER_RENEWAL = 5
"""A renewal that failed is retried after this part of the interval between renewals."""
MARGIN = 0.1
"""The share of the time-to-live before the end of the lease at which standing effects are stopped, so that they have
ended when another process takes over. Only a call in progress may last longer.
"""

log = structlog.get_logger("chronolet.kernel")


def seconds_since_boot() -> float:
    """Return the seconds since boot. Unlike `time.monotonic`, they include the time in which the machine was suspended:
    other processes have not been suspended.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Standing(Protocol):
    """A standing effect, as the lease sees it."""

    def lapse(self) -> None:
        """Stop: the process may no longer own the shard. Returns without waiting for the end; called by any thread."""


class Lease:
    """Renews the lease until `stop` is called. The lease serves progress only; safety comes from the check of the token
    in each step.
    """

    def __init__(
        self,
        store: Store,
        process: str,
        info: str,
        timers: Timers,
        *,
        ttl_milliseconds: int = TTL_MILLISECONDS,
        now: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self.process = process
        self.tokens: Mapping[Shard, str] = {}
        """The tokens of the shards that this process hosts. Replaced by the supervisor, never changed in place."""
        self._store = store
        self._info = info
        self._ttl = ttl_milliseconds
        self._now = now
        self._timers = timers
        self._lapse = timers.after(0.0, lambda: None)
        self._good_until = 0.0
        self._number = 0
        self._answered = 0
        self._standing: set[Standing] = set()
        self._changing = threading.Lock()
        self.lapses = 0
        self._confirmed = 0
        self._regained: Callable[[], None] | None = None
        self._stopping = threading.Event()
        self._turned_at: float | None = None
        """When the thread last began a renewal, on the monotonic clock; None before it starts."""
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def count_from(self, number: int) -> None:
        """Number the renewals from here on, before `start`: above those of a former process of the same name."""
        self._number = number

    def start(self, regained: Callable[[], None]) -> None:
        """Acquire the lease, then keep renewing it. Raises StoreUnreachable if the server does not reply.

        `regained` is called after a renewal that follows a lapse. It must trigger a check of which process owns the
        shards now, followed by a call to `confirm`.
        """
        self._renew()
        self._confirmed = self.lapses
        self._regained = regained
        self._turned_at = time.monotonic()
        self._thread.start()

    def idle_seconds(self) -> float:
        """Return how long ago the thread began a renewal, answered or not; 0 before `start`."""
        return 0.0 if self._turned_at is None else time.monotonic() - self._turned_at

    @property
    def renewal_seconds(self) -> float:
        """The interval between renewals."""
        return self._ttl / 1000 / RENEWALS_IN_TTL

    def valid(self) -> bool:
        """Whether this process may run effects: the lease was renewed in time, and has not lapsed since ownership was
        last checked.
        """
        # In this order: a late renewal counts the lapse before it extends the lease.
        return self._now() < self._good_until and self._confirmed == self.lapses

    def answered(self) -> bool:
        """Whether the last renewal is still in force, whichever process owns the shards now."""
        return self._now() < self._good_until

    def join(self, effect: Standing) -> None:
        """Register a standing effect, which is stopped when the lease lapses; at once if that is now."""
        with self._changing:
            self._standing.add(effect)
        if self._confirmed != self.lapses or self._now() >= self._good_until - self._margin:
            effect.lapse()

    def leave(self, effect: Standing) -> None:
        """Unregister a standing effect, which has ended."""
        with self._changing:
            self._standing.discard(effect)

    def confirm(self, lapses: int) -> None:
        """Record that ownership was checked when `lapses` had this value: this process owns all shards it hosts."""
        self._confirmed = lapses

    def stop(self) -> None:
        """Stop renewing. The lease expires, or the caller retires it."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._lapse.cancel()
        self._good_until = 0.0

    def _run(self) -> None:
        failing, pause = False, self.renewal_seconds
        while not self._stopping.wait(pause):
            began = self._now()
            self._turned_at = time.monotonic()
            if began >= self._good_until - self._margin:
                self._stop_standing()  # the timer does not run while the machine is suspended
            try:
                self._renew()
            except (StoreUnreachable, StoreBroken) as error:
                if not failing:
                    log.warning("lease renewal failed, retrying", error=str(error))
                # Soon: one reply that is late must not end the lease. If no retry succeeds in time, `valid` becomes
                # False by itself.
                failing, pause = True, self.renewal_seconds / RETRIES_PER_RENEWAL
                continue
            failing, pause = False, max(0.0, began + self.renewal_seconds - self._now())
            if self._confirmed != self.lapses and self._regained is not None:
                self._regained()

    def _renew(self) -> None:
        tokens = self.tokens
        self._number += 1  # also after an attempt without a reply: others may have seen that one long ago
        sent_at = self._now()  # before the call: another process may see this renewal any time after this
        beat = Beat(self._number, self._answered, list(tokens))
        renewed = self._store.renew(self.process, self._info, self._ttl, beat)
        self._answered = beat.number
        # After the call: a renewal sent in time may arrive too late, and another process may have taken over meanwhile.
        lapsed = self._now() >= self._good_until or not renewed.known or self._has_lost(tokens, renewed.tokens)
        self._lapse.cancel()
        self.lapses += lapsed  # before the lease is extended: no fence may pass in between
        self._good_until = sent_at + self._ttl / 1000
        if lapsed:
            self._stop_standing()
        self._lapse = self._timers.after(self._good_until - self._margin - self._now(), self._stop_standing)

    @property
    def _margin(self) -> float:
        return self._ttl / 1000 * MARGIN

    def _has_lost(self, sent: Mapping[Shard, str], found: Mapping[Shard, str]) -> bool:
        """Whether a shard has another owner. A shard that the supervisor took again during the call is not lost."""
        now = self.tokens
        return any(found[shard] != token and now.get(shard) == token for shard, token in sent.items())

    def _stop_standing(self) -> None:
        with self._changing:
            standing = list(self._standing)
        for effect in standing:
            try:
                effect.lapse()
            except Exception:
                # The other effects must be stopped, and the lease must be renewed.
                log.exception("a standing effect could not be stopped")
