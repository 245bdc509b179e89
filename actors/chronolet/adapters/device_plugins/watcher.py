"""The folder of plugins that are found by their sockets, plugins_registry.

Comes in: sockets that come and go. Goes out: `Registering`, and the sockets of those that left. Next: the worker of
WatchPlugins. Answers to pkg/kubelet/pluginmanager (pluginwatcher, reconciler, operationexecutor).

Here the node calls the plugin: GetInfo, and then NotifyRegistrationStatus. What does not answer is asked again, at
growing distances. Names that begin with a dot are passed over, as the kubelet does.
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

from chronolet.adapters.machine.inotify import Bell
from chronolet.adapters.sockets import unix_sockets
from chronolet.adapters.sockets.unix_sockets import Identity, identity
from chronolet.ports.devices.plugins import PluginRefusal, Register

log = structlog.get_logger("chronolet.devices")

_ASK_SECONDS = 5.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 120.0
_DEEPEST = 4


class Known(Struct):
    """A socket of the folder. `endpoint` is where its plugin is, once it has registered."""

    identity: Identity
    endpoint: str = ""
    settled: bool = False
    pause: float = _FIRST_PAUSE_SECONDS
    again_at: float = 0.0


class Watch:
    """One run of `DevicePlugins.watch`."""

    def __init__(self, folder: Path, register: Register, left: Callable[[str], None], stop: threading.Event) -> None:
        self._folder = folder
        self._register = register
        self._left = left
        self._stop = stop
        self._known: dict[str, Known] = {}

    def run(self) -> None:
        """Until `stop`. PluginRefusal if the folder cannot be made."""
        try:
            self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as error:
            raise PluginRefusal("failed", f"{self._folder}: {error.strerror or error}") from error
        with _bell(self._folder) as wait:
            while not self._stop.is_set():
                self.look()
                wait(self._stop)

    def look(self) -> None:
        """One look at all sockets."""
        there = dict(_sockets(self._folder))
        for socket in [one for one, known in self._known.items() if there.get(one) != known.identity]:
            self._forget(socket)
        for socket, which in there.items():
            known = self._known.setdefault(socket, Known(which))
            if not known.settled and known.again_at <= time.monotonic() and not self._stop.is_set():
                self._meet(socket, known)

    def _forget(self, socket: str) -> None:
        known = self._known.pop(socket)
        if known.endpoint:
            self._left(known.endpoint)

    def _meet(self, socket: str, known: Known) -> None:
        try:
            known.endpoint = self._introduced(socket)
            known.settled = True
        except PluginRefusal as refusal:
            log.warning(
                "a plugin in the watched folder does not answer; asking again", socket=socket, error=str(refusal)
            )
            known.again_at = time.monotonic() + known.pause
            known.pause = min(known.pause * 2, _LONGEST_PAUSE_SECONDS)

    def _introduced(self, socket: str) -> str:
        """Where the plugin is, empty for one that may not register. PluginRefusal if it does not answer."""
        from chronolet.adapters.device_plugins import calls, wire  # noqa: PLC0415 - loads grpc
        from chronolet_schemas.protos import pluginregistration_pb2 as api  # noqa: PLC0415

        info: api.PluginInfo = calls.ask(socket, calls.INFO, api.InfoRequest(), _ASK_SECONDS)
        if info.type == wire.DEVICE_PLUGIN:
            asked = wire.found_registering(info, socket, str(self._folder))
            problem = self._register(asked)
        else:
            asked, problem = None, f"no handler registered for plugin type: {info.type} at socket {socket}"
        status = api.RegistrationStatus(plugin_registered=not problem, error=problem)
        with contextlib.suppress(PluginRefusal):  # it is registered, whether it hears so or not
            calls.ask(socket, calls.NOTIFY, status, _ASK_SECONDS)
        return asked.endpoint if asked and not problem else ""


def _sockets(folder: Path, deep: int = 0) -> Iterator[tuple[str, Identity]]:
    """All sockets below the folder."""
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
def _bell(folder: Path) -> Iterator[Callable[[threading.Event], object]]:
    """How to wait for a second, or less if something happens in the folder itself."""
    try:
        bell = Bell(folder)
    except OSError:  # the machine's watches are used up: once a second has to do
        yield lambda stop: stop.wait(unix_sockets.SLICE_SECONDS)
        return
    try:
        yield (
            lambda stop: (
                bell.wait(unix_sockets.SLICE_SECONDS) if bell.standing else stop.wait(unix_sockets.SLICE_SECONDS)
            )
        )
    finally:
        bell.close()
