"""The port to registry credentials, for the pod's image worker.

Input: an image, and the Secrets that a pod may use. Output: credentials in the order to try them.
Implementation: `adapters.images.registry_keys`. Source: pkg/credentialprovider (DockerKeyring).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from chronolet.rules.names.image_names import ImageName
from chronolet.rules.names.registry_keys import Credential


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials for one image. Empty `credentials`: pull anonymously. `lost`: Secrets that could not be read.

    `remarks`: lines about other sources that failed, to explain why a registry denies access.
    """

    credentials: Sequence[Credential] = ()
    lost: Sequence[str] = ()
    remarks: Sequence[str] = ()


class Keyring(Protocol):
    """The credentials available on the node."""

    def find(self, image: ImageName, digests: Sequence[str]) -> Found:
        """Credentials for `image`: first from the Secrets with these digests, then from the node's configuration."""


class NoKeys:
    """A `Keyring` for nodes without credentials."""

    def find(self, image: ImageName, digests: Sequence[str]) -> Found:
        del image
        return Found(lost=digests)
