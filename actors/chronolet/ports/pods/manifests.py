"""The manifest folder, and the reading of its files, as the manifests actor needs them.

Comes in: nothing. Goes out: `FolderNews`. Implementations: `adapters.manifest_folder`, `adapters.manifest_files`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from chronolet.ports.pods.secrets import Secret
from chronolet_schemas.podspec import Finding, ManifestError, Pod


class ManifestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was just read. With an `error`, its content could not be had."""

    path: str
    name: str
    content: bytes = b""
    error: str = ""


class FolderNews(msgspec.Struct, frozen=True, kw_only=True):
    """What changed since the last news. With an `error`, the folder could not be listed, and nothing else is said.

    `files` are all of the folder's manifest files by path; `complete` says that all of them are among `changed`.
    """

    changed: Sequence[ManifestFile] = ()
    gone: Sequence[str] = ()
    files: Sequence[str] = ()
    complete: bool = False
    error: str = ""


class Folder(Protocol):
    """A folder with manifest files (or one such file)."""

    @property
    def path(self) -> str:
        """Where it is."""

    def follow(self, stop: threading.Event) -> Iterator[FolderNews]:
        """First all of it, then what changes, until `stop`. After an error has passed, all of it again."""


class Parsed(Protocol):
    """What a file holds."""

    @property
    def pods(self) -> Sequence[Pod]:
        """Its pods, defaulted; none where there are errors."""

    @property
    def secrets(self) -> Sequence[Secret]:
        """Its Secrets; none where there are errors."""

    @property
    def errors(self) -> Sequence[ManifestError]:
        """Why it cannot be used."""

    @property
    def findings(self) -> Sequence[Finding]:
        """What is not honoured."""


class Reader(Protocol):
    """Turns a file's content into pods."""

    def __call__(self, content: bytes, name: str) -> Parsed: ...
