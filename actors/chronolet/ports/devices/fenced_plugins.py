"""Wraps `DevicePlugins` for one effect: checks before each call that the effect may still act. Every call passes a
crash point before it; a call that changes something also passes one after it.

Input: calls from an effect's worker. Output: the same calls to `DevicePlugins`. Next: `adapters.device_plugins`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chronolet.kernel.effects.slot import LostOwnership
from chronolet.kernel.kind import EffectContext
from chronolet.ports.devices.plugins import DevicePlugins, Following, Listing, PluginRefusal, Register, Registering
from chronolet_schemas.devices import Answer, PluginOptions


class FencedPlugins:
    """Forwards the calls of one run of one effect to `DevicePlugins`. Raises `PluginRefusal`, and the kernel's
    `LostOwnership` if the effect may no longer act.
    """

    def __init__(self, plugins: DevicePlugins, context: EffectContext) -> None:
        self._plugins = plugins
        self._context = context

    def serve(self, register: Register, opened: Callable[[], None]) -> None:
        self._context.fence("plugins.serve")

        def listening() -> None:
            self._context.done("plugins.serve")
            opened()

        self._plugins.serve(self._with_crash_point(register), listening, self._context.cancelled)

    def watch(self, register: Register, left: Callable[[str], None]) -> None:
        self._context.fence("plugins.watch")
        self._plugins.watch(self._with_crash_point(register), left, self._context.cancelled)

    def options(self, socket: str) -> PluginOptions:
        self._context.fence("plugins.options")
        return self._plugins.options(socket)

    def follow(
        self,
        socket: str,
        listed: Callable[[Listing], None],
        ended: Callable[[PluginRefusal], None],
        failed: Callable[[BaseException], None],
    ) -> Callable[[], None]:
        """Follow a plugin's device lists. While the lease is lost, the plugin is not called; the call is retried until
        the lease is valid again.
        """

        def may() -> bool:
            try:
                self._context.fence("plugins.list")
            except LostOwnership:
                return False
            return True

        return self._plugins.follow(socket, Following(listed, ended, failed, may))

    def preferred(self, socket: str, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        self._context.fence("plugins.preferred")
        return self._plugins.preferred(socket, available, must_include, size)

    def allocate(self, socket: str, devices: Sequence[str]) -> Sequence[Answer]:
        self._context.fence("plugins.allocate")
        answers = self._plugins.allocate(socket, devices)
        self._context.done("plugins.allocate")
        return answers

    def pre_start(self, socket: str, devices: Sequence[str]) -> None:
        self._context.fence("plugins.prestart")
        self._plugins.pre_start(socket, devices)
        self._context.done("plugins.prestart")

    def _with_crash_point(self, register: Register) -> Register:
        """Add a crash point after `register`. No fence is needed: after a kill, plugins register at a new socket."""

        def wrapped(request: Registering) -> str:
            problem = register(request)
            self._context.done("plugins.register")
            return problem

        return wrapped
