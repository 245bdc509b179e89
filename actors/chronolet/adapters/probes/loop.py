"""The one thread on which a process probes: sockets that are ready, times that have come, calls from other threads.

Comes in: descriptors to watch, actions with or without a time. Goes out: the calls, on the loop's thread; each must be
short, for all others wait for it. Next: `http`, `dial`, and whoever begins attempts. Not asyncio: its machinery costs
more than a whole probe may.
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

from chronolet.adapters.probes.niceness import go_first

log = structlog.get_logger("chronolet.probes")

_LONGEST_WAIT_SECONDS = 3600.0
"""epoll takes no more than 24.8 days."""
_PAUSE_SECONDS = 1.0
_FEW_DEAD = 64

READABLE = select.EPOLLIN | select.EPOLLRDHUP
WRITABLE = select.EPOLLOUT


class Timer:
    """An action with a time."""

    __slots__ = ("__weakref__", "_cancelled", "action")

    def __init__(self, action: Callable[[], None], cancelled: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action
        self._cancelled = cancelled

    def cancel(self) -> None:
        """It does not happen."""
        if self.action is not None:
            self.action = None
            self._cancelled()

    def take(self) -> Callable[[], None] | None:
        """It happens now: to cancel it means nothing any more."""
        action, self.action = self.action, None
        return action


class Loop:
    """Its thread starts with the first call of `soon`, and ends with `stop`: with nothing else, for nobody would notice
    that there are no outcomes any more.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._bell, select.EPOLLIN)
        self._watched: dict[int, tuple[int, Callable[[], None]]] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._dead = 0
        self._serial = itertools.count()
        self._soon: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ident = 0
        """Of that thread, once it runs."""
        self._stopped = False

    # -- from any thread ---------------------------------------------------------------------------------------------

    def soon(self, action: Callable[[], object]) -> None:
        """Call it on the loop's thread, in order."""
        self._soon.append(action)
        if threading.get_ident() != self._ident:
            with self._lock:
                if self._stopped:
                    return
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="probes", daemon=True)
                    thread.start()  # may be refused: then the next call tries again
                    self._thread = thread
                os.eventfd_write(self._bell, 1)

    def stop(self) -> None:
        """Nothing is called after this. Not from the loop's own thread."""
        with self._lock:
            self._stopped = True
            thread = self._thread
        if thread is not None:
            os.eventfd_write(self._bell, 1)
            thread.join()
        self._epoll.close()
        os.close(self._bell)

    # -- from the loop's thread --------------------------------------------------------------------------------------

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call it at a time of `time.monotonic`."""
        timer = Timer(action, self._cancelled)
        heapq.heappush(self._timers, (when, next(self._serial), timer))
        return timer

    def watch(self, descriptor: int, events: int, ready: Callable[[], None]) -> None:
        """Call `ready` whenever one of the events is there; in place of what was watched for before."""
        watched = self._watched.get(descriptor)
        if watched is None:
            self._epoll.register(descriptor, events)
        elif watched[0] != events:
            self._epoll.modify(descriptor, events)
        self._watched[descriptor] = (events, ready)

    def unwatch(self, descriptor: int) -> None:
        """To be called before it is closed."""
        if self._watched.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _cancelled(self) -> None:
        """Most deadlines are cancelled long before their time: those are cleared away once they are the most."""
        self._dead += 1
        if self._dead > max(len(self._timers) // 2, _FEW_DEAD):
            self._timers = [one for one in self._timers if one[2].action is not None]
            heapq.heapify(self._timers)
            self._dead = 0

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._ident = threading.get_ident()
        go_first()
        while not self._stopped:
            try:
                self._round()
            except Exception:
                # A defect of the loop itself. Said again and again, and no reason to leave all containers unprobed.
                log.exception("the probes' thread failed; it goes on")
                time.sleep(_PAUSE_SECONDS)

    def _round(self) -> None:
        for descriptor, _ in self._epoll.poll(self._wait()):
            if descriptor == self._bell:
                os.eventfd_read(self._bell)
                continue
            watched = self._watched.get(descriptor)  # one before it in this round may have let go of it
            if watched is not None:
                self._call(watched[1])
        self._ring()
        for _ in range(len(self._soon)):
            self._call(self._soon.popleft())

    def _wait(self) -> float:
        if self._soon:
            return 0.0
        while self._timers and self._timers[0][2].action is None:
            self._pop()
        left = self._timers[0][0] - time.monotonic() if self._timers else _LONGEST_WAIT_SECONDS
        return min(max(left, 0.0), _LONGEST_WAIT_SECONDS)

    def _ring(self) -> None:
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
            # The probes of all other containers must go on.
            log.exception("an action of the probes' thread failed")
