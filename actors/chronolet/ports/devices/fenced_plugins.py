"""Device plugins as one effect may use them: the lease is checked before each call, and crash points stand around it.

Comes in: the calls of an effect's worker. Goes out: the same calls to `DevicePlugins`. Next: their adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chronolet.kernel.effects.runner import LostOwnership
from chronolet.kernel.kind import EffectContext
from chronolet.ports.devices.plugins import DevicePlugins, Following, Listing, PluginRefusal, Register, Registering
from chronolet_schemas.devices import Answer, PluginOptions


class FencedPlugins:
    """`DevicePlugins` for one run of one effect. Raises what they raise, and the kernel's own `LostOwnership`."""

    def __init__(self, plugins: DevicePlugins, context: EffectContext) -> None:
        self._plugins = plugins
        self._context = context

    def serve(self, register: Register, opened: Callable[[], None]) -> None:
        self._context.fence("plugins.serve")

        def told() -> None:
            self._context.done("plugins.serve")
            opened()

        self._plugins.serve(self._noted(register), told, self._context.cancelled)

    def watch(self, register: Register, left: Callable[[str], None]) -> None:
        self._context.fence("plugins.watch")
        self._plugins.watch(self._noted(register), left, self._context.cancelled)

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
        """Without the lease the plugin is not called, and asked for as soon as it is back."""

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

    def _noted(self, register: Register) -> Register:
        """A plugin that registered before the kill registers again, for the socket is made anew: no fence."""

        def noted(asked: Registering) -> str:
            problem = register(asked)
            self._context.done("plugins.register")
            return problem

        return noted
