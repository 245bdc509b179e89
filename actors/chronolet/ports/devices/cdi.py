"""The port to Container Device Interface (CDI) specifications, for engines that do not support CDI themselves.

Input: device names, vendor/class=name. Output: the edits of a container that uses these devices, or `CdiRefusal`.
Implementation: `adapters.device_plugins.cdi`. Source: the specification of tags.cncf.io/container-device-interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from chronolet_schemas.devices import DeviceNode, Mount


class CdiRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """A device is unknown or needs an unsupported edit; the message names the device."""


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """Additions to a container."""

    envs: dict[str, str] = msgspec.field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    groups: tuple[int, ...] = ()


class Cdi(Protocol):
    """The CDI specifications on the host."""

    def edits(self, names: Sequence[str]) -> Edits:
        """The edits that these devices need. Raises CdiRefusal."""


class NoCdi:
    """A host without CDI specifications."""

    def edits(self, names: Sequence[str]) -> Edits:
        if names:
            raise CdiRefusal(f"unresolvable CDI devices {', '.join(names)}")
        return Edits()
