"""Wraps `DevicePlugins` for one effect: checks the lease before each call, and passes crash points around it.

Input: the calls of an effect's worker. Output: the same calls to `DevicePlugins`. Next: their adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chronolet.kernel.effects.slot import LostOwnership
from chronolet.kernel.kind import EffectContext
from chronolet.ports.devices.plugins import DevicePlugins, Following, Listing, PluginRefusal, Register, Registering
from chronolet_schemas.devices import Answer, PluginOptions


class FencedPlugins:
    """The `DevicePlugins` for one run of one effect. Raises their errors and the kernel's `LostOwnership`."""

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
        """Follow a plugin's lists. Without the lease the plugin is not called; retried once the lease is back."""

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
        """Add a crash point after `register`. It needs no fence: after a kill the plugin registers at a new socket."""

        def wrapped(request: Registering) -> str:
            problem = register(request)
            self._context.done("plugins.register")
            return problem

        return wrapped
