"""Device plugins, as devices needs them: they register, they list their devices, they are asked.

Comes in: sockets of plugins. Goes out: what they say, or `PluginRefusal`. Implementation: `adapters.device_plugins`,
by gRPC; there is no fake of it, for `chronolet_sample_plugin` is a plugin without devices. Source:
k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 and pluginregistration/v1, pkg/kubelet/cm/devicemanager/plugin/v1beta1,
pkg/kubelet/pluginmanager/pluginwatcher.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from chronolet_schemas.devices import Answer, DeviceInfo, PluginOptions

RefusalKind = Literal["away", "late", "failed"]


class PluginRefusal(Exception):  # noqa: N818 - a plugin's answer, expected by every caller
    """A plugin said no, or nothing.

    `away`: nobody listens, or who did has gone; it may come back and be asked again. `late`: no answer in time.
    The message is as the kubelet's client puts it.
    """

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind


class Registering(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin that wants to register.

    `versions` are those it speaks; over the registration socket it is one. `endpoint` is what it named: a file name in
    `folder`, or a path. `options` is None where they were not said.
    """

    by: Literal["registration", "watcher"]
    resource: str
    versions: tuple[str, ...]
    endpoint: str
    folder: str
    options: PluginOptions | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """One list of a plugin, whole. `skipped` lists before it came faster than they are told, and were not."""

    devices: tuple[DeviceInfo, ...]
    skipped: int = 0


class Following(NamedTuple):
    """Callbacks of one plugin's stream of lists. None of them may wait: all streams share a thread."""

    listed: Callable[[Listing], None]
    ended: Callable[[PluginRefusal], None]
    """Called once, when the stream has ended, also in good order, or could not be had. Not after it was stopped."""
    failed: Callable[[BaseException], None]
    """Called instead of `ended` when something else went wrong, such as an error in `listed`."""
    may: Callable[[], bool] = lambda: True
    """Asked before the plugin is called, and again after a while if it says no."""


Register = Callable[[Registering], str]
"""Takes a plugin; answers what is wrong with it, or nothing. Called from any thread."""


class DevicePlugins(Protocol):
    """Calls raise `PluginRefusal`; those with a stop return soon after it is set. Sockets are absolute paths."""

    def serve(self, register: Register, opened: Callable[[], None], stop: threading.Event) -> None:
        """Make the registration socket anew and serve it until `stop`; `opened` is called once it listens, before any
        plugin's call: who registers at a new socket must not be taken for one of those before it.

        Sockets that lie in its folder are removed first, as plugins expect it of a kubelet that starts.
        """

    def watch(self, register: Register, left: Callable[[str], None], stop: threading.Event) -> None:
        """Watch the folder of plugins that are found by their sockets, until `stop`; `left` is told the socket of a
        plugin whose own one has vanished.
        """

    def options(self, socket: str) -> PluginOptions:
        """What the plugin wants to be asked. One that does not listen yet is waited for."""

    def follow(self, socket: str, following: Following) -> Callable[[], None]:
        """Report its lists as they come, until what is returned is called. Neither waits; both may be called from any
        thread. A plugin that does not listen yet is waited for a while.
        """

    def preferred(self, socket: str, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        """Which devices it would give to one container; none if it does not say."""

    def allocate(self, socket: str, devices: Sequence[str]) -> Sequence[Answer]:
        """Allocate these devices for one container: the answers it gave, of which there should be one."""

    def pre_start(self, socket: str, devices: Sequence[str]) -> None:
        """The container with these devices is about to start."""
