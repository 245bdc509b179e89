"""pykka actors that share one thread: for many small ones, each of which seldom has something to do.

Comes in: messages for them. Goes out: their `on_receive`, on the shared thread, one message after the other. Next:
whoever has so many of a sort, such as the prober. Otherwise they are what pykka says of actors: an inbox each, stopped
by `stop`, ended by what they raise (`on_failure`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import pykka


class SharedThread(Protocol):
    """The thread."""

    def soon(self, action: Callable[[], None]) -> None:
        """Call it on the thread, in order."""


class _Empty(Exception):  # noqa: N818 - ends a look into an inbox
    """An actor has done all that it was told."""


class _Inbox:
    """Asks for a look into it with each first message."""

    def __init__(self) -> None:
        self._waiting: deque[Any] = deque()
        self.look: Callable[[], None] | None = None

    def put(self, envelope: Any, /) -> None:
        self._waiting.append(envelope)
        if self.look is not None:
            self.look()

    def get(self) -> Any:
        if not self._waiting:
            raise _Empty
        return self._waiting.popleft()

    def empty(self) -> bool:
        return not self._waiting


class SharedActor(pykka.Actor):
    """`start(thread, ...)`: a subclass's `__init__` hands the thread on."""

    def __init__(self, thread: SharedThread) -> None:
        super().__init__()
        self._thread = thread

    # The four that pykka asks of a new sort of actor.

    @staticmethod
    def _create_actor_inbox() -> _Inbox:
        return _Inbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def _start_actor_loop(self) -> None:
        self._thread.soon(self._begin)

    def _begin(self) -> None:
        """On the thread. What was sent before waits in the inbox."""
        self._actor_loop_setup()
        inbox = self.actor_inbox
        assert isinstance(inbox, _Inbox)  # noqa: S101 - for the type checker
        inbox.look = partial(self._thread.soon, self._look)
        self._look()

    def _look(self) -> None:
        try:
            self._actor_loop_running()
        except _Empty:
            return
        self._actor_loop_teardown()
