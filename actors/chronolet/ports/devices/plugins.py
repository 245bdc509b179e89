"""The port to device plugins: they register, list their devices and answer calls.

Input: plugins' sockets. Output: their registrations, lists and answers, or `PluginRefusal`. Implementation:
`adapters.device_plugins`, over gRPC; it has no fake, since `chronolet_sample_plugin` is a plugin without hardware.
Source: k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 and pluginregistration/v1,
pkg/kubelet/cm/devicemanager/plugin/v1beta1, pkg/kubelet/pluginmanager/pluginwatcher.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from chronolet_schemas.devices import Answer, DeviceInfo, PluginOptions

RefusalKind = Literal["away", "late", "failed"]


class PluginRefusal(Exception):  # noqa: N818 - a plugin's answer, expected by every caller
    """A plugin refused a call or did not answer.

    `away`: nothing listens on the socket, or the connection was lost; a retry may succeed. `late`: no answer in time.
    `failed`: any other error. The message has the wording of the kubelet's client.
    """

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind


class Registering(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin's request to register.

    `versions`: the API versions it supports; exactly one over the registration socket. `endpoint`: its socket, as a
    file name in `folder` or as a path. `options` is None if it sent none.
    """

    by: Literal["registration", "watcher"]
    resource: str
    versions: tuple[str, ...]
    endpoint: str
    folder: str
    options: PluginOptions | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """One complete device list of a plugin. `skipped`: earlier lists that were dropped because they came too fast."""

    devices: tuple[DeviceInfo, ...]
    skipped: int = 0


class Following(NamedTuple):
    """Callbacks of one plugin's stream of lists. None may block: all streams share a thread."""

    listed: Callable[[Listing], None]
    ended: Callable[[PluginRefusal], None]
    """Called once, when the stream ends (even normally) or cannot be opened. Not called after a stop."""
    failed: Callable[[BaseException], None]
    """Called instead of `ended` on any other error, such as an exception in `listed`."""
    may: Callable[[], bool] = lambda: True
    """Checked before the plugin is called; if False, checked again after a pause."""


Register = Callable[[Registering], str]
"""Handles a registration; returns what is wrong with it, or an empty text. Called on any thread."""


class DevicePlugins(Protocol):
    """The device plugins. Calls raise `PluginRefusal`; those with a `stop` return soon after it is set. Sockets are
    absolute paths.
    """

    def serve(self, register: Register, opened: Callable[[], None], stop: threading.Event) -> None:
        """Recreate the registration socket and serve it until `stop`. `opened` is called once it listens, before any
        plugin's call, so that registrations at the new socket are not mistaken for earlier ones.

        Existing sockets in its folder are removed first, as plugins expect from a starting kubelet.
        """

    def watch(self, register: Register, left: Callable[[str], None], stop: threading.Event) -> None:
        """Watch the folder of plugins that are discovered by their sockets, until `stop`. `left` receives the socket of
        a plugin whose socket has vanished.
        """

    def options(self, socket: str) -> PluginOptions:
        """The optional calls that the plugin supports. Waits for a plugin that does not listen yet."""

    def follow(self, socket: str, following: Following) -> Callable[[], None]:
        """Report its lists as they arrive, until the returned function is called. Neither blocks; both are thread-safe.
        Waits a while for a plugin that does not listen yet.
        """

    def preferred(self, socket: str, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        """The `size` devices that the plugin prefers for one container; empty if it has no preference."""

    def allocate(self, socket: str, devices: Sequence[str]) -> Sequence[Answer]:
        """Allocate these devices for one container; returns the plugin's answers, normally exactly one."""

    def pre_start(self, socket: str, devices: Sequence[str]) -> None:
        """Notify the plugin that the container with these devices is about to start."""
