"""Signals of the manifest folder watch.

Input: none. Output: the Signal Structs that `effects` sends, with uids from `identity.file_uid`. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet_schemas.envelope import Message, Signal
from chronolet_schemas.podspec import Pod


class FilePod(Message, frozen=True, kw_only=True):
    """A pod from a file, defaulted and validated. `uid` is its `identity.file_uid`, `digest` its podspec digest."""

    uid: str
    digest: str
    manifest: Pod


class FileSecret(Message, frozen=True, kw_only=True):
    """A Secret from a file; `secret` is its namespace/name. Its data has been written to the state folder."""

    secret: str
    type: str
    digest: str


class FileRead(Signal, frozen=True, kw_only=True):
    """A manifest file was read. It has either `errors`, which make the whole file unusable, or pods and Secrets
    (possibly none).

    `digest` covers the file's bytes. If they may include a Secret, the digest is keyed per node, so that it cannot be
    used to guess a password. Findings and errors are lines that name file, path, what was found and what was expected.
    """

    path: str
    digest: str
    pods: Sequence[FilePod] = ()
    findings: Sequence[str] = ()
    errors: Sequence[str] = ()
    secrets: Sequence[FileSecret] = ()


class FileGone(Signal, frozen=True, kw_only=True):
    """A manifest file no longer exists."""

    path: str


class FolderListed(Signal, frozen=True, kw_only=True):
    """The folder was listed completely; a FileRead has been sent for each of its files."""

    path: str
    files: Sequence[str]


class FolderUnreadable(Signal, frozen=True, kw_only=True):
    """The folder cannot be listed."""

    path: str
    error: str
