"""Multiplexes pykka actors onto one shared thread: for many small actors that are mostly idle.

Input: messages for the actors. Output: calls to their `on_receive`, on the shared thread, one message at a time. Next:
actors with many instances, such as the prober's. Apart from the thread, they behave like any pykka actor: each has an
inbox, `stop` stops it, and an exception ends it (`on_failure`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import pykka


class SharedThread(Protocol):
    """The interface of the thread that the actors share."""

    def soon(self, action: Callable[[], None]) -> None:
        """Queue `action` to be called on the thread. Actions are called in the order in which they were queued."""


class _Empty(Exception):  # noqa: N818 - ends a run of an actor's loop
    """Raised if the actor's inbox is empty, to leave the actor's loop."""


class _Inbox:
    """An inbox that schedules its actor whenever a message arrives."""

    def __init__(self) -> None:
        self._waiting: deque[Any] = deque()
        self.schedule: Callable[[], None] | None = None

    def put(self, envelope: Any, /) -> None:
        self._waiting.append(envelope)
        if self.schedule is not None:
            self.schedule()

    def get(self) -> Any:
        if not self._waiting:
            raise _Empty
        return self._waiting.popleft()

    def empty(self) -> bool:
        return not self._waiting


class SharedActor(pykka.Actor):
    """Base class of actors that share a thread. Start one with `start(thread, ...)`; a subclass's `__init__` passes
    `thread` to this class.
    """

    def __init__(self, thread: SharedThread) -> None:
        super().__init__()
        self._thread = thread

    # Methods that pykka requires of a new actor type.

    @staticmethod
    def _create_actor_inbox() -> _Inbox:
        return _Inbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def _start_actor_loop(self) -> None:
        self._thread.soon(self._begin)

    def _begin(self) -> None:
        """Start the actor's loop, on the shared thread. Messages sent earlier are already in the inbox."""
        self._actor_loop_setup()
        inbox = self.actor_inbox
        assert isinstance(inbox, _Inbox)  # noqa: S101 - for the type checker
        inbox.schedule = partial(self._thread.soon, self._run)
        self._run()

    def _run(self) -> None:
        try:
            self._actor_loop_running()
        except _Empty:
            return
        self._actor_loop_teardown()
