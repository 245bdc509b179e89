"""The port to a node's Secrets, stored outside its log: their data never enters Redis, a label, a log line or an error.

Input: Secrets from manifests. Output: digests, by which all other code refers to them. Next: the `manifests` actor and
`apply` store them, `adapters.images.registry_keys` reads them. Implementation: `adapters.state_folder.secrets`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A v1 Secret; `data` is decoded."""

    namespace: str
    name: str
    type: str
    data: Mapping[str, bytes]

    @property
    def key(self) -> str:
        """The Secret's key: namespace/name."""
        return f"{self.namespace}/{self.name}"

    def __repr__(self) -> str:
        return f"Secret({self.key}, {self.type})"


class FoundSecret(NamedTuple):
    """A stored Secret, the source that defined it (`apply` or `file:<path>`), and its digest."""

    secret: Secret
    source: str
    digest: str


class SecretRefusal(Exception):  # noqa: N818 - the disk's answer, expected by every caller
    """A Secret cannot be stored or removed; the message names what failed and why."""


class Secrets(Protocol):
    """The Secrets of a node."""

    def keep(self, secret: Secret, source: str) -> str:
        """Store a Secret durably, before it is used; returns its digest. Raises SecretRefusal."""

    def read(self, digest: str) -> Secret | None:
        """Return the Secret with this digest; None if it is missing or unreadable."""

    def all(self) -> Sequence[FoundSecret]:
        """Return all readable Secrets of this node, oldest first."""

    def unused(self, used: Collection[str]) -> Sequence[str]:
        """Return the digests of stored Secrets that can be removed: those that are not in `used` and were not written
        just now.
        """

    def remove(self, digest: str) -> None:
        """Remove the Secret with this digest; no-op if it is absent. Raises SecretRefusal."""

    def seal(self, content: bytes) -> str:
        """Return a keyed digest of `content`, from which the content cannot be derived, not even by guessing."""
