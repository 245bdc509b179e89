"""Secrets, as a node keeps them beside its log: what they hold never enters Redis, a label, a log line or an error.

Comes in: Secrets as manifests have them. Goes out: digests, by which everybody else speaks of them. Next: the
`manifests` actor and `apply` keep them, `adapters.registry_keys` reads them. Implementation: `adapters.kept_secrets`.
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
        """By which it is known: namespace/name."""
        return f"{self.namespace}/{self.name}"

    def __repr__(self) -> str:
        return f"Secret({self.key}, {self.type})"


class FoundSecret(NamedTuple):
    """A Secret that is kept: by whose wish (`apply`, or a file's source), and under which digest."""

    secret: Secret
    source: str
    digest: str


class SecretRefusal(Exception):  # noqa: N818 - the disk's answer, expected by every caller
    """It cannot be kept; says what stands in the way and what to do."""


class Secrets(Protocol):
    """What a node keeps."""

    def keep(self, secret: Secret, source: str) -> str:
        """Keep it, before anybody is told of it; its digest. Raises SecretRefusal."""

    def read(self, digest: str) -> Secret | None:
        """What is kept under this digest, None if it is not to be had."""

    def all(self) -> Sequence[FoundSecret]:
        """All of this node that can be read, the oldest first."""

    def unused(self, used: Collection[str]) -> Sequence[str]:
        """What is kept and none of these digests names, and was not written just now; by names for `remove`."""

    def remove(self, digest: str) -> None:
        """Remove what is kept under it; nothing happens if that is nothing. Raises SecretRefusal."""

    def seal(self, content: bytes) -> str:
        """A digest from which nobody else can tell what the content was, not even by trying."""
