"""Discover plugins by their sockets in the folder plugins_registry.

Input: sockets that appear and vanish. Output: `Registering`, and the endpoints of plugins whose sockets have
disappeared. Next: the worker of WatchPlugins. Corresponds to pkg/kubelet/pluginmanager (pluginwatcher, reconciler,
operationexecutor).

Unlike on the registration socket, the node calls the plugin here: GetInfo, then NotifyRegistrationStatus. An
unresponsive plugin is retried with back-off. As in the kubelet, names that begin with a dot are ignored.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog
from msgspec import Struct

from chronolet.adapters.device_plugins.timing import Patience
from chronolet.adapters.machine.inotify import FolderNotifier
from chronolet.adapters.sockets.unix_sockets import Identity, identity
from chronolet.ports.devices.plugins import PluginRefusal, Register

log = structlog.get_logger("chronolet.devices")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 120.0
_DEEPEST = 4


class WatchedSocket(Struct):
    """A socket in the folder. `endpoint` is the path at which its plugin serves; empty until the plugin registers.
    `settled`: the plugin was accepted or refused, and is not contacted again.
    """

    identity: Identity
    endpoint: str = ""
    settled: bool = False
    pause: float = _FIRST_PAUSE_SECONDS
    again_at: float = 0.0


class Watch:
    """One run of `DevicePlugins.watch`."""

    def __init__(
        self,
        folder: Path,
        register: Register,
        left: Callable[[str], None],
        stop: threading.Event,
        patience: Patience,
    ) -> None:
        self._patience = patience
        self._folder = folder
        self._register = register
        self._left = left
        self._stop = stop
        self._known: dict[str, WatchedSocket] = {}

    def run(self) -> None:
        """Watch until `stop` is set. Raises PluginRefusal if the folder cannot be created."""
        try:
            self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as error:
            raise PluginRefusal("failed", f"{self._folder}: {error.strerror or error}") from error
        with _notifier(self._folder, self._patience.sockets.check_seconds) as wait:
            while not self._stop.is_set():
                self.look()
                wait(self._stop)

    def look(self) -> None:
        """Scan the folder once: report vanished sockets, and contact plugins that are new or due for a retry."""
        there = dict(_sockets(self._folder))
        for socket in [one for one, known in self._known.items() if there.get(one) != known.identity]:
            self._forget(socket)
        for socket, which in there.items():
            known = self._known.setdefault(socket, WatchedSocket(which))
            if not known.settled and known.again_at <= time.monotonic() and not self._stop.is_set():
                self._contact(socket, known)

    def _forget(self, socket: str) -> None:
        known = self._known.pop(socket)
        if known.endpoint:
            self._left(known.endpoint)

    def _contact(self, socket: str, known: WatchedSocket) -> None:
        try:
            known.endpoint = self._introduced(socket)
            known.settled = True
        except PluginRefusal as refusal:
            log.warning("discovered plugin does not answer; retrying", socket=socket, error=str(refusal))
            known.again_at = time.monotonic() + known.pause
            known.pause = min(known.pause * 2, _LONGEST_PAUSE_SECONDS)

    def _introduced(self, socket: str) -> str:
        """Ask a plugin to introduce itself, and register it. Return its endpoint; empty if it may not register. Raises
        PluginRefusal if it does not respond.
        """
        from chronolet.adapters.device_plugins import calls, wire  # noqa: PLC0415 - loads grpc
        from chronolet_schemas.protos import pluginregistration_pb2 as api  # noqa: PLC0415

        info: api.PluginInfo = calls.ask(socket, calls.INFO, api.InfoRequest(), self._patience.introduce)
        if info.type == wire.DEVICE_PLUGIN:
            registering = wire.found_registering(info, socket, str(self._folder))
            problem = self._register(registering)
        else:
            registering, problem = None, f"no handler registered for plugin type: {info.type} at socket {socket}"
        status = api.RegistrationStatus(plugin_registered=not problem, error=problem)
        with contextlib.suppress(PluginRefusal):  # the registration holds even if this notification fails
            calls.ask(socket, calls.NOTIFY, status, self._patience.introduce)
        return registering.endpoint if registering and not problem else ""


def _sockets(folder: Path, deep: int = 0) -> Iterator[tuple[str, Identity]]:
    """Yield the sockets in the folder and its subfolders, at most `_DEEPEST` levels deep, except hidden ones."""
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        found = identity(entry.path)
        if found is not None:
            yield entry.path, found
        elif deep < _DEEPEST and entry.is_dir(follow_symlinks=False):
            yield from _sockets(Path(entry.path), deep + 1)


@contextlib.contextmanager
def _notifier(folder: Path, seconds: float) -> Iterator[Callable[[threading.Event], object]]:
    """Yield a function that waits for `seconds`, or until the folder itself changes."""
    try:
        notifier = FolderNotifier(folder)
    except OSError:  # out of inotify watches: fall back to polling
        yield lambda stop: stop.wait(seconds)
        return
    try:
        yield lambda stop: notifier.wait(seconds) if notifier.standing else stop.wait(seconds)
    finally:
        notifier.close()
