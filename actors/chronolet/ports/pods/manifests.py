"""The ports to the manifest folder and to the parser of its files, for the manifests actor.

Output: `FolderNews`, `Parsed`. Implementations: `adapters.manifest_files.watched_folder`, `adapters.manifest_files`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from chronolet.ports.pods.secrets import Secret
from chronolet_schemas.podspec import Finding, ManifestError, Pod


class ManifestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest file with its content. `error`: why the content could not be read; empty if it was read."""

    path: str
    name: str
    content: bytes = b""
    error: str = ""


class FolderNews(msgspec.Struct, frozen=True, kw_only=True):
    """The changes since the previous `FolderNews`. If there is an `error`, the folder could not be listed, and all
    other fields are empty.

    `gone`: the paths of removed files. `files`: the paths of all manifest files in the folder. `complete`: whether
    `changed` contains all of these files.
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
        """Path of the folder or file."""

    def follow(self, stop: threading.Event) -> Iterator[FolderNews]:
        """Yield the complete folder first, then its changes, until `stop`. After an error, yield the complete folder
        again.
        """


class Parsed(Protocol):
    """The parsed content of a file."""

    @property
    def pods(self) -> Sequence[Pod]:
        """The file's pods, with defaults applied; empty if there are errors."""

    @property
    def secrets(self) -> Sequence[Secret]:
        """The file's Secrets; empty if there are errors."""

    @property
    def errors(self) -> Sequence[ManifestError]:
        """Why the file cannot be used; empty if it can."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Fields that are not honoured."""


class Reader(Protocol):
    """Parses `content`, the content of the manifest file `name`."""

    def __call__(self, content: bytes, name: str) -> Parsed: ...
