"""What registries are told, as the pod's image worker needs it.

Comes in: an image, and which Secrets a pod may use. Goes out: credentials in the order in which they are tried.
Implementation: `adapters.registry_keys`. Answers to pkg/credentialprovider (DockerKeyring).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from chronolet.rules.names.image_names import ImageName
from chronolet.rules.names.registry_keys import Credential


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """`credentials` may be empty: the registry is asked without any. `lost` are the Secrets that could not be read.

    `remarks` are lines about what else could not be had, for whoever wonders why a registry refuses.
    """

    credentials: Sequence[Credential] = ()
    lost: Sequence[str] = ()
    remarks: Sequence[str] = ()


class Keyring(Protocol):
    """All credentials that there are."""

    def find(self, image: ImageName, digests: Sequence[str]) -> Found:
        """For this image, by the Secrets of these digests and then by the node's own configuration."""


class NoKeys:
    """A `Keyring` for nodes without any."""

    def find(self, image: ImageName, digests: Sequence[str]) -> Found:
        del image
        return Found(lost=digests)
