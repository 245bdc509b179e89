"""Devices by the names of the Container Device Interface, for engines that do not know them.

Comes in: names, vendor/class=name. Goes out: what a container that is to have them is made with, or `CdiRefusal`.
Implementation: `adapters.cdi`. Source: the specification of tags.cncf.io/container-device-interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from chronolet_schemas.devices import DeviceNode, Mount


class CdiRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """A device is not known, or what it needs cannot be done; the message names it."""


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """What is added to a container."""

    envs: dict[str, str] = msgspec.field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    groups: tuple[int, ...] = ()


class Cdi(Protocol):
    """The specifications that lie on the host."""

    def edits(self, names: Sequence[str]) -> Edits:
        """All that these devices need. CdiRefusal."""


class NoCdi:
    """A host without any."""

    def edits(self, names: Sequence[str]) -> Edits:
        if names:
            raise CdiRefusal(f"unresolvable CDI devices {', '.join(names)}")
        return Edits()
