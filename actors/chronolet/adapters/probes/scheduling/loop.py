"""The event loop of the single probe thread: ready sockets, timers, calls from other threads.

Input: descriptors to watch; actions, with or without a time. Output: calls on the loop's thread. Each call must be
short, since all others wait for it. Next: `handlers`, and callers that start attempts. asyncio is not used, because its
overhead exceeds the CPU budget of a whole probe.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable

import structlog

from chronolet.adapters.probes.scheduling.thread_priority import raise_priority

log = structlog.get_logger("chronolet.probes")

_LONGEST_WAIT_SECONDS = 3600.0
"""Longest wait of a single poll; epoll accepts at most 24.8 days."""
_PAUSE_SECONDS = 1.0
_FEW_DEAD = 64

READABLE = select.EPOLLIN | select.EPOLLRDHUP
WRITABLE = select.EPOLLOUT


class LoopTimer:
    """A scheduled action."""

    __slots__ = ("__weakref__", "_cancelled", "action")

    def __init__(self, action: Callable[[], None], cancelled: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action
        self._cancelled = cancelled

    def cancel(self) -> None:
        """Prevent the action from being called."""
        if self.action is not None:
            self.action = None
            self._cancelled()

    def take(self) -> Callable[[], None] | None:
        """Mark the timer as fired and return its action; cancelling the timer afterwards has no effect."""
        action, self.action = self.action, None
        return action


class Loop:
    """Runs actions on one thread: when a descriptor is ready, at a time, or as soon as possible. The thread starts with
    the first call of `soon` and ends only with `stop`; errors are logged, since nobody would notice the missing
    outcomes of a dead thread.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wakeup, select.EPOLLIN)
        self._watched: dict[int, tuple[int, Callable[[], None]]] = {}
        self._timers: list[tuple[float, int, LoopTimer]] = []
        self._dead = 0
        self._serial = itertools.count()
        self._soon: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ident = 0
        """Id of the loop's thread, once it is running."""
        self._stopped = False

    # -- from any thread ---------------------------------------------------------------------------------------------

    def soon(self, action: Callable[[], object]) -> None:
        """Call an action on the loop's thread as soon as possible, in the order of these calls; do nothing after
        `stop`. Raises RuntimeError if the thread cannot be started.
        """
        self._soon.append(action)
        if threading.get_ident() != self._ident:
            with self._lock:
                if self._stopped:
                    return
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="probes", daemon=True)
                    thread.start()  # may fail: the next call then tries again
                    self._thread = thread
                os.eventfd_write(self._wakeup, 1)

    def stop(self) -> None:
        """Stop the loop; nothing is called afterwards. Must not be called from the loop's own thread."""
        with self._lock:
            self._stopped = True
            thread = self._thread
        if thread is not None:
            os.eventfd_write(self._wakeup, 1)
            thread.join()
        self._epoll.close()
        os.close(self._wakeup)

    # -- from the loop's thread --------------------------------------------------------------------------------------

    def at(self, when: float, action: Callable[[], None]) -> LoopTimer:
        """Call `action` at the time `when`, on the clock of `time.monotonic`."""
        timer = LoopTimer(action, self._cancelled)
        heapq.heappush(self._timers, (when, next(self._serial), timer))
        return timer

    def watch(self, descriptor: int, events: int, ready: Callable[[], None]) -> None:
        """Call `ready` whenever one of the events occurs; replaces an earlier watch of the descriptor."""
        watched = self._watched.get(descriptor)
        if watched is None:
            self._epoll.register(descriptor, events)
        elif watched[0] != events:
            self._epoll.modify(descriptor, events)
        self._watched[descriptor] = (events, ready)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor. Must be called before the descriptor is closed."""
        if self._watched.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _cancelled(self) -> None:
        """Remove cancelled timers once they are the majority: most deadlines are cancelled long before their time."""
        self._dead += 1
        if self._dead > max(len(self._timers) // 2, _FEW_DEAD):
            self._timers = [one for one in self._timers if one[2].action is not None]
            heapq.heapify(self._timers)
            self._dead = 0

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._ident = threading.get_ident()
        raise_priority()
        while not self._stopped:
            try:
                self._round()
            except Exception:
                # A bug in the loop itself: log it each time, but keep probing.
                log.exception("the probe loop failed; continuing")
                time.sleep(_PAUSE_SECONDS)

    def _round(self) -> None:
        for descriptor, _ in self._epoll.poll(self._wait()):
            if descriptor == self._wakeup:
                os.eventfd_read(self._wakeup)
                continue
            watched = self._watched.get(descriptor)  # an earlier action in this round may have unwatched it
            if watched is not None:
                self._call(watched[1])
        self._fire_due()
        for _ in range(len(self._soon)):
            self._call(self._soon.popleft())

    def _wait(self) -> float:
        if self._soon:
            return 0.0
        while self._timers and self._timers[0][2].action is None:
            self._pop()
        left = self._timers[0][0] - time.monotonic() if self._timers else _LONGEST_WAIT_SECONDS
        return min(max(left, 0.0), _LONGEST_WAIT_SECONDS)

    def _fire_due(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            action = self._pop()
            if action is not None:
                self._call(action)

    def _pop(self) -> Callable[[], None] | None:
        action = heapq.heappop(self._timers)[2].take()
        self._dead -= action is None
        return action

    def _call(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception:
            # Log it and go on: the probes of other containers must continue.
            log.exception("an action on the probe thread failed")
