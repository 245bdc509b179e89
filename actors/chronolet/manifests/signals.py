"""What the watch of a manifest folder tells.

Comes in: nothing. Goes out: the Signal Structs that `effects` sends, built by `effects` with `identity.file_uid`. Next:
`decider`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet_schemas.envelope import Message, Signal
from chronolet_schemas.podspec import Pod


class FilePod(Message, frozen=True, kw_only=True):
    """A pod that a file holds, defaulted and validated. `uid` is `identity.file_uid` of it, `digest` is podspec's."""

    uid: str
    digest: str
    manifest: Pod


class FileSecret(Message, frozen=True, kw_only=True):
    """A Secret that a file holds, `secret` its namespace/name: what it holds was put into the state folder."""

    secret: str
    type: str
    digest: str


class FileRead(Signal, frozen=True, kw_only=True):
    """A manifest file was read. Either `errors`, and then nothing of the file holds, or its pods and Secrets (maybe
    none).

    `digest` is of the file's bytes, by a key of the node's own: nobody is to guess a password by it. Findings and
    errors are lines that name file, path, what was found and expected.
    """

    path: str
    digest: str
    pods: Sequence[FilePod] = ()
    findings: Sequence[str] = ()
    errors: Sequence[str] = ()
    secrets: Sequence[FileSecret] = ()


class FileGone(Signal, frozen=True, kw_only=True):
    """A manifest file vanished."""

    path: str


class FolderListed(Signal, frozen=True, kw_only=True):
    """The folder was listed completely, and a FileRead was sent before this for every file of it."""

    path: str
    files: Sequence[str]


class FolderUnreadable(Signal, frozen=True, kw_only=True):
    """The folder cannot be listed."""

    path: str
    error: str
