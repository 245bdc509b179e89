"""The port to device plugins, which register, list their devices and answer calls.

Input: plugins' sockets. Output: the plugins' registrations, device lists and answers, or `PluginRefusal`.
Implementation: `adapters.device_plugins`, over gRPC. There is no fake, since `chronolet_sample_plugin` is a plugin that
needs no hardware.
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

    `away`: nothing listens on the socket, or the connection was lost; a retry may succeed. `late`: the plugin did not
    answer in time. `failed`: any other error. The message has the wording of the kubelet's client.
    """

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind


class Registering(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin's request to register.

    `versions`: the API versions that the plugin supports; over the registration socket, exactly one. `endpoint`: the
    plugin's socket, as a file name in `folder` or as a path. `options` is None if the plugin sent none.
    """

    by: Literal["registration", "watcher"]
    resource: str
    versions: tuple[str, ...]
    endpoint: str
    folder: str
    options: PluginOptions | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """One complete device list from a plugin. `skipped`: number of earlier lists that were dropped because they
    arrived too quickly.
    """

    devices: tuple[DeviceInfo, ...]
    skipped: int = 0


class Following(NamedTuple):
    """Callbacks for one plugin's stream of device lists. They must not block: all streams share a thread."""

    listed: Callable[[Listing], None]
    ended: Callable[[PluginRefusal], None]
    """Called once, when the stream ends (even normally) or cannot be opened. Not called after a stop."""
    failed: Callable[[BaseException], None]
    """Called instead of `ended` on any other error, such as an exception in `listed`."""
    may: Callable[[], bool] = lambda: True
    """Returns whether the plugin may be called now; if not, `may` is called again after a pause."""


Register = Callable[[Registering], str]
"""Handles a registration; returns what is wrong with it, or an empty string. Called on any thread."""


class DevicePlugins(Protocol):
    """The device plugins. Calls raise `PluginRefusal`; those with a `stop` return soon after it is set. Sockets are
    absolute paths.
    """

    def serve(self, register: Register, opened: Callable[[], None], stop: threading.Event) -> None:
        """Recreate the registration socket and serve it until `stop`. `opened` is called once the server listens, and
        before any plugin's call, so that registrations at the new socket are not mistaken for earlier ones.

        Existing sockets in the same folder are removed first, as plugins expect from a starting kubelet.
        """

    def watch(self, register: Register, left: Callable[[str], None], stop: threading.Event) -> None:
        """Watch the folder in which plugins are discovered by their sockets, until `stop`. `left` is called with the
        path of each socket that has vanished.
        """

    def options(self, socket: str) -> PluginOptions:
        """Return which optional calls the plugin supports. Waits for a plugin that is not listening yet."""

    def follow(self, socket: str, following: Following) -> Callable[[], None]:
        """Report the plugin's device lists as they arrive, until the returned function is called. Neither this method
        nor the returned function blocks; both are thread-safe. Waits for a while for a plugin that is not listening
        yet.
        """

    def preferred(self, socket: str, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        """Return the `size` devices that the plugin prefers for one container; empty if it has no preference."""

    def allocate(self, socket: str, devices: Sequence[str]) -> Sequence[Answer]:
        """Allocate these devices for one container; returns the plugin's answers, normally exactly one."""

    def pre_start(self, socket: str, devices: Sequence[str]) -> None:
        """Notify the plugin that the container with these devices is about to start."""
