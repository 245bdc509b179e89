"""A `Desk` at which plugins register, and functions that read their device lists, for tests of plugins over real
sockets.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from chronolet.adapters.device_plugins.timing import Patience
from chronolet.adapters.sockets import unix_sockets
from chronolet.ports.devices.plugins import Following, Listing, PluginRefusal, Registering
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

RESOURCE = "example.com/thing"
SOCKETS = unix_sockets.Timing(check_seconds=0.05, grace_seconds=0.05, alive_seconds=HANG_SECONDS)
"""Short intervals, so that a test's servers and watchers stop quickly: they notice a stop within `check_seconds`."""
SHORT = Patience(connect=1, allocate=0.5, introduce=HANG_SECONDS, sockets=SOCKETS)
PATIENT = Patience(
    connect=HANG_SECONDS,
    options=HANG_SECONDS,
    preferred=HANG_SECONDS,
    allocate=HANG_SECONDS,
    pre_start=HANG_SECONDS,
    introduce=HANG_SECONDS,
    sockets=SOCKETS,
)


@dataclass
class Desk:
    """Registers plugins. It records their registrations, and refuses those for which `problem` returns a text."""

    plugins: GrpcDevicePlugins
    folder: Path
    watched: Path
    problem: Callable[[Registering], str] = lambda _: ""
    noticed: Callable[[], None] = lambda: None
    opened: int = 0
    left: list[str] = field(default_factory=list)
    failed: list[PluginRefusal] = field(default_factory=list)
    """Why the last service ended on its own; empty if it was stopped."""
    registered: queue.SimpleQueue[Registering] = field(default_factory=queue.SimpleQueue)

    def register(self, asked: Registering) -> str:
        self.registered.put(asked)
        return self.problem(asked)

    def next(self) -> Registering:
        return self.registered.get(timeout=HANG_SECONDS)

    def _opened(self) -> None:
        self.noticed()
        self.opened += 1

    @contextmanager
    def serving(self, *, watching: bool = False) -> Iterator[None]:
        """Serve the registration socket during the block or, if `watching` is set, watch the folder. Raises
        PluginRefusal if the socket cannot be served.
        """
        stop, failed = threading.Event(), list[PluginRefusal]()
        self.failed = failed

        def work() -> None:
            try:
                if watching:
                    self.plugins.watch(self.register, self.left.append, stop)
                else:
                    self.plugins.serve(self.register, self._opened, stop)
            except PluginRefusal as refusal:
                failed.append(refusal)

        before = self.opened
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            scratch.wait_until(lambda: watching or self.opened > before or bool(failed), "the registration socket")
            if failed:
                raise failed[0]
            yield
        finally:
            stop.set()
            thread.join(HANG_SECONDS)
            assert not thread.is_alive()


@contextmanager
def listing(desk: Desk, path: str) -> Iterator[queue.SimpleQueue[Listing | PluginRefusal]]:
    """Yield a queue of a plugin's device lists, followed by the reason why the stream ended."""
    news, failed = queue.SimpleQueue[Listing | PluginRefusal](), list[BaseException]()
    stop = desk.plugins.follow(path, Following(news.put, news.put, failed.append))
    try:
        yield news
    finally:
        stop()
        assert not failed


def listed(news: queue.SimpleQueue[Listing | PluginRefusal]) -> dict[str, str]:
    """Return the health of each device in the next list."""
    latest = news.get(timeout=HANG_SECONDS)
    assert isinstance(latest, Listing), latest
    return {one.id: one.health for one in latest.devices}


def ended(news: queue.SimpleQueue[Listing | PluginRefusal]) -> PluginRefusal:
    """Return why the stream ended; earlier lists are skipped."""
    while isinstance(one := news.get(timeout=HANG_SECONDS), Listing):
        pass
    return one


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
