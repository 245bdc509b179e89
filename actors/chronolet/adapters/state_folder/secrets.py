"""Secrets as files `secrets/<digest>` below the state folder. Only the files' owner can read them.

Input: Secrets. Output: files, written atomically, and their content. Next: `node.composition.wiring`, `cli.services`.

The digest is computed with a key that is stored next to the files, so that a digest in the log is useless for guessing
passwords. A file is written before the log refers to it, and removed only when the log no longer does: a crash in
between may leave an extra file, but never a missing one. Recent files are not removed, because the log may soon refer
to them.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from chronolet.adapters.state_folder.whole_files import sync_folder, write_whole
from chronolet.ports.pods.secrets import FoundSecret, Secret, SecretRefusal

_FOLDER = "secrets"
_KEY = "key"
_NODE = "node"
_KEY_BYTES = 32
_DIGEST = re.compile(r"[0-9a-f]{32}")
_OURS = re.compile(r"[0-9a-f]{32}|\.[0-9a-f]{32}-\w+")
"""Names of stored Secrets, and of unfinished files left by writers that were killed."""
YOUNG_SECONDS = 60.0
"""Minimum age for removal: the time that a writer may need to record a file in the log."""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    source: str
    namespace: str
    name: str
    type: str
    data: Mapping[str, bytes]


_decode = msgspec.json.Decoder(_File).decode


class SecretFiles:
    """Implements `ports.pods.secrets.Secrets` in this node's state folder. Processes other than the agent only create
    files.
    """

    def __init__(self, root: Path, node: str, young_seconds: float = YOUNG_SECONDS) -> None:
        self._folder = root / _FOLDER
        self._node = node
        self._young_seconds = young_seconds

    def prepare(self) -> None:
        """Create the folder with its key and the node's name; called by the node's agent. Raises OSError."""
        self._folder.mkdir(0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        key = self._folder / _KEY
        if not key.exists():
            made = self._folder / f".{_KEY}-{os.getpid()}"
            write_whole(made, secrets.token_bytes(_KEY_BYTES))
            with contextlib.suppress(FileExistsError):  # another process of the node has created the key
                os.link(made, key)
            made.unlink()
        node = self._folder / _NODE
        if not node.exists() or node.read_text() != self._node:
            write_whole(node, self._node.encode())

    def keep(self, secret: Secret, source: str) -> str:
        try:
            self._check_node()
            content = msgspec.json.encode(
                _File(
                    node=self._node,
                    source=source,
                    namespace=secret.namespace,
                    name=secret.name,
                    type=secret.type,
                    data=dict(sorted(secret.data.items())),
                )
            )
            digest = self.seal(content)
            write_whole(self._folder / digest, content, like_folder=True)
        except OSError as error:
            raise SecretRefusal(
                f"Secret {secret.key} cannot be stored in {self._folder}: {error.strerror or error}; apply it "
                f"on the machine of node {self._node}, as a user with write access, with the agent's own --root-dir"
            ) from error
        return digest

    def _check_node(self) -> None:
        found = (self._folder / _NODE).read_text()
        if found != self._node:
            raise SecretRefusal(
                f"{self._folder} belongs to node {found}, expected {self._node}: use that node's own --root-dir"
            )

    def read(self, digest: str) -> Secret | None:
        found = self._file(digest) if _DIGEST.fullmatch(digest) else None
        return _secret(found) if found else None

    def all(self) -> Sequence[FoundSecret]:
        named = sorted(self._named(_DIGEST), key=lambda one: one[1])
        read = ((self._file(digest), digest) for digest, _ in named)
        return [
            FoundSecret(_secret(found), found.source, digest)
            for found, digest in read
            if found and found.node == self._node
        ]

    def unused(self, used: Collection[str]) -> Sequence[str]:
        # A negative age means that the clock was set back; treat the file as old.
        ages = ((digest, time.time() - changed) for digest, changed in self._named(_OURS) if digest not in used)
        return [digest for digest, age in ages if not 0 <= age < self._young_seconds]

    def remove(self, digest: str) -> None:
        if not _OURS.fullmatch(digest):
            return
        try:
            (self._folder / digest).unlink(missing_ok=True)
            sync_folder(self._folder)
        except OSError as error:
            raise SecretRefusal(f"{self._folder / digest}: cannot be removed: {error.strerror or error}") from error

    def seal(self, content: bytes) -> str:
        key = (self._folder / _KEY).read_bytes()
        return hmac.new(key, content, hashlib.sha256).hexdigest()[:32]

    def _named(self, names: re.Pattern[str]) -> list[tuple[str, float]]:
        """Return the names of the files that match `names`, with their modification times."""
        found: list[tuple[str, float]] = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                if names.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        found.append((entry.name, entry.stat().st_mtime))
        return found

    def _file(self, digest: str) -> _File | None:
        try:
            return _decode((self._folder / digest).read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None


def _secret(found: _File) -> Secret:
    return Secret(namespace=found.namespace, name=found.name, type=found.type, data=found.data)
